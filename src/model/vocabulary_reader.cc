#include "model/vocabulary_reader.h"

#include <limits>
#include <utility>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr size_t kMaxTokens = size_t{1} << 24;

Status CheckLength(std::string_view key, size_t length, size_t num_tokens) {
  if (length == num_tokens) return OkStatus();
  return InvalidFile("key {} has {} values, but {} has {}", key, length, kTokensKey, num_tokens);
}

StatusOr<VocabularyKind> ReadKind(const GgufHeader& header) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view model, header.GetStringOr(kModelKey, "none"));
  if (model == "none" || model == "no_vocab") return VocabularyKind::kNone;
  if (model == "llama") return VocabularyKind::kSpm;
  if (model == "gpt2") return VocabularyKind::kBpe;
  return Unsupported("key {} is {}: this version has llama (SentencePiece) and gpt2 (byte pairs)",
                     kModelKey, Printable(model));
}

Status ReadTypes(const GgufHeader& header, Vocabulary& vocabulary) {
  if (header.FindKey(kTypesKey) == nullptr) return OkStatus();
  constexpr int32_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int32_t kHigh = std::numeric_limits<int32_t>::max();
  QUIRE_ASSIGN_OR_RETURN(const auto types, header.GetIntegers(kTypesKey, kLow, kHigh));
  QUIRE_RETURN_IF_ERROR(CheckLength(kTypesKey, types.size(), vocabulary.tokens.size()));
  constexpr auto kLast = static_cast<int32_t>(TokenType::kByte);
  vocabulary.types.reserve(types.size());
  for (const int32_t type : types)
    vocabulary.types.push_back(type >= 0 && type <= kLast ? static_cast<TokenType>(type)
                                                          : TokenType::kUndefined);
  return OkStatus();
}

Status ReadLists(const GgufHeader& header, Vocabulary& vocabulary) {
  QUIRE_ASSIGN_OR_RETURN(vocabulary.tokens, header.GetStrings(kTokensKey));
  const size_t num_tokens = vocabulary.tokens.size();
  if (num_tokens < 1 || num_tokens > kMaxTokens)
    return InvalidFile("key {} has {} tokens: need 1 to {}", kTokensKey, GroupDigits(num_tokens),
                       GroupDigits(kMaxTokens));
  QUIRE_RETURN_IF_ERROR(ReadTypes(header, vocabulary));
  if (vocabulary.kind == VocabularyKind::kBpe) {
    QUIRE_ASSIGN_OR_RETURN(vocabulary.merges, header.GetStrings(kMergesKey));
    return OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(vocabulary.scores, header.GetFloats(kScoresKey));
  return CheckLength(kScoresKey, vocabulary.scores.size(), num_tokens);
}

Status ReadId(const GgufHeader& header, std::string_view key, size_t num_tokens,
              std::optional<TokenId>& id) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, header.GetIntegerOr(key, -1, kLow, kHigh));
  if (value >= 0 && value < static_cast<int64_t>(num_tokens)) id = static_cast<TokenId>(value);
  return OkStatus();
}

Status ReadIds(const GgufHeader& header, Vocabulary& vocabulary) {
  const std::pair<std::string_view, std::optional<TokenId>*> ids[] = {
      {"tokenizer.ggml.bos_token_id", &vocabulary.bos},
      {"tokenizer.ggml.eos_token_id", &vocabulary.eos},
      {"tokenizer.ggml.eot_token_id", &vocabulary.eot},
      {"tokenizer.ggml.eom_token_id", &vocabulary.eom},
      {"tokenizer.ggml.unknown_token_id", &vocabulary.unknown},
      {"tokenizer.ggml.padding_token_id", &vocabulary.padding},
  };
  for (const auto& [key, id] : ids)
    QUIRE_RETURN_IF_ERROR(ReadId(header, key, vocabulary.tokens.size(), *id));
  return OkStatus();
}

// Phi-3's tokens drop the white space behind them; only the model's name tells.
StatusOr<bool> IsPhi3(const GgufHeader& header) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, header.GetStringOr("general.name", ""));
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("phi3") != lower.npos || lower.find("phi-3") != lower.npos ||
         lower.find("phi 3") != lower.npos;
}

Status ReadFlags(const GgufHeader& header, Vocabulary& vocabulary) {
  const std::pair<std::string_view, std::optional<bool>*> flags[] = {
      {"tokenizer.ggml.add_bos_token", &vocabulary.add_bos},
      {"tokenizer.ggml.add_eos_token", &vocabulary.add_eos},
      {"tokenizer.ggml.add_space_prefix", &vocabulary.add_space_prefix},
  };
  for (const auto& [key, flag] : flags) {
    if (header.FindKey(key) == nullptr) continue;
    QUIRE_ASSIGN_OR_RETURN(*flag, header.GetBool(key));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Vocabulary> ReadVocabulary(const GgufHeader& header, std::shared_ptr<const void> owner) {
  Vocabulary vocabulary;
  QUIRE_ASSIGN_OR_RETURN(vocabulary.kind, ReadKind(header));
  if (header.FindKey(kTemplateKey) != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const std::string_view text, header.GetString(kTemplateKey));
    vocabulary.chat_template = std::string(text);
  }
  if (vocabulary.kind == VocabularyKind::kNone) return vocabulary;
  QUIRE_ASSIGN_OR_RETURN(const std::string_view pre, header.GetStringOr(kPreKey, ""));
  vocabulary.pre = pre;
  QUIRE_RETURN_IF_ERROR(ReadLists(header, vocabulary));
  QUIRE_RETURN_IF_ERROR(ReadIds(header, vocabulary));
  QUIRE_RETURN_IF_ERROR(ReadFlags(header, vocabulary));
  if (vocabulary.kind == VocabularyKind::kSpm) {
    QUIRE_ASSIGN_OR_RETURN(vocabulary.drops_space_after_special, IsPhi3(header));
  }
  vocabulary.owner = std::move(owner);
  return vocabulary;
}

}  // namespace quire
