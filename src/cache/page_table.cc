#include "cache/page_table.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/errors.h"

namespace quire {

PageTable::PageTable(PagePool* pool, uint32_t page_size, uint32_t max_length)
    : pool_(pool), page_size_(page_size) {
  QUIRE_CHECK(pool != nullptr && page_size > 0);
  // One entry more: the copy of a page is at the end for a moment.
  pages_.reserve(NumPagesFor(max_length) + size_t{1});
  addresses_.reserve(NumPagesFor(max_length));
}

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(other.pool_),
      page_size_(other.page_size_),
      length_(std::exchange(other.length_, 0)),
      pages_(std::exchange(other.pages_, {})),
      addresses_(std::exchange(other.addresses_, {})) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  if (this == &other) return *this;
  pool_ = other.pool_;
  page_size_ = other.page_size_;
  length_ = std::exchange(other.length_, 0);
  pages_ = std::exchange(other.pages_, {});
  addresses_ = std::exchange(other.addresses_, {});
  return *this;
}

uint32_t PageTable::NumPagesFor(uint32_t length) const {
  return length == 0 ? 0 : (length - 1) / page_size_ + 1;
}

uint32_t PageTable::NumSharedPages(uint32_t first_page, uint32_t end_page) const {
  uint32_t num_shared = 0;
  for (uint32_t i = first_page; i < end_page; ++i) num_shared += pages_[i].is_shared() ? 1 : 0;
  return num_shared;
}

uint32_t PageTable::PagesNeeded(uint32_t length) const {
  if (length <= length_) return 0;
  return NumPagesFor(length) - num_pages() + NumSharedPages(length_ / page_size_, num_pages());
}

Status PageTable::Reserve(uint32_t length) {
  if (length <= length_) return OkStatus();
  QUIRE_RETURN_IF_ERROR(Take(NumPagesFor(length) - num_pages(), length_ / page_size_, num_pages()));
  length_ = length;
  return OkStatus();
}

Status PageTable::MakeWritable(uint32_t begin, uint32_t end) {
  QUIRE_CHECK(begin <= end && end <= length_);
  if (begin == end) return OkStatus();
  return Take(0, begin / page_size_, NumPagesFor(end));
}

Status PageTable::Take(uint32_t num_new, uint32_t first_page, uint32_t end_page) {
  const uint32_t num_copies = NumSharedPages(first_page, end_page);
  QUIRE_RETURN_IF_ERROR(pool_->Allocate(num_new + num_copies, &pages_));
  // The last num_copies entries replace the shared pages.
  for (uint32_t i = first_page; i < end_page; ++i) {
    if (!pages_[i].is_shared()) continue;
    std::memcpy(pages_.back().address(), pages_[i].address(), pool_->page_bytes());
    pages_[i] = std::move(pages_.back());
    pages_.pop_back();
    addresses_[i] = pages_[i].address();
  }
  for (size_t i = addresses_.size(); i < pages_.size(); ++i)
    addresses_.push_back(pages_[i].address());
  return OkStatus();
}

void PageTable::Truncate(uint32_t length) {
  QUIRE_CHECK(length <= length_);
  length_ = length;
  const uint32_t num_kept = NumPagesFor(length);
  while (pages_.size() > num_kept) pages_.pop_back();
  addresses_.resize(num_kept);
}

PageTable PageTable::Fork() const {
  PageTable fork(pool_, page_size_);
  fork.pages_.reserve(pages_.capacity());
  fork.addresses_.reserve(addresses_.capacity());
  for (const PageRef& page : pages_) fork.pages_.push_back(page.Share());
  fork.addresses_.assign(addresses_.begin(), addresses_.end());
  fork.length_ = length_;
  return fork;
}

Status PageTable::CheckInvariants() const {
  if (num_pages() != NumPagesFor(length_))
    return Internal("[cache.table.1] {} tokens in {} pages of {}", length_, num_pages(),
                    page_size_);
  if (addresses_.size() != pages_.size())
    return Internal("[cache.table.2] {} pages, {} addresses", pages_.size(), addresses_.size());
  for (uint32_t i = 0; i < num_pages(); ++i)
    if (!pages_[i] || addresses_[i] != pages_[i].address())
      return Internal("[cache.table.2] entry {} names another page than the view", i);
  return OkStatus();
}

}  // namespace quire
