#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/errors.h"
#include "text/byte_alphabet.h"
#include "text/byte_token.h"
#include "text/pretokenizer_patterns.h"

namespace quire {
namespace {

// Answers end with these, whatever the file calls its end token: a chat model often has one for the
// end of a message beside one for the end of a text.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "</s>",
                                          "<|eom_id|>",
                                          "<eos>",
                                          "<|end_of_text|>",
                                          "<EOT>",
                                          "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

Status CheckId(const char* name, std::optional<TokenId> id, size_t num_tokens) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < num_tokens)) return OkStatus();
  return InvalidFile("tokenizer.ggml.{} is {}, but the vocabulary has {} tokens", name, *id,
                     num_tokens);
}

Status Check(const Vocabulary& v) {
  const size_t num_tokens = v.tokens.size();
  if (num_tokens == 0) return InvalidFile("tokenizer.ggml.tokens is empty");
  if (num_tokens > INT32_MAX) return InvalidFile("{} tokens are too many", num_tokens);
  if (!v.types.empty() && v.types.size() != num_tokens) {
    return InvalidFile("{} token types for {} tokens", v.types.size(), num_tokens);
  }
  if (v.kind == VocabularyKind::kSpm && v.scores.size() != num_tokens) {
    return InvalidFile("{} token scores for {} tokens", v.scores.size(), num_tokens);
  }
  QUIRE_RETURN_IF_ERROR(CheckId("bos_token_id", v.bos, num_tokens));
  QUIRE_RETURN_IF_ERROR(CheckId("eos_token_id", v.eos, num_tokens));
  QUIRE_RETURN_IF_ERROR(CheckId("eot_token_id", v.eot, num_tokens));
  QUIRE_RETURN_IF_ERROR(CheckId("eom_token_id", v.eom, num_tokens));
  QUIRE_RETURN_IF_ERROR(CheckId("unknown_token_id", v.unknown, num_tokens));
  QUIRE_RETURN_IF_ERROR(CheckId("padding_token_id", v.padding, num_tokens));
  return OkStatus();
}

// The bytes of a byte-pair token. A character that stands for no byte stands for itself.
std::string BytesOfCharacters(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    size_t length = 0;
    const int byte = ByteOfCharacter(text, &length);
    if (byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      bytes += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return bytes;
}

std::string WithSpaces(std::string_view text) {
  std::string spaced;
  for (size_t at = text.find(kSpmSpace); at != text.npos; at = text.find(kSpmSpace)) {
    spaced += text.substr(0, at);
    spaced += ' ';
    text.remove_prefix(at + kSpmSpace.size());
  }
  spaced += text;
  return spaced;
}

// Where `text` goes on after the special token `token`, which ends at `end`, in a vocabulary that
// drops white space there. Tokens that stand between texts, not between parts of a chat, keep it.
size_t EndWithSpace(std::string_view token, std::string_view text, size_t end, size_t limit) {
  if (token == "<unk>" || token == "<s>" || token == "<|endoftext|>") return end;
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  while (end < limit && kSpaces.find(text[end]) != kSpaces.npos) ++end;
  return end;
}

// Sorted, and joined where they overlap.
StatusOr<std::vector<ByteRange>> Sorted(std::span<const ByteRange> ranges, size_t text_bytes) {
  std::vector<ByteRange> sorted;
  for (const ByteRange& range : ranges) {
    if (range.begin > range.end || range.end > text_bytes) {
      return InvalidArgument("the plain range [{}, {}) is not inside a text of {} bytes",
                             range.begin, range.end, text_bytes);
    }
    if (range.begin < range.end) sorted.push_back(range);
  }
  std::ranges::sort(sorted, {}, &ByteRange::begin);
  size_t count = 0;
  for (const ByteRange& range : sorted) {
    if (count > 0 && range.begin <= sorted[count - 1].end) {
      sorted[count - 1].end = std::max(sorted[count - 1].end, range.end);
    } else {
      sorted[count++] = range;
    }
  }
  sorted.resize(count);
  return sorted;
}

}  // namespace

StatusOr<Tokenizer> Tokenizer::Create(Vocabulary vocabulary) {
  if (vocabulary.kind == VocabularyKind::kNone) {
    return Tokenizer(std::move(vocabulary), std::monostate());
  }
  QUIRE_RETURN_IF_ERROR(Check(vocabulary));
  if (vocabulary.kind == VocabularyKind::kSpm) {
    SpmEncoder encoder = SpmEncoder::Create(vocabulary);
    return Tokenizer(std::move(vocabulary), std::move(encoder));
  }
  QUIRE_ASSIGN_OR_RETURN(BpeEncoder encoder, BpeEncoder::Create(vocabulary));
  return Tokenizer(std::move(vocabulary), std::move(encoder));
}

