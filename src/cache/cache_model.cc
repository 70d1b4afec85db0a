#include "cache/cache_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "cache/cache_report.h"
#include "cache/prefix_list.h"
#include "cache/test_values.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 4;
constexpr uint32_t kMaxLength = 48;
constexpr uint32_t kMaxLive = 6;
constexpr uint32_t kNumSalts = 6;
constexpr size_t kPageBytes = kPageSize * sizeof(uint64_t);

// [token]: what its slot holds in layer group `group` of namespace key `owner`.
std::vector<uint64_t> ValuesOf(std::span<const TokenId> tokens, uint32_t group, uint32_t owner) {
  std::vector<uint64_t> values;
  uint64_t value = StartValue(group, owner);
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
  for (const NamespaceId ns : namespaces_) holds_.push_back(cache_->Hold(ns));
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
  // The first two stay; more salts than there is room for share what is left.
  const uint32_t owner = Random(8) > 0 ? Random(2) : 2 + Random(kNumSalts);
  NamespaceId ns = owner < 2 ? namespaces_[owner] : 0;
  if (owner >= 2) {
    const auto salted =
        cache_->Namespace({.tenant = owner % 2 == 0 ? "a" : "c", .salt = std::to_string(owner)});
    if (!salted.ok()) return OkStatus();  // what there is for them is in use
    ns = *salted;
  }
  std::vector<TokenId> tokens = RandomPrompt();
  const PrefixMatch found = cache_->Find(ns, tokens);
  PrefixMatch match;
  SequencePages pages = cache_->NewSequence(ns, tokens, kMaxLength, &match);
  if (match.length != found.length || pages.length() != match.length ||
      pages.next_position() >= tokens.size() || match.num_shared > tokens.size())
    return Internal("a match of {} of {} tokens gives {}, next {}", match.length, tokens.size(),
                    pages.length(), pages.next_position());
  live_.push_back({std::move(pages), std::move(tokens), ns, owner, cache_->Hold(ns)});
  return OkStatus();
}

void CacheModel::Write(Live& live, uint32_t begin, uint32_t end) {
  for (uint32_t g = 0; g < shape_.num_groups(); ++g)
    WriteValues(shape_, g, live.pages.views()[g],
                ValuesOf(std::span(live.tokens).first(end), g, live.owner), begin, end);
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
  const NamespaceId ns = namespaces_[Random(2)];
  const TenantId tenant = cache_->tenant_of(ns);
  const uint64_t before = cache_->pool().retained_bytes(tenant);
  const uint64_t most = Random(3) > 0 ? UINT64_MAX : Random(12) * PageStride(kPageBytes);
  const PinResult result = cache_->Pin(
      ns, RandomPrompt(), {.until_s = Random(2) * (now_s_ + Random(50)), .most_bytes = most});
  const uint64_t retained = cache_->pool().retained_bytes(tenant);
  if (retained != before + result.bytes || (result.bytes > 0 && retained > most) ||
      (result.is_over_budget && (result.pin != 0 || result.bytes > 0)))
    return Internal("a pin of {} bytes takes {} to {} of {}", result.bytes, before, retained, most);
  if (result.pin != 0) pins_.push_back(result.pin);
  return OkStatus();
}

