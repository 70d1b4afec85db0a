// The pages of one sequence in one layer group, in token order: page i holds tokens [i P, (i+1) P),
// P = page_size, open, sealed, or in both forms (cache/kv_shape.h says when). In a window group the
// pages that the next position does not see are gone.
//
// A table grows, settles after a step, shrinks and forks; it owns its uses of the pages. It never
// writes a token: kernels do, through view(). A page that somebody else holds too is copied before
// this table may write it.
//
// Not here: lengths, the budget and the prefix tree (cache/sequence_pages.h); where a value lies in
// a page (base/kv_layout.h).
//
// Threading: not thread-safe; owned by the engine thread. Between two changes any thread may use
// the view.
//
// Invariants (CheckInvariants(), page_table_test.cc), for a table of n tokens between two steps:
//   [cache.table.1] It has the pages from the first that position n sees to the last with a token,
//                   each in the forms that queries from n on read, and no others.
//   [cache.table.2] view() names the held pages.
//   [cache.table.3] After Grow(n, end), nobody else holds the open pages of tokens [n, end).
#pragma once

#include <cstdint>
#include <vector>

#include "base/kv_view.h"
#include "base/status.h"
#include "cache/kv_shape.h"
#include "cache/page_pool.h"

namespace quire {

class PageTable {
 public:
  // The table of group `group` of `shape`; both must outlive it. Space for the entries of
  // `max_length` tokens is taken now, so that growing up to there allocates nothing.
  PageTable(PagePool* pool, const KvShape* shape, uint32_t group, uint32_t max_length,
            AccountId account = 0);

  PageTable(PageTable&&) = default;
  PageTable& operator=(PageTable&&) = default;

  // What Grow(length, end) takes of the budget: open pages for the tokens [length, end), one to
  // copy a shared page into, and the sealed pages of those that become full.
  size_t BytesNeeded(uint32_t length, uint32_t end) const;
  // Requires: those bytes are free; length tokens are there; length <= end.
  void Grow(uint32_t length, uint32_t end);

  // After the step that computed tokens up to `length`, or in place of it if nothing was written:
  // gives back the pages behind `length`, the open forms that nobody will read and, in window
  // groups, what the next position, `next`, does not see. next = length, or length - 1 for a prompt
  // that was cached whole.
  void Settle(uint32_t length, uint32_t next);

  // For tables that begin with pages of others: the first page that there will be (requires an
  // empty table), and the next page, in one form or both.
  void SkipTo(uint32_t page);
  void Adopt(PageRef open, PageRef sealed);

  // A second table over the same pages.
  PageTable Fork(uint32_t max_length) const;

  uint32_t num_pages() const { return static_cast<uint32_t>(open_.size()); }
  uint32_t first_page() const { return first_page_; }  // none before it
  // A form of a page; empty if it is not held in that form.
  PageRef& open(uint32_t page) { return open_[page]; }
  PageRef& sealed(uint32_t page) { return sealed_[page]; }
  const PageRef& open(uint32_t page) const { return open_[page]; }
  const PageRef& sealed(uint32_t page) const { return sealed_[page]; }
  bool has_open(uint32_t page) const { return page < num_pages() && open_[page]; }
  // After a form was replaced by another page with the same bytes.
  void RefreshAddress(uint32_t page);

  // Valid until the next change of this table (moving it is none).
  KvView view() const;

  // Of a table of `length` tokens whose next query is at position `next`. kInternal with the
  // invariant's id if one is broken.
  Status CheckInvariants(uint32_t length, uint32_t next) const;

 private:
  const KvGroupShape& group() const { return shape_->groups[group_]; }

  PagePool* pool_;
  const KvShape* shape_;
  uint32_t group_;
  AccountId account_;  // of the pages that it takes
  uint32_t first_page_ = 0;
  std::vector<PageRef> open_, sealed_;                 // [num_pages]
  std::vector<std::byte*> open_bytes_, sealed_bytes_;  // of them, as kernels read them
};

}  // namespace quire
