#include "text/detokenizer.h"

#include <string_view>

#include "base/errors.h"
#include "text/utf8.h"

namespace quire {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

}  // namespace

Detokenizer::Detokenizer(const Tokenizer* tokenizer, DecodeOptions options)
    : tokenizer_(tokenizer),
      options_(options),
      strip_space_(options.starts_text && tokenizer->adds_space_prefix()) {}

StatusOr<std::string> Detokenizer::Push(TokenId id) {
  if (!tokenizer_->has_text()) return std::string();
  if (!tokenizer_->IsValid(id)) {
    return InvalidArgument("token id {} is not in the vocabulary: ids are 0..{}", id,
                           tokenizer_->num_tokens() - 1);
  }
  const TokenType type = tokenizer_->Type(id);
  if (type == TokenType::kControl || type == TokenType::kUnknown) {
    if (!options_.show_special) return std::string();
    // Not part of the text, so the space in front of the text may still come.
    waiting_ += tokenizer_->Text(id);
    return Take(/*at_end=*/false);
  }
  std::string piece = tokenizer_->Piece(id);
  if (strip_space_ && !piece.empty()) {
    if (piece[0] == ' ') piece.erase(0, 1);
    strip_space_ = false;
  }
  waiting_ += piece;
  return Take(/*at_end=*/false);
}

std::string Detokenizer::Finish() { return Take(/*at_end=*/true); }

std::string Detokenizer::Take(bool at_end) {
  std::string taken;
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const size_t valid = ValidUtf8Length(rest);
    taken += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Step step = NextUtf8(rest);
    if (step.incomplete && !at_end) break;
    taken += kReplacement;
    rest.remove_prefix(step.length);
  }
  waiting_ = std::string(rest);
  return taken;
}

StatusOr<std::string> Decode(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                             DecodeOptions options) {
  Detokenizer detokenizer(&tokenizer, options);
  std::string text;
  for (const TokenId id : ids) {
    QUIRE_ASSIGN_OR_RETURN(const std::string part, detokenizer.Push(id));
    text += part;
  }
  return text + detokenizer.Finish();
}

}  // namespace quire
