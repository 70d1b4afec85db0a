// LiveCalls: all generation requests under way: takes bodies, submits to the engine, sends what
// comes, aborts what nobody waits for.
//
// A call goes: Start (HTTP thread) -> JSON, tokens, Engine::Submit (helper thread) -> answers as
// the engine has news (HTTP thread). Whatever can be refused is refused with a status before the
// first byte of an answer; what fails later ends a stream with an error event.
//
// Threading: the HTTP thread.
// Errors: never; each becomes its client's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/call_times.h"
#include "server/helper_thread.h"
#include "server/live_call.h"
#include "server/prefix_admin.h"
#include "server/routes.h"

namespace quire {

struct LiveCallOptions {
  CallTimes times = {};
  // Hears of each prompt, as text, on the helper thread; empty unless somebody asked for that.
  std::function<void(const std::string& request_id, const std::string& text)> on_prompt = {};
};

class LiveCalls {
 public:
  // All must outlive it; so must `server` the engine. `on_end` hears of every call once.
  LiveCalls(const LiveCallOptions& options, const ServedModel* model, Engine* engine,
            HttpServer* server, HelperThread* helper, const PrefixAdmin* prefixes,
            std::function<void(const CallSummary&)> on_end);

  // `slot`: held until the end.
  void Start(const Route& route, HttpRequest request, Client client, TenantSlot slot,
             HttpReply reply);
  void OnRing();
  void OnTick();
  // Ends all that is under way with this error.
  void CutAll(const ApiError& error);

  size_t size() const { return calls_.size(); }
  size_t num_stalled() const;  // streams whose client takes nothing

 private:
  using CallPtr = std::shared_ptr<LiveCall>;
  // What the helper thread made of a body.
  struct Submitted {
    GenerationCall call;
    std::vector<std::shared_ptr<Answer>> answers;
    LiveCall::Clock::time_point time = {};  // of the first Engine::Submit
  };

  ApiResult<Submitted> Submit(const LiveCall& call, const std::string& body) const;   // helper
  Status SubmitAll(const LiveCall& call, Submitted* submitted) const;                 // helper
  void TellPrompts(const std::string& request_id, const GenerationCall& call) const;  // helper
  // Of a job of the helper thread for the call: 500.
  std::function<void()> FailureOf(const CallPtr& call);
  void Begin(const CallPtr& call, ApiResult<Submitted> submitted);
  void Advance(const CallPtr& call);
  void AdvanceStream(const CallPtr& call);
  // After what else the HTTP thread has to do.
  void AdvanceLater(const CallPtr& call);
  void WriteWhole(const CallPtr& call);
  // Has those prompts kept that are computed by now, if the call wants that.
  void RetainPrompts(const CallPtr& call);
  void SendStreamHead(LiveCall& call, std::string first_piece);
  void SendError(LiveCall& call, const ApiError& error);
  void OnGone(LiveCall& call);
  void End(LiveCall& call, int status, const std::string& error_code);
  void RemoveEnded();

  const LiveCallOptions options_;
  const ServedModel* const model_;
  Engine* const engine_;
  HttpServer* const server_;
  HelperThread* const helper_;
  const PrefixAdmin* const prefixes_;  // what tenants may keep
  const std::function<void(const CallSummary&)> on_end_;
  std::vector<CallPtr> calls_;
};

// The answer of a route to an error.
HttpResponse ErrorResponse(const ApiError& error);

}  // namespace quire
