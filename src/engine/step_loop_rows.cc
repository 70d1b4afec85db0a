// StepLoop: the rows of a step: from the decision to pages, the forward pass, and what comes of it.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/seconds.h"
#include "engine/step_loop.h"

namespace quire {

uint32_t StepLoop::MostMatched(const SharedRequest& shared) {
  const Request& request = shared.request;
  if (!request.prompt_logprobs.has_value()) return UINT32_MAX;
  const uint32_t num_known = shared.answer->num_prompt_logprobs();
  if (num_known == request.prompt.size()) return UINT32_MAX;
  return num_known > 1 ? num_known : 0;
}

void StepLoop::ReserveParts(const StepDecision& decision) {
  rows_.clear();
  row_owners_.clear();
  const size_t row_bytes = static_cast<size_t>(runner_->model().shape().vocab_size) * sizeof(float);
  auto scores_left = static_cast<uint32_t>(
      std::max<uint64_t>(1, runner_->options().prompt_logits_bytes / row_bytes));
  for (const StepPart& part : decision.parts) {
    Live& live = *sequences_[part.index];
    if (live.has_ended || !live.pages.has_value()) continue;
    const uint32_t begin = live.pages->next_position();
    const auto known = static_cast<uint32_t>(live.tokens.size());
    uint32_t end = std::min(begin + part.num_tokens, known), num_scores = 0;
    if (const uint32_t matched = MostMatched(*live.shared); matched < known) {
      const uint32_t first = std::max(begin, matched > 0 ? matched - 1 : 0);
      end = std::min(end, first + scores_left);
      if (end == begin) continue;  // its turn will come
      num_scores = end > first ? end - first : 0;
    }
    if (!live.pages->Reserve(end).ok()) continue;  // its turn will come
    const bool wants_token = end == known && live.shared->most_tokens > 0;
    rows_.push_back({.pages = &*live.pages,
                     .tokens = live.tokens,
                     .end = end,
                     .num_logits = std::max(num_scores, wants_token ? 1u : 0u)});
    row_owners_.push_back(&live);
    scores_left -= num_scores;
    live.scheduled.last_part = step_;
  }
}

void StepLoop::RunRows() {
  uint32_t num_rows = 0;
  for (const StepRows& row : rows_) num_rows += row.end - row.pages->next_position();
  const auto begin = std::chrono::steady_clock::now();
  const StatusOr<std::span<const float>> logits = runner_->RunStep(rows_);
  const double seconds = SecondsSince(begin);
  counts_.forward_seconds += seconds;
  chunks_.Measure(num_rows, seconds * 1000);
  counts_.step_tokens.Add(num_rows);
  if (!logits.ok()) {  // the machine has no memory for the step's work: none of it is done
    for (Live* live : row_owners_)
      End(*live, FinishReason::kError, logits.status(), /*keeps_pages=*/false);
    return;
  }
  const auto vocab_size = static_cast<size_t>(runner_->model().shape().vocab_size);
  std::span<const float> rest = logits.value();
  for (size_t row = 0; row < rows_.size(); ++row) {
    CommitRow(row, *row_owners_[row], rest.first(rows_[row].num_logits * vocab_size));
    rest = rest.subspan(rows_[row].num_logits * vocab_size);
  }
  for (auto& fork : forks_) sequences_.push_back(std::move(fork));
  forks_.clear();
}

void StepLoop::CommitRow(size_t row, Live& live, std::span<const float> logits) {
  const uint32_t begin = live.pages->next_position(), end = rows_[row].end;
  if (const Status status = runner_->StatusOf(row); !status.ok()) {
    live.pages->Cancel();
    return End(live, FinishReason::kError, status, /*keeps_pages=*/false);
  }
  Answer& answer = *live.shared->answer;
  MarkNews(live.shared->answer);
  const uint32_t inserted_before = live.pages->num_inserted();
  live.pages->Commit(end, live.tokens);
  const auto prompt_len = static_cast<uint32_t>(live.shared->request.prompt.size());
  if (answer.phase() == AnswerPhase::kPrefill) {
    answer.SetPromptComputed(end);
    live.num_reached = std::max(live.num_reached, end);
    // Of a page that began with tokens of the cache only the others are new; and none twice,
    // although it may come again after an eviction.
    const uint32_t page_size = runner_->options().page_size;
    const bool ends_page = end / page_size > begin / page_size;
    const uint32_t num_copied = ends_page ? std::exchange(live.num_copied, 0) : 0;
    uint32_t newly = live.pages->num_inserted() - inserted_before;
    newly -= std::min(newly, num_copied);
    uint32_t& inserted = answer.mutable_prompt().num_inserted;
    inserted = std::min(inserted + newly, prompt_len - answer.num_cached());
  }
  counts_.computed_prompt_tokens += std::min(end, prompt_len) - std::min(begin, prompt_len);
  ledger_.Serve(live.scheduled.tenant, end - begin);
  if (const Status status = ScorePrompt(live, end, logits); !status.ok())
    return End(live, FinishReason::kError, status, /*keeps_pages=*/false);
  if (end < live.tokens.size()) return;
  if (answer.phase() == AnswerPhase::kPrefill) {
    counts_.prompt_tokens += prompt_len;
    counts_.cached_prompt_tokens += answer.num_cached();
    answer.mutable_prompt().num_cached = answer.num_cached();
  }
  if (live.shared->most_tokens == 0)
    return End(live, FinishReason::kMaxTokens, OkStatus(), /*keeps_pages=*/true);
  if (answer.phase() == AnswerPhase::kPrefill) {
    answer.mutable_prompt().first_token_seconds = answer.SecondsSinceSubmit();
    answer.SetPhase(AnswerPhase::kDecode);
  }
  const auto last = logits.last(static_cast<size_t>(runner_->model().shape().vocab_size));
  if (live.is_forking) ForkChoices(live, last);
  SampleInto(live, last);
}

// Log-probabilities of the tokens after those rows whose logits are here.
//   logits  [num_logits][vocab_size]  of the positions up to `end`
Status StepLoop::ScorePrompt(Live& live, uint32_t end, std::span<const float> logits) {
  const Request& request = live.shared->request;
  if (MostMatched(*live.shared) == UINT32_MAX) return OkStatus();
  Answer& answer = *live.shared->answer;
  const auto vocab_size = static_cast<size_t>(runner_->model().shape().vocab_size);
  for (uint32_t i = answer.num_prompt_logprobs(); i <= end && i < request.prompt.size(); ++i) {
    // Of position i - 1, counted from the last row.
    const auto row = logits.subspan(logits.size() - (end - i + 1) * vocab_size, vocab_size);
    QUIRE_ASSIGN_OR_RETURN(const Logprobs logprobs,
                           sampler_.Score(row, request.prompt[i], *request.prompt_logprobs));
    answer.PushPromptLogprob(logprobs);
  }
  live.scheduled.most_matched = MostMatched(*live.shared);
  return OkStatus();
}

}  // namespace quire