Tokenizer::Tokenizer(Vocabulary vocabulary, Encoder encoder)
    : vocabulary_(std::move(vocabulary)),
      encoder_(std::move(encoder)),
      special_tokens_(vocabulary_) {
  vocabulary_.merges = {};
  if (!has_text()) return;
  const bool is_spm = vocabulary_.kind == VocabularyKind::kSpm;
  const auto* rule = is_spm ? nullptr : FindPretokenizerRule(vocabulary_.pre);
  const bool bos_by_default = is_spm || (rule != nullptr && rule->adds_bos);
  add_bos_ = vocabulary_.add_bos.value_or(bos_by_default) && vocabulary_.bos;
  add_eos_ = vocabulary_.add_eos.value_or(false) && vocabulary_.eos;
  add_space_prefix_ = is_spm && vocabulary_.add_space_prefix.value_or(true);

  for (const auto& id : {vocabulary_.eos, vocabulary_.eot, vocabulary_.eom}) {
    if (id) end_of_generation_.push_back(*id);
  }
  for (size_t i = 0; i < num_tokens(); ++i) {
    const std::string_view text = vocabulary_.tokens[i];
    if (text.size() < 4 || text[0] != '<') continue;
    if (std::ranges::find(kEndTexts, text) == std::end(kEndTexts)) continue;
    // "</s>" is also a tag of HTML: as a user-defined token it is text (Phi-3).
    const auto id = static_cast<TokenId>(i);
    if (text == "</s>" && Type(id) == TokenType::kUserDefined) continue;
    end_of_generation_.push_back(id);
  }
  std::ranges::sort(end_of_generation_);
  end_of_generation_.erase(std::unique(end_of_generation_.begin(), end_of_generation_.end()),
                           end_of_generation_.end());
}

StatusOr<std::vector<TokenId>> Tokenizer::Encode(const MarkedText& text,
                                                 EncodeOptions options) const {
  return Encode(text.text, text.plain, options);
}

StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                 EncodeOptions options) const {
  return Encode(text, {}, options);
}

StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                 std::span<const ByteRange> plain,
                                                 EncodeOptions options) const {
  if (!has_text()) return Unsupported("the model has no vocabulary: give token ids, not text");
  if (text.size() > kMaxTextBytes) {
    return InvalidArgument("the text is too long: {} bytes, at most {} can be tokenised at once",
                           text.size(), kMaxTextBytes);
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<ByteRange> sorted, Sorted(plain, text.size()));
  const auto cuts = special_tokens_.Find(text, sorted, options.parse_special);

  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2 + cuts.size());
  if (options.add_special && add_bos_) ids.push_back(*vocabulary_.bos);
  // The text between special tokens, whichever the encoder; a space goes before each such piece,
  // since each is the first or follows a special token.
  const auto encode_all = [&](const auto& encode) {
    size_t at = 0;
    for (size_t i = 0; i < cuts.size(); ++i) {
      const SpecialTokens::Cut& cut = cuts[i];
      QUIRE_RETURN_IF_ERROR(encode(text.substr(at, cut.begin - at)));
      ids.push_back(cut.id);
      at = cut.end;
      if (!vocabulary_.drops_space_after_special) continue;
      at = EndWithSpace(Text(cut.id), text, at,
                        i + 1 < cuts.size() ? cuts[i + 1].begin : text.size());
    }
    return encode(text.substr(at));
  };
  if (const auto* bpe = std::get_if<BpeEncoder>(&encoder_)) {
    QUIRE_ASSIGN_OR_RETURN(BpeEncoder::Scratch scratch, BpeEncoder::Scratch::Create());
    QUIRE_RETURN_IF_ERROR(
        encode_all([&](std::string_view piece) { return bpe->Encode(piece, &scratch, &ids); }));
  } else if (const auto* spm = std::get_if<SpmEncoder>(&encoder_)) {
    SpmEncoder::Scratch scratch;
    QUIRE_RETURN_IF_ERROR(encode_all([&](std::string_view piece) {
      spm->Encode(piece, add_space_prefix_, &scratch, &ids);
      return OkStatus();
    }));
  }
  if (options.add_special && add_eos_) ids.push_back(*vocabulary_.eos);
  return ids;
}

std::string Tokenizer::Piece(TokenId id) const {
  if (!has_text()) return {};
  const std::string_view text = Text(id);
  switch (Type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
      return {};
    case TokenType::kUserDefined:
      return std::string(text);
    case TokenType::kByte:
      if (const auto byte = ByteOfToken(text)) return std::string(1, static_cast<char>(*byte));
      return std::string(text);
    case TokenType::kUndefined:
    case TokenType::kNormal:
    case TokenType::kUnused:
      break;
  }
  if (vocabulary_.kind == VocabularyKind::kBpe) return BytesOfCharacters(text);
  if (vocabulary_.types.empty()) {
    if (const auto byte = ByteOfToken(text)) return std::string(1, static_cast<char>(*byte));
  }
  return WithSpaces(text);
}

bool Tokenizer::IsEndOfGeneration(TokenId id) const {
  return std::ranges::binary_search(end_of_generation_, id);
}

}  // namespace quire
