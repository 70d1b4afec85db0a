#include "server/live_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "server/api/call_reader.h"
#include "server/api/usage_json.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

// Events are made as long as fewer bytes wait for the socket; the rest waits as tokens.
constexpr size_t kMostUnsent = 16 << 10;
// And at most so many at a time, so that others come between however much one has to be told.
constexpr size_t kMostATurn = 64 << 10;
// The text of longer whole answers is made on the helper thread.
constexpr uint64_t kMostTokensHere = 2048;
constexpr auto kStalledAfter = std::chrono::seconds(1);

// Field values that a client chose may not end the line.
std::string AsFieldValue(std::string text) {
  std::erase_if(text, [](unsigned char c) { return c < 0x20 || c >= 0x7f; });
  if (text.size() > 1024) text.resize(1024);
  return text;
}

HttpFields AnswerFields(const LiveCall& call) {
  const auto spent =
      std::chrono::duration_cast<std::chrono::milliseconds>(LiveCall::Clock::now() - call.start);
  HttpFields fields = {{"openai-processing-ms", std::to_string(spent.count())}};
  const auto& ignored = call.writer->call().ignored_fields;
  if (!ignored.empty())
    fields.emplace_back("x-quire-ignored",
                        AsFieldValue(fmt::format("{}", fmt::join(ignored, ", "))));
  return fields;
}

void AbortAll(const LiveCall& call) {
  if (call.writer == nullptr) return;
  for (const auto& answer : call.writer->answers()) answer->Abort();
}

bool IsQueued(const LiveCall& call) {
  return std::ranges::all_of(call.writer->answers(), [](const auto& answer) {
    return answer->phase() == AnswerPhase::kQueued;
  });
}

// Keeps what the call asks for of these prompts; until when, in Unix time, if anything is kept.
std::optional<int64_t> PinMarks(const LiveCall& call, std::span<const uint32_t> prompts,
                                uint64_t most_bytes, StepLoop& loop) {
  const GenerationCall& asked = call.writer->call();
  KvCache& cache = loop.cache();
  const auto ns = cache.Namespace(loop.KeyOf(call.client.tenant, asked.salt));
  if (!ns.ok()) return std::nullopt;
  std::optional<int64_t> until;
  for (const RetainMark& mark : asked.retain) {
    for (const uint32_t index : prompts) {
      const std::vector<TokenId>& prompt = asked.prompts[index];
      const size_t num_marked = std::min<size_t>(mark.num_tokens, prompt.size());
      if (num_marked == 0) continue;
      const PinResult pin = cache.Pin(ns.value(), std::span(prompt).first(num_marked),
                                      PinOptions{.until_s = loop.now_s() + mark.ttl_s,
                                                 .most_bytes = most_bytes,
                                                 .most_total_bytes = MostPinnedBytes(cache)});
      if (pin.length > 0)
        until = std::max(until.value_or(0), UnixTime(loop.now_s() + mark.ttl_s, loop.now_s()));
    }
  }
  return until;
}

// The engine refuses the same, but names no field.
std::optional<ApiError> CheckMinTokens(const GenerationCall& call, const Engine& engine) {
  for (const auto& prompt : call.prompts) {
    const uint32_t room = engine.MostAnswer(prompt.size());
    if (room > 0 && call.sampling.min_tokens > room)
      return InvalidValue(
          "min_tokens", fmt::format("min_tokens is {}: after a prompt of {} tokens the context and "
                                    "the KV memory hold an answer of {}.",
                                    call.sampling.min_tokens, prompt.size(), room));
  }
  return std::nullopt;
}

