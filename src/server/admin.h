// Admin: what an operator or a tenant looks at and changes under /quire/v1, and vLLM's
// /reset_prefix_cache: the JSON of answers to checked requests.
//
// A client sees what is its tenant's, an admin all. No text or token of a prompt is ever told.
//
// Threading: any thread, but for NotePages; nothing waits for the engine (server/admin_work.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "server/admin_work.h"
#include "server/api/api_error.h"
#include "server/api/served_model.h"
#include "server/call_summary.h"
#include "server/client.h"
#include "server/event_log.h"
#include "server/kv_report.h"
#include "server/metrics.h"
#include "server/prefix_admin.h"

namespace quire {

class Admin {
 public:
  // All must outlive it.
  Admin(Engine* engine, const ServedModel* model, const Metrics* metrics);

  // GET /quire/v1/cache. A tenant's key gets the plan and its own bytes.
  AdminWork Cache(const Client& client) const;
  // DELETE /quire/v1/tenants/{t}/cache: all its prefixes; what runs keeps its pages to its end.
  ApiResult<AdminWork> DropTenant(const Client& client, const std::string& tenant);
  // POST /reset_prefix_cache: {"success": false}, and nothing dropped, while a request holds pages,
  // unless `resets_running`: then they are preempted and compute anew. Admins only.
  ApiResult<AdminWork> ResetPrefixCache(const Client& client, bool resets_running);

  // GET and DELETE /quire/v1/requests. A plain number is the id that the list tells; all else is an
  // x-request-id, and all that have it are ended. So no client's choice of ids takes the place of
  // ours: one that is a plain number finds nothing by itself.
  AdminWork Requests(const Client& client) const;
  AdminWork AbortRequest(const Client& client, const std::string& id) const;

  PrefixAdmin& prefixes() { return prefixes_; }
  Engine& engine() { return *engine_; }

  // GET /quire/v1/events: EventLog::Next. The server tells of requests as they start and end, and
  // gives NotePages a report about once a second as long as somebody watches: it adds one "page"
  // event if pages came or went. By one thread, and asks nothing.
  EventLog& events() { return *events_; }
  void NoteStart(const std::string& request_id, const std::string& tenant,
                 const std::string& endpoint);
  void NoteEnd(const CallSummary& call);
  void NotePages(KvReport now);

 private:
  Engine* const engine_;
  const std::shared_ptr<EventLog> events_ = std::make_shared<EventLog>();
  PrefixAdmin prefixes_;
  KvReport last_pages_;  // of the last NotePages
};

}  // namespace quire
