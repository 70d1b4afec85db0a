// The readers of request bodies: JSON text in, checked calls out.
//
// Reading rules (docs/server.md): one JSON object in UTF-8, depth at most 64, no key twice; null
// means absent; an integer may be written 16.0, not "16" or true; out of range or of a wrong type
// is an error with `param`; a field that nobody knows is ignored and named in ignored_fields (or
// refused, ServedModel::refuses_unknown_fields); a known field that can't be honoured is refused
// unless its value is neutral. Nothing that changes the output is dropped in silence.
//
// Threading: pure functions; any thread. They tokenise, so they take time for long prompts: the
// server calls them on its helper thread. Cost: O(body); counts (n, best_of) are checked before
// anything grows with them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/generation_call.h"
#include "server/api/json_reader.h"
#include "server/api/served_model.h"

namespace quire {

ApiResult<GenerationCall> ReadChatCall(std::string_view body, const ServedModel& model);
ApiResult<GenerationCall> ReadCompletionCall(std::string_view body, const ServedModel& model);

// POST /tokenize, /detokenize, /apply-template, /v1/.../render, GET /tokenizer_info, /v1/models and
// /v1/models/{id}: the JSON text of the answer.
ApiResult<std::string> AnswerTokenize(std::string_view body, const ServedModel& model);
ApiResult<std::string> AnswerDetokenize(std::string_view body, const ServedModel& model);
ApiResult<std::string> AnswerApplyTemplate(std::string_view body, const ServedModel& model);
ApiResult<std::string> AnswerRender(ApiForm form, std::string_view body, const ServedModel& model);
std::string AnswerTokenizerInfo(const ServedModel& model);
std::string AnswerModels(const ServedModel& model);
ApiResult<std::string> AnswerModel(const std::string& id, const ServedModel& model);

// `prompt`, `messages` or `token_ids` of the bodies under /quire/v1 (prefixes, match): tokens. Of
// messages without the start of an answer, unless add_generation_prompt is true.
ApiResult<std::vector<TokenId>> ReadPrompt(const nlohmann::ordered_json& object,
                                           const ServedModel& model);
// Does ReadPrompt read it? With `model`, which must be served.
bool IsPromptField(std::string_view name);

}  // namespace quire
