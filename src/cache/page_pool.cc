#include "cache/page_pool.h"

#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "base/errors.h"

namespace quire {

PageRef::PageRef(PageRef&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_), class_(other.class_) {}

PageRef& PageRef::operator=(PageRef&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = std::exchange(other.pool_, nullptr);
  id_ = other.id_;
  class_ = other.class_;
  return *this;
}

std::byte* PageRef::address() const {
  QUIRE_CHECK(pool_ != nullptr);
  return pool_->classes_[class_].memory->Address(id_);
}

bool PageRef::is_shared() const {
  QUIRE_CHECK(pool_ != nullptr);
  const PagePool::Page& page = pool_->classes_[class_].pages[id_];
  return page.num_uses > 1 || page.num_keeps > 0;
}

PageRef PageRef::Share() const {
  QUIRE_CHECK(pool_ != nullptr);
  return pool_->Use(class_, id_);
}

void PageRef::Reset() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->GiveBack(class_, id_);
}

StatusOr<std::unique_ptr<PagePool>> PagePool::Create(const PagePoolOptions& options) {
  QUIRE_CHECK(options.page_bytes.size() <= std::numeric_limits<PageClass>::max());
  std::unique_ptr<PagePool> pool(new PagePool(options));
  for (const size_t page_bytes : options.page_bytes) {
    Class& c = pool->classes_.emplace_back();
    if (page_bytes == 0) continue;
    QUIRE_ASSIGN_OR_RETURN(PageMemory memory,
                           PageMemory::Reserve(page_bytes, options.budget_bytes));
    c.page_bytes = page_bytes;
    c.stride = memory.page_stride();
    c.num_pages = memory.num_pages();
    c.memory = std::make_unique<PageMemory>(std::move(memory));
    c.free_ids = std::make_unique<FreeIds>(c.num_pages);
    c.pages = LazyArray<Page>(c.num_pages);
  }
  return pool;
}

PagePool::PagePool(const PagePoolOptions& options)
    : budget_bytes_(options.budget_bytes), fill_with_nan_(options.fill_with_nan) {}

PagePool::~PagePool() { QUIRE_CHECK(num_refs_ == 0); }

uint64_t PagePool::retained_bytes() const {
  uint64_t sum = 0;
  for (const PageAccount& account : accounts_) sum += account.retained;
  return sum;
}

void PagePool::AddAccounts(uint32_t num_accounts) {
  if (num_accounts > accounts_.size()) accounts_.resize(num_accounts);
}

PageRef PagePool::Take(PageClass page_class, AccountId account) {
  Class& c = classes_[page_class];
  QUIRE_CHECK(c.stride != 0 && free_bytes() >= c.stride && account < accounts_.size());
  const PageId id = c.free_ids->TakeLowest();
  c.memory->BeginUse(id);
  c.pages[id].account = account;
  if (fill_with_nan_) FillWithNan(c, id);
  return Use(page_class, id);
}

PageRef PagePool::Use(PageClass page_class, PageId id) {
  Class& c = classes_[page_class];
  Page& page = c.pages[id];
  QUIRE_CHECK(!c.free_ids->is_free(id) && page.num_uses < std::numeric_limits<uint32_t>::max());
  const Page before = page;
  ++page.num_uses;
  ++num_refs_;
  Account(c, id, before);
  return PageRef(this, page_class, id);
}

void PagePool::GiveBack(PageClass page_class, PageId id) {
  Class& c = classes_[page_class];
  Page& page = c.pages[id];
  if (page.num_uses == 0 && !Fault(c, id, "is given back without a use")) return;
  const Page before = page;
  --page.num_uses;
  --num_refs_;
  Account(c, id, before);
  if (observer_ != nullptr && page.num_uses == 0 && page.num_keeps > 0)
    observer_->OnUnused(page_class, id);
}

void PagePool::Keep(PageClass page_class, PageId id) {
  Class& c = classes_[page_class];
  Page& page = c.pages[id];
  QUIRE_CHECK(page.num_uses > 0);
  ++page.num_keeps;  // in use before and after: no bytes move
}

void PagePool::Unkeep(PageClass page_class, PageId id) {
  Class& c = classes_[page_class];
  Page& page = c.pages[id];
  if (page.num_keeps == 0 && !Fault(c, id, "is no longer kept, and was not")) return;
  const Page before = page;
  --page.num_keeps;
  Account(c, id, before);
}