// Of a whole answer; a log-probability is one too.
uint64_t TokensToWrite(const AnswerWriter& writer) {
  const GenerationCall& call = writer.call();
  uint64_t tokens = writer.num_generated();
  if (call.echo || call.return_token_ids || call.prompt_logprobs.has_value())
    for (const auto& prompt : call.prompts) tokens += prompt.size();
  const uint32_t top = std::max(call.logprobs.value_or(0), call.prompt_logprobs.value_or(0));
  return tokens * (1 + top);
}

}  // namespace

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response = {.status = error.status, .body = ToJson(error), .error_code = error.code};
  if (error.retry_after_s.has_value())
    response.fields.emplace_back("retry-after", std::to_string(*error.retry_after_s));
  if (!error.allow.empty()) response.fields.emplace_back("allow", error.allow);
  if (error.status == 401) response.fields.emplace_back("www-authenticate", "Bearer");
  return response;
}

LiveCalls::LiveCalls(const LiveCallOptions& options, const ServedModel* model, Engine* engine,
                     HttpServer* server, HelperThread* helper, const PrefixAdmin* prefixes,
                     std::function<void(const CallSummary&)> on_end)
    : options_(options),
      model_(model),
      engine_(engine),
      server_(server),
      helper_(helper),
      prefixes_(prefixes),
      on_end_(std::move(on_end)) {}

void LiveCalls::Start(const Route& route, HttpRequest request, Client client, TenantSlot slot,
                      HttpReply reply) {
  const ApiForm form = route.id == RouteId::kChat ? ApiForm::kChat : ApiForm::kCompletions;
  const auto call =
      std::make_shared<LiveCall>(std::move(request.id), form, route.pattern, std::move(client),
                                 std::move(slot), std::move(reply), server_);
  calls_.push_back(call);
  const std::weak_ptr<LiveCall> weak = call;
  call->reply.Watch(
      [this, weak] {
        if (const CallPtr live = weak.lock()) Advance(live);
      },
      [this, weak](GoneReason) {
        if (const CallPtr live = weak.lock()) OnGone(*live);
      });
  auto body = std::make_shared<std::string>(std::move(request.body));
  helper_->Post(
      [this, call, body] {
        auto submitted = std::make_shared<ApiResult<Submitted>>(Submit(*call, *body));
        server_->Post([this, call, submitted] { Begin(call, std::move(*submitted)); });
      },
      FailureOf(call));
}

std::function<void()> LiveCalls::FailureOf(const CallPtr& call) {
  return [this, call] {
    server_->Post([this, call] {
      if (!call->has_ended) SendError(*call, InternalError());
      RemoveEnded();
    });
  };
}

ApiResult<LiveCalls::Submitted> LiveCalls::Submit(const LiveCall& call,
                                                  const std::string& body) const {
  if (call.is_gone.load(std::memory_order_relaxed)) return Draining();  // nobody reads it
  auto read =
      call.form == ApiForm::kChat ? ReadChatCall(body, *model_) : ReadCompletionCall(body, *model_);
  if (!read.ok()) return read.error();
  Submitted submitted;
  submitted.call = std::move(read.value());
  if (submitted.call.priority < 0 && !call.client.may_prioritise)
    return PermissionDenied("A priority below 0 needs a key with the right 'priority'.");
  if (const auto error = CheckMinTokens(submitted.call, *engine_)) return *error;
  submitted.time = LiveCall::Clock::now();
  const Status status = SubmitAll(call, &submitted);
  if (!status.ok()) return FromStatus(status);
  if (options_.on_prompt) TellPrompts(call.id, submitted.call);
  return submitted;
}

Status LiveCalls::SubmitAll(const LiveCall& call, Submitted* submitted) const {
  // Those that the engine has already end with one that it does not take, or an exception.
  struct Guard {
    ~Guard() {
      if (is_on)
        for (const auto& answer : *answers) answer->Abort();
    }
    std::vector<std::shared_ptr<Answer>>* answers;
    bool is_on = true;
  } guard{&submitted->answers};
  submitted->answers.reserve(submitted->call.prompts.size());
  for (Request& request : ToRequests(submitted->call, call.client.tenant)) {
    request.label = call.id;
    request.on_news = [news = call.news] { news->Raise(); };
    QUIRE_ASSIGN_OR_RETURN(auto answer, engine_->Submit(std::move(request)));
    submitted->answers.push_back(std::move(answer));
  }
  guard.is_on = false;
  return OkStatus();
}

