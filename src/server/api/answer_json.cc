#include "server/api/answer_json.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "base/check.h"
#include "server/api/json_text.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

// "chatcmpl-" and 24 hexadecimal digits.
std::string NewId(ApiForm form) {
  std::random_device random;
  std::string id = form == ApiForm::kChat ? "chatcmpl-" : "cmpl-";
  constexpr char kDigits[] = "0123456789abcdef";
  for (int word = 0; word < 3; ++word) {
    uint32_t bits = random();
    for (int i = 0; i < 8; ++i, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

std::string_view ObjectName(const GenerationCall& call) {
  if (call.form == ApiForm::kCompletions) return "text_completion";
  return call.stream ? "chat.completion.chunk" : "chat.completion";
}

int64_t Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

std::string_view FinishWord(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfAnswer:
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kMaxTokens:
    case FinishReason::kContextFull:
    case FinishReason::kMemoryFull:
      return "length";
    case FinishReason::kNone:
    case FinishReason::kCancelled:
    case FinishReason::kError:
      break;
  }
  QUIRE_CHECK(!"these have no word: AnswerJson::ErrorOf");
  return {};
}

AnswerJson::AnswerJson(const ServedModel* model, GenerationCall call,
                       std::vector<std::shared_ptr<Answer>> answers)
    : model_(model), call_(std::move(call)), answers_(std::move(answers)) {
  QUIRE_CHECK(answers_.size() == call_.prompts.size());
  QUIRE_CHECK(call_.num_sampled >= call_.num_choices);
  if (call_.stream) head_ = "data: ";
  head_ += "{\"id\":";
  AppendJsonString(head_, NewId(call_.form));
  head_ += ",\"object\":";
  AppendJsonString(head_, ObjectName(call_));
  head_ += ",\"created\":";
  AppendJsonInteger(head_, Now());
  head_ += ",\"model\":";
  AppendJsonString(head_, call_.model);
  head_ += ",\"system_fingerprint\":";
  AppendJsonString(head_, model_->system_fingerprint);
  head_ += ",\"choices\":[";
}

ToldChoice AnswerJson::NewChoice(uint32_t prompt, uint32_t choice, uint32_t index) const {
  const ChoiceText::Options options = {
      .shows_special = !call_.skips_special_tokens,
      .keeps_offsets = !is_chat() && call_.logprobs.has_value(),
      .offset = static_cast<uint32_t>(NumCodePoints(EchoOf(prompt)))};
  return {.prompt = prompt,
          .choice = choice,
          .index = index,
          .text = ChoiceText(model_->tokenizer, call_.sampling, options)};
}

std::optional<ApiError> AnswerJson::ErrorOf(const Answer& answer, uint32_t choice) {
  if (!answer.status(choice).ok()) return FromStatus(answer.status(choice));
  if (answer.finish_reason(choice) == FinishReason::kError) return InternalError();
  // Not of the 5xx: clients would ask again.
  if (answer.finish_reason(choice) == FinishReason::kCancelled)
    return ApiError{.code = "aborted", .message = "This server was told to end the request."};
  return {};
}

std::string_view AnswerJson::EchoOf(uint32_t prompt) const {
  return call_.echo ? std::string_view(call_.prompt_texts[prompt]) : std::string_view();
}

void AnswerJson::AppendFinish(std::string& json, const ToldChoice& told) const {
  const Answer& answer = AnswerOf(told);
  const std::optional<uint32_t> stop = told.text.stop_index();
  const FinishReason reason =
      stop.has_value() ? FinishReason::kStopString : answer.finish_reason(told.choice);
  json += ",\"finish_reason\":";
  AppendJsonString(json, FinishWord(reason));
  json += ",\"stop_reason\":";
  if (stop.has_value()) {
    AppendJsonString(json, call_.sampling.stop_strings[*stop]);
  } else if (reason == FinishReason::kStopToken) {
    AppendJsonInteger(json, *answer.stop_token(told.choice));
  } else {
    json += "null";
  }
}

std::vector<ToldToken> AnswerJson::PromptTokens(uint32_t prompt) const {
  const Answer& answer = *answers_[prompt];
  const std::vector<TokenId>& ids = call_.prompts[prompt];
  const auto echo_len = static_cast<uint32_t>(NumCodePoints(EchoOf(prompt)));
  const Tokenizer& tokenizer = *model_->tokenizer;
  Detokenizer detokenizer(&tokenizer, {.show_special = true});
  std::vector<ToldToken> tokens;
  tokens.reserve(ids.size());
  uint32_t offset = 0;
  for (uint32_t i = 0; i < ids.size(); ++i) {
    tokens.push_back({.id = ids[i], .offset = std::min(offset, echo_len)});
    if (i > 0 && i < answer.num_prompt_logprobs()) tokens[i].logprobs = answer.prompt_logprob(i);
    // A BOS that the tokenizer put in front is not in the text; what the client wrote is.
    if (i == 0 && ids[i] == tokenizer.bos() && !EchoOf(prompt).starts_with(tokenizer.Text(ids[i])))
      continue;
    const StatusOr<std::string> text = detokenizer.Push(ids[i]);
    if (text.ok()) offset += static_cast<uint32_t>(NumCodePoints(text.value()));
  }
  return tokens;
}

void AnswerJson::AppendLogprobs(std::string& json, const ToldChoice& told, uint32_t begin,
                                uint32_t end, bool starts_choice) const {
  json += ",\"logprobs\":";
  if (!call_.logprobs.has_value()) {
    json += "null";
    return;
  }
  const Answer& answer = AnswerOf(told);
  const std::span<const TokenId> ids = answer.tokens(told.choice);
  std::vector<ToldToken> tokens;
  if (starts_choice && call_.echo) tokens = PromptTokens(told.prompt);
  tokens.reserve(tokens.size() + end - begin);
  for (uint32_t i = begin; i < end; ++i) {
    tokens.push_back({.id = ids[i],
                      .logprobs = answer.logprobs(told.choice, i),
                      .offset = is_chat() ? 0 : told.text.offset(i)});
  }
  const LogprobsForm form = {.tokenizer = model_->tokenizer,
                             .num_top = *call_.logprobs,
                             .tokens_as_ids = call_.tokens_as_token_ids};
  if (is_chat()) {
    AppendChatLogprobs(json, tokens, form);
  } else {
    AppendCompletionLogprobs(json, tokens, form);
  }
}

void AnswerJson::AppendPromptLogprobs(std::string& json, uint32_t prompt) const {
  if (!call_.prompt_logprobs.has_value()) return;
  json += ",\"prompt_logprobs\":";
  quire::AppendPromptLogprobs(json, PromptTokens(prompt),
                              {.tokenizer = model_->tokenizer,
                               .num_top = *call_.prompt_logprobs,
                               .tokens_as_ids = call_.tokens_as_token_ids});
}

void AnswerJson::AppendIds(std::string& json, std::string_view key,
                           std::span<const TokenId> ids) const {
  if (!call_.return_token_ids) return;
  json += ',';
  AppendJsonString(json, key);
  json += ":[";
  for (const TokenId id : ids) {
    AppendJsonComma(json);
    AppendJsonInteger(json, id);
  }
  json += ']';
}

void AnswerJson::AppendCosts(std::string& json, const CallCosts& costs,
                             const AnswerNotes& notes) const {
  json += ",\"timings\":";
  AppendTimings(json, costs);
  json += ",\"quire\":";
  AppendQuire(json, costs, notes.retained_until);
}

}  // namespace quire
