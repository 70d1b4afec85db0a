// AdminCalls: the requests to /quire/v1, /reset_prefix_cache and /metrics under way, from the
// parsed head to the last byte. What they mean is server/admin.h and server/metrics.h.
//
// What asks the engine waits for the end of its step without keeping a thread, since new requests
// need the helper: that one reads bodies, before, and writes JSON, after. Two last longer: a prefix
// that has to be computed, whose client may leave, and streams of events, of which each holds the
// id of its last event and nothing else.
//
// Threading: the HTTP thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "server/admin.h"
#include "server/helper_thread.h"
#include "server/http/http_server.h"
#include "server/live_calls.h"
#include "server/plan_answers.h"
#include "server/routes.h"
#include "server/tenant_limits.h"

namespace quire {

class AdminCalls {
 public:
  static constexpr size_t kMostWatchers = 64;

  // All must outlive it.
  AdminCalls(Admin* admin, const Metrics* metrics, const PlanAnswers* plans, HttpServer* server,
             HelperThread* helper, const CallTimes& times);

  static bool Takes(RouteId id);
  // Requires: Takes(). `slot`: of the tenant, for a prefix that is computed.
  void Start(const RouteMatch& match, HttpRequest request, Client client, TenantSlot slot,
             HttpReply reply);
  void OnRing();
  void OnTick();
  // Calls `then` on this thread when the engine has told its numbers; not at all if it has not yet
  // told them since the last call.
  void ReadStats(std::function<void(const EngineStats&)> then);
  // Ends the streams of events, which would go on for ever.
  void EndWatches();
  // Ends prefixes that are being computed with this error.
  void CutAll(const ApiError& error);

 private:
  struct Look {
    HttpReply reply;
    std::chrono::steady_clock::time_point start;
  };
  struct PrefixCall;
  struct Watcher;

  using Sender = std::function<void(const HttpResponse&)>;

  // The work on the engine's thread, its JSON on the helper's, then `send` on this one.
  void AskEngine(ApiResult<AdminWork> work, int status, Sender send);
  // Of a job of the helper thread: 500.
  std::function<void()> FailureOf(Sender send);
  void StartPlan(std::string body, HttpReply reply);
  void StartPrefix(std::string body, Client client, TenantSlot slot, HttpReply reply);
  static void End(PrefixCall& call, const ApiError& error);
  void FinishPrefix(const std::shared_ptr<PrefixCall>& call);
  // Ends those that have taken too long.
  void EndOverdue();
  void StartScrape(HttpReply reply);
  void NotePages();
  void StartWatch(const HttpRequest& request, Client client, HttpReply reply);
  void WriteEvents(Watcher& watcher);

  Admin* const admin_;
  const Metrics* const metrics_;
  const PlanAnswers* const plans_;
  HttpServer* const server_;
  HelperThread* const helper_;
  const CallTimes times_;
  std::vector<Look> looks_;  // that wait for the engine
  std::vector<std::shared_ptr<PrefixCall>> prefixes_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  uint32_t num_ticks_ = 0;
  bool reads_stats_ = false, notes_pages_ = false;  // the engine is asked
};

}  // namespace quire
