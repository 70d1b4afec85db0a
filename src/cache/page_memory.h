// The memory of one page class: the bytes that a PageId names.
//
// One virtual range, as large as the whole KV budget: address space is free, so no split of the
// budget between classes is fixed at start and no page ever moves. The system commits memory when
// a page is first written. Pages lie at multiples of page_stride(), which is page_bytes rounded up
// to 4 KiB; a page may cross extents (2 MiB), and each one is followed by 64 readable bytes.
//
// Not here: who holds a page and which one is next (cache/page_pool.h).
//
// Threading: not thread-safe; owned by the engine thread. Kernels on other threads may read and
// write the bytes of pages in use.
//
// Invariants (CheckInvariants(), page_memory_test.cc):
//   [cache.memory.1] An extent's count is the number of pages in use that touch it.
//   [cache.memory.2] An extent that a page in use touches is committed.
//   [cache.memory.3] committed_bytes() is the sum over committed extents, slack included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/status.h"

namespace quire {

using PageId = uint32_t;  // an index into the pages of one class

// What one page costs of the budget: its bytes rounded up to 4 KiB. Planner, pool and metrics all
// count with this.
constexpr size_t PageStride(size_t page_bytes) { return (page_bytes + 4095) / 4096 * 4096; }

class PageMemory {
 public:
  static constexpr size_t kExtentBytes = size_t{2} << 20;

  // A range for all the pages that fit into `budget_bytes`. kInvalidArgument if not even one does
  // or if there would be 2^32 of them; kResourceExhausted if the system refuses the range.
  static StatusOr<PageMemory> Reserve(size_t page_bytes, size_t budget_bytes);

  PageMemory(PageMemory&&) = default;
  PageMemory& operator=(PageMemory&&) = default;

  // 64-byte aligned; stays the same for the life of the range. Requires: id < num_pages().
  std::byte* Address(PageId id) { return range_.data() + id * page_stride_; }

  // Notes that a page is handed out or given back. Requires: it was not, or was.
  void BeginUse(PageId id);
  void EndUse(PageId id);

  // Gives every committed extent back to the system that has had no page in use for `idle_s`
  // seconds, and returns how many bytes that were; it reads as zero after. `now_s` is any clock
  // that does not go back; an extent is idle from the first call after its last page's end on.
  size_t ReleaseIdle(uint32_t now_s, uint32_t idle_s);

  size_t page_bytes() const { return page_bytes_; }
  size_t page_stride() const { return page_stride_; }
  uint32_t num_pages() const { return num_pages_; }
  // Whole extents that pages were handed out from and that have not gone back since.
  size_t committed_bytes() const { return committed_bytes_; }
  // The part of committed_bytes() that no page in use covers.
  size_t slack_bytes() const { return committed_bytes_ - num_in_use_ * page_stride_; }

  // kInternal with the invariant's id if one is broken.
  Status CheckInvariants(const std::vector<bool>& page_in_use) const;

 private:
  struct Extent {
    uint32_t num_in_use = 0;
    bool committed = false;
    bool is_aging = false;  // idle_since_s counts
    uint32_t idle_since_s = 0;
  };

  PageMemory() = default;
  size_t FirstExtent(PageId id) const { return id * page_stride_ / kExtentBytes; }
  size_t LastExtent(PageId id) const {
    return ((id + size_t{1}) * page_stride_ - 1) / kExtentBytes;
  }
  size_t ExtentBytes(size_t extent) const;

  size_t page_bytes_ = 0;
  size_t page_stride_ = 0;
  uint32_t num_pages_ = 0;
  size_t num_in_use_ = 0;
  size_t committed_bytes_ = 0;
  AnonymousMemory range_;  // num_pages * page_stride, then one readable 4 KiB
  std::vector<Extent> extents_;
};

}  // namespace quire
