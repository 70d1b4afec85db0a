// Hands out fixed-size KV pages by id and counts who holds them.
//
// A pool decides who holds an id and keeps the budget; cache/page_memory.h owns the bytes that a
// PageId names. Which pages make up a sequence is cache/page_table.h's.
//
// A hold is a PageRef: move-only, given back by its destructor. A second hold on the same page is
// the visible Share(). A page with more than one hold is never written (cache/page_table.h copies
// it first). The lowest free id is handed out first, so that pages in use stay dense and whole
// extents behind them can go back to the system.
//
// The budget is in bytes: each page counts its stride (PageStride()). There is one page class now;
// each further one brings its own ids and memory and draws on the same budget.
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: Allocate and give-back take a few word operations a page and allocate nothing.
// Paper: Kwon et al., PagedAttention, SOSP 2023, sec. 4.2 and 4.4.
//
// Invariants (CheckInvariants(), page_pool_test.cc):
//   [cache.pool.1] Every id is free or held, never both, and never lost.
//   [cache.pool.2] A held page's count is the number of live PageRefs on it.
//   [cache.pool.3] A failed call changes nothing.
//   [cache.pool.4] held_bytes + free_bytes = budget_bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/lazy_array.h"
#include "base/status.h"
#include "cache/free_ids.h"
#include "cache/page_memory.h"

namespace quire {

class PagePool;

// One hold on one page. Empty when default-made or moved from. Must not outlive its pool.
class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept;
  PageRef& operator=(PageRef&& other) noexcept;
  PageRef(const PageRef&) = delete;
  PageRef& operator=(const PageRef&) = delete;
  ~PageRef() { Reset(); }

  explicit operator bool() const { return pool_ != nullptr; }

  // The rest requires a hold.
  PageId id() const { return id_; }
  std::byte* address() const;
  bool is_shared() const;  // somebody else holds this page too: do not write it
  PageRef Share() const;   // one more hold on the same page

  // Gives the hold back now; nothing if empty.
  void Reset();

 private:
  friend class PagePool;
  PageRef(PagePool* pool, PageId id) : pool_(pool), id_(id) {}

  PagePool* pool_ = nullptr;
  PageId id_ = 0;
};

struct PagePoolOptions {
  size_t page_bytes = 0;    // of one page, KvLayout::page_bytes()
  size_t budget_bytes = 0;  // all pages together, each counted with PageStride(page_bytes)
  // For tests: pages are filled with 0xFF bytes (NaN in f32, f16 and bf16) when they are handed
  // out and when they are given back, so that a read of a slot nobody wrote shows in the result.
  bool fill_with_nan = false;
};

class PagePool {
 public:
  // kInvalidArgument, kResourceExhausted: as PageMemory::Reserve(). Commits no page memory.
  static StatusOr<std::unique_ptr<PagePool>> Create(const PagePoolOptions& options);

  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();  // Requires: no hold is left.

  // Appends holds on `num_pages` free pages to `pages`, in rising order of id: all or none.
  // kResourceExhausted if fewer are free. What the pages contain is undefined.
  Status Allocate(uint32_t num_pages, std::vector<PageRef>* pages);

  // Gives memory behind free pages back to the system, in whole extents; returns the bytes.
  size_t ReleaseIdleMemory() { return memory_.ReleaseIdle(); }

  size_t page_bytes() const { return memory_.page_bytes(); }
  uint32_t num_pages() const { return memory_.num_pages(); }
  uint32_t num_held() const { return num_held_; }
  uint32_t num_free() const { return num_pages() - num_held_; }

  size_t budget_bytes() const { return budget_bytes_; }
  size_t held_bytes() const { return num_held_ * memory_.page_stride(); }
  size_t free_bytes() const { return budget_bytes_ - held_bytes(); }
  // What the system has given, in whole extents, and the part of it behind no held page.
  size_t committed_bytes() const { return memory_.committed_bytes(); }
  size_t slack_bytes() const { return memory_.slack_bytes(); }

  // Live holds on a page, 0 if it is free. Requires: id < num_pages().
  uint32_t num_holds(PageId id) const { return num_holds_[id]; }

  // kInternal with the invariant's id and the page if one is broken. Counts from scratch: O(pages).
  Status CheckInvariants() const;

 private:
  friend class PageRef;
  PagePool(const PagePoolOptions& options, PageMemory memory);
  void AddHold(PageId id);
  void GiveBack(PageId id);
  void FillWithNan(PageId id);

  size_t budget_bytes_;
  bool fill_with_nan_;
  PageMemory memory_;
  FreeIds free_ids_;
  LazyArray<uint32_t> num_holds_;  // [num_pages]; an idle pool of any budget takes no memory
  uint32_t num_held_ = 0;          // pages with at least one hold
  uint64_t num_refs_ = 0;          // live PageRefs
};

}  // namespace quire
