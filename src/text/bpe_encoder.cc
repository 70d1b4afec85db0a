#include "text/bpe_encoder.h"

#include <bit>
#include <deque>
#include <string>

#include "base/errors.h"
#include "text/byte_alphabet.h"
#include "text/pretokenizer_patterns.h"
#include "text/utf8.h"

namespace quire {
namespace {

// User-defined tokens are cut out of a text before, so no piece holds one: what looks like it here
// is a byte that is written with the same character. Control tokens are never made from words.
bool CanBeMerged(const Vocabulary& vocabulary, size_t id) {
  if (vocabulary.types.empty()) return true;
  const TokenType type = vocabulary.types[id];
  return type != TokenType::kControl && type != TokenType::kUnknown &&
         type != TokenType::kUserDefined;
}

}  // namespace

StatusOr<BpeEncoder> BpeEncoder::Create(const Vocabulary& vocabulary) {
  QUIRE_ASSIGN_OR_RETURN(Pretokenizer pretokenizer, Pretokenizer::Create(vocabulary.pre));
  BpeEncoder encoder(std::move(pretokenizer));
  encoder.num_tokens_ = static_cast<int32_t>(vocabulary.tokens.size());
  QUIRE_RETURN_IF_ERROR(encoder.AddMerges(vocabulary));
  if (FindPretokenizerRule(vocabulary.pre)->whole_tokens) encoder.AddWholeTokens(vocabulary);
  return encoder;
}

void BpeEncoder::AddWholeTokens(const Vocabulary& vocabulary) {
  size_t num_bytes = 0;
  for (const std::string_view token : vocabulary.tokens) num_bytes += token.size();
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(num_bytes);  // the table views what stands in it
  whole_tokens_.emplace(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (!CanBeMerged(vocabulary, i)) continue;
    const size_t begin = bytes->size();
    int byte = 0;
    for (std::string_view rest = vocabulary.tokens[i]; !rest.empty() && byte >= 0;) {
      size_t length = 0;
      byte = ByteOfCharacter(rest, &length);
      *bytes += static_cast<char>(byte);
      rest.remove_prefix(length);
    }
    if (byte < 0 || bytes->size() == begin) {
      bytes->resize(begin);  // no piece can be this token
    } else {
      whole_tokens_->Insert(std::string_view(*bytes).substr(begin), static_cast<TokenId>(i));
    }
  }
  whole_token_bytes_ = std::move(bytes);
}

Status BpeEncoder::AddMerges(const Vocabulary& vocabulary) {
  const auto& merges = vocabulary.merges;
  if (vocabulary.tokens.size() + 3 * merges.size() + 256 > INT32_MAX) {
    return InvalidFile("{} merges are too many for a vocabulary", merges.size());
  }
  // A merge adds no symbol if its three texts are tokens, as they are in any sound vocabulary.
  TokenTable symbols(vocabulary.tokens.size() + 256);
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (CanBeMerged(vocabulary, i)) symbols.Insert(vocabulary.tokens[i], static_cast<int32_t>(i));
  }
  std::deque<std::string> others;
  const auto symbol_of = [&](std::string_view text) {
    int32_t symbol = symbols.Find(text);
    if (symbol == TokenTable::kNone) {
      symbol = num_tokens_ + static_cast<int32_t>(others.size());
      symbols.Insert(others.emplace_back(text), symbol);
    }
    return symbol;
  };
  for (int byte = 0; byte < 256; ++byte) {
    byte_symbols_[byte] = symbol_of(ByteCharacter(static_cast<uint8_t>(byte)));
  }

  pairs_.resize(std::bit_ceil(2 * merges.size() + 1));
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const size_t space = merge.find(' ', 1);  // the left side may be a space, never empty
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return InvalidFile("merge {} is not two texts with a space between: '{}'", rank,
                         merge.substr(0, 64));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.assign(left);
    joined += right;
    const uint64_t key = uint64_t{static_cast<uint32_t>(symbol_of(left))} << 32 |
                         static_cast<uint32_t>(symbol_of(right));
    Pair& pair = pairs_[Locate(key)];
    if (pair.symbols == key) continue;  // listed twice: the first rank counts
    pair = {key, {static_cast<uint32_t>(rank), symbol_of(joined)}};
  }
  return OkStatus();
}

size_t BpeEncoder::Locate(uint64_t symbols) const {
  const size_t mask = pairs_.size() - 1;
  // Fibonacci hashing: the high bits of a product with 2^64 / golden ratio.
  size_t at = (symbols * 0x9E3779B97F4A7C15) >> 32 & mask;
  while (pairs_[at].symbols != kFree && pairs_[at].symbols != symbols) at = (at + 1) & mask;
  return at;
}

StatusOr<BpeEncoder::Scratch> BpeEncoder::Scratch::Create() {
  QUIRE_ASSIGN_OR_RETURN(Pretokenizer::Matcher matcher, Pretokenizer::Matcher::Create());
  return Scratch(std::move(matcher));
}

Status BpeEncoder::Encode(std::string_view text, Scratch* scratch,
                          std::vector<TokenId>* out) const {
  while (!text.empty()) {
    const size_t valid = ValidUtf8Length(text);
    QUIRE_RETURN_IF_ERROR(
        pretokenizer_.Split(text.substr(0, valid), &scratch->matcher_,
                            [&](std::string_view piece) { EncodePiece(piece, scratch, out); }));
    text.remove_prefix(valid);
    const size_t invalid = InvalidUtf8Length(text);
    EncodePiece(text.substr(0, invalid), scratch, out);
    text.remove_prefix(invalid);
  }
  return OkStatus();
}

void BpeEncoder::EncodePiece(std::string_view piece, Scratch* scratch,
                             std::vector<TokenId>* out) const {
  if (whole_tokens_) {
    if (const TokenId id = whole_tokens_->Find(piece); id != TokenTable::kNone) {
      out->push_back(id);
      return;
    }
  }
  std::vector<Unit>& units = scratch->units_;
  units.clear();
  for (uint32_t i = 0; i < piece.size(); ++i) {
    units.push_back({i, 1, byte_symbols_[static_cast<uint8_t>(piece[i])]});
  }
  scratch->merger_.Run(
      [this](const Unit& left, const Unit& right) {
        return pairs_[Locate(uint64_t{static_cast<uint32_t>(left.symbol)} << 32 |
                             static_cast<uint32_t>(right.symbol))]
            .merge;
      },
      &units);
  for (const Unit& unit : units) {
    if (unit.symbol < num_tokens_) {
      out->push_back(unit.symbol);
      continue;
    }
    for (const char c : piece.substr(unit.begin, unit.length)) {
      const int32_t symbol = byte_symbols_[static_cast<uint8_t>(c)];
      if (symbol < num_tokens_) out->push_back(symbol);
    }
  }
}

}  // namespace quire
