// ApiServer: the OpenAI API and ours over one engine.
//
// It listens before the model is loaded (503 with progress), answers, drains and ends. Two threads
// of its own, both below the engine's workers: the HTTP thread (http/http_server.h) and the helper
// (helper_thread.h).
//
// Threading: Create, Load, Drain and the destructor by the thread that owns it (Drain also by a
// second one); the rest is the HTTP thread's.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/access.h"
#include "server/admin.h"
#include "server/admin_calls.h"
#include "server/helper_thread.h"
#include "server/http/http_server.h"
#include "server/live_calls.h"
#include "server/load_state.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/model_card.h"
#include "server/routes.h"
#include "server/serve_options.h"
#include "server/tenant_limits.h"

namespace quire {

constexpr char kQuireVersion[] = "0.1.0";

class ApiServer final : public HttpHandler {
 public:
  // Listens. Errors: those of Access::Create and HttpServer::Create.
  static StatusOr<std::unique_ptr<ApiServer>> Create(ServeOptions options);
  // Cuts what is left.
  ~ApiServer() override;

  // Loads the model; from then on it answers.
  Status Load(const std::function<void(uint64_t, uint64_t)>& progress);

  // No new work from now on; returns when all calls have ended, or, having cut them, after the
  // time that the options give, or when CutNow is called. True: nothing was cut.
  bool Drain();
  void CutNow() { cuts_now_.store(true); }
  // Reads the key file again. Not while Load runs.
  void ReloadKeys();

  const HttpServer& http() const { return *http_; }
  const Access& access() const { return access_; }
  // Both require Load.
  Engine& engine() { return *loaded_->engine; }
  const ModelCard& card() const { return *loaded_->card; }
  // What to tell at the start: lines with their ends. `address`: where clients reach it.
  std::string Banner(const std::string& address);

  // HttpHandler.
  std::optional<HttpResponse> OnHead(HttpRequest& head) override;
  void OnRequest(HttpRequest request, HttpReply reply) override;
  void AddFields(const HttpRequest& request, HttpFields* fields) override;
  HttpResponse OnRefusal(int status, std::string_view code, std::string_view message) override;
  void OnTrouble(std::string_view what) override;
  void OnRing() override;
  void OnTick() override;
  void OnAnswered(const HttpRequest& request, const HttpOutcome& outcome) override;

 private:
  // What there is once the model is loaded.
  struct Loaded {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<ModelCard> card;
    std::unique_ptr<Metrics> metrics;
    std::unique_ptr<Admin> admin;
    std::unique_ptr<PlanAnswers> plans;
    std::unique_ptr<AdminCalls> admin_calls;
    std::unique_ptr<LiveCalls> calls;
  };

  // Who asks for what: found at the head of a request, kept in its note.
  struct Visit {
    ApiResult<Client> client;
    ApiResult<RouteMatch> match;
    bool is_work = false;  // counted in num_calls_
    bool is_call = false;  // of LiveCalls, which has the numbers for the log
  };

  ApiServer(ServeOptions options, Access access);
  Visit VisitOf(const HttpRequest& head) const { return {access_.Identify(head), FindRoute(head)}; }
  // What the keys' tenants may keep and get.
  static void ApplyTenantRules(Loaded& loaded, const std::vector<TenantRule>& rules);
  // Ends what is under way. Any thread.
  void CutAll();
  std::vector<std::string> Warnings() const;
  // The answer of a refusal, which is counted.
  HttpResponse Refuse(const ApiError& error);
  std::optional<ApiError> RefuseRoute(const Route& route, const HttpRequest& head) const;
  HttpResponse AnswerHealth(RouteId id) const;
  void StartWork(Visit& visit, HttpRequest request, HttpReply reply);
  void OnCallEnded(const CallSummary& summary);
  // The engine's totals for the log, once a second.
  void TickLog();

  const ServeOptions options_;
  Access access_;
  TenantLimits limits_;
  Log log_;
  uint32_t num_ticks_ = 0;
  LoadState load_state_;
  std::atomic<bool> is_loaded_{false}, drains_{false}, cuts_now_{false};
  std::atomic<size_t> num_calls_{0};  // new work (routes.h), until the last byte of its answer
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Loaded> loaded_;  // HTTP thread, after is_loaded_
  std::unique_ptr<HelperThread> helper_;
};

}  // namespace quire