void PagePool::Pin(PageClass page_class, PageId id) {
  Class& c = classes_[page_class];
  Page& page = c.pages[id];
  QUIRE_CHECK(page.num_keeps > 0);
  const Page before = page;
  ++page.num_pins;
  Account(c, id, before);
}

void PagePool::Unpin(PageClass page_class, PageId id) {
  Class& c = classes_[page_class];
  Page& page = c.pages[id];
  if (page.num_pins == 0 && !Fault(c, id, "loses a pin that it has not")) return;
  const Page before = page;
  --page.num_pins;
  Account(c, id, before);
}

void PagePool::Count(const Page& page, uint64_t bytes, PageAccount* account) {
  if (page.num_uses > 0 || page.is_lost)
    account->states.held += bytes;
  else if (page.num_keeps > 0)
    (page.num_pins > 0 ? account->states.pinned : account->states.cached) += bytes;
  if (page.num_pins > 0) account->retained += bytes;
}

PageStates PagePool::class_pages(PageClass page_class) const {
  const Class& c = classes_[page_class];
  return {.held = c.num_held, .cached = c.num_cached - c.num_pinned, .pinned = c.num_pinned};
}

void PagePool::Account(Class& c, PageId id, const Page& before) {
  const Page& now = c.pages[id];
  const auto is_cached = [](const Page& p) { return p.num_uses == 0 && p.num_keeps > 0; };
  if ((before.num_uses > 0) != (now.num_uses > 0)) {
    held_bytes_ += now.num_uses > 0 ? c.stride : -c.stride;
    c.num_held += now.num_uses > 0 ? 1 : -1;
  }
  if (is_cached(before) != is_cached(now)) {
    cached_bytes_ += is_cached(now) ? c.stride : -c.stride;
    c.num_cached += is_cached(now) ? 1 : -1;
  }
  const bool was_pinned = is_cached(before) && before.num_pins > 0;
  const bool is_pinned = is_cached(now) && now.num_pins > 0;
  if (was_pinned != is_pinned) pinned_bytes_ += is_pinned ? c.stride : -c.stride;
  if (was_pinned != is_pinned) c.num_pinned += is_pinned ? 1 : -1;
  PageAccount& account = accounts_[now.account];
  Count(before, -c.stride, &account);
  Count(now, c.stride, &account);
  if (now.num_uses > 0 || now.num_keeps > 0) return;
  if (fill_with_nan_) FillWithNan(c, id);
  c.memory->EndUse(id);
  c.free_ids->GiveBack(id);
}

void PagePool::FillWithNan(Class& c, PageId id) {
  std::memset(c.memory->Address(id), 0xFF, c.stride);
}

bool PagePool::Fault(Class& c, PageId id, const char* what) {
  std::fprintf(stderr, "quire: bug: page %u of class %d %s\n", id,
               static_cast<int>(&c - classes_.data()), what);
#ifndef NDEBUG
  QUIRE_CHECK(false);
#endif
  Page& page = c.pages[id];
  ++num_failures_;
  // A free page leaves the free ones, so that nobody is handed what somebody may still use.
  if (!page.is_lost && c.free_ids->is_free(id) && free_bytes() >= c.stride) {
    page.is_lost = true;
    c.free_ids->Take(id);
    c.memory->BeginUse(id);
    held_bytes_ += c.stride;
    ++c.num_held;
    accounts_[page.account].states.held += c.stride;
  }
  return false;
}

size_t PagePool::ReleaseIdle(uint32_t now_s, uint32_t idle_s) {
  size_t released = 0;
  for (Class& c : classes_)
    if (c.memory != nullptr) released += c.memory->ReleaseIdle(now_s, idle_s);
  return released;
}

size_t PagePool::committed_bytes() const {
  size_t bytes = 0;
  for (const Class& c : classes_)
    if (c.memory != nullptr) bytes += c.memory->committed_bytes();
  return bytes;
}

size_t PagePool::slack_bytes() const {
  size_t bytes = 0;
  for (const Class& c : classes_)
    if (c.memory != nullptr) bytes += c.memory->slack_bytes();
  return bytes;
}

