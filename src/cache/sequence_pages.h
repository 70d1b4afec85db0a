// SequencePages: the pages of one sequence in all layer groups, and its place in the prefix tree.
//
// The life of a step: Reserve (all pages of the step, or none), the kernels write through views(),
// Commit (full pages become visible in the prefix tree; forms and window pages that nobody reads go
// back) or Cancel (as if nothing had been). A sequence ends with End, which leaves its pages in the
// tree, the open one too; its destructor gives them back without that.
//
// The tokens themselves are the caller's: it hands over all of them, from the first on.
//
// Threading: not thread-safe; owned by the engine thread. Must die before its cache.
//
// Invariants (CheckInvariants()): those of its tables, and
//   [cache.sequence.1] The first num_shared_pages() pages are those of the tree's nodes on the path
//                      to node(), which it locks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/kv_view.h"
#include "base/status.h"
#include "cache/page_table.h"
#include "cache/prefix_match.h"
#include "cache/prefix_tree.h"

namespace quire {

class KvCache;

class SequencePages {
 public:
  SequencePages(SequencePages&& other) noexcept;
  SequencePages& operator=(SequencePages&& other) noexcept;
  ~SequencePages() { Release(); }

  // Tokens that are in the pages.
  uint32_t length() const { return length_; }
  // The next position to compute: length(), or length() - 1 for a prompt that was cached whole.
  uint32_t next_position() const { return next_; }

  // Its full pages are in the prefix tree, for others.
  bool shares() const { return shares_; }

  // What a step up to `end` tokens takes of the budget.
  size_t BytesNeeded(uint32_t end) const;
  // What becomes free or evictable when this sequence alone gives its pages back: those that no
  // other sequence uses and no pin holds.
  size_t ReleasableBytes() const;
  // Takes it, evicting cached pages where needed. All or nothing: kResourceExhausted. Requires: no
  // reservation.
  Status Reserve(uint32_t end);
  // The tokens up to `end` are computed. Requires: tokens.size() >= end >= length().
  void Commit(uint32_t end, std::span<const TokenId> tokens);
  // The reserved tokens are not wanted.
  void Cancel();

  // Forgets tokens from `length` on, and those before that can't go on without them: the open form
  // of a sealed page, or window pages, may be gone. Returns the new length. Requires: no
  // reservation; length <= length().
  uint32_t Truncate(uint32_t length);

  // A second sequence with the same tokens; nothing is copied until one of them writes.
  SequencePages Fork() const;

  // Goes further in the tree if it has the next pages by now (others computed them). Requires:
  // no reservation, length() a multiple of the page size. Returns the new length.
  uint32_t Follow(std::span<const TokenId> tokens);

  // Leaves all pages in the tree, the open one as a tail, and is empty after.
  void End(std::span<const TokenId> tokens);
  // Gives all pages back.
  void Release();

  // [layer group]; valid until the next change.
  std::span<const KvView> views() const { return views_; }

  NodeId node() const { return node_; }
  uint32_t num_shared_pages() const { return num_shared_; }
  // Tokens of the full pages that it brought into the tree: nobody had computed them before.
  uint32_t num_inserted() const { return num_inserted_; }
  uint32_t num_tables() const { return static_cast<uint32_t>(tables_.size()); }
  const PageTable& table(uint32_t group) const { return tables_[group]; }

  Status CheckInvariants() const;

 private:
  friend class KvCache;
  SequencePages(KvCache* cache, NodeId root, uint32_t max_length, bool shares);
  void Attach(const PrefixMatch& match, uint32_t prompt_len);
  void Share(uint32_t page, std::span<const TokenId> tokens);
  void MoveTo(NodeId node);
  void AdoptFrom(NodeId node, uint32_t page, uint32_t group);
  // The longest length, at most this one, whose pages are here in the forms that it needs.
  uint32_t LongestOpen(uint32_t length) const;
  void SettleTables();  // they follow length_ and next_
  void RefreshViews();

  KvCache* cache_;
  uint32_t max_length_;
  bool shares_;  // its pages go into the tree
  uint32_t length_ = 0;
  uint32_t next_ = 0;
  NodeId node_;              // kNoNode when empty-handed (moved from, released)
  uint32_t num_shared_ = 0;  // pages that are in the tree
  uint32_t num_inserted_ = 0;
  std::vector<PageTable> tables_;
  std::vector<KvView> views_;
};

}  // namespace quire
