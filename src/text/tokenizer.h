// Tokenizer: text to token ids, as the model's vocabulary says.
//
// Special tokens are cut out first (text/special_tokens.h), the text between them goes to
// text/bpe_encoder.h or text/spm_encoder.h. Ids to text is text/detokenizer.h. A vocabulary without
// text (has_text() is false) encodes nothing.
//
// Any bytes can be encoded. Where the vocabulary has all bytes, what is not UTF-8 comes back byte
// for byte from the tokens' pieces. (White space that the vocabulary drops after special tokens
// does not.)
//
// Threads: immutable; const access from any thread. Owner: keeps the vocabulary's memory alive.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/bpe_encoder.h"
#include "text/marked_text.h"
#include "text/special_tokens.h"
#include "text/spm_encoder.h"
#include "text/vocabulary.h"

namespace quire {

struct EncodeOptions {
  bool add_special = false;    // BOS and EOS, where the vocabulary wants them
  bool parse_special = false;  // texts of control tokens become those, outside plain ranges
};

class Tokenizer {
 public:
  // Longer texts are refused before any work: the longest contexts hold some 10 million tokens,
  // and one word of this size needs 40 times its bytes to be merged.
  static constexpr size_t kMaxTextBytes = size_t{128} << 20;

  // Errors: kInvalidFile for a vocabulary that contradicts itself, kUnsupported for a pre-tokenizer
  // that is not known.
  static StatusOr<Tokenizer> Create(Vocabulary vocabulary);

  // The marks cut nothing: without special tokens in it, a text gives the same ids however it is
  // marked. Errors: kInvalidArgument for a text that is too long or a range outside it,
  // kUnsupported without text.
  StatusOr<std::vector<TokenId>> Encode(const MarkedText& text, EncodeOptions options) const;
  StatusOr<std::vector<TokenId>> Encode(std::string_view text, EncodeOptions options) const;
  StatusOr<std::vector<TokenId>> Encode(std::string_view text, std::span<const ByteRange> plain,
                                        EncodeOptions options) const;

  bool has_text() const { return vocabulary_.kind != VocabularyKind::kNone; }
  size_t num_tokens() const { return vocabulary_.tokens.size(); }
  std::optional<TokenId> bos() const { return vocabulary_.bos; }
  std::optional<TokenId> eos() const { return vocabulary_.eos; }
  std::optional<TokenId> unknown() const { return vocabulary_.unknown; }
  std::optional<TokenId> padding() const { return vocabulary_.padding; }
  bool adds_bos() const { return add_bos_; }
  bool adds_eos() const { return add_eos_; }
  bool adds_space_prefix() const { return add_space_prefix_; }
  const std::optional<std::string>& chat_template() const { return vocabulary_.chat_template; }

  bool IsValid(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < num_tokens(); }
  // Requires for the rest: IsValid(id).

  // The token's text as the vocabulary writes it ("<0x0A>", "\u2581the").
  std::string_view Text(TokenId id) const { return vocabulary_.tokens[id]; }
  TokenType Type(TokenId id) const {
    return vocabulary_.types.empty() ? TokenType::kNormal : vocabulary_.types[id];
  }
  // The bytes that the token stands for, part of a character perhaps; empty for control and unknown
  // tokens and without text.
  std::string Piece(TokenId id) const;

  // Does an answer end with this token?
  bool IsEndOfGeneration(TokenId id) const;
  // All such tokens, ascending.
  std::span<const TokenId> end_of_generation() const { return end_of_generation_; }

 private:
  using Encoder = std::variant<std::monostate, BpeEncoder, SpmEncoder>;

  Tokenizer(Vocabulary vocabulary, Encoder encoder);

  Vocabulary vocabulary_;  // without merges
  Encoder encoder_;
  SpecialTokens special_tokens_;
  std::vector<TokenId> end_of_generation_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool add_space_prefix_ = false;
};

}  // namespace quire
