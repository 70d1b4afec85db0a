// PrefixAdmin: the prefixes that people see and keep: /quire/v1/prefixes and /quire/v1/match.
//
// A client sees the prefixes of its tenant, an admin all; another tenant's prefix is "not found".
// Tokens and texts of prompts are never told.
//
// Threading: any thread; nothing waits for the engine (server/admin_work.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/admin_work.h"
#include "server/api/api_error.h"
#include "server/api/served_model.h"
#include "server/client.h"
#include "server/event_log.h"
#include "server/metrics.h"

namespace quire {

// How long a prefix is kept although nobody uses it.
struct PrefixKeep {
  bool is_pinned = false;
  uint32_t ttl_s = 0;  // retained so long from now; 0: not
  std::string label = {};
};

// A prefix whose missing part the engine computes.
struct PendingPrefix {
  Client client;
  std::string salt = {};
  std::vector<TokenId> tokens = {};  // whole pages
  PrefixKeep keep = {};
  std::shared_ptr<Answer> answer = {};

  bool is_computed() const { return answer->ended(0); }
};

class PrefixAdmin {
 public:
  // The first three must outlive it. `events`: the engine keeps it, to tell what expires.
  PrefixAdmin(Engine* engine, const ServedModel* model, const Metrics* metrics,
              std::shared_ptr<EventLog> events);

  // Most bytes that each tenant may keep by pin or ttl; others, and 0: no limit. Any thread.
  void SetRetainedLimits(std::map<std::string, uint64_t> limits);
  uint64_t MostRetained(const std::string& tenant) const;

  // GET /quire/v1/prefixes?sort=bytes|hits|age&limit=. Empty texts: bytes, 100.
  ApiResult<AdminWork> List(const Client& client, std::string_view sort,
                            std::string_view limit) const;

  // POST /quire/v1/prefixes in two parts, since the engine may need long: Start submits what is
  // missing, with `on_news` as Request::on_news; when is_computed(), Finish keeps it and gives the
  // body of the 201. A client that leaves meanwhile: answer->Abort().
  ApiResult<PendingPrefix> Start(const Client& client, std::string_view body,
                                 std::function<void()> on_news);
  ApiResult<AdminWork> Finish(PendingPrefix pending) const;

  // PATCH and DELETE /quire/v1/prefixes/{id}.
  ApiResult<AdminWork> Change(const Client& client, const std::string& id,
                              std::string_view body) const;
  ApiResult<AdminWork> Drop(const Client& client, const std::string& id) const;

  // POST /quire/v1/match: what the cache has of a prompt, and the id of its prefix if that is all
  // of its whole pages; computes nothing.
  ApiResult<AdminWork> Match(const Client& client, std::string_view body) const;

 private:
  // The answer to a change, which is also an event.
  std::string Tell(const char* action, const std::string& tenant,
                   nlohmann::ordered_json json) const;

  Engine* const engine_;
  const ServedModel* const model_;
  const Metrics* const metrics_;
  const std::shared_ptr<EventLog> events_;
  mutable std::mutex limits_mutex_;
  std::map<std::string, uint64_t> retained_limits_;
};

// Of all tenants together: half of the budget, so that requests have the rest whatever clients
// keep.
uint64_t MostPinnedBytes(const KvCache& cache);

// Seconds since 1970 of a time of the engine's clock, whose now is `now_s`.
int64_t UnixTime(uint32_t engine_s, uint32_t now_s);

}  // namespace quire
