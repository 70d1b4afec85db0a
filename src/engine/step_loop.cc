#include "engine/step_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "base/message_text.h"
#include "base/seconds.h"
#include "cache/kv_need.h"

namespace quire {
namespace {

// How long steps may do nothing, with nothing pinned, before we take it for a bug of ours.
constexpr double kMostIdleSeconds = 10;

}  // namespace

StepLoop::StepLoop(ModelRunner* runner, const Tokenizer* tokenizer, QueueLimit* queue)
    : runner_(runner),
      tokenizer_(tokenizer),
      queue_(queue),
      start_(std::chrono::steady_clock::now()),
      sampler_(static_cast<uint32_t>(runner->model().shape().num_tokens)),
      chunks_({.target_ms = static_cast<double>(runner->options().target_itl_ms),
               .least_tokens = std::min(16u, runner->options().token_budget),
               .most_tokens = runner->options().token_budget}) {
  const EngineOptions& options = runner->options();
  limits_.max_running = options.max_seqs;
  limits_.watermark_bytes = options.kv_memory_bytes / 32;
}

StepLoop::~StepLoop() { AbortAll(); }

uint64_t StepLoop::now_ms() const { return static_cast<uint64_t>(1000 * SecondsSince(start_)); }

NamespaceKey StepLoop::KeyOf(const std::string& tenant, const std::string& salt) const {
  return {.tenant = tenant, .salt = salt, .identity = runner_->identity()};
}

void StepLoop::Add(Request request, std::shared_ptr<Answer> answer, uint32_t most_tokens) {
  auto shared = std::make_shared<SharedRequest>();
  shared->request = std::move(request);
  shared->answer = std::move(answer);
  shared->most_tokens = most_tokens;
  shared->num_unfinished = shared->request.num_choices;
  shared->ns = cache().private_namespace();
  // Also of requests that share nothing: their tenant is served in its turn like others.
  const auto ns = cache().Namespace(KeyOf(shared->request.tenant, shared->request.salt));
  const Status status = ns.ok() ? OkStatus() : ns.status();
  shared->tenant = cache().tenant_of(ns.ok() ? ns.value() : shared->ns);
  if (ns.ok() && shared->request.uses_prefixes) shared->ns = ns.value();
  shared->ns_hold = cache().Hold(shared->ns);
  auto live = std::make_unique<Live>(MakeLive(std::move(shared), 0));
  live->is_forking = live->shared->request.num_choices > 1;
  live->scheduled.arrival = next_arrival_++;
  live->scheduled.waiting_since = step_;
  ledger_.Arrive(live->scheduled.tenant);
  if (!status.ok()) End(*live, FinishReason::kError, status, /*keeps_pages=*/false);
  sequences_.push_back(std::move(live));
}

StepLoop::Live StepLoop::MakeLive(std::shared_ptr<SharedRequest> shared, uint32_t choice) const {
  const Request& request = shared->request;
  Live live;
  live.choice = choice;
  live.tokens.reserve(request.prompt.size() + shared->most_tokens);
  live.tokens = request.prompt;
  if (request.sampling.has_penalties())
    live.state = SamplerState(request.sampling, sampler_.num_tokens());
  if (!request.sampling.stop_strings.empty()) {
    live.detokenizer.emplace(
        tokenizer_, DecodeOptions{.starts_text = false, .show_special = request.shows_special});
    live.stop_text.emplace(request.sampling);
  }
  live.scheduled.id = shared->answer->id();
  live.scheduled.priority = request.priority;
  live.scheduled.ns = shared->ns;
  live.scheduled.is_private = !request.uses_prefixes;
  live.scheduled.most_matched = MostMatched(*shared);
  live.scheduled.tenant = shared->tenant;
  live.scheduled.most_tokens =
      static_cast<uint32_t>(request.prompt.size()) + std::max(shared->most_tokens, 1u) - 1;
  live.shared = std::move(shared);
  return live;
}

bool StepLoop::Step() {
  const auto begin = std::chrono::steady_clock::now();
  const double forward_before = counts_.forward_seconds;
  ++step_;
  ++counts_.num_steps;
  cache().SetNow(now_ms());
  TickIfDue();
  TakeAborts();
  FollowOthers();
  scheduled_.clear();
  uint32_t num_decodes = 0;
  for (const auto& live : sequences_) {
    live->scheduled.tokens = live->tokens;
    live->scheduled.pages = live->pages.has_value() ? &*live->pages : nullptr;
    scheduled_.push_back(live->scheduled);
    num_decodes += live->num_to_compute() == 1 ? 1 : 0;
  }
  limits_.token_budget = std::min(chunks_.Budget(num_decodes), runner_->max_rows());
  const StepDecision& decision = scheduler_.Schedule(
      {.sequences = scheduled_, .tenants = ledger_.services(), .cache = &cache(), .step = step_},
      limits_);
  num_deferred_ = static_cast<uint32_t>(decision.deferred.size());
  Apply(decision);
  EndFutile(decision);
  ReserveParts(decision);
  if (!rows_.empty()) {
    RunRows();
    counts_.step_seconds.Add(SecondsSince(begin));
  }
  const bool did_something = WatchForStalls(decision);
  TellNews();
  RemoveEnded();
  counts_.schedule_seconds += SecondsSince(begin) - (counts_.forward_seconds - forward_before);
  return did_something;
}

void StepLoop::TakeAborts() {
  for (const auto& live : sequences_)
    if (!live->has_ended && live->shared->answer->aborted())
      End(*live, FinishReason::kCancelled, OkStatus(), /*keeps_pages=*/true);
  TellNews();
  RemoveEnded();
}

void StepLoop::FollowOthers() {
  for (const auto& live : sequences_)
    if (live->num_to_compute() > 1) {
      live->pages->Follow(live->matched_tokens());
      CountCached(*live);
    }
}

// What it has of the prompt's tokens without ever having computed them.
void StepLoop::CountCached(Live& live) {
  Answer& answer = *live.shared->answer;
  if (answer.phase() > AnswerPhase::kPrefill) return;
  const uint32_t position = live.pages->next_position();
  answer.SetPromptComputed(position);
  if (position <= live.num_reached) return;
  live.num_copied = std::min(position % runner_->options().page_size, position - live.num_reached);
  answer.SetCached(answer.num_cached() + position - live.num_reached);
  live.num_reached = position;
}

void StepLoop::Apply(const StepDecision& decision) {
  for (const Refusal& refusal : decision.refused)
    End(*sequences_[refusal.index], FinishReason::kError,
        ResourceExhausted("the request needs {} bytes of KV pages, the budget is {}: shorten it or "
                          "raise --kv-memory",
                          GroupDigits(refusal.needed_bytes),
                          GroupDigits(cache().pool().budget_bytes())),
        /*keeps_pages=*/false);
  for (const uint32_t index : decision.preempted) Preempt(*sequences_[index]);
  for (const Admission& admission : decision.admitted)
    Admit(*sequences_[admission.index], admission.takes_match);
}

void StepLoop::Preempt(Live& live) {
  const uint32_t position = live.pages->next_position();
  if (position > live.best_position)
    live.futile_since.reset();
  else if (!live.futile_since.has_value())
    live.futile_since = std::chrono::steady_clock::now();
  live.best_position = std::max(live.best_position, position);
  live.pages->End(live.tokens);
  live.pages.reset();
  ++live.scheduled.num_preemptions;
  live.scheduled.waiting_since = step_;
  ++counts_.num_preemptions;
  live.shared->answer->CountPreemption();
  if (live.shared->answer->phase() == AnswerPhase::kPrefill)
    live.shared->answer->SetPromptComputed(0);
}

void StepLoop::Admit(Live& live, bool takes_match) {
  const uint32_t reserved = runner_->reserved_tokens(live.scheduled.most_tokens);
  PrefixMatch match;
  if (!live.shared->request.uses_prefixes)
    live.pages.emplace(cache().NewPrivateSequence(reserved));
  else if (!takes_match)
    live.pages.emplace(cache().NewSequence(live.shared->ns, reserved));
  else
    live.pages.emplace(cache().NewSequence(live.shared->ns, live.matched_tokens(), reserved, &match,
                                           /*counts=*/!live.was_admitted));
  const bool is_first = !std::exchange(live.was_admitted, true);
  Answer& answer = *live.shared->answer;
  CountCached(live);
  if (!is_first) return;
  LeaveQueue(*live.shared);
  PromptReport& report = answer.mutable_prompt();
  report.match_stop = match.stop;
  report.num_shared = match.num_shared;
  report.queue_seconds = answer.SecondsSinceSubmit();
  answer.SetPhase(AnswerPhase::kPrefill);  // the report so far can be read now
}

// Sequences that wait and are never served would be a bug of the scheduler, unless pins hold the
// Where pins hold what a sequence needs, it starts, finds no room and starts again. For a while,
// since pins go; not for ever.
void StepLoop::EndFutile(const StepDecision& decision) {
  if (cache().pool().pinned_bytes() == 0) return;
  for (const uint32_t index : decision.preempted) {
    Live& live = *sequences_[index];
    if (live.has_ended || !live.futile_since.has_value() ||
        SecondsSince(*live.futile_since) < kMostIdleSeconds)
      continue;
    End(live, FinishReason::kError,
        ResourceExhausted("the request needs KV memory that kept prefixes hold: shorten it, drop a "
                          "prefix or raise --kv-memory"),
        /*keeps_pages=*/false);
  }
}

// memory: better an error than a hang.
bool StepLoop::WatchForStalls(const StepDecision& decision) {
  if (!rows_.empty() || !decision.preempted.empty() || !decision.admitted.empty() ||
      !decision.refused.empty() || sequences_.empty()) {
    idle_since_.reset();
    return true;
  }
  if (!idle_since_.has_value()) idle_since_ = std::chrono::steady_clock::now();
  const double seconds = SecondsSince(*idle_since_);
  if (seconds < kMostIdleSeconds || cache().pool().pinned_bytes() > 0) return false;
  spdlog::error("bug: no step could be made for {:.0f} s; request {} is ended", seconds,
                sequences_.front()->scheduled.id);
  End(*sequences_.front(), FinishReason::kError,
      Internal("no step could be made for this request: please report it"), /*keeps_pages=*/false);
  idle_since_.reset();
  return false;
}

void StepLoop::RemoveEnded() {
  std::erase_if(sequences_, [](const auto& live) { return live->has_ended; });
}

void StepLoop::Tick() {
  last_tick_s_ = now_s();
  cache().ExpirePins(last_tick_s_, [this](NodeId node) {
    if (on_expired_) on_expired_(DescribePrefix(cache(), node));
  });
  cache().pool().ReleaseIdle(last_tick_s_, runner_->options().kv_idle_s);
}

void StepLoop::SetTenantShare(const std::string& tenant, double share) {
  cache().SetTenantShare(tenant, share);
  if (const auto id = cache().FindTenant(tenant)) ledger_.SetShare(*id, share);
}

void StepLoop::AbortAll() {
  for (const auto& live : sequences_)
    if (!live->has_ended) End(*live, FinishReason::kCancelled, OkStatus(), /*keeps_pages=*/false);
  TellNews();
  RemoveEnded();
}

void StepLoop::PreemptAll() {
  for (const auto& live : sequences_)
    if (live->pages.has_value()) {
      Preempt(*live);
      --live->scheduled.num_preemptions;  // the scheduler's own stay bounded
    }
}

}  // namespace quire
