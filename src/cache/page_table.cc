#include "cache/page_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/errors.h"

namespace quire {

PageTable::PageTable(PagePool* pool, const KvShape* shape, uint32_t group, uint32_t max_length,
                     AccountId account)
    : pool_(pool), shape_(shape), group_(group), account_(account) {
  const uint32_t num_pages = shape->NumPages(max_length);
  open_.reserve(num_pages);
  open_bytes_.reserve(num_pages);
  sealed_.reserve(num_pages);
  sealed_bytes_.reserve(num_pages);
}

size_t PageTable::BytesNeeded(uint32_t length, uint32_t end) const {
  if (end <= length) return 0;
  const uint32_t page = length / shape_->page_size;
  uint64_t num_open = shape_->NumPages(end) - shape_->NumPages(length);
  if (has_open(page) && open_[page].is_shared()) ++num_open;
  uint64_t num_sealed = 0;
  for (uint32_t full = page; full < end / shape_->page_size; ++full)
    num_sealed += group().Seals(full) ? 1 : 0;
  return num_open * pool_->stride(OpenClass(group_)) +
         num_sealed * pool_->stride(SealedClass(group_));
}

void PageTable::Grow(uint32_t length, uint32_t end) {
  if (end <= length) return;
  const uint32_t page = length / shape_->page_size;
  if (has_open(page) && open_[page].is_shared()) {
    PageRef copy = pool_->Take(OpenClass(group_), account_);
    std::memcpy(copy.address(), open_[page].address(), group().open_page_bytes);
    open_[page] = std::move(copy);
    RefreshAddress(page);
  }
  while (num_pages() < shape_->NumPages(end))
    Adopt(pool_->Take(OpenClass(group_), account_), PageRef());
  for (uint32_t full = page; full < end / shape_->page_size; ++full) {
    if (!group().Seals(full)) continue;
    sealed_[full] = pool_->Take(SealedClass(group_), account_);
    RefreshAddress(full);
  }
}

void PageTable::SkipTo(uint32_t page) {
  QUIRE_CHECK(num_pages() == 0);
  first_page_ = page;
  open_.resize(page);
  sealed_.resize(page);
  open_bytes_.resize(page);
  sealed_bytes_.resize(page);
}

void PageTable::Adopt(PageRef open, PageRef sealed) {
  open_.push_back(std::move(open));
  sealed_.push_back(std::move(sealed));
  open_bytes_.push_back(nullptr);
  sealed_bytes_.push_back(nullptr);
  RefreshAddress(num_pages() - 1);
}

void PageTable::RefreshAddress(uint32_t page) {
  open_bytes_[page] = open_[page] ? open_[page].address() : nullptr;
  sealed_bytes_[page] = sealed_[page] ? sealed_[page].address() : nullptr;
}

void PageTable::Settle(uint32_t length, uint32_t next) {
  const uint32_t page_size = shape_->page_size;
  while (num_pages() > shape_->NumPages(length)) {
    open_.pop_back();
    sealed_.pop_back();
    open_bytes_.pop_back();
    sealed_bytes_.pop_back();
  }
  first_page_ = std::min(first_page_, num_pages());
  const uint32_t first = std::min(group().FirstPage(next, page_size), num_pages());
  for (; first_page_ < first; ++first_page_) {
    open_[first_page_].Reset();
    sealed_[first_page_].Reset();
    RefreshAddress(first_page_);
  }
  if (!group().has_sealed()) return;
  // A page that is not full any more has no sealed form; a full one may have no open one.
  const uint32_t at = length / page_size;
  if (at < num_pages() && sealed_[at]) {
    sealed_[at].Reset();
    RefreshAddress(at);
  }
  const uint32_t first_sealed = std::max(first_page_, group().sink_pages);
  for (uint32_t page = at; page-- > first_sealed;) {  // back to what was settled before
    if (group().StaysOpen(page, next / page_size)) continue;
    if (!open_[page]) break;
    open_[page].Reset();
    RefreshAddress(page);
  }
}

PageTable PageTable::Fork(uint32_t max_length) const {
  PageTable fork(pool_, shape_, group_, max_length, account_);
  const auto share = [](const PageRef& page) { return page ? page.Share() : PageRef(); };
  fork.SkipTo(first_page_);
  for (uint32_t page = first_page_; page < num_pages(); ++page)
    fork.Adopt(share(open_[page]), share(sealed_[page]));
  return fork;
}

KvView PageTable::view() const {
  return {.pages = open_bytes_.data(),
          .sealed = group().has_sealed() ? sealed_bytes_.data() : nullptr,
          .num_pages = num_pages()};
}

Status PageTable::CheckInvariants(uint32_t length, uint32_t next) const {
  const uint32_t page_size = shape_->page_size;
  const uint32_t at = length / page_size, first = group().FirstPage(next, page_size);
  if (num_pages() != shape_->NumPages(length))
    return Internal("[cache.table.1] {} tokens in {} pages of {}", length, num_pages(), page_size);
  for (uint32_t page = 0; page < num_pages(); ++page) {
    const bool is_full = page < at, is_seen = page >= first;
    const bool wants_open = is_seen && (!is_full || group().StaysOpen(page, next / page_size));
    const bool wants_sealed = is_seen && is_full && group().Seals(page);
    if (static_cast<bool>(open_[page]) != wants_open ||
        static_cast<bool>(sealed_[page]) != wants_sealed)
      return Internal("[cache.table.1] page {} of {} tokens: open {}, sealed {}; needed {}, {}",
                      page, length, static_cast<bool>(open_[page]),
                      static_cast<bool>(sealed_[page]), wants_open, wants_sealed);
    if (open_bytes_[page] != (wants_open ? open_[page].address() : nullptr) ||
        sealed_bytes_[page] != (wants_sealed ? sealed_[page].address() : nullptr))
      return Internal("[cache.table.2] entry {} names another page than the view", page);
  }
  return OkStatus();
}

}  // namespace quire
