#include "cache/cache_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "cache/test_values.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 4;
constexpr uint32_t kMaxLength = 48;
constexpr uint32_t kMaxLive = 6;
constexpr size_t kPageBytes = kPageSize * sizeof(uint64_t);

// [token]: what its slot holds in layer group `group` of namespace `ns`.
std::vector<uint64_t> ValuesOf(std::span<const TokenId> tokens, uint32_t group, NamespaceId ns) {
  std::vector<uint64_t> values;
  uint64_t value = StartValue(group, ns);
  for (const TokenId token : tokens) values.push_back(value = NextValue(value, token));
  return values;
}

}  // namespace

std::span<const CacheModelCase> CacheModelCases() {
  constexpr auto kLru = EvictionPolicyKind::kLru;
  static constexpr CacheModelCase kCases[] = {
      {"f16, full", {}},
      {"f16, full, lru", {.policy = kLru}},
      {"f16, window", {.window = 6}},
      {"f16, window, lru", {.window = 9, .policy = kLru}},
      {"f16, window alone", {.window = 6, .has_full = false}},
      {"page-wise, full", {.seals = true, .sink_pages = 1}},
      {"page-wise, full, no sink", {.seals = true}},
      {"page-wise, full, recent", {.seals = true, .sink_pages = 1, .recent_pages = 2}},
      {"page-wise, window", {.seals = true, .window = 9, .sink_pages = 1}},
      {"page-wise, window, recent, lru",
       {.seals = true, .window = 5, .recent_pages = 1, .policy = kLru}},
  };
  return kCases;
}

CacheModel::CacheModel(const CacheModelShape& shape, uint32_t num_pages, uint64_t seed)
    : shape_(MakeTestShape(kPageSize, {.open_page_bytes = kPageBytes,
                                       .seals = shape.seals,
                                       .has_full = shape.has_full,
                                       .window = shape.window,
                                       .sink_pages = shape.sink_pages,
                                       .recent_pages = shape.recent_pages})),
      random_(seed) {
  auto cache = KvCache::Create({.shape = shape_,
                                .budget_bytes = num_pages * PageStride(kPageBytes),
                                .policy = shape.policy,
                                .max_namespaces = 4,
                                .fill_with_nan = true});
  QUIRE_CHECK(cache.ok());
  cache_ = std::move(cache).value();
  for (const char* tenant : {"a", "b"})
    namespaces_.push_back(cache_->Namespace({.tenant = tenant}).value());
}

// Few token ids and few beginnings, so that prompts share and diverge at every place.
std::vector<TokenId> CacheModel::RandomPrompt() {
  const uint32_t length = 1 + Random(kMaxLength / 2), kept = Random(length + 1);
  std::vector<TokenId> tokens;
  if (!live_.empty() && Random(3) == 0)
    tokens = live_[Random(static_cast<uint32_t>(live_.size()))].tokens;
  tokens.resize(std::min<size_t>(tokens.size(), kept));
  const uint32_t pattern = Random(3);
  while (tokens.size() < length)
    tokens.push_back(Random(8) == 0 ? static_cast<TokenId>(Random(3))
                                    : static_cast<TokenId>((tokens.size() * pattern) % 3));
  return tokens;
}

Status CacheModel::Start() {
  if (live_.size() == kMaxLive) return OkStatus();
  const NamespaceId ns = namespaces_[Random(2)];
  std::vector<TokenId> tokens = RandomPrompt();
  const PrefixMatch found = cache_->Find(ns, tokens);
  PrefixMatch match;
  SequencePages pages = cache_->NewSequence(ns, tokens, kMaxLength, &match);
  if (match.length != found.length || pages.length() != match.length ||
      pages.next_position() >= tokens.size() || match.num_shared > tokens.size())
    return Internal("a match of {} of {} tokens gives {}, next {}", match.length, tokens.size(),
                    pages.length(), pages.next_position());
  live_.push_back({std::move(pages), std::move(tokens), ns});
  return OkStatus();
}

void CacheModel::Write(Live& live, uint32_t begin, uint32_t end) {
  for (uint32_t g = 0; g < shape_.num_groups(); ++g)
    WriteValues(shape_, g, live.pages.views()[g],
                ValuesOf(std::span(live.tokens).first(end), g, live.ns), begin, end);
}

Status CacheModel::Compute(Live& live) {
  if (Random(4) == 0) live.pages.Follow(live.tokens);
  const uint32_t length = live.pages.length();
  const uint32_t end = std::min(length + Random(2 * kPageSize + 2), kMaxLength);
  const size_t held = cache_->pool().held_bytes(), bytes = live.pages.BytesNeeded(end);
  const size_t available = cache_->available_bytes();
  const Status reserved = live.pages.Reserve(end);
  if (reserved.ok() != (bytes <= available))
    return Internal("{} bytes needed, {} available: {}", bytes, available,
                    reserved.ok() ? "taken" : "refused");
  if (!reserved.ok()) {
    ++num_failed_reserves_;
    return cache_->pool().held_bytes() == held ? OkStatus()
                                               : Internal("a refused Reserve took pages");
  }
  while (live.tokens.size() < end) live.tokens.push_back(static_cast<TokenId>(Random(3)));
  if (Random(8) == 0) {
    live.pages.Cancel();
    return OkStatus();
  }
  Write(live, length, end);
  // Now and then not all of a step is wanted (drafted tokens).
  const uint32_t kept = Random(8) == 0 ? length + Random(end - length + 1) : end;
  live.pages.Commit(kept, live.tokens);
  return OkStatus();
}

