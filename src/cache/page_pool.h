// Hands out KV pages by class and id, counts who holds them, and keeps the one budget in bytes.
//
// A page class is pages of one size: a layer group in one form (cache/kv_shape.h). A pool decides
// who holds an id; cache/page_memory.h owns the bytes behind it. Which pages make up a sequence is
// cache/page_table.h's, which ones stay when a sequence has gone is cache/prefix_tree.h's.
//
// Two kinds of hold:
//   - a use: a PageRef, move-only, given back by its destructor; a second one is the visible
//     Share(). Sequences have these.
//   - a keep: the hold of a node of the prefix tree (Keep, Unkeep). A kept page without a use is
//     cached: it may be evicted. Pins forbid that.
// A page with more than one hold, of either kind, is never written: cache/page_table.h copies it.
//
// A page belongs to one account from Take() until it is free: the tenant that pays for it. Nothing
// is decided by accounts; the pool adds up what each has.
//
// The budget counts each page with PageStride(), whatever its class; no split between classes is
// fixed. Every class has a virtual range as large as the whole budget, so a page can be handed out
// if and only if its bytes are free. The lowest free id comes first: pages in use stay dense, and
// whole extents behind them can go back to the system.
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: each call takes a few word operations and allocates nothing.
// Paper: Kwon et al., PagedAttention, SOSP 2023, sec. 4.2 and 4.4.
//
// Invariants (CheckInvariants(), page_pool_test.cc):
//   [cache.pool.1] Every id is free or has a hold, never both, and is never lost.
//   [cache.pool.2] The uses of all pages are the live PageRefs.
//   [cache.pool.3] A failed call changes nothing.
//   [cache.pool.4] held_bytes + cached_bytes + free_bytes = budget_bytes.
//   [cache.pool.5] pinned_bytes is that of cached pages with a pin; only kept pages have pins.
//   [cache.pool.6] The bytes of all accounts are those of the pool, state by state.
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

using PageClass = uint8_t;   // an index into PagePoolOptions::page_bytes
using AccountId = uint32_t;  // small and dense

// Sums over pages with a hold, in pages or in bytes; a page is in one of the three.
struct PageStates {
  uint64_t held = 0;    // with a use
  uint64_t cached = 0;  // kept, without a use, without a pin
  uint64_t pinned = 0;  // kept, without a use, with a pin
  uint64_t sum() const { return held + cached + pinned; }
  bool operator==(const PageStates&) const = default;
};

// One use of one page. Empty when default-made or moved from. Must not outlive its pool.
class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept;
  PageRef& operator=(PageRef&& other) noexcept;
  PageRef(const PageRef&) = delete;
  PageRef& operator=(const PageRef&) = delete;
  ~PageRef() { Reset(); }

  explicit operator bool() const { return pool_ != nullptr; }

  // The rest requires a page.
  PageId id() const { return id_; }
  PageClass page_class() const { return class_; }
  std::byte* address() const;
  bool is_shared() const;  // somebody else holds this page too: do not write it
  PageRef Share() const;   // one more use of the same page

  // Gives the page back now; nothing if empty.
  void Reset();

 private:
  friend class PagePool;
  PageRef(PagePool* pool, PageClass page_class, PageId id)
      : pool_(pool), id_(id), class_(page_class) {}

  PagePool* pool_ = nullptr;
  PageId id_ = 0;
  PageClass class_ = 0;
};

struct PagePoolOptions {
  std::vector<size_t> page_bytes;  // [page class]; 0: the class has no pages
  size_t budget_bytes = 0;         // all pages together, each counted with PageStride()
  // For tests: pages are filled with 0xFF bytes (NaN in f32, f16 and bf16) when they are handed
  // out and when they are free again, so that a read of a slot nobody wrote shows in the result.
  bool fill_with_nan = false;
};

// Told when a kept page loses its last use. Must not change the pool.
class UnusedPageObserver {
 public:
  virtual void OnUnused(PageClass page_class, PageId id) = 0;

 protected:
  ~UnusedPageObserver() = default;
};

class PagePool {
 public:
  // kInvalidArgument, kResourceExhausted: as PageMemory::Reserve(). Commits no page memory.
  static StatusOr<std::unique_ptr<PagePool>> Create(const PagePoolOptions& options);

  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();  // Requires: no use is left.

  // There are accounts below `num_accounts` from now on; account 0 is there from the start.
  void AddAccounts(uint32_t num_accounts);

  // A free page; what it contains is undefined. Requires: free_bytes() >= stride(page_class).
  PageRef Take(PageClass page_class, AccountId account = 0);
  // A use of a page that has a hold already.
  PageRef Use(PageClass page_class, PageId id);

