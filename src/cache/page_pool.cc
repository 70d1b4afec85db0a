#include "cache/page_pool.h"

#include <cstring>
#include <limits>
#include <utility>

#include "base/errors.h"

namespace quire {

PageRef::PageRef(PageRef&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}

PageRef& PageRef::operator=(PageRef&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = std::exchange(other.pool_, nullptr);
  id_ = other.id_;
  return *this;
}

std::byte* PageRef::address() const {
  QUIRE_CHECK(pool_ != nullptr);
  return pool_->memory_.Address(id_);
}

bool PageRef::is_shared() const {
  QUIRE_CHECK(pool_ != nullptr);
  return pool_->num_holds_[id_] > 1;
}

PageRef PageRef::Share() const {
  QUIRE_CHECK(pool_ != nullptr);
  pool_->AddHold(id_);
  return PageRef(pool_, id_);
}

void PageRef::Reset() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->GiveBack(id_);
}

StatusOr<std::unique_ptr<PagePool>> PagePool::Create(const PagePoolOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(PageMemory memory,
                         PageMemory::Reserve(options.page_bytes, options.budget_bytes));
  return std::unique_ptr<PagePool>(new PagePool(options, std::move(memory)));
}

PagePool::PagePool(const PagePoolOptions& options, PageMemory memory)
    : budget_bytes_(options.budget_bytes),
      fill_with_nan_(options.fill_with_nan),
      memory_(std::move(memory)),
      free_ids_(memory_.num_pages()),
      num_holds_(memory_.num_pages()) {}

PagePool::~PagePool() { QUIRE_CHECK(num_refs_ == 0); }

Status PagePool::Allocate(uint32_t num_wanted, std::vector<PageRef>* pages) {
  if (num_wanted > num_free())
    return ResourceExhausted("need {} {}, {} of {} free: shorten the text or raise --kv-memory",
                             num_wanted, num_wanted == 1 ? "page" : "pages", num_free(),
                             num_pages());
  for (uint32_t i = 0; i < num_wanted; ++i) {
    const PageId id = free_ids_.TakeLowest();
    memory_.BeginUse(id);
    ++num_held_;
    AddHold(id);
    if (fill_with_nan_) FillWithNan(id);
    pages->push_back(PageRef(this, id));
  }
  return OkStatus();
}

void PagePool::AddHold(PageId id) {
  QUIRE_CHECK(num_holds_[id] < std::numeric_limits<uint32_t>::max());
  ++num_holds_[id];
  ++num_refs_;
}

void PagePool::GiveBack(PageId id) {
  QUIRE_CHECK(num_holds_[id] > 0);
  --num_refs_;
  if (--num_holds_[id] > 0) return;
  if (fill_with_nan_) FillWithNan(id);
  memory_.EndUse(id);
  free_ids_.GiveBack(id);
  --num_held_;
}

void PagePool::FillWithNan(PageId id) {
  std::memset(memory_.Address(id), 0xFF, memory_.page_stride());
}

Status PagePool::CheckInvariants() const {
  uint32_t num_held = 0;
  uint64_t num_refs = 0;
  for (PageId id = 0; id < num_pages(); ++id) {
    if (free_ids_.is_free(id) != (num_holds_[id] == 0))
      return Internal("[cache.pool.1] page {} has {} holds and is {}", id, num_holds_[id],
                      free_ids_.is_free(id) ? "free" : "not free");
    num_held += num_holds_[id] > 0 ? 1 : 0;
    num_refs += num_holds_[id];
  }
  if (num_held != num_held_ || num_held + free_ids_.num_free() != num_pages())
    return Internal("[cache.pool.1] {} pages held, {} counted, {} free of {}", num_held, num_held_,
                    free_ids_.num_free(), num_pages());
  if (num_refs != num_refs_)
    return Internal("[cache.pool.2] the pages have {} holds, {} are alive", num_refs, num_refs_);
  if (held_bytes() > budget_bytes_ || held_bytes() + free_bytes() != budget_bytes_)
    return Internal("[cache.pool.4] {} bytes held and {} free of {}", held_bytes(), free_bytes(),
                    budget_bytes_);
  return memory_.CheckInvariants(num_holds_);
}

}  // namespace quire