Status PagePool::CheckClass(const Class& c, size_t index) const {
  uint32_t num_held = 0, num_cached = 0;
  std::vector<bool> in_use(c.num_pages);
  for (PageId id = 0; id < c.num_pages; ++id) {
    const Page& page = c.pages[id];
    in_use[id] = page.num_uses > 0 || page.num_keeps > 0 || page.is_lost;
    if (c.free_ids->is_free(id) == in_use[id])
      return Internal("[cache.pool.1] page {} of class {} has {} uses and {} keeps, and is {}", id,
                      index, page.num_uses, page.num_keeps,
                      c.free_ids->is_free(id) ? "free" : "not free");
    if (page.num_pins > 0 && page.num_keeps == 0)
      return Internal("[cache.pool.5] page {} of class {} has {} pins and is not kept", id, index,
                      page.num_pins);
    num_held += page.num_uses > 0 || page.is_lost ? 1 : 0;
    num_cached += page.num_uses == 0 && page.num_keeps > 0 ? 1 : 0;
  }
  if (num_held != c.num_held || num_cached != c.num_cached ||
      num_held + num_cached + c.free_ids->num_free() != c.num_pages)
    return Internal("[cache.pool.1] class {}: {} pages held, {} cached, {} free of {}", index,
                    num_held, num_cached, c.free_ids->num_free(), c.num_pages);
  return c.memory->CheckInvariants(in_use);
}

Status PagePool::CheckInvariants() const {
  size_t held = 0, cached = 0, pinned = 0;
  uint64_t num_refs = 0;
  for (size_t i = 0; i < classes_.size(); ++i) {
    const Class& c = classes_[i];
    if (c.memory == nullptr) continue;
    QUIRE_RETURN_IF_ERROR(CheckClass(c, i));
    held += c.num_held * c.stride;
    cached += c.num_cached * c.stride;
    for (PageId id = 0; id < c.num_pages; ++id) {
      const Page& page = c.pages[id];
      num_refs += page.num_uses;
      if (page.num_uses == 0 && page.num_pins > 0) pinned += c.stride;
    }
  }
  if (num_refs != num_refs_)
    return Internal("[cache.pool.2] the pages have {} uses, {} are alive", num_refs, num_refs_);
  if (held != held_bytes_ || cached != cached_bytes_ || held + cached > budget_bytes_ ||
      held_bytes() + cached_bytes() + free_bytes() != budget_bytes_)
    return Internal("[cache.pool.4] {} bytes held and {} cached, counted {} and {}, of {}", held,
                    cached, held_bytes_, cached_bytes_, budget_bytes_);
  if (pinned != pinned_bytes_)
    return Internal("[cache.pool.5] {} bytes pinned, counted {}", pinned, pinned_bytes_);
  return CheckAccounts();
}

Status PagePool::CheckAccounts() const {
  std::vector<PageAccount> accounts(accounts_.size());
  for (const Class& c : classes_) {
    uint32_t num_pinned = 0;
    for (PageId id = 0; id < c.num_pages; ++id) {
      const Page& page = c.pages[id];
      Count(page, c.stride, &accounts[page.account]);
      num_pinned += page.num_uses == 0 && page.num_pins > 0 ? 1 : 0;
    }
    if (num_pinned != c.num_pinned)
      return Internal("[cache.pool.6] {} pages pinned, counted {}", num_pinned, c.num_pinned);
  }
  PageStates all;
  for (AccountId id = 0; id < accounts.size(); ++id) {
    const PageAccount &found = accounts[id], &counted = accounts_[id];
    if (found != counted)
      return Internal(
          "[cache.pool.6] account {}: {} bytes held, {} cached, {} pinned, {} retained; "
          "counted {}, {}, {}, {}",
          id, found.states.held, found.states.cached, found.states.pinned, found.retained,
          counted.states.held, counted.states.cached, counted.states.pinned, counted.retained);
    all.held += counted.states.held;
    all.cached += counted.states.cached;
    all.pinned += counted.states.pinned;
  }
  if (all != PageStates{held_bytes_, cached_bytes_ - pinned_bytes_, pinned_bytes_})
    return Internal("[cache.pool.6] the accounts have {} bytes, the pool {}", all.sum(),
                    held_bytes_ + cached_bytes_);
  return OkStatus();
}

}  // namespace quire
