// StepLoop: from logits to the tokens and the end of an answer.
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "engine/step_loop.h"

namespace quire {

// The prompt is computed: the other choices go on from here, over the same pages.
void StepLoop::ForkChoices(Live& live, std::span<const float> logits) {
  live.is_forking = false;
  for (uint32_t choice = 1; choice < live.shared->request.num_choices; ++choice) {
    auto fork = std::make_unique<Live>(MakeLive(live.shared, choice));
    fork->pages.emplace(live.pages->Fork());
    fork->was_admitted = true;
    fork->scheduled.arrival = live.scheduled.arrival;
    fork->scheduled.last_part = step_;
    SampleInto(*fork, logits);
    if (!fork->has_ended) forks_.push_back(std::move(fork));
  }
}

void StepLoop::SampleInto(Live& live, std::span<const float> logits) {
  const auto token = sampler_.Sample(logits, live.shared->request.sampling, live.state,
                                     live.tokens.size(), live.choice);
  if (!token.ok()) return End(live, FinishReason::kError, token.status(), /*keeps_pages=*/false);
  Accept(live, token.value(), logits);
}

void StepLoop::Accept(Live& live, const SampledToken& token, std::span<const float> logits) {
  const SamplingParams& sampling = live.shared->request.sampling;
  Answer& answer = *live.shared->answer;
  const auto prompt_len = static_cast<uint32_t>(live.shared->request.prompt.size());
  if (sampling.EndsAnswer(token.id)) {
    const bool is_eos = tokenizer_->has_text() && tokenizer_->IsEndOfGeneration(token.id);
    return End(live, is_eos ? FinishReason::kEndOfAnswer : FinishReason::kStopToken, OkStatus(),
               /*keeps_pages=*/true, token.id);
  }
  live.state.Commit(token.id);
  live.tokens.push_back(token.id);
  answer.Push(live.choice, token.id, token.logprobs, logits);
  ++counts_.generated_tokens;
  if (live.stop_text.has_value()) {
    const auto text = live.detokenizer->Push(token.id);
    if (!text.ok()) return End(live, FinishReason::kError, text.status(), /*keeps_pages=*/false);
    live.stop_text->Push(text.value(), live.detokenizer->has_waiting());
    if (live.stop_text->stopped())
      return End(live, FinishReason::kStopString, OkStatus(), /*keeps_pages=*/true);
  }
  const auto num_generated = static_cast<uint32_t>(live.tokens.size()) - prompt_len;
  if (num_generated == runner_->options().fail_after_tokens)
    return End(live, FinishReason::kError, Internal("a failure that a test asked for"),
               /*keeps_pages=*/false);
  if (num_generated < live.shared->most_tokens) return;
  const auto& max_tokens = live.shared->request.max_tokens;
  FinishReason reason = FinishReason::kMemoryFull;
  if (max_tokens.has_value() && num_generated >= *max_tokens)
    reason = FinishReason::kMaxTokens;
  else if (live.tokens.size() > runner_->options().context_len)
    reason = FinishReason::kContextFull;
  End(live, reason, OkStatus(), /*keeps_pages=*/true);
}

void StepLoop::End(Live& live, FinishReason reason, const Status& status, bool keeps_pages,
                   std::optional<TokenId> stop_token) {
  QUIRE_CHECK(!live.has_ended);
  live.has_ended = true;
  if (live.pages.has_value() && keeps_pages) live.pages->End(live.tokens);
  live.pages.reset();
  SharedRequest& shared = *live.shared;
  if (shared.answer->phase() == AnswerPhase::kPrefill)
    shared.answer->mutable_prompt().num_cached = shared.answer->num_cached();
  // Choices that were never forked end with the one that would have been.
  const uint32_t num_choices = live.is_forking ? shared.request.num_choices : 1;
  for (uint32_t i = 0; i < num_choices; ++i)
    shared.answer->Finish(live.is_forking ? i : live.choice, reason, status, stop_token);
  shared.num_unfinished -= num_choices;
  if (shared.num_unfinished == 0) {
    if (shared.answer->phase() == AnswerPhase::kQueued) LeaveQueue(shared);
    shared.answer->SetPhase(AnswerPhase::kEnded);
    ledger_.Leave(live.scheduled.tenant);
    ++counts_.num_finished;
    if (reason == FinishReason::kError) ++counts_.num_failed;
    if (reason == FinishReason::kCancelled) ++counts_.num_cancelled;
  }
  MarkNews(shared.answer);
}

void StepLoop::LeaveQueue(const SharedRequest& shared) {
  if (queue_ != nullptr) queue_->Leave(shared.request.prompt.size());
}

void StepLoop::MarkNews(const std::shared_ptr<Answer>& answer) {
  if (answer->MarkNews()) news_.push_back(answer);
}

void StepLoop::TellNews() {
  for (const auto& answer : news_) answer->Notify();
  news_.clear();
}

}  // namespace quire
