// The pages of one sequence, in token order: page i holds tokens [i P, (i + 1) P), P = page_size.
//
// A table grows (Reserve), is cut (Truncate) and forks (Fork); it owns its holds on the pages.
// It never writes a token: kernels do, through view(). A page that another table holds too is
// copied before this table may write it.
//
// Not here: who is preempted when pages run out (the engine), which prefixes are known (later:
// the prefix tree), where a value lies in a page (base/kv_layout.h).
//
// Threading: not thread-safe; owned by the engine thread. Between two changes any thread may use
// the view.
//
// Invariants (CheckInvariants(), page_table_test.cc):
//   [cache.table.1] A table of n tokens holds exactly ceil(n / P) pages.
//   [cache.table.2] view() names the held pages, in order.
//   [cache.table.3] After Reserve or MakeWritable, no other holds a page of the range it was for.
//   [cache.table.4] A failed call changes nothing; no call writes a page that another table holds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/kv_view.h"
#include "base/status.h"
#include "cache/page_pool.h"

namespace quire {

class PageTable {
 public:
  // An empty table over `pool`, which must outlive it. Requires: page_size > 0. Space for the
  // entries of `max_length` tokens is taken now, so that growing up to there allocates nothing;
  // pages are taken by Reserve alone.
  PageTable(PagePool* pool, uint32_t page_size, uint32_t max_length = 0);

  // A moved-from table is empty.
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&& other) noexcept;

  // Makes length() at least `length`: the slots of tokens [old length, length) are there and may
  // be written. Takes the missing pages, and one more to copy the last page if it has free slots
  // and another table holds it too. All or nothing: kResourceExhausted if the pool has too few.
  Status Reserve(uint32_t length);

  // Makes the slots of tokens [begin, end) writable: copies those of their pages that others hold
  // too. For tokens that are there already; Reserve does it for new ones. All or nothing, as
  // above. Requires: begin <= end <= length().
  Status MakeWritable(uint32_t begin, uint32_t end);

  // Cuts to the first `length` tokens and gives back the pages behind. Requires: <= length().
  void Truncate(uint32_t length);

  // A second table over the same tokens. Takes no page: all are shared, and a partial last page is
  // copied by whichever of the two writes it first.
  PageTable Fork() const;

  // Tokens that have a slot.
  uint32_t length() const { return length_; }
  uint32_t page_size() const { return page_size_; }
  uint32_t num_pages() const { return static_cast<uint32_t>(pages_.size()); }
  // Pages that Reserve(length) would take now, copies included.
  uint32_t PagesNeeded(uint32_t length) const;
  const PageRef& page(uint32_t index) const { return pages_[index]; }

  // Valid until the next change of this table (moving it is none).
  KvView view() const { return {.pages = addresses_.data(), .num_pages = num_pages()}; }

  // kInternal with the invariant's id if one is broken.
  Status CheckInvariants() const;

 private:
  uint32_t NumPagesFor(uint32_t length) const;
  uint32_t NumSharedPages(uint32_t first_page, uint32_t end_page) const;
  // Takes pages for `num_new` new entries and for private copies of the shared pages of
  // [first_page, end_page).
  Status Take(uint32_t num_new, uint32_t first_page, uint32_t end_page);

  PagePool* pool_;
  uint32_t page_size_;
  uint32_t length_ = 0;
  std::vector<PageRef> pages_;
  std::vector<std::byte*> addresses_;  // of pages_, as kernels read them
};

}  // namespace quire
