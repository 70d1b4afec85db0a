#include "server/api_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "plan/read_kv_model.h"
#include "server/banner.h"
#include "server/model_answers.h"

namespace quire {
namespace {

constexpr auto kDrainStep = std::chrono::milliseconds(10);
constexpr auto kLastWrites = std::chrono::seconds(2);  // of errors to what is cut, and of looks

bool IsJson(const HttpRequest& head) {
  const auto type = head.Field("content-type");
  if (!type.has_value()) return false;
  std::string lower(type->substr(0, type->find(';')));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  while (!lower.empty() && lower.back() == ' ') lower.pop_back();
  return lower == "application/json";
}

std::map<std::string, uint64_t> RetainedLimits(const std::vector<TenantRule>& rules) {
  std::map<std::string, uint64_t> limits;
  for (const TenantRule& rule : rules) limits[rule.tenant] = rule.quota.retained_bytes;
  return limits;
}

}  // namespace

StatusOr<std::unique_ptr<ApiServer>> ApiServer::Create(ServeOptions options) {
  QUIRE_ASSIGN_OR_RETURN(Access access, Access::Create(options.access, options.http));
  auto server = std::unique_ptr<ApiServer>(new ApiServer(std::move(options), std::move(access)));
  QUIRE_ASSIGN_OR_RETURN(server->http_, HttpServer::Create(server->options_.http, server.get()));
  server->helper_ = std::make_unique<HelperThread>(
      [s = server.get()](std::string_view what) { s->OnTrouble(what); });
  server->http_->Run();
  return server;
}

ApiServer::ApiServer(ServeOptions options, Access access)
    : options_(std::move(options)), access_(std::move(access)), log_(options_.log, STDERR_FILENO) {
  limits_.SetRules(access_.tenants());
}

ApiServer::~ApiServer() {
  drains_.store(true);
  if (is_loaded_.load()) CutAll();
  if (http_ != nullptr) http_->Stop(kLastWrites);  // null if the address could not be taken
  helper_.reset();  // its last jobs may post to http_, which runs nothing any more
  loaded_.reset();  // the engine's last news may ring http_
}

Status ApiServer::Load(const std::function<void(uint64_t, uint64_t)>& progress) {
  auto loaded = std::make_unique<Loaded>();
  QUIRE_ASSIGN_OR_RETURN(loaded->engine, Engine::Load(options_.model_path, options_.engine,
                                                      [&](uint64_t done, uint64_t total) {
                                                        load_state_.SetBytes(done, total);
                                                        if (progress) progress(done, total);
                                                      }));
  QUIRE_ASSIGN_OR_RETURN(loaded->card, ModelCard::Create(options_, *loaded->engine));
  loaded->metrics = std::make_unique<Metrics>(MetricsOptions{
      .model_name = loaded->card->served().names.front(),
      .version = kQuireVersion,
      .instruction_set = std::string(InstructionSetName(options_.engine.instruction_set)),
      .kv_codec = std::string(KvCodecName(options_.engine.kv_codec)),
      .context_len = loaded->engine->options().context_len});
  LiveCallOptions call_options = {.times = {.keep_alive = options_.sse_keep_alive,
                                            .queue_timeout = options_.queue_timeout,
                                            .request_timeout = options_.request_timeout}};
  if (options_.log.logs_prompts)
    call_options.on_prompt = [this](const std::string& id, const std::string& text) {
      log_.Prompt(id, text);
    };
  loaded->admin =
      std::make_unique<Admin>(loaded->engine.get(), &loaded->card->served(), loaded->metrics.get());
  auto planned = ReadKvModel(options_.model_path);
  loaded->plans = std::make_unique<PlanAnswers>(
      planned.ok() ? std::optional<KvModel>(std::move(planned).value()) : std::nullopt,
      loaded->engine->options(), loaded->engine->kv_budget_bytes());
  loaded->admin_calls =
      std::make_unique<AdminCalls>(loaded->admin.get(), loaded->metrics.get(), loaded->plans.get(),
                                   http_.get(), helper_.get(), call_options.times);
  loaded->calls = std::make_unique<LiveCalls>(
      call_options, &loaded->card->served(), loaded->engine.get(), http_.get(), helper_.get(),
      &loaded->admin->prefixes(), [this](const CallSummary& summary) { OnCallEnded(summary); });
  ApplyTenantRules(*loaded, access_.tenants());
  loaded_ = std::move(loaded);
  // The HTTP thread looks at loaded_ only after it has seen this.
  is_loaded_.store(true, std::memory_order_release);
  return OkStatus();
}

void ApiServer::ApplyTenantRules(Loaded& loaded, const std::vector<TenantRule>& rules) {
  loaded.admin->prefixes().SetRetainedLimits(RetainedLimits(rules));
  loaded.engine->AskLater([rules](StepLoop& loop) {
    for (const TenantRule& rule : rules) loop.SetTenantShare(rule.tenant, rule.quota.share);
  });
}

void ApiServer::CutAll() {
  http_->Post([this] {
    loaded_->calls->CutAll(Draining());
    loaded_->admin_calls->CutAll(Draining());
    loaded_->admin_calls->EndWatches();
  });
}

bool ApiServer::Drain() {
  drains_.store(true);
  log_.Message(LogLevel::kInfo, fmt::format("draining: {} requests are under way, for {} s at most",
                                            num_calls_.load(), options_.drain.count() / 1000));
  bool was_cut = false;
  if (is_loaded_.load()) {
    http_->Post([this] { loaded_->admin_calls->EndWatches(); });
    const auto end = std::chrono::steady_clock::now() + options_.drain;
    while (num_calls_.load() > 0) {
      if (cuts_now_.load() || std::chrono::steady_clock::now() > end) {
        CutAll();
        was_cut = true;
        break;
      }
      std::this_thread::sleep_for(kDrainStep);
    }
  }
  http_->Stop(cuts_now_.load() ? std::chrono::milliseconds(200) : kLastWrites);
  log_.Message(LogLevel::kInfo, was_cut ? "drained: some were cut" : "drained: all had ended");
  log_.Flush(kLastWrites);
  return !was_cut;
}

std::vector<std::string> ApiServer::Warnings() const {
  std::vector<std::string> warnings = access_.Warnings();
  if (options_.log.logs_prompts)
    warnings.emplace_back("--log-prompts: what clients write stands in the log");
  const ModelCard& card = *loaded_->card;
  if (!card.chat_problem().empty()) warnings.push_back("no chat: " + card.chat_problem());
  return warnings;
}

std::string ApiServer::Banner(const std::string& address) {
  KvReport report;
  Engine& engine = *loaded_->engine;
  engine.Ask([&](StepLoop& loop) { report = ReadKvReport(engine, loop, loop.stats()); });
  log_.KvCacheSize(report.plan.num_tokens, report.plan.context_len);
  const ServedModel& model = loaded_->card->served();
  return quire::Banner(
      {.version = kQuireVersion,
       .model_name = model.names.front(),
       .architecture = loaded_->card->architecture(),
       .file_type = loaded_->card->file_type(),
       .trained_context_len = model.trained_context_len,
       .weight_bytes = engine.weight_bytes(),
       .instruction_set = std::string(InstructionSetName(engine.options().instruction_set)),
       .num_threads = engine.options().num_threads,
       .address = address,
       .num_keys = access_.num_keys(),
       .num_tenants = access_.tenants().size(),
       .warnings = Warnings()},
      report);
}

void ApiServer::ReloadKeys() {
  http_->Post([this] {
    const Status status = access_.Reload();
    if (!status.ok()) return log_.Message(LogLevel::kError, "keys: " + status.message());
    limits_.SetRules(access_.tenants());
    if (is_loaded_.load()) ApplyTenantRules(*loaded_, access_.tenants());
    log_.Message(LogLevel::kInfo, fmt::format("keys: read again, {} keys", access_.num_keys()));
  });
}

std::optional<HttpResponse> ApiServer::OnHead(HttpRequest& head) {
  if (const auto error = access_.RefuseHost(head)) {
    HttpResponse refusal = Refuse(*error);
    refusal.closes = true;
    return refusal;
  }
  if (auto answer = access_.AnswerPreflight(head)) return answer;
  const auto visit = std::make_shared<Visit>(VisitOf(head));
  head.note = visit;
  if (!visit->client.ok()) return Refuse(visit->client.error());
  if (!visit->match.ok()) return Refuse(visit->match.error());
  if (const auto error = RefuseRoute(*visit->match.value().route, head)) return Refuse(*error);
  return std::nullopt;
}

HttpResponse ApiServer::Refuse(const ApiError& error) {
  if (is_loaded_.load(std::memory_order_acquire)) loaded_->metrics->CountRejection(error.code);
  return ErrorResponse(error);
}

std::optional<ApiError> ApiServer::RefuseRoute(const Route& route, const HttpRequest& head) const {
  if (route.needs_engine && !is_loaded_.load(std::memory_order_acquire))
    return Loading(load_state_.percent());
  if (route.is_new_work && drains_.load()) return Draining();
  if (route.has_body && !IsJson(head)) return UnsupportedMediaType();
  return std::nullopt;
}

void ApiServer::OnRequest(HttpRequest request, HttpReply reply) {
  const auto note = request.note;  // OnHead let it pass
  Visit& visit = *static_cast<Visit*>(note.get());
  const RouteMatch match = visit.match.value();
  const Route& route = *match.route;
  if (const auto error = RefuseRoute(route, request)) return reply.Send(ErrorResponse(*error));
  if (route.is_new_work) return StartWork(visit, std::move(request), std::move(reply));
  switch (route.id) {
    case RouteId::kHealth:
    case RouteId::kHealthLive:
    case RouteId::kHealthReady:
    case RouteId::kHealthProgress:
      return reply.Send(AnswerHealth(route.id));
    case RouteId::kVersion:
      return reply.Send({.body = nlohmann::json({{"version", kQuireVersion}}).dump()});
    case RouteId::kLoad:
      return reply.Send({.body = nlohmann::json({{"server_load", num_calls_.load()}}).dump()});
    default:
      break;
  }
  if (AdminCalls::Takes(route.id))
    return loaded_->admin_calls->Start(match, std::move(request), visit.client.value(), {},
                                       std::move(reply));
  auto shared = std::make_shared<HttpRequest>(std::move(request));
  const auto send = [this, reply](HttpResponse response) {
    http_->Post([reply, response = std::move(response)]() mutable { reply.Send(response); });
  };
  helper_->Post(
      [this, shared, match, send] {
        ApiResult<std::string> answer = AnswerOfModel(match, shared->body, loaded_->card->served());
        send(answer.ok() ? HttpResponse{.body = std::move(answer.value())}
                         : ErrorResponse(answer.error()));
      },
      [send] { send(ErrorResponse(InternalError())); });
}

void ApiServer::StartWork(Visit& visit, HttpRequest request, HttpReply reply) {
  const Client& client = visit.client.value();
  const RouteMatch& match = visit.match.value();
  ApiResult<TenantSlot> slot = limits_.Enter(client.tenant, TenantLimits::Clock::now());
  if (!slot.ok()) return reply.Send(Refuse(slot.error()));
  num_calls_.fetch_add(1);
  visit.is_work = true;
  if (!match.route->is_generation())
    return loaded_->admin_calls->Start(match, std::move(request), client, std::move(slot.value()),
                                       std::move(reply));
  visit.is_call = true;
  loaded_->admin->NoteStart(request.id, client.tenant, match.route->pattern);
  loaded_->calls->Start(*match.route, std::move(request), client, std::move(slot.value()),
                        std::move(reply));
}

HttpResponse ApiServer::AnswerHealth(RouteId id) const {
  const bool is_loaded = is_loaded_.load(std::memory_order_acquire);
  if (id == RouteId::kHealthLive) return {.body = R"({"status":"ok"})"};
  if (id == RouteId::kHealthProgress) {
    const nlohmann::ordered_json progress = {
        {"phase", !is_loaded       ? "loading"
                  : drains_.load() ? "draining"
                                   : "ready"},
        {"done_bytes", load_state_.done_bytes()},
        {"total_bytes", load_state_.total_bytes()},
        {"percent", is_loaded ? 100 : load_state_.percent()},
        {"eta_s", is_loaded ? 0.0 : load_state_.rest_seconds()}};
    return {.body = progress.dump()};
  }
  if (!is_loaded) {
    // llama.cpp's form of it, which probes in the field read.
    return {.status = 503,
            .fields = {{"retry-after", "1"}},
            .body = R"({"error":{"code":503,"message":"Loading model",)"
                    R"("type":"unavailable_error","param":null}})"};
  }
  if (drains_.load()) return ErrorResponse(Draining());
  if (id == RouteId::kHealthReady && loaded_->engine->stalled_seconds() > 10)
    return ErrorResponse({.status = 503,
                          .type = "server_error",
                          .code = "stalled",
                          .message = "The engine has not finished a step for 10 s."});
  return {.body = R"({"status":"ok"})"};
}

HttpResponse ApiServer::OnRefusal(int status, std::string_view code, std::string_view message) {
  ApiError error = {.status = status, .code = std::string(code), .message = std::string(message)};
  if (status >= 500) {
    error.type = "server_error";
    error.retry_after_s = 1;
  }
  return Refuse(error);
}

void ApiServer::AddFields(const HttpRequest& request, HttpFields* fields) {
  access_.AddCorsFields(request, fields);
}

void ApiServer::OnTrouble(std::string_view what) { log_.Message(LogLevel::kError, what); }

void ApiServer::OnRing() {
  if (!is_loaded_.load(std::memory_order_acquire)) return;
  loaded_->calls->OnRing();
  loaded_->admin_calls->OnRing();
}

void ApiServer::OnTick() {
  if (!is_loaded_.load(std::memory_order_acquire)) return;
  loaded_->calls->OnTick();
  loaded_->admin_calls->OnTick();
  loaded_->metrics->NoteStall(loaded_->engine->stalled_seconds());
  loaded_->metrics->SetStalledStreams(static_cast<uint32_t>(loaded_->calls->num_stalled()));
  if (num_ticks_++ % kTicksPerSecond == 0) TickLog();
}

void ApiServer::TickLog() {
  loaded_->admin_calls->ReadStats([this](const EngineStats& stats) {
    log_.Tick({.num_prompt_tokens = stats.prompt_tokens,
               .num_generated_tokens = stats.generated_tokens,
               .num_queried_tokens = stats.matches.queried_tokens,
               .num_hit_tokens = stats.matches.matched_tokens,
               .num_preemptions = stats.num_preemptions,
               .num_running = stats.num_running,
               .num_waiting = stats.num_waiting,
               .held_bytes = stats.kv_held_bytes,
               .budget_bytes = stats.kv_budget_bytes},
              Log::Clock::now());
  });
}

void ApiServer::OnAnswered(const HttpRequest& request, const HttpOutcome& outcome) {
  // Without a note: refused by its Host, or by the transport.
  std::optional<Visit> late;
  if (request.note == nullptr) late = VisitOf(request);
  const Visit& visit = late.has_value() ? *late : *static_cast<const Visit*>(request.note.get());
  if (visit.is_work) num_calls_.fetch_sub(1);
  const Route* route = visit.match.ok() ? visit.match.value().route : nullptr;
  const int status = outcome.status;
  if (is_loaded_.load(std::memory_order_acquire))
    loaded_->metrics->ObserveHttp(request.method, status,
                                  route == nullptr ? "none" : route->pattern, outcome.seconds);
  if (visit.is_call) return;  // logged in OnCallEnded
  if (status < 400 && (route == nullptr || !route->is_logged())) return;
  RequestRecord record;
  record.id = request.id;
  if (visit.client.ok()) {
    record.tenant = visit.client.value().tenant;
    record.key_name = visit.client.value().key_name;
  }
  record.method = request.method;
  record.endpoint = request.Path();
  record.status = status;
  record.seconds = outcome.seconds;
  record.code = outcome.error_code;
  log_.Request(record, Log::Clock::now());
}

void ApiServer::OnCallEnded(const CallSummary& summary) {
  loaded_->metrics->ObserveCall(summary);
  log_.IgnoredFields(summary.request_id, summary.ignored_fields);
  loaded_->admin->NoteEnd(summary);
  RequestRecord record = {.id = summary.request_id,
                          .tenant = summary.tenant,
                          .key_name = summary.key_name,
                          .method = "POST",
                          .endpoint = summary.endpoint,
                          .status = summary.status,
                          .seconds = summary.total_seconds,
                          .code = summary.error_code};
  if (summary.num_prompts > 0) {
    record.num_prompt_tokens = summary.prompt_tokens;
    record.num_cached_tokens = summary.cached_tokens;
    record.num_generated_tokens = summary.generated_tokens;
    record.queue_seconds = summary.queue_seconds;
    if (summary.first_token_seconds >= 0) record.ttft_seconds = summary.first_token_seconds;
    if (summary.longest_answer > 1)
      record.tpot_seconds =
          summary.decode_seconds / static_cast<double>(summary.longest_answer - 1);
    for (const std::string& reason : summary.finish_reasons)
      if (record.finish.find(reason) == std::string::npos)
        record.finish += (record.finish.empty() ? "" : ",") + reason;
    record.match_stop = MatchStopName(summary.match_stop);
  }
  log_.Request(record, Log::Clock::now());
}

}  // namespace quire
