#include "cache/page_memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

// Half of the 47-bit address space of a process: leaves room for the other classes' ranges, too.
constexpr size_t kMaxBudget = size_t{1} << 45;

// Bytes that kernels may read past the last page. One unit of the system's memory, so that it can
// go back with its extent; only 64 of them are promised.
constexpr size_t kTailBytes = 4096;

}  // namespace

StatusOr<PageMemory> PageMemory::Reserve(size_t page_bytes, size_t budget_bytes) {
  if (budget_bytes > kMaxBudget)
    return InvalidArgument("a KV budget of {} bytes, at most {} are possible: lower --kv-memory",
                           GroupDigits(budget_bytes), GroupDigits(kMaxBudget));
  if (page_bytes == 0) return InvalidArgument("a KV page of 0 bytes: the model caches nothing");
  if (page_bytes > budget_bytes || PageStride(page_bytes) > budget_bytes)
    return InvalidArgument("one KV page takes {} bytes, the budget is {}: raise --kv-memory",
                           GroupDigits(page_bytes), GroupDigits(budget_bytes));
  PageMemory memory;
  memory.page_bytes_ = page_bytes;
  memory.page_stride_ = PageStride(page_bytes);
  const size_t num_pages = budget_bytes / memory.page_stride_;
  if (num_pages >= std::numeric_limits<PageId>::max())
    return InvalidArgument("{} KV pages, at most {} are possible: raise --page-size",
                           GroupDigits(num_pages),
                           GroupDigits(std::numeric_limits<PageId>::max() - 1));
  memory.num_pages_ = static_cast<uint32_t>(num_pages);
  QUIRE_ASSIGN_OR_RETURN(memory.range_,
                         AnonymousMemory::Reserve(num_pages * memory.page_stride_ + kTailBytes));
  memory.extents_.resize((memory.range_.size() + kExtentBytes - 1) / kExtentBytes);
  return memory;
}

size_t PageMemory::ExtentBytes(size_t extent) const {
  return std::min(kExtentBytes, range_.size() - extent * kExtentBytes);
}

void PageMemory::BeginUse(PageId id) {
  QUIRE_CHECK(id < num_pages_);
  for (size_t e = FirstExtent(id); e <= LastExtent(id); ++e) {
    ++extents_[e].num_in_use;
    extents_[e].is_aging = false;
    if (extents_[e].committed) continue;
    extents_[e].committed = true;
    committed_bytes_ += ExtentBytes(e);
  }
  ++num_in_use_;
}

void PageMemory::EndUse(PageId id) {
  QUIRE_CHECK(id < num_pages_);
  for (size_t e = FirstExtent(id); e <= LastExtent(id); ++e) {
    QUIRE_CHECK(extents_[e].num_in_use > 0);
    --extents_[e].num_in_use;
  }
  --num_in_use_;
}

size_t PageMemory::ReleaseIdle(uint32_t now_s, uint32_t idle_s) {
  size_t released = 0;
  for (size_t e = 0; e < extents_.size(); ++e) {
    Extent& extent = extents_[e];
    if (!extent.committed || extent.num_in_use > 0) continue;
    if (!extent.is_aging) {
      extent.is_aging = true;
      extent.idle_since_s = now_s;
    }
    if (now_s - extent.idle_since_s < idle_s) continue;
    range_.Release(e * kExtentBytes, ExtentBytes(e));
    extent.committed = extent.is_aging = false;
    released += ExtentBytes(e);
  }
  committed_bytes_ -= released;
  return released;
}

Status PageMemory::CheckInvariants(const std::vector<bool>& page_in_use) const {
  std::vector<uint32_t> num_in_use(extents_.size(), 0);
  size_t num_pages_in_use = 0;
  for (PageId id = 0; id < num_pages_; ++id) {
    if (!page_in_use[id]) continue;
    ++num_pages_in_use;
    for (size_t e = FirstExtent(id); e <= LastExtent(id); ++e) ++num_in_use[e];
  }
  size_t committed_bytes = 0;
  for (size_t e = 0; e < extents_.size(); ++e) {
    if (extents_[e].num_in_use != num_in_use[e])
      return Internal("[cache.memory.1] extent {} counts {} pages in use, {} are", e,
                      extents_[e].num_in_use, num_in_use[e]);
    if (num_in_use[e] > 0 && !extents_[e].committed)
      return Internal("[cache.memory.2] extent {} is in use and not committed", e);
    if (extents_[e].committed) committed_bytes += ExtentBytes(e);
  }
  if (committed_bytes != committed_bytes_ || num_pages_in_use != num_in_use_)
    return Internal("[cache.memory.3] {} bytes and {} pages counted, {} and {} there are",
                    committed_bytes_, num_in_use_, committed_bytes, num_pages_in_use);
  return OkStatus();
}

}  // namespace quire
