#include "server/live_call.h"

#include <algorithm>

#include "base/seconds.h"
#include "server/api/answer_json.h"

namespace quire {
namespace {

// The API's word, and two for what is no end of an answer.
std::string_view ReasonWord(const Answer& answer, uint32_t choice) {
  if (!answer.ended(choice)) return "abort";
  const FinishReason reason = answer.finish_reason(choice);
  if (reason == FinishReason::kError) return "error";
  if (reason == FinishReason::kCancelled || reason == FinishReason::kNone) return "abort";
  return FinishWord(reason);
}

void AddAnswer(const Answer& answer, CallSummary& summary) {
  bool has_report = false;
  for (uint32_t c = 0; c < answer.num_choices(); ++c) {
    const auto num_tokens = static_cast<uint32_t>(answer.tokens(c).size());
    has_report = has_report || num_tokens > 0 || answer.ended(c);
    summary.generated_tokens += num_tokens;
    summary.longest_answer = std::max<uint64_t>(summary.longest_answer, num_tokens);
    summary.finish_reasons.emplace_back(ReasonWord(answer, c));
    for (uint32_t i = 1; i < num_tokens; ++i)
      summary.token_gaps_s.push_back(
          static_cast<float>(answer.token_seconds(c, i) - answer.token_seconds(c, i - 1)));
    if (num_tokens == 0) continue;
    const double first = answer.token_seconds(c, 0), last = answer.token_seconds(c, num_tokens - 1);
    summary.decode_seconds = std::max(summary.decode_seconds, last - first);
    if (summary.first_token_seconds < 0) summary.first_token_seconds = first;
  }
  summary.num_preemptions += answer.num_preemptions();
  if (!has_report) return;
  const PromptReport& prompt = answer.prompt();
  summary.cached_tokens += prompt.num_cached;
  summary.queue_seconds = std::max(summary.queue_seconds, prompt.queue_seconds);
}

}  // namespace

CallSummary Summarise(const LiveCall& call, int status, const std::string& error_code) {
  CallSummary summary = {.request_id = call.id,
                         .key_name = call.client.key_name,
                         .tenant = call.client.tenant,
                         .endpoint = call.endpoint,
                         .status = status,
                         .error_code = error_code,
                         .total_seconds = SecondsSince(call.start)};
  if (call.writer == nullptr) {
    summary.phase = "queued";
    return summary;
  }
  const GenerationCall& asked = call.writer->call();
  summary.is_stream = asked.stream;
  summary.ignored_fields = asked.ignored_fields;
  summary.num_prompts = static_cast<uint32_t>(asked.prompts.size());
  summary.num_choices = asked.num_choices;
  summary.max_tokens = asked.max_tokens;
  summary.read_seconds = std::chrono::duration<double>(call.submitted - call.start).count();
  for (const auto& prompt : asked.prompts) summary.prompt_tokens += prompt.size();
  for (const auto& answer : call.writer->answers()) AddAnswer(*answer, summary);
  const auto& answers = call.writer->answers();
  if (!answers.empty() && (summary.first_token_seconds >= 0 || answers[0]->ended(0)))
    summary.match_stop = answers[0]->prompt().match_stop;
  summary.phase = summary.generated_tokens > 0 ? "decode" : "prefill";
  return summary;
}

}  // namespace quire
