#include "server/admin_calls.h"

#include <charconv>
#include <new>
#include <string>
#include <utility>

namespace quire {
namespace {

constexpr size_t kMostEventBytes = 16 << 10;  // of one write; more waits in the ring

using Clock = std::chrono::steady_clock;

HttpResponse ResponseOf(const ApiResult<std::string>& answer, int status) {
  if (!answer.ok()) return ErrorResponse(answer.error());
  return {.status = status, .body = answer.value()};
}

std::string QueryOf(const HttpRequest& request, std::string_view name) {
  return std::string(request.Query(name).value_or(""));
}

bool IsTrue(std::string_view text) { return text == "true" || text == "1" || text == "True"; }

ApiResult<AdminWork> WorkOf(Admin& admin, const RouteMatch& match, const HttpRequest& request,
                            const Client& client) {
  switch (match.route->id) {
    case RouteId::kCache:
      return admin.Cache(client);
    case RouteId::kPrefixes:
      return admin.prefixes().List(client, QueryOf(request, "sort"), QueryOf(request, "limit"));
    case RouteId::kChangePrefix:
      return admin.prefixes().Change(client, match.argument, request.body);
    case RouteId::kDropPrefix:
      return admin.prefixes().Drop(client, match.argument);
    case RouteId::kDropTenantCache:
      return admin.DropTenant(client, match.argument);
    case RouteId::kMatch:
      return admin.prefixes().Match(client, request.body);
    case RouteId::kRequests:
      return admin.Requests(client);
    case RouteId::kAbortRequest:
      return admin.AbortRequest(client, match.argument);
    case RouteId::kResetPrefixCache:
      return admin.ResetPrefixCache(client, IsTrue(QueryOf(request, "reset_running_requests")));
    default:
      return UnknownUrl(request.method, request.Path());
  }
}

// On the engine's thread, which goes on when there is no memory for this.
AdminAnswer RunGuarded(const AdminWork& work, StepLoop& loop) {
  try {
    return work(loop);
  } catch (const std::bad_alloc&) {
    return [] { return InternalError(); };
  }
}

}  // namespace

struct AdminCalls::PrefixCall {
  PrefixCall(Client sender, TenantSlot its_slot, HttpReply its_reply)
      : client(std::move(sender)), slot(std::move(its_slot)), reply(std::move(its_reply)) {}
  const Client client;
  TenantSlot slot;
  HttpReply reply;
  const Clock::time_point start = Clock::now();
  std::optional<PendingPrefix> pending = {};  // none until the engine has it
  bool is_gone = false;
  bool is_finishing = false;
};

struct AdminCalls::Watcher {
  Watcher(Client who, HttpReply its_reply) : client(std::move(who)), reply(std::move(its_reply)) {}
  const Client client;
  HttpReply reply;
  uint64_t last_id = 0;
  Clock::time_point last_sent = Clock::now();
  bool is_gone = false;
};

AdminCalls::AdminCalls(Admin* admin, const Metrics* metrics, const PlanAnswers* plans,
                       HttpServer* server, HelperThread* helper, const CallTimes& times)
    : admin_(admin),
      metrics_(metrics),
      plans_(plans),
      server_(server),
      helper_(helper),
      times_(times) {}

bool AdminCalls::Takes(RouteId id) {
  switch (id) {
    case RouteId::kCache:
    case RouteId::kPrefixes:
    case RouteId::kAddPrefix:
    case RouteId::kChangePrefix:
    case RouteId::kDropPrefix:
    case RouteId::kDropTenantCache:
    case RouteId::kMatch:
    case RouteId::kRequests:
    case RouteId::kAbortRequest:
    case RouteId::kResetPrefixCache:
    case RouteId::kEvents:
    case RouteId::kMetrics:
    case RouteId::kPlan:
      return true;
    default:
      return false;
  }
}

void AdminCalls::Start(const RouteMatch& match, HttpRequest request, Client client, TenantSlot slot,
                       HttpReply reply) {
  if (match.route->id == RouteId::kEvents)
    return StartWatch(request, std::move(client), std::move(reply));
  if (match.route->id == RouteId::kMetrics) return StartScrape(std::move(reply));
  if (match.route->id == RouteId::kPlan)
    return StartPlan(std::move(request.body), std::move(reply));
  if (match.route->id == RouteId::kAddPrefix)
    return StartPrefix(std::move(request.body), std::move(client), std::move(slot),
                       std::move(reply));
  looks_.push_back({reply, Clock::now()});
  const Sender send = [reply](const HttpResponse& response) mutable { reply.Send(response); };
  if (!match.route->has_body) return AskEngine(WorkOf(*admin_, match, request, client), 200, send);
  auto shared = std::make_shared<HttpRequest>(std::move(request));
  helper_->Post([this, shared, match, client = std::move(client),
                 send] { AskEngine(WorkOf(*admin_, match, *shared, client), 200, send); },
                FailureOf(send));
}

void AdminCalls::StartPlan(std::string body, HttpReply reply) {
  const Sender send = [reply = std::move(reply)](const HttpResponse& response) mutable {
    reply.Send(response);
  };
  helper_->Post(
      [plans = plans_, server = server_, body = std::move(body), send] {
        server->Post([send, response = ResponseOf(plans->Answer(body), 200)] { send(response); });
      },
      FailureOf(send));
}

std::function<void()> AdminCalls::FailureOf(Sender send) {
  return [server = server_, send = std::move(send)] {
    server->Post([send] { send(ErrorResponse(InternalError())); });
  };
}

// Any thread. The engine may run what it was asked after this object is gone, but then the HTTP
// thread has ended and runs nothing: only there `this` is touched.
void AdminCalls::AskEngine(ApiResult<AdminWork> work, int status, Sender send) {
  if (!work.ok())
    return server_->Post(
        [send = std::move(send), response = ErrorResponse(work.error())] { send(response); });
  admin_->engine().AskLater([this, server = server_, work = std::move(work.value()), status,
                             send = std::move(send)](StepLoop& loop) {
    server->Post([this, answer = RunGuarded(work, loop), status, send]() mutable {
      helper_->Post(
          [server = server_, answer = std::move(answer), status, send] {
            server->Post([send, response = ResponseOf(answer(), status)] { send(response); });
          },
          FailureOf(send));
    });
  });
}

void AdminCalls::StartScrape(HttpReply reply) {
  struct Numbers {
    EngineStats stats;
    KvReport report;
  };
  admin_->engine().AskLater([this, server = server_, engine = &admin_->engine(),
                             reply = std::move(reply)](StepLoop& loop) {
    auto numbers = std::make_shared<Numbers>();
    numbers->stats = loop.stats();
    numbers->report = ReadKvReport(*engine, loop, numbers->stats);
    server->Post([this, numbers, reply] {
      const Sender send = [reply](const HttpResponse& response) mutable { reply.Send(response); };
      helper_->Post(
          [metrics = metrics_, server = server_, numbers, send] {
            HttpResponse response = {.content_type = kMetricsContentType,
                                     .body = metrics->Text(numbers->stats, numbers->report)};
            server->Post([send, response = std::move(response)] { send(response); });
          },
          FailureOf(send));
    });
  });
}

void AdminCalls::ReadStats(std::function<void(const EngineStats&)> then) {
  if (std::exchange(reads_stats_, true)) return;
  admin_->engine().AskLater([this, server = server_, then = std::move(then)](StepLoop& loop) {
    server->Post([this, then, stats = loop.stats()] {
      reads_stats_ = false;
      then(stats);
    });
  });
}

void AdminCalls::NotePages() {
  if (std::exchange(notes_pages_, true)) return;
  admin_->engine().AskLater([this, server = server_, engine = &admin_->engine()](StepLoop& loop) {
    server->Post([this, report = ReadKvReport(*engine, loop, loop.stats())]() mutable {
      notes_pages_ = false;
      admin_->NotePages(std::move(report));
    });
  });
}

void AdminCalls::StartPrefix(std::string body, Client client, TenantSlot slot, HttpReply reply) {
  const auto call =
      std::make_shared<PrefixCall>(std::move(client), std::move(slot), std::move(reply));
  prefixes_.push_back(call);
  const std::weak_ptr<PrefixCall> weak = call;
  call->reply.Watch([] {},
                    [weak](GoneReason) {
                      const auto live = weak.lock();
                      if (live == nullptr) return;
                      live->is_gone = true;
                      if (live->pending.has_value()) live->pending->answer->Abort();
                    });
  const Sender fail = [call](const HttpResponse& response) {
    call->is_gone = true;
    call->reply.Send(response);
    call->slot.Reset();
  };
  helper_->Post(
      [this, call, body = std::move(body)] {
        auto started = std::make_shared<ApiResult<PendingPrefix>>(
            admin_->prefixes().Start(call->client, body, [server = server_] { server->Ring(); }));
        server_->Post([this, call, started] {
          if (started->ok()) {
            call->pending = std::move(started->value());
            call->slot.Charge(call->pending->tokens.size());
            if (call->is_gone) call->pending->answer->Abort();
          } else {
            call->is_gone = true;
            call->reply.Send(ErrorResponse(started->error()));
          }
          if (call->is_gone) call->slot.Reset();  // here: the helper may hold the call longer
          OnRing();
        });
      },
      FailureOf(fail));
}

void AdminCalls::FinishPrefix(const std::shared_ptr<PrefixCall>& call) {
  call->is_finishing = true;
  AskEngine(admin_->prefixes().Finish(*call->pending), 201, [call](const HttpResponse& response) {
    call->reply.Send(response);
    call->slot.Reset();
  });
}

void AdminCalls::OnRing() {
  for (const auto& call : prefixes_) {
    if (call->is_gone || !call->pending.has_value() || !call->pending->is_computed()) continue;
    FinishPrefix(call);
  }
  // One that is gone before the engine has it is kept by the helper's job.
  std::erase_if(prefixes_, [](const auto& call) { return call->is_gone || call->is_finishing; });
}

void AdminCalls::StartWatch(const HttpRequest& request, Client client, HttpReply reply) {
  if (watchers_.size() >= kMostWatchers)
    return reply.Send(ErrorResponse({.status = 503,
                                     .type = "server_error",
                                     .code = "too_many_watchers",
                                     .message = "As many clients watch events as may do.",
                                     .retry_after_s = 30}));
  const auto watcher = std::make_shared<Watcher>(std::move(client), std::move(reply));
  watcher->last_id = admin_->events().last_id(watcher->client);
  if (const auto text = request.Field("last-event-id"); text.has_value()) {
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), id);
    if (error == std::errc() && end == text->data() + text->size()) watcher->last_id = id;
  }
  const std::weak_ptr<Watcher> weak = watcher;
  const auto on_sent = [this, weak] {
    if (const auto live = weak.lock()) WriteEvents(*live);
  };
  const auto on_gone = [weak](GoneReason) {
    if (const auto live = weak.lock()) live->is_gone = true;
  };
  watcher->reply.Watch(on_sent, on_gone);
  watchers_.push_back(watcher);
  HttpResponse head = {.content_type = "text/event-stream",
                       .fields = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}},
                       .body = ": watching\n\n"};
  watcher->reply.Start(head);
  if (request.method == "HEAD") {
    watcher->is_gone = true;
    return watcher->reply.Finish();
  }
  WriteEvents(*watcher);
}

