// AdminCalls: the requests to /quire/v1 and /reset_prefix_cache under way, from the parsed head to
// the last byte. What they mean is server/admin.h.
//
// Most are one job of the helper thread. Two last longer: a prefix that has to be computed, whose
// client may leave, and streams of events, of which each holds the id of its last event and nothing
// else.
//
// Threading: the HTTP thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "server/admin.h"
#include "server/helper_thread.h"
#include "server/http/http_server.h"
#include "server/routes.h"
#include "server/tenant_limits.h"

namespace quire {

class AdminCalls {
 public:
  static constexpr size_t kMostWatchers = 64;

  // All must outlive it. `keep_alive`: silence of a stream before a comment; 0: none.
  AdminCalls(Admin* admin, HttpServer* server, HelperThread* helper,
             std::chrono::milliseconds keep_alive);

  static bool Takes(RouteId id);
  // Requires: Takes(). `slot`: of the tenant, for a prefix that is computed.
  void Start(const RouteMatch& match, HttpRequest request, Client client, TenantSlot slot,
             HttpReply reply);
  void OnRing();
  void OnTick();
  // Ends streams, and prefixes that are being computed with this error.
  void CutAll(const ApiError& error);

 private:
  struct PrefixCall;
  struct Watcher;

  void StartPrefix(std::string body, Client client, TenantSlot slot, HttpReply reply);
  void FinishPrefix(const std::shared_ptr<PrefixCall>& call);
  void StartWatch(const HttpRequest& request, Client client, HttpReply reply);
  void WriteEvents(Watcher& watcher);

  Admin* const admin_;
  HttpServer* const server_;
  HelperThread* const helper_;
  const std::chrono::milliseconds keep_alive_;
  std::vector<std::shared_ptr<PrefixCall>> prefixes_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  uint32_t num_ticks_ = 0;
  std::shared_ptr<std::atomic<bool>> notes_pages_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace quire
