#include "server/admin.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/message_text.h"
#include "server/admin_fields.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Json RequestJson(const RequestInfo& info) {
  return {{"id", info.id},
          {"request_id", info.label},
          {"tenant", info.tenant},
          {"phase", AnswerPhaseName(info.phase)},
          {"running", info.num_running > 0},
          {"prompt_tokens", info.prompt_len},
          {"prompt_computed", info.num_prompt_computed},
          {"cached_tokens", info.num_cached},
          {"generated_tokens", info.num_generated},
          {"choices", info.num_choices},
          {"pages", info.held_pages},
          {"bytes", info.held_bytes},
          {"priority", info.priority},
          {"preemptions", info.num_preemptions},
          {"seconds", info.seconds}};
}

bool MaySee(const Client& client, const std::string& tenant) {
  return client.is_admin || client.tenant == tenant;
}

}  // namespace

Admin::Admin(Engine* engine, const ServedModel* model, const Metrics* metrics)
    : engine_(engine), prefixes_(engine, model, metrics, events_) {}

AdminWork Admin::Cache(const Client& client) const {
  return [engine = engine_, client](StepLoop& loop) -> AdminAnswer {
    return [report = ReadKvReport(*engine, loop, loop.stats()), client] {
      return client.is_admin ? KvReportJson(report) : KvReportJson(report, client.tenant);
    };
  };
}

ApiResult<AdminWork> Admin::DropTenant(const Client& client, const std::string& tenant) {
  if (!MaySee(client, tenant))
    return PermissionDenied("Another tenant's cache can be dropped with an admin's key only.");
  return AdminWork([this, tenant](StepLoop& loop) -> AdminAnswer {
    return [this, tenant, num_pages = loop.cache().DropTenant(tenant)] {
      events_->Add("prefix", tenant,
                   ToText({{"action", "tenant_dropped"}, {"dropped_pages", num_pages}}));
      return ToText({{"tenant", tenant}, {"dropped_pages", num_pages}});
    };
  });
}

ApiResult<AdminWork> Admin::ResetPrefixCache(const Client& client, bool resets_running) {
  if (!client.is_admin)
    return PermissionDenied("The cache of all tenants can be reset with an admin's key only.");
  return AdminWork([this, resets_running](StepLoop& loop) -> AdminAnswer {
    if (resets_running) loop.PreemptAll();
    const bool success = loop.cache().pool().held_bytes() == 0;
    if (success) loop.cache().DropAll();
    return [this, success] {
      if (success) events_->Add("prefix", "", ToText({{"action", "reset"}}));
      return ToText({{"success", success}});
    };
  });
}

AdminWork Admin::Requests(const Client& client) const {
  return [client](StepLoop& loop) -> AdminAnswer {
    return [client, requests = loop.requests()] {
      Json json = {{"schema", 1}, {"requests", Json::array()}};
      for (const RequestInfo& info : requests)
        if (MaySee(client, info.tenant)) json["requests"].push_back(RequestJson(info));
      return ToText(json);
    };
  };
}

AdminWork Admin::AbortRequest(const Client& client, const std::string& id) const {
  return [client, id](StepLoop& loop) -> AdminAnswer {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    const bool is_number = error == std::errc() && end == id.data() + id.size();
    uint32_t num_aborted = 0;
    for (const RequestInfo& info : loop.requests())
      if (MaySee(client, info.tenant) && (is_number ? info.id == number : info.label == id))
        num_aborted += loop.Abort(info.id) ? 1 : 0;
    return [id, num_aborted]() -> ApiResult<std::string> {
      if (num_aborted == 0)
        return ApiError{.status = 404,
                        .code = "request_not_found",
                        .message = fmt::format("No request '{}' waits or runs; GET "
                                               "/quire/v1/requests lists those that do.",
                                               Printable(id))};
      return ToText({{"id", id}, {"aborted", num_aborted}});
    };
  };
}

void Admin::NoteStart(const std::string& request_id, const std::string& tenant,
                      const std::string& endpoint) {
  events_->Add("request", tenant,
               ToText({{"action", "started"},
                       {"request_id", request_id},
                       {"tenant", tenant},
                       {"endpoint", endpoint}}));
}

void Admin::NoteEnd(const CallSummary& call) {
  Json json = {{"action", "ended"},
               {"request_id", call.request_id},
               {"tenant", call.tenant},
               {"endpoint", call.endpoint},
               {"status", call.status}};
  if (!call.error_code.empty()) json["code"] = call.error_code;
  if (call.num_prompts > 0) {
    json["prompt_tokens"] = call.prompt_tokens;
    json["cached_tokens"] = call.cached_tokens;
    json["generated_tokens"] = call.generated_tokens;
    json["match_stop"] = MatchStopName(call.match_stop);
    json["finish_reasons"] = call.finish_reasons;
    json["preemptions"] = call.num_preemptions;
  }
  json["seconds"] = call.total_seconds;
  events_->Add("request", call.tenant, ToText(json));
}

void Admin::NotePages(KvReport now) {
  Json groups = Json::array();
  bool has_changed = false;
  for (size_t g = 0; g < now.cache.groups.size(); ++g) {
    const GroupReport& group = now.cache.groups[g];
    Json evicted = Json::object();
    for (uint32_t reason = 0; reason < kNumEvictReasons; ++reason) {
      const uint64_t before = g < last_pages_.cache.groups.size()
                                  ? last_pages_.cache.groups[g].evicted_pages[reason]
                                  : 0;
      if (group.evicted_pages[reason] == before) continue;
      evicted[std::string(EvictReasonName(static_cast<EvictReason>(reason)))] =
          group.evicted_pages[reason] - before;
      has_changed = true;
    }
    groups.push_back({{"group", GroupName(group)},
                      {"held", group.pages.held},
                      {"cached", group.pages.cached},
                      {"pinned", group.pages.pinned},
                      {"evicted", std::move(evicted)}});
  }
  has_changed = has_changed || now.cache.bytes != last_pages_.cache.bytes;
  if (has_changed)
    events_->Add("page", "",
                 ToText({{"free_bytes", now.cache.free_bytes}, {"groups", std::move(groups)}}));
  last_pages_ = std::move(now);
}

}  // namespace quire
