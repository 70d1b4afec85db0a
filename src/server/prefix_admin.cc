#include "server/prefix_admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/message_text.h"
#include "cache/prefix_list.h"
#include "server/admin_fields.h"
#include "server/api/call_fields.h"
#include "server/api/call_reader.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kMostTtlSeconds = 366 * 24 * 3600;
constexpr size_t kMostLabelBytes = 128;
constexpr uint32_t kMostListed = 10'000;

std::string IdText(PrefixId id) { return fmt::format("{:016x}", id); }

std::optional<PrefixId> ParseId(std::string_view text) {
  PrefixId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return id;
}

ApiError PrefixNotFound(const std::string& id) {
  return {.status = 404,
          .code = "prefix_not_found",
          .message = fmt::format("There is no prefix '{}' (any more); GET /quire/v1/prefixes lists "
                                 "what there is.",
                                 Printable(id, 32))};
}

ApiError OverRetainedBudget(uint64_t most_bytes) {
  return {.status = 403,
          .type = "permission_error",
          .code = "retained_budget_exceeded",
          .message = fmt::format("The prefix and what is kept already are more than the {} bytes "
                                 "that this tenant may keep: unpin or drop another one.",
                                 GroupDigits(most_bytes))};
}

ApiError EvictedBeforeKept() {
  return {.status = 503,
          .type = "server_error",
          .code = "evicted",
          .message =
              "The prefix was computed, but other requests needed its memory before it could "
              "be kept: try again.",
          .retry_after_s = 1};
}

// The tenant that a client's looks are limited to.
std::optional<std::string> Scope(const Client& client) {
  return client.is_admin ? std::optional<std::string>() : client.tenant;
}

Json PrefixJson(const PrefixInfo& info, uint32_t now_s) {
  Json json = {{"id", IdText(info.id)},       {"label", info.label},
               {"tenant", info.tenant},       {"tokens", info.length},
               {"pages", info.num_pages},     {"bytes", info.bytes},
               {"hits", info.num_hits},       {"last_used", UnixTime(info.last_used_s, now_s)},
               {"holders", info.num_holders}, {"pinned", info.is_pinned}};
  json["retained_until"] = nullptr;
  if (info.retained_until_s > 0) json["retained_until"] = UnixTime(info.retained_until_s, now_s);
  json["tier"] = "device";
  return json;
}

// What `object` says of keeping; what it doesn't say stays as in *keep.
std::optional<ApiError> ReadKeep(const Json& object, PrefixKeep* keep) {
  const auto pin = ReadBool(object, "pin");
  if (!pin.ok()) return pin.error();
  const auto ttl_s = ReadCount(object, "ttl_s", 0, kMostTtlSeconds);
  if (!ttl_s.ok()) return ttl_s.error();
  const auto label = ReadText(object, "label", kMostLabelBytes);
  if (!label.ok()) return label.error();
  keep->is_pinned = pin.value().value_or(keep->is_pinned);
  keep->ttl_s = ttl_s.value().value_or(keep->ttl_s);
  keep->label = label.value().value_or(keep->label);
  return {};
}

bool IsKeepField(std::string_view name) {
  return name == "pin" || name == "ttl_s" || name == "label";
}

// Of the node that ends the whole pages of `tokens`, if the cache has them all.
std::optional<PrefixId> FindWhole(const KvCache& cache, const NamespaceKey& key,
                                  std::span<const TokenId> tokens) {
  const auto ns = cache.FindNamespace(key);
  const uint32_t page_size = cache.shape().page_size;
  if (!ns.has_value() || tokens.size() < page_size) return {};
  NodeId node = cache.tree().root(*ns);
  for (; tokens.size() >= page_size; tokens = tokens.subspan(page_size)) {
    node = cache.tree().FindChild(node, tokens.first(page_size));
    if (node == kNoNode) return {};
  }
  return DescribePrefix(cache, node).id;
}