void LiveCalls::TellPrompts(const std::string& request_id, const GenerationCall& call) const {
  for (const auto& prompt : call.prompts) {
    const StatusOr<std::string> text = Decode(*model_->tokenizer, prompt, {.show_special = true});
    options_.on_prompt(request_id, text.ok() ? text.value() : "");
  }
}

void LiveCalls::Begin(const CallPtr& call, ApiResult<Submitted> submitted) {
  if (submitted.ok()) {
    Submitted& work = submitted.value();
    if (!work.call.retain.empty()) {
      call->to_retain.resize(work.call.prompts.size());
      std::iota(call->to_retain.begin(), call->to_retain.end(), 0);
    }
    call->submitted = work.time;
    for (const auto& prompt : work.call.prompts) call->slot.Charge(prompt.size());
    call->writer =
        std::make_unique<AnswerWriter>(model_, std::move(work.call), std::move(work.answers));
  }
  if (call->has_ended) {  // the client left meanwhile, or the server shuts down
    AbortAll(*call);
  } else if (!submitted.ok()) {
    SendError(*call, submitted.error());
  } else {
    Advance(call);
  }
  RemoveEnded();
}

void LiveCalls::Advance(const CallPtr& call) {
  if (call->has_ended || call->writer == nullptr || call->is_writing) return;
  AnswerWriter& writer = *call->writer;
  const bool all_ended = writer.all_ended();  // seen first: then all prompts are seen computed
  RetainPrompts(call);
  // The end of the answer tells until when they are kept.
  call->notes.holds_end = !call->to_retain.empty() || call->num_retaining > 0;
  if (!call->reply.has_started())
    if (const auto error = writer.error()) return SendError(*call, *error);
  if (writer.call().stream) return AdvanceStream(call);
  if (all_ended && !call->notes.holds_end) WriteWhole(call);
}

void LiveCalls::WriteWhole(const CallPtr& call) {
  call->is_writing = true;
  const auto send = [this](LiveCall& live, ApiResult<std::string> answer) {
    if (live.has_ended) return;
    if (!answer.ok()) return SendError(live, answer.error());
    live.reply.Send({.fields = AnswerFields(live), .body = std::move(answer.value())});
    End(live, 200, "");
  };
  if (TokensToWrite(*call->writer) <= kMostTokensHere)
    return send(*call, call->writer->WholeAnswer(call->notes));
  helper_->Post(
      [this, call, send] {
        auto answer =
            std::make_shared<ApiResult<std::string>>(call->writer->WholeAnswer(call->notes));
        server_->Post([this, call, send, answer] {
          send(*call, std::move(*answer));
          RemoveEnded();
        });
      },
      FailureOf(call));
}

void LiveCalls::AdvanceStream(const CallPtr& live) {
  LiveCall& call = *live;
  AnswerWriter& writer = *call.writer;
  size_t num_bytes = 0;
  while (!call.has_ended && call.reply.unsent_bytes() < kMostUnsent) {
    if (num_bytes >= kMostATurn) return AdvanceLater(live);
    std::string event = writer.NextEvent(call.notes);
    if (event.empty()) return;
    num_bytes += event.size();
    const bool is_last = writer.is_finished();
    call.last_sent = LiveCall::Clock::now();
    if (!call.reply.has_started())
      SendStreamHead(call, is_last ? std::string() : event);
    else if (!is_last)
      call.reply.Write(event);
    if (!is_last) continue;
    call.reply.Finish(event);
    End(call, 200, "");
  }
}

void LiveCalls::AdvanceLater(const CallPtr& call) {
  if (std::exchange(call->goes_on, true)) return;
  server_->Post([this, call] {
    call->goes_on = false;
    Advance(call);
    RemoveEnded();
  });
}