void AdminCalls::WriteEvents(Watcher& watcher) {
  if (watcher.is_gone || watcher.reply.unsent_bytes() > 0) return;
  std::string events = admin_->events().Next(watcher.client, &watcher.last_id, kMostEventBytes);
  const auto now = Clock::now();
  if (events.empty() && times_.keep_alive.count() > 0 &&
      now - watcher.last_sent > times_.keep_alive)
    events = kKeepAliveEvent;
  if (events.empty()) return;
  watcher.last_sent = now;
  watcher.reply.Write(events);
}

void AdminCalls::EndOverdue() {
  std::erase_if(looks_, [this](Look& look) {
    if (look.reply.has_started() || look.reply.is_gone()) return true;
    const auto error = Overdue(times_, look.start, /*is_queued=*/false);
    if (error.has_value()) look.reply.Send(ErrorResponse(*error));
    return error.has_value();
  });
  for (const auto& call : prefixes_) {
    if (call->is_gone) continue;
    const bool is_queued =
        call->pending.has_value() && call->pending->answer->phase() == AnswerPhase::kQueued;
    if (const auto error = Overdue(times_, call->start, is_queued)) End(*call, *error);
  }
}

void AdminCalls::End(PrefixCall& call, const ApiError& error) {
  call.is_gone = true;
  if (call.pending.has_value()) call.pending->answer->Abort();
  call.reply.Send(ErrorResponse(error));
  call.slot.Reset();
}

void AdminCalls::OnTick() {
  EndOverdue();
  std::erase_if(watchers_, [](const auto& watcher) { return watcher->is_gone; });
  if (watchers_.empty()) return;
  const auto watchers = watchers_;  // a write may end one
  for (const auto& watcher : watchers) WriteEvents(*watcher);
  if (num_ticks_++ % HttpHandler::kTicksPerSecond == 0) NotePages();
}

void AdminCalls::CutAll(const ApiError& error) {
  for (const auto& call : std::exchange(prefixes_, {}))
    if (!call->is_gone) End(*call, error);
}

void AdminCalls::EndWatches() {
  for (const auto& watcher : std::exchange(watchers_, {}))
    if (!watcher->is_gone) watcher->reply.Finish();
}

}  // namespace quire