PinOptions OptionsOf(const PrefixKeep& keep, uint32_t now_s, uint64_t most_bytes,
                     const KvCache& cache) {
  return {.until_s = keep.ttl_s == 0 ? 0 : now_s + keep.ttl_s,
          .label = keep.label,
          .most_bytes = most_bytes,
          .most_total_bytes = MostPinnedBytes(cache)};
}

}  // namespace

uint64_t MostPinnedBytes(const KvCache& cache) { return cache.pool().budget_bytes() / 2; }

int64_t UnixTime(uint32_t engine_s, uint32_t now_s) {
  return static_cast<int64_t>(std::time(nullptr)) + int64_t{engine_s} - int64_t{now_s};
}

PrefixAdmin::PrefixAdmin(Engine* engine, const ServedModel* model, const Metrics* metrics,
                         std::shared_ptr<EventLog> events)
    : engine_(engine), model_(model), metrics_(metrics), events_(std::move(events)) {
  engine->AskLater([log = events_](StepLoop& loop) {
    loop.SetOnExpired([log, &loop](const PrefixInfo& info) {
      Json json = PrefixJson(info, loop.now_s());
      json["retained_until"] = nullptr;  // it is cached like any other from now on
      json["action"] = "expired";
      log->Add("prefix", info.tenant, ToText(json));
    });
  });
}

void PrefixAdmin::SetRetainedLimits(std::map<std::string, uint64_t> limits) {
  const std::lock_guard lock(limits_mutex_);
  retained_limits_ = std::move(limits);
}

uint64_t PrefixAdmin::MostRetained(const std::string& tenant) const {
  const std::lock_guard lock(limits_mutex_);
  const auto found = retained_limits_.find(tenant);
  return found == retained_limits_.end() || found->second == 0 ? UINT64_MAX : found->second;
}

ApiResult<AdminWork> PrefixAdmin::List(const Client& client, std::string_view sort,
                                       std::string_view limit) const {
  PrefixQuery query{.tenant = Scope(client)};
  if (sort == "hits")
    query.order = PrefixOrder::kHits;
  else if (sort == "age")
    query.order = PrefixOrder::kAge;
  else if (!sort.empty() && sort != "bytes")
    return InvalidValue("sort", "sort: need bytes, hits or age");
  if (!limit.empty()) {
    const auto [end, error] =
        std::from_chars(limit.data(), limit.data() + limit.size(), query.limit);
    if (error != std::errc() || end != limit.data() + limit.size() || query.limit == 0 ||
        query.limit > kMostListed)
      return InvalidValue("limit", fmt::format("limit: need 1 to {}", kMostListed));
  }
  return AdminWork([query](StepLoop& loop) -> AdminAnswer {
    return [listing = ListPrefixes(loop.cache(), query), now_s = loop.now_s()] {
      Json json = {{"schema", 1}, {"total", listing.num_prefixes}, {"prefixes", Json::array()}};
      for (const PrefixInfo& info : listing.prefixes)
        json["prefixes"].push_back(PrefixJson(info, now_s));
      return ToText(json);
    };
  });
}