Status CacheModel::Pin() {
  if (pins_.size() >= 3) {
    const size_t i = Random(static_cast<uint32_t>(pins_.size()));
    cache_->Unpin(pins_[i]);  // may have expired
    pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(i));
    return OkStatus();
  }
  PinId pin;
  const NamespaceId ns = namespaces_[Random(2)];
  if (cache_->Pin(ns, RandomPrompt(), Random(2) * (now_s_ + Random(50)), &pin) > 0)
    pins_.push_back(pin);
  return OkStatus();
}

std::string CacheModel::Run(uint32_t operation, Status* status) {
  if (operation < 12 || live_.empty()) {
    *status = Start();
    return "start";
  }
  const size_t i = Random(static_cast<uint32_t>(live_.size()));
  Live& live = live_[i];
  const auto erase = [&] { live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i)); };
  if (operation < 70) {
    *status = Compute(live);
    return "compute";
  }
  if (operation < 75) {
    if (live_.size() < kMaxLive) {
      Live fork{live.pages.Fork(), live.tokens, live.ns, live.may_be_forgotten};
      fork.tokens.resize(fork.pages.length());
      live_.push_back(std::move(fork));
    }
    return "fork";
  }
  if (operation < 80) {
    const uint32_t wanted = Random(live.pages.length() + 1);
    const uint32_t length = live.pages.Truncate(wanted);
    if (length > wanted) *status = Internal("truncated to {} in place of {}", length, wanted);
    live.tokens.resize(length);
    return "truncate";
  }
  if (operation < 92) {
    live.tokens.resize(live.pages.length());
    live.pages.End(live.tokens);
    if (!live.tokens.empty() && !live.may_be_forgotten) {
      const PrefixMatch match = cache_->Find(live.ns, live.tokens);
      if (match.num_shared != live.tokens.size())
        *status = Internal("{} of {} tokens are found right after their end", match.num_shared,
                           live.tokens.size());
    }
    erase();
    return "end";
  }
  if (operation < 94) {
    erase();
    return "release";
  }
  if (operation < 97) {
    *status = Pin();
    cache_->ExpirePins(now_s_);
    return "pin";
  }
  if (operation < 98) {
    const uint32_t kind = Random(8);
    if (kind == 0)
      cache_->DropNamespace(live.ns);
    else if (kind < 4)
      cache_->DropText(live.ns, live.tokens);
    else
      cache_->DropPrefix(live.ns, RandomPrompt());
    for (Live& other : live_) other.may_be_forgotten = true;
    return "drop";
  }
  cache_->MakeRoom(Random(4) * PageStride(kPageBytes));
  cache_->pool().ReleaseIdle(now_s_, 10);
  return "make room";
}

Status CacheModel::Step() {
  ++now_s_;
  Status status = OkStatus();
  const std::string what = Run(Random(99), &status);
  if (status.ok()) status = CheckAll();
  return status.ok() ? status : status.WithContext("after " + what);
}

Status CacheModel::CheckContents(const Live& live) const {
  const uint32_t length = live.pages.length();
  for (uint32_t g = 0; g < shape_.num_groups(); ++g) {
    QUIRE_RETURN_IF_ERROR(CheckValues(shape_, g, live.pages,
                                      ValuesOf(std::span(live.tokens).first(length), g, live.ns)));
    const PageTable& table = live.pages.table(g);
    const uint32_t most =
        shape_.groups[g].window == 0 ? UINT32_MAX : shape_.NumPages(shape_.groups[g].window) + 1;
    if (table.num_pages() - table.first_page() > most)
      return Internal("group {} holds {} pages for a window of {}", g,
                      table.num_pages() - table.first_page(), shape_.groups[g].window);
  }
  return OkStatus();
}

Status CacheModel::CheckAll() const {
  QUIRE_RETURN_IF_ERROR(cache_->CheckInvariants());
  std::set<std::pair<PageClass, PageId>> held;
  size_t held_bytes = 0;
  for (const Live& live : live_) {
    QUIRE_RETURN_IF_ERROR(live.pages.CheckInvariants());
    QUIRE_RETURN_IF_ERROR(CheckContents(live));
    for (uint32_t g = 0; g < shape_.num_groups(); ++g) {
      const PageTable& table = live.pages.table(g);
      for (uint32_t page = 0; page < table.num_pages(); ++page)
        for (const PageRef* form : {&table.open(page), &table.sealed(page)})
          if (*form && held.emplace(form->page_class(), form->id()).second)
            held_bytes += cache_->pool().stride(form->page_class());
    }
  }
  if (held_bytes != cache_->pool().held_bytes())
    return Internal("the sequences hold {} bytes, the pool counts {}", held_bytes,
                    cache_->pool().held_bytes());
  return OkStatus();
}

Status CacheModel::Drain() {
  live_.clear();
  for (const PinId pin : pins_) cache_->Unpin(pin);
  pins_.clear();
  cache_->ExpirePins(UINT32_MAX);
  QUIRE_RETURN_IF_ERROR(CheckAll());
  const size_t budget = cache_->pool().budget_bytes();
  if (!cache_->MakeRoom(budget) || cache_->pool().free_bytes() != budget)
    return Internal("{} of {} bytes are free after all has ended", cache_->pool().free_bytes(),
                    budget);
  return cache_->CheckInvariants();
}

}  // namespace quire
