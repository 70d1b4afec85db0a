#include "server/api/prompt_text.h"

#include <fmt/format.h>

#include "server/api/call_fields.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

ApiError WrongPrompt(const std::string& param, const Json& value) {
  return InvalidValue(param,
                      fmt::format("{} is {}: need a string or a list of token ids, one kind in a "
                                  "list.",
                                  param, Shown(value)));
}

ApiError EmptyPrompt(const std::string& param) {
  return InvalidValue(param, fmt::format("{} has no tokens: send some text.", param));
}

}  // namespace

std::optional<ApiError> CheckTextBytes(const ServedModel& model, size_t num_bytes,
                                       const std::string& param) {
  if (num_bytes <= model.context_len) return {};  // no token stands for less than a byte
  const uint64_t longest = model.longest_token_bytes > 0 ? model.longest_token_bytes
                                                         : LongestTokenBytes(*model.tokenizer);
  const uint64_t least = (num_bytes + longest - 1) / longest;
  if (least <= model.context_len) return {};
  ApiError error = ContextLengthExceeded(least, model.context_len, param);
  error.message = fmt::format(
      "This model's maximum context length is {} tokens, but the request has at least "
      "{} tokens. Shorten the prompt.",
      model.context_len, least);
  return error;
}

ApiError WithParam(ApiError error, std::string param) {
  error.param = std::move(param);
  return error;
}

ApiResult<std::vector<TokenId>> EncodePrompt(const ServedModel& model, std::string_view text,
                                             std::span<const ByteRange> plain,
                                             EncodeOptions options, const std::string& param) {
  const Tokenizer& tokenizer = *model.tokenizer;
  if (!tokenizer.has_text())
    return UnsupportedParameter(param, "The model has no tokenizer: send token ids as prompt.");
  if (auto error = CheckTextBytes(model, text.size(), param)) return std::move(*error);
  StatusOr<std::vector<TokenId>> encoded = tokenizer.Encode(text, plain, options);
  if (!encoded.ok()) return WithParam(FromStatus(encoded.status()), param);
  std::vector<TokenId>& tokens = *encoded;
  const auto bos = tokenizer.bos();
  if (options.add_special && tokenizer.adds_bos() && bos && tokens.size() >= 2 &&
      tokens[0] == *bos && tokens[1] == *bos)
    tokens.erase(tokens.begin());
  return std::move(tokens);
}

ApiResult<std::vector<TokenId>> ReadTokenIds(const Json& list, const ServedModel& model,
                                             const std::string& param) {
  if (!list.is_array())
    return InvalidValue(param,
                        fmt::format("{} is {}: need a list of token ids.", param, Shown(list)));
  std::vector<TokenId> tokens;
  tokens.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<TokenId> id = TokenIdOf(list[i], model.vocab_size);
    if (!id)
      return InvalidValue(fmt::format("{}[{}]", param, i),
                          fmt::format("{}[{}] is {}: need a token id from 0 to {}.", param, i,
                                      Shown(list[i]), model.vocab_size - 1));
    tokens.push_back(*id);
  }
  return tokens;
}

std::optional<ApiError> CheckPromptLength(const std::vector<TokenId>& tokens,
                                          std::optional<uint32_t> max_tokens,
                                          const ServedModel& model, const std::string& param) {
  if (tokens.empty()) return EmptyPrompt(param);
  const size_t room = max_tokens == 0U ? 0 : 1;
  if (tokens.size() + room <= model.context_len) return {};
  return ContextLengthExceeded(tokens.size(), model.context_len, param);
}

size_t CountPrompts(const Json& prompt) {
  if (!prompt.is_array() || prompt.empty() || prompt[0].is_number()) return 1;
  return prompt.size();
}

ApiResult<ReadPrompts> ReadPromptField(const Json& prompt, const PromptOptions& options,
                                       const ServedModel& model) {
  ReadPrompts result;
  const bool is_ids = prompt.is_array() && !prompt.empty() && prompt[0].is_number();
  result.is_list = prompt.is_array() && !is_ids;
  const size_t num_prompts = CountPrompts(prompt);
  for (size_t i = 0; i < num_prompts; ++i) {
    const Json& item = result.is_list ? prompt[i] : prompt;
    const std::string param = result.is_list ? fmt::format("prompt[{}]", i) : "prompt";
    if (result.is_list && item.type() != prompt[0].type()) return WrongPrompt(param, item);
    if (!item.is_string() && !item.is_array()) return WrongPrompt(param, item);
    ApiResult<std::vector<TokenId>> tokens =
        item.is_string()
            ? EncodePrompt(model, item.get_ref<const std::string&>(), {},
                           {.add_special = options.add_special, .parse_special = true}, param)
            : ReadTokenIds(item, model, param);
    if (!tokens.ok()) return tokens.error();
    if (tokens.value().empty()) return EmptyPrompt(param);
    if (options.keeps_texts) {
      if (item.is_string()) {
        result.texts.push_back(item.get_ref<const std::string&>());
      } else {
        // Ids of logits that the tokenizer does not have give no text.
        std::vector<TokenId> known;
        for (const TokenId id : tokens.value())
          if (model.tokenizer->IsValid(id)) known.push_back(id);
        auto text = Decode(*model.tokenizer, known,
                           {.starts_text = true, .show_special = options.show_special});
        result.texts.push_back(text.ok() ? std::move(*text) : std::string());
      }
    }
    result.tokens.push_back(std::move(tokens.value()));
  }
  return result;
}

}  // namespace quire