ApiResult<PendingPrefix> PrefixAdmin::Start(const Client& client, std::string_view body,
                                            std::function<void()> on_news) {
  const auto object = ReadJsonObject(body);
  if (!object.ok()) return object.error();
  const auto is_known = [](std::string_view name) {
    return IsPromptField(name) || IsKeepField(name) || name == "cache_salt";
  };
  if (auto error = RefuseUnknown(object.value(), is_known)) return std::move(*error);
  PendingPrefix pending{.client = client};
  if (const auto error = ReadKeep(object.value(), &pending.keep)) return *error;
  if (!pending.keep.is_pinned && pending.keep.ttl_s == 0) {
    if (object.value().contains("pin"))
      return InvalidValue("ttl_s", "a prefix that is not pinned needs ttl_s, in seconds");
    pending.keep.is_pinned = true;  // nothing said: until it is dropped
  }
  auto salt = ReadSalt(object.value());
  if (!salt.ok()) return salt.error();
  pending.salt = std::move(salt.value());
  auto tokens = ReadPrompt(object.value(), *model_);
  if (!tokens.ok()) return tokens.error();
  const uint32_t page_size = engine_->options().page_size;
  pending.tokens = std::move(tokens.value());
  if (pending.tokens.size() < page_size)
    return InvalidValue("", fmt::format("{} tokens are less than a page of {}: there is nothing "
                                        "that could be kept",
                                        pending.tokens.size(), page_size));
  pending.tokens.resize(pending.tokens.size() / page_size * page_size);
  if (!engine_->options().keeps_prefixes)
    return UnsupportedParameter("", "This server keeps no prefixes (--prefix-cache off).");
  Request request{.prompt = pending.tokens, .max_tokens = 0};
  request.tenant = client.tenant;
  request.salt = pending.salt;
  request.label = "prefix";
  request.on_news = std::move(on_news);
  auto answer = engine_->Submit(std::move(request));
  if (!answer.ok()) return FromStatus(answer.status());
  pending.answer = std::move(answer).value();
  return pending;
}

ApiResult<AdminWork> PrefixAdmin::Finish(PendingPrefix pending) const {
  if (!pending.answer->status(0).ok()) return FromStatus(pending.answer->status(0));
  const uint64_t most_bytes = MostRetained(pending.client.tenant);
  return AdminWork([this, pending = std::move(pending), most_bytes](StepLoop& loop) -> AdminAnswer {
    const std::string& tenant = pending.client.tenant;
    KvCache& cache = loop.cache();
    const uint32_t now_s = loop.now_s();
    PinResult result;
    PrefixInfo info;
    if (const auto ns = cache.Namespace(loop.KeyOf(tenant, pending.salt)); ns.ok()) {
      PrefixKeep first = pending.keep;
      if (first.is_pinned) first.ttl_s = 0;
      result = cache.Pin(ns.value(), pending.tokens, OptionsOf(first, now_s, most_bytes, cache));
    }
    if (result.pin != 0) {
      info = DescribePrefix(cache, cache.pins().all().at(result.pin).node);
      if (pending.keep.is_pinned && pending.keep.ttl_s > 0) {
        // Both: pinned, and retained when it is pinned no more.
        (void)cache.SetPin(info.id, tenant, true,
                           OptionsOf(pending.keep, now_s, most_bytes, cache));
        info.retained_until_s = now_s + pending.keep.ttl_s;
      }
    }
    const PromptReport& prompt = pending.answer->prompt();
    return [this, result, info, now_s, most_bytes, tenant,
            num_computed = prompt.prompt_len - prompt.num_cached]() -> ApiResult<std::string> {
      if (result.is_over_budget) return OverRetainedBudget(most_bytes);
      if (result.pin == 0) return EvictedBeforeKept();
      Json json = PrefixJson(info, now_s);
      json["computed_tokens"] = num_computed;
      json["expires_at"] = info.is_pinned ? Json() : json["retained_until"];
      return Tell("added", tenant, std::move(json));
    };
  });
}

ApiResult<AdminWork> PrefixAdmin::Change(const Client& client, const std::string& id,
                                         std::string_view body) const {
  const auto object = ReadJsonObject(body);
  if (!object.ok()) return object.error();
  if (auto error = RefuseUnknown(object.value(), IsKeepField)) return std::move(*error);
  PrefixKeep said;
  if (const auto error = ReadKeep(object.value(), &said)) return *error;
  const auto says = [&](const char* name) {
    return object.value().contains(name) && !object.value()[name].is_null();
  };
  const bool says_pin = says("pin"), says_ttl = says("ttl_s"), says_label = says("label");
  if (!says_pin && !says_ttl && !says_label)
    return InvalidValue("", "nothing to change: give pin, ttl_s or label");
  const auto prefix_id = ParseId(id);
  if (!prefix_id.has_value()) return PrefixNotFound(id);
  return AdminWork([=, this, scope = Scope(client)](StepLoop& loop) -> AdminAnswer {
    KvCache& cache = loop.cache();
    const uint32_t now_s = loop.now_s();
    const NodeId node = FindPrefixNode(cache, *prefix_id, scope);
    if (node == kNoNode) return [id] { return PrefixNotFound(id); };
    PrefixInfo info = DescribePrefix(cache, node);
    const uint64_t most_bytes = MostRetained(info.tenant);
    PinOptions options = OptionsOf(said, now_s, most_bytes, cache);
    if (!says_ttl) options.until_s = info.retained_until_s;
    if (!says_label) options.label = info.label;
    const auto result =
        cache.SetPin(*prefix_id, info.tenant, says_pin ? said.is_pinned : info.is_pinned, options);
    if (!result.has_value()) return [id] { return PrefixNotFound(id); };
    if (result->is_over_budget) return [most_bytes] { return OverRetainedBudget(most_bytes); };
    return [this, info = DescribePrefix(cache, node), now_s] {
      return Tell("changed", info.tenant, PrefixJson(info, now_s));
    };
  });
}