void LiveCalls::RetainPrompts(const CallPtr& call) {
  const auto is_computed = [&](uint32_t prompt) {
    return HasPromptReport(*call->writer->answers()[prompt]);
  };
  std::vector<uint32_t> prompts;
  std::ranges::copy_if(call->to_retain, std::back_inserter(prompts), is_computed);
  if (prompts.empty()) return;
  // Those, not what is computed by now.
  std::erase_if(call->to_retain,
                [&](uint32_t prompt) { return std::ranges::binary_search(prompts, prompt); });
  ++call->num_retaining;
  const uint64_t most_bytes = prefixes_->MostRetained(call->client.tenant);
  // Not waited for: the step may be long. `this` is touched on the HTTP thread alone.
  engine_->AskLater(
      [this, server = server_, call, prompts = std::move(prompts), most_bytes](StepLoop& loop) {
        server->Post([this, call, until = PinMarks(*call, prompts, most_bytes, loop)] {
          --call->num_retaining;
          call->notes.retained_until = std::max(call->notes.retained_until, until);
          Advance(call);
          RemoveEnded();
        });
      });
}

void LiveCalls::SendStreamHead(LiveCall& call, std::string first_piece) {
  HttpResponse head = {.content_type = "text/event-stream",
                       .fields = AnswerFields(call),
                       .body = std::move(first_piece)};
  head.fields.emplace_back("cache-control", "no-cache");
  head.fields.emplace_back("x-accel-buffering", "no");  // nginx: pass pieces on at once
  call.reply.Start(head);
}

void LiveCalls::SendError(LiveCall& call, const ApiError& error) {
  AbortAll(call);
  if (call.reply.has_started()) {
    call.reply.Finish(call.writer->ErrorEvent(error));
  } else {
    call.reply.Send(ErrorResponse(error));
  }
  End(call, error.status, error.code);
}

void LiveCalls::OnGone(LiveCall& call) {
  call.is_gone.store(true, std::memory_order_relaxed);
  AbortAll(call);
  End(call, 499, "");
  // Not removed here: a caller further up may be walking over the calls.
}

void LiveCalls::End(LiveCall& call, int status, const std::string& error_code) {
  if (std::exchange(call.has_ended, true)) return;
  const CallSummary summary = Summarise(call, status, error_code);
  call.slot.Charge(summary.generated_tokens);
  call.slot.Reset();
  on_end_(summary);
}

void LiveCalls::OnRing() {
  // By index: an end on the way may come back here through the transport.
  for (size_t i = 0; i < calls_.size(); ++i) {
    const CallPtr call = calls_[i];
    if (call->news->is_raised.exchange(false, std::memory_order_acquire)) Advance(call);
  }
  RemoveEnded();
}

void LiveCalls::OnTick() {
  const auto now = LiveCall::Clock::now();
  for (size_t i = 0; i < calls_.size(); ++i) {
    const CallPtr call = calls_[i];
    if (call->has_ended || call->writer == nullptr) continue;
    if (const auto error = Overdue(options_.times, call->start, IsQueued(*call))) {
      SendError(*call, *error);
      continue;
    }
    if (!call->writer->call().stream) continue;
    Advance(call);  // progress of the prompt
    if (!call->has_ended && options_.times.keep_alive.count() > 0 &&
        now - call->last_sent > options_.times.keep_alive && call->reply.unsent_bytes() == 0) {
      call->last_sent = now;
      if (call->reply.has_started())
        call->reply.Write(kKeepAliveEvent);
      else
        SendStreamHead(*call, kKeepAliveEvent);
    }
  }
  RemoveEnded();
}

void LiveCalls::CutAll(const ApiError& error) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    const CallPtr call = calls_[i];
    if (!call->has_ended) SendError(*call, error);
  }
  RemoveEnded();
}

size_t LiveCalls::num_stalled() const {
  const auto now = LiveCall::Clock::now();
  return static_cast<size_t>(std::count_if(calls_.begin(), calls_.end(), [&](const auto& call) {
    return !call->has_ended && call->reply.unsent_bytes() > 0 &&
           now - call->last_sent > kStalledAfter;
  }));
}

void LiveCalls::RemoveEnded() {
  std::erase_if(calls_, [](const CallPtr& call) { return call->has_ended; });
}

}  // namespace quire
