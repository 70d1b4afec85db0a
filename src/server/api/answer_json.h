// AnswerJson: the parts that a call's whole answer and its events have in common, as JSON text.
//
// Which part goes out when is api/event_stream.h (streams) and api/answer_writer.h (whole answers).
//
// Threading: const access from one thread at a time (it reads Answers that the engine may write).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer.h"
#include "server/api/answer_notes.h"
#include "server/api/api_error.h"
#include "server/api/choice_text.h"
#include "server/api/generation_call.h"
#include "server/api/logprobs_json.h"
#include "server/api/served_model.h"
#include "server/api/usage_json.h"

namespace quire {

// "stop" or "length": typed clients know no others. Requires: an end of an answer.
std::string_view FinishWord(FinishReason reason);

// A choice that the client is told: `choice` of answers[prompt].
struct ToldChoice {
  uint32_t prompt = 0;
  uint32_t choice = 0;
  uint32_t index = 0;  // in the answer
  ChoiceText text;
  uint32_t num_told = 0;  // tokens that went out
  bool has_begun = false;
  bool has_ended = false;
};

class AnswerJson {
 public:
  // The model must outlive it. Requires: an answer for each prompt.
  AnswerJson(const ServedModel* model, GenerationCall call,
             std::vector<std::shared_ptr<Answer>> answers);

  const GenerationCall& call() const { return call_; }
  const std::vector<std::shared_ptr<Answer>>& answers() const { return answers_; }
  bool is_chat() const { return call_.form == ApiForm::kChat; }
  const Answer& AnswerOf(const ToldChoice& told) const { return *answers_[told.prompt]; }

  ToldChoice NewChoice(uint32_t prompt, uint32_t choice, uint32_t index) const;
  // What ended the choice, if that was no end of an answer. Requires: it has ended.
  static std::optional<ApiError> ErrorOf(const Answer& answer, uint32_t choice);
  // The text that stands before the answer.
  std::string_view EchoOf(uint32_t prompt) const;

  // From the start of an event, or of the whole answer, up to the first choice: always the same.
  const std::string& head() const { return head_; }
  // The rest begins with a comma.
  // finish_reason and stop_reason. Requires: it has ended without an error, its text too.
  void AppendFinish(std::string& json, const ToldChoice& told) const;
  // Of the tokens [begin, end) of the choice, or null. `starts_choice`: the echoed prompt's
  // tokens stand in front of them, if there is an echo.
  void AppendLogprobs(std::string& json, const ToldChoice& told, uint32_t begin, uint32_t end,
                      bool starts_choice) const;
  // With prompt_logprobs. Requires that the prompt is computed.
  void AppendPromptLogprobs(std::string& json, uint32_t prompt) const;
  // With return_token_ids.
  void AppendIds(std::string& json, std::string_view key, std::span<const TokenId> ids) const;
  // timings and quire.
  void AppendCosts(std::string& json, const CallCosts& costs, const AnswerNotes& notes) const;

 private:
  // Of the whole prompt.
  std::vector<ToldToken> PromptTokens(uint32_t prompt) const;

  const ServedModel* model_;
  GenerationCall call_;
  std::vector<std::shared_ptr<Answer>> answers_;
  std::string head_;
};

}  // namespace quire
