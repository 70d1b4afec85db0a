#include "server/api/call_exercise.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api/call_reader.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

bool IsAscii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

std::string FaultOfError(const ApiError& error) {
  if (error.status != 400 && error.status != 404) return fmt::format("status {}", error.status);
  const std::string text = ToJson(error);
  if (!IsAscii(text)) return "an error that is not ASCII";
  const Json body = Json::parse(text, nullptr, false);
  if (!body.is_object() || body.size() != 1 || !body.contains("error")) return "no error object";
  const Json& inner = body["error"];
  if (inner.size() != 4) return "an error with other keys";
  for (const char* key : {"message", "type", "code"})
    if (!inner.contains(key) || !inner[key].is_string() ||
        inner[key].get_ref<const std::string&>().empty())
      return fmt::format("an error without {}", key);
  if (inner["message"].get_ref<const std::string&>().size() > 1024) return "a long message";
  if (!inner.contains("param") || !(inner["param"].is_null() || inner["param"].is_string()))
    return "an error without param";
  return {};
}

std::string FaultOfPrompt(const std::vector<TokenId>& prompt, const ServedModel& model) {
  if (prompt.empty() || prompt.size() > model.context_len) return "a prompt of a wrong length";
  for (const TokenId id : prompt)
    if (id < 0 || static_cast<uint32_t>(id) >= model.vocab_size) return "a wrong token id";
  return {};
}

std::string FaultOf(const GenerationCall& call, const ServedModel& model) {
  if (call.prompts.empty()) return "no prompts";
  for (const auto& prompt : call.prompts)
    if (std::string fault = FaultOfPrompt(prompt, model); !fault.empty()) return fault;
  if (call.echo && call.prompt_texts.size() != call.prompts.size()) return "texts are missing";
  if (call.num_choices < 1 || call.num_choices > call.num_sampled || call.num_sampled > 128 ||
      call.prompts.size() * call.num_sampled > 1024)
    return "too many choices";
  if (call.logprobs.value_or(0) > 20 || call.prompt_logprobs.value_or(0) > 20)
    return "too many log-probabilities";
  if (call.retain.size() > 5) return "too much to keep";
  if (!model.IsServed(call.model)) return "a model that is not served";
  for (Request& request : ToRequests(call, "tenant")) {
    const Status status =
        request.sampling.Prepare(model.vocab_size, model.tokenizer->end_of_generation());
    if (!status.ok()) return "sampling that is refused: " + status.message();
  }
  return {};
}

template <class T, class Check>
CallOutcome Judge(const ApiResult<T>& result, const Check& check) {
  if (result.ok()) return {.fault = check(result.value()), .was_taken = true};
  return {.fault = FaultOfError(result.error())};
}

CallOutcome JudgeAnswer(const ApiResult<std::string>& answer) {
  return Judge(answer, [](const std::string& text) {
    return IsAscii(text) && Json::accept(text) ? std::string() : "an answer that is not JSON";
  });
}

}  // namespace

CallOutcome ExerciseCall(int kind, std::string_view body, const ServedModel& model) {
  const auto is_fine = [&](const GenerationCall& call) { return FaultOf(call, model); };
  switch (kind % kNumCallKinds) {
    case 0:
      return Judge(ReadChatCall(body, model), is_fine);
    case 1:
      return Judge(ReadCompletionCall(body, model), is_fine);
    case 2:
      return JudgeAnswer(AnswerTokenize(body, model));
    case 3:
      return JudgeAnswer(AnswerDetokenize(body, model));
    case 4:
      return JudgeAnswer(AnswerApplyTemplate(body, model));
    case 5:
      return JudgeAnswer(AnswerRender(ApiForm::kChat, body, model));
    case 6:
      return JudgeAnswer(AnswerRender(ApiForm::kCompletions, body, model));
    default: {
      const ApiResult<Json> object = ReadJsonObject(body);
      if (!object.ok()) return {.fault = FaultOfError(object.error())};
      return Judge(ReadPrompt(object.value(), model), [&](const std::vector<TokenId>& prompt) {
        return FaultOfPrompt(prompt, model);
      });
    }
  }
}

}  // namespace quire
