#include "server/api/event_stream.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

// One event holds at most so much, so that a slow reader's backlog is sent in parts: what is
// buffered for a client stays small, however long the answer is.
constexpr size_t kMaxEventTextBytes = 4096;
constexpr uint32_t kMaxEventTokens = 512;
constexpr uint32_t kMaxEventTokensWithLogprobs = 16;

constexpr std::string_view kEventStart = "data: ";
constexpr std::string_view kEventEnd = "\n\n";
constexpr std::string_view kChunkEnd = "}\n\n";
constexpr std::string_view kDone = "data: [DONE]\n\n";

}  // namespace

EventStream::EventStream(const AnswerJson* json, std::chrono::milliseconds progress_interval)
    : json_(json), progress_interval_(progress_interval) {
  const GenerationCall& call = json_->call();
  QUIRE_CHECK(call.num_sampled == call.num_choices);
  has_report_.resize(call.prompts.size());
  for (const auto& prompt : call.prompts) taken_.prompt_tokens += prompt.size();
  choices_.reserve(call.prompts.size() * call.num_choices);
  for (uint32_t prompt = 0; prompt < call.prompts.size(); ++prompt)
    for (uint32_t choice = 0; choice < call.num_choices; ++choice)
      choices_.push_back(json_->NewChoice(prompt, choice, prompt * call.num_choices + choice));
}

bool EventStream::MayEnd(const AnswerNotes& notes) const {
  return !notes.holds_end || num_ended_ + 1 < choices_.size();
}

bool EventStream::HasNews(const ToldChoice& told, const AnswerNotes& notes) const {
  if (told.has_ended) return false;
  const Answer& answer = json_->AnswerOf(told);
  return (MayEnd(notes) && answer.ended(told.choice)) ||
         answer.tokens(told.choice).size() > told.text.num_pushed();
}

bool EventStream::has_news() const {
  if (is_finished_) return false;
  return HasProgress() || std::ranges::any_of(choices_, [this](const ToldChoice& told) {
           return HasNews(told, {});
         });
}

std::string EventStream::NextEvent(const AnswerNotes& notes) {
  std::string event;
  const auto count = static_cast<uint32_t>(choices_.size());
  for (uint32_t i = 0; i < count && event.empty() && !is_finished_; ++i) {
    const uint32_t index = (next_ + i) % count;
    ToldChoice& told = choices_[index];
    while (event.empty() && HasNews(told, notes)) AppendNews(event, told, notes);
    if (!event.empty()) next_ = (index + 1) % count;
  }
  if (event.empty() && HasProgress()) AppendProgress(event, notes);
  if (!is_finished_ && num_ended_ == count) AppendEnd(event, notes);
  return event;
}

std::string EventStream::ErrorEvent(const ApiError& error) {
  std::string event;
  AppendError(event, error);
  return event;
}

void EventStream::AppendNews(std::string& event, ToldChoice& told, const AnswerNotes& notes) {
  const Answer& answer = json_->AnswerOf(told);
  // In this order: after the end come no tokens.
  const bool has_ended = MayEnd(notes) && answer.ended(told.choice);
  const std::span<const TokenId> tokens = answer.tokens(told.choice);
  const bool has_logprobs = json_->call().logprobs.has_value();
  const size_t most =
      told.text.num_pushed() + (has_logprobs ? kMaxEventTokensWithLogprobs : kMaxEventTokens);
  const uint32_t num_before = told.text.num_pushed();
  std::string text;
  while (told.text.num_pushed() < std::min(tokens.size(), most) && text.size() < kMaxEventTextBytes)
    told.text.Push(tokens[told.text.num_pushed()], text);
  std::optional<ApiError> error;
  if (has_ended && told.text.num_pushed() == tokens.size()) {
    error = AnswerJson::ErrorOf(answer, told.choice);
    if (!error.has_value()) told.text.Finish(text);
    told.has_ended = true;
    ++num_ended_;
  }
  CountTaken(told, told.text.num_pushed() - num_before);
  const bool has_finish = told.has_ended && !error.has_value();
  const uint32_t end = told.text.num_told();
  if (json_->is_chat()) {
    if (!told.has_begun && (has_finish || !tokens.empty())) AppendRole(event, told, notes);
    AppendChatDelta(event, told, text, end, notes);
    if (has_finish) AppendChatFinish(event, told, notes);
  } else if (has_finish || !tokens.empty()) {
    AppendCompletionDelta(event, told, text, end, has_finish, notes);
  }
  told.has_begun = true;
  has_begun_ = true;
  told.num_told = end;
  if (error.has_value()) AppendError(event, *error);
}

void EventStream::CountTaken(const ToldChoice& told, uint64_t num_tokens) {
  const Answer& answer = json_->AnswerOf(told);
  taken_.completion_tokens += num_tokens;
  if (told.has_ended && answer.stop_token(told.choice).has_value()) ++taken_.completion_tokens;
  if (has_report_[told.prompt]) return;
  has_report_[told.prompt] = true;
  taken_.cached_tokens += answer.prompt().num_cached;
  taken_.cache_write_tokens += answer.prompt().num_inserted;
}

void EventStream::AppendChoiceHead(std::string& event, const ToldChoice& told) const {
  event += json_->head();
  event += "{\"index\":";
  AppendJsonInteger(event, told.index);
}

bool EventStream::is_last_chunk() const {
  return num_ended_ == choices_.size() && !json_->call().include_usage;
}