ApiResult<AdminWork> PrefixAdmin::Drop(const Client& client, const std::string& id) const {
  const auto prefix_id = ParseId(id);
  if (!prefix_id.has_value()) return PrefixNotFound(id);
  return AdminWork([=, this, scope = Scope(client)](StepLoop& loop) -> AdminAnswer {
    const NodeId node = FindPrefixNode(loop.cache(), *prefix_id, scope);
    if (node == kNoNode) return [id] { return PrefixNotFound(id); };
    const std::string tenant = DescribePrefix(loop.cache(), node).tenant;
    const auto num_pages = loop.cache().DropPrefixById(*prefix_id, tenant);
    if (!num_pages.has_value()) return [id] { return PrefixNotFound(id); };
    return [=, this, num_pages = *num_pages] {
      return Tell("dropped", tenant, {{"id", IdText(*prefix_id)}, {"dropped_pages", num_pages}});
    };
  });
}

ApiResult<AdminWork> PrefixAdmin::Match(const Client& client, std::string_view body) const {
  const auto object = ReadJsonObject(body);
  if (!object.ok()) return object.error();
  const auto is_known = [](std::string_view name) {
    return IsPromptField(name) || name == "cache_salt";
  };
  if (auto error = RefuseUnknown(object.value(), is_known)) return std::move(*error);
  auto salt = ReadSalt(object.value());
  if (!salt.ok()) return salt.error();
  auto tokens = ReadPrompt(object.value(), *model_);
  if (!tokens.ok()) return tokens.error();
  if (tokens.value().empty())
    return InvalidValue("prompt", "the prompt has no tokens: give some text");
  return AdminWork([this, tenant = client.tenant, salt = std::move(salt.value()),
                    tokens = std::move(tokens.value())](StepLoop& loop) -> AdminAnswer {
    const NamespaceKey key = loop.KeyOf(tenant, salt);
    return [this, match = loop.cache().Find(key, tokens), id = FindWhole(loop.cache(), key, tokens),
            of_tokens = static_cast<uint32_t>(tokens.size())] {
      // The last token is always computed.
      const uint32_t matched = std::min(match.length, of_tokens - 1);
      Json json = {{"matched_tokens", matched},
                   {"of_tokens", of_tokens},
                   {"by_tier", {{"device", matched}, {"host", 0}, {"disk", 0}, {"remote", 0}}},
                   {"stop", MatchStopName(match.stop)}};
      json["id"] = nullptr;
      if (id.has_value()) json["id"] = IdText(*id);
      json["est_ttft_ms"] = nullptr;
      if (const auto rate = metrics_->prefill_tokens_per_second())
        json["est_ttft_ms"] = (of_tokens - matched) / *rate * 1000;
      return ToText(json);
    };
  });
}

std::string PrefixAdmin::Tell(const char* action, const std::string& tenant, Json json) const {
  const std::string text = ToText(json);
  json["action"] = action;
  events_->Add("prefix", tenant, ToText(json));
  return text;
}

}  // namespace quire