  // A node's hold. Requires: the page has a use; it has a keep.
  void Keep(PageClass page_class, PageId id);
  void Unkeep(PageClass page_class, PageId id);
  // Pins nest. Requires: the page is kept; it has a pin.
  void Pin(PageClass page_class, PageId id);
  void Unpin(PageClass page_class, PageId id);

  // Null: nobody. Must outlive its time as observer.
  void SetObserver(UnusedPageObserver* observer) { observer_ = observer; }

  // Gives extents without a page back to the system that have been so for `idle_s` seconds, and
  // returns the bytes. `now_s` is any clock that does not go back.
  size_t ReleaseIdle(uint32_t now_s, uint32_t idle_s);

  PageClass num_classes() const { return static_cast<PageClass>(classes_.size()); }
  bool has_class(PageClass c) const { return classes_[c].stride != 0; }
  size_t page_bytes(PageClass c) const { return classes_[c].page_bytes; }
  size_t stride(PageClass c) const { return classes_[c].stride; }  // what a page costs
  uint32_t num_pages(PageClass c) const { return classes_[c].num_pages; }

  size_t budget_bytes() const { return budget_bytes_; }
  size_t held_bytes() const { return held_bytes_; }      // pages in use
  size_t cached_bytes() const { return cached_bytes_; }  // kept, without a use
  size_t pinned_bytes() const { return pinned_bytes_; }  // the part of it with a pin
  size_t free_bytes() const { return budget_bytes_ - held_bytes_ - cached_bytes_; }
  // What eviction could make free, beside what is.
  size_t evictable_bytes() const { return cached_bytes_ - pinned_bytes_; }
  // What the system has given, in whole extents, and the part of it behind no page with a hold.
  size_t committed_bytes() const;
  size_t slack_bytes() const;

  uint32_t num_keeps(PageClass c, PageId id) const { return classes_[c].pages[id].num_keeps; }
  uint32_t num_uses(PageClass c, PageId id) const { return classes_[c].pages[id].num_uses; }
  bool is_kept(PageClass c, PageId id) const { return classes_[c].pages[id].num_keeps > 0; }
  bool is_pinned(PageClass c, PageId id) const { return classes_[c].pages[id].num_pins > 0; }
  uint32_t num_held(PageClass c) const { return classes_[c].num_held; }
  uint32_t num_cached(PageClass c) const { return classes_[c].num_cached; }
  // In pages, of one class; in bytes, of one account.
  PageStates class_pages(PageClass c) const;
  const PageStates& account_bytes(AccountId id) const { return accounts_[id].states; }
  // Bytes of an account's pages with a pin, in use or not.
  uint64_t retained_bytes(AccountId id) const { return accounts_[id].retained; }
  uint64_t retained_bytes() const;  // of all accounts
  AccountId account(PageClass c, PageId id) const { return classes_[c].pages[id].account; }

  // Pages that a wrong release has hit: set aside for good, the service goes on (CAC-09). Always 0
  // unless there is a bug; debug builds stop instead.
  uint64_t num_failures() const { return num_failures_; }

  // kInternal with the invariant's id and the page if one is broken. Counts from scratch: O(pages).
  Status CheckInvariants() const;

 private:
  friend class PageRef;

  struct Page {
    uint32_t num_uses;
    uint32_t num_keeps;
    uint32_t num_pins;
    uint32_t account : 31;
    uint32_t is_lost : 1;  // set aside
  };
  struct Class {
    size_t page_bytes = 0;
    size_t stride = 0;
    uint32_t num_pages = 0;
    std::unique_ptr<PageMemory> memory;
    std::unique_ptr<FreeIds> free_ids;
    LazyArray<Page> pages;  // [num_pages]; an idle pool of any budget takes no memory
    uint32_t num_held = 0, num_cached = 0;
    uint32_t num_pinned = 0;  // of the cached ones
  };
  struct PageAccount {
    PageStates states;
    uint64_t retained = 0;
    bool operator==(const PageAccount&) const = default;
  };

  explicit PagePool(const PagePoolOptions& options);
  void GiveBack(PageClass page_class, PageId id);
  // Moves a page's bytes from what it was to what it is now.
  void Account(Class& c, PageId id, const Page& before);
  static void Count(const Page& page, uint64_t bytes, PageAccount* account);
  void FillWithNan(Class& c, PageId id);
  // False, and counted, in release builds; the end in debug builds.
  bool Fault(Class& c, PageId id, const char* what);
  Status CheckClass(const Class& c, size_t index) const;
  Status CheckAccounts() const;

  size_t budget_bytes_;
  bool fill_with_nan_;
  UnusedPageObserver* observer_ = nullptr;
  std::vector<Class> classes_;
  std::vector<PageAccount> accounts_{1};
  size_t held_bytes_ = 0, cached_bytes_ = 0, pinned_bytes_ = 0;
  uint64_t num_refs_ = 0;  // live PageRefs
  uint64_t num_failures_ = 0;
};

}  // namespace quire