void EventStream::AppendChunkEnd(std::string& event, const AnswerNotes& notes,
                                 bool has_costs) const {
  event += ']';
  if (json_->call().continuous_usage) {
    event += ",\"usage\":";
    AppendUsage(event, taken_);
  } else if (json_->call().include_usage) {
    event += ",\"usage\":null";
  }
  if (has_costs) json_->AppendCosts(event, CostsOf(json_->answers()), notes);
  event += kChunkEnd;
}

void EventStream::AppendRole(std::string& event, const ToldChoice& told,
                             const AnswerNotes& notes) const {
  AppendChoiceHead(event, told);
  event += ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null";
  event += ",\"finish_reason\":null";
  json_->AppendIds(event, "prompt_token_ids", json_->call().prompts[told.prompt]);
  event += '}';
  AppendChunkEnd(event, notes, /*has_costs=*/false);
}

void EventStream::AppendChatDelta(std::string& event, const ToldChoice& told, std::string_view text,
                                  uint32_t end, const AnswerNotes& notes) const {
  const GenerationCall& call = json_->call();
  const bool tells_tokens = call.logprobs.has_value() || call.return_token_ids;
  if (text.empty() && !(tells_tokens && end > told.num_told)) return;
  AppendChoiceHead(event, told);
  event += ",\"delta\":{\"content\":";
  AppendJsonString(event, text);
  event += '}';
  json_->AppendLogprobs(event, told, told.num_told, end, /*starts_choice=*/false);
  event += ",\"finish_reason\":null";
  json_->AppendIds(
      event, "token_ids",
      json_->AnswerOf(told).tokens(told.choice).subspan(told.num_told, end - told.num_told));
  event += '}';
  AppendChunkEnd(event, notes, /*has_costs=*/false);
}

void EventStream::AppendChatFinish(std::string& event, const ToldChoice& told,
                                   const AnswerNotes& notes) const {
  AppendChoiceHead(event, told);
  event += ",\"delta\":{},\"logprobs\":null";
  json_->AppendFinish(event, told);
  event += '}';
  AppendChunkEnd(event, notes, is_last_chunk());
}

void EventStream::AppendCompletionDelta(std::string& event, const ToldChoice& told,
                                        std::string_view text, uint32_t end, bool has_finish,
                                        const AnswerNotes& notes) const {
  const GenerationCall& call = json_->call();
  const bool tells_tokens = call.logprobs.has_value() || call.return_token_ids;
  if (text.empty() && !(tells_tokens && end > told.num_told) && told.has_begun && !has_finish)
    return;
  AppendChoiceHead(event, told);
  event += ",\"text\":\"";
  if (!told.has_begun) AppendJsonCharacters(event, json_->EchoOf(told.prompt));
  AppendJsonCharacters(event, text);
  event += '"';
  json_->AppendLogprobs(event, told, told.num_told, end, /*starts_choice=*/!told.has_begun);
  if (has_finish) {
    json_->AppendFinish(event, told);
  } else {
    event += ",\"finish_reason\":null";
  }
  if (!told.has_begun) json_->AppendIds(event, "prompt_token_ids", call.prompts[told.prompt]);
  json_->AppendIds(
      event, "token_ids",
      json_->AnswerOf(told).tokens(told.choice).subspan(told.num_told, end - told.num_told));
  event += '}';
  AppendChunkEnd(event, notes, has_finish && is_last_chunk());
}

bool EventStream::HasProgress() const {
  if (!json_->call().return_progress || has_begun_) return false;
  if (std::chrono::steady_clock::now() - progress_told_at_ < progress_interval_) return false;
  uint64_t num_computed = 0;
  for (const auto& answer : json_->answers()) num_computed += answer->num_prompt_computed();
  return num_computed > progress_told_;
}

void EventStream::AppendProgress(std::string& event, const AnswerNotes& notes) {
  uint64_t total = 0, cached = 0, processed = 0;
  double seconds = 0;
  for (const auto& answer : json_->answers()) {
    total += answer->prompt().prompt_len;
    if (answer->phase() == AnswerPhase::kQueued) continue;
    cached += answer->num_cached();
    processed += answer->num_prompt_computed();
    seconds = std::max(seconds, answer->SecondsSinceSubmit() - answer->prompt().queue_seconds);
  }
  progress_told_ = processed;
  progress_told_at_ = std::chrono::steady_clock::now();
  event += json_->head();
  AppendChunkEnd(event, notes, /*has_costs=*/false);
  event.resize(event.size() - kChunkEnd.size());
  event += ",\"prompt_progress\":{\"total\":";
  AppendJsonInteger(event, static_cast<int64_t>(total));
  event += ",\"cache\":";
  AppendJsonInteger(event, static_cast<int64_t>(cached));
  event += ",\"processed\":";
  AppendJsonInteger(event, static_cast<int64_t>(processed));
  event += ",\"time_ms\":";
  AppendJsonInteger(event, static_cast<int64_t>(seconds * 1e3));
  event += '}';
  event += kChunkEnd;
}

void EventStream::AppendError(std::string& event, const ApiError& error) {
  event += kEventStart;
  event += ToJson(error);
  event += kEventEnd;
  event += kDone;
  is_finished_ = true;
  for (const auto& answer : json_->answers()) answer->Abort();
}

void EventStream::AppendEnd(std::string& event, const AnswerNotes& notes) {
  if (json_->call().include_usage) {
    const CallCosts costs = CostsOf(json_->answers());
    event += json_->head();
    event += "],\"usage\":";
    AppendUsage(event, costs);
    json_->AppendCosts(event, costs, notes);
    event += '}';
    event += kEventEnd;
  }
  event += kDone;
  is_finished_ = true;
}

}  // namespace quire