// Something that an operator does to a prefix of the list.
Status CacheModel::ChangeListed() {
  const PrefixListing listing =
      ListPrefixes(*cache_, {.order = static_cast<PrefixOrder>(Random(3)), .limit = 1 + Random(5)});
  if (listing.prefixes.empty()) return OkStatus();
  const PrefixInfo& info = listing.prefixes[Random(static_cast<uint32_t>(listing.prefixes.size()))];
  if (Random(3) == 0) {
    const auto num_dropped = cache_->DropPrefixById(info.id, info.tenant);
    for (Live& live : live_) live.may_be_forgotten = true;
    if (!num_dropped.has_value() || FindPrefixNode(*cache_, info.id, info.tenant) != kNoNode)
      return Internal("prefix {} is listed and cannot be dropped", info.id);
    return OkStatus();
  }
  const bool is_pinned = Random(2) == 0;
  const uint32_t until_s = Random(2) * (now_s_ + 1 + Random(50));
  if (const auto result = cache_->SetPin(info.id, info.tenant, is_pinned, {.until_s = until_s});
      !result.has_value())
    return Internal("prefix {} is listed and cannot be pinned", info.id);
  const NodeId node = FindPrefixNode(*cache_, info.id, info.tenant);
  if (node == kNoNode) return OkStatus();  // the pin was all that held it
  const PrefixInfo now = DescribePrefix(*cache_, node);
  return now.is_pinned == is_pinned && now.retained_until_s == until_s
             ? OkStatus()
             : Internal("prefix {} is pinned otherwise than was asked", info.id);
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
      Live fork{live.pages.Fork(), live.tokens,           live.ns,
                live.owner,        cache_->Hold(live.ns), live.may_be_forgotten};
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
    *status = Random(4) > 0 ? Pin() : ChangeListed();
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
    QUIRE_RETURN_IF_ERROR(CheckValues(
        shape_, g, live.pages, ValuesOf(std::span(live.tokens).first(length), g, live.owner)));
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
  QUIRE_RETURN_IF_ERROR(CheckReport());
  return CheckListing();
}

Status CacheModel::CheckReport() const {
  const CacheReport report = MakeCacheReport(*cache_);
  uint64_t groups = 0, tenants = 0;
  for (const GroupReport& group : report.groups) groups += group.bytes.sum();
  for (const TenantReport& tenant : report.tenants) tenants += tenant.bytes.sum();
  if (report.bytes.sum() + report.free_bytes != report.budget_bytes ||
      groups != report.bytes.sum() || tenants != groups)
    return Internal("a report of {} bytes has {} in groups, {} of tenants, {} free",
                    report.budget_bytes, groups, tenants, report.free_bytes);
  return OkStatus();
}

// Each listed prefix's pages, counted along its path; and none is missing.
Status CacheModel::CheckListing() const {
  const PrefixTree& tree = cache_->tree();
  const PrefixListing listing = ListPrefixes(*cache_, {});
  uint64_t num_prefixes = 0;
  for (NodeId node = 0; node < tree.uses().size(); ++node) {
    const PrefixNode& at = tree.nodes()[node];
    if (at.is_free || at.is_root() || tree.is_dropped(node)) continue;
    num_prefixes += at.num_children != 1 || tree.has_own_pin(node) ? 1 : 0;
  }
  if (listing.num_prefixes != num_prefixes)
    return Internal("{} prefixes are listed, {} there are", listing.num_prefixes, num_prefixes);
  for (const PrefixInfo& info : listing.prefixes) {
    NodeId node = FindPrefixNode(*cache_, info.id, info.tenant);
    uint32_t num_pages = 0;
    for (uint32_t i = 0; !tree.is_root(node); ++i, node = tree.parent(node))
      for (uint32_t g = 0; g < shape_.num_groups(); ++g) {
        const KvGroupShape& group = shape_.groups[g];
        const bool seals = group.Seals(tree.nodes()[node].depth);
        for (const PageClass c : {OpenClass(g), SealedClass(g)}) {
          const bool is_read = group.window == 0 && (c == OpenClass(g)) != seals;
          if (tree.has_page(node, c) && (is_read || i <= tree.marked_pages())) ++num_pages;
        }
      }
    if (info.num_pages != num_pages)
      return Internal("prefix {} of {} tokens has {} pages, {} are listed", info.id, info.length,
                      num_pages, info.num_pages);
  }
  return OkStatus();
}

Status CacheModel::Drain() {
  live_.clear();
  holds_.clear();
  for (const PinId pin : pins_) cache_->Unpin(pin);
  pins_.clear();
  while (cache_->num_pins() > 0) cache_->Unpin(cache_->pins().all().begin()->first);
  QUIRE_RETURN_IF_ERROR(CheckAll());
  const size_t budget = cache_->pool().budget_bytes();
  if (!cache_->MakeRoom(budget) || cache_->pool().free_bytes() != budget)
    return Internal("{} of {} bytes are free after all has ended", cache_->pool().free_bytes(),
                    budget);
  return cache_->CheckInvariants();
}

}  // namespace quire
