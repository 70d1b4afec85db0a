#include "text/spm_encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "text/byte_token.h"
#include "text/utf8.h"

namespace quire {
namespace {

// Orders scores as integers, the highest first; all are below Merge::kNoRank. NaN comes last.
uint32_t RankOfScore(float score) {
  if (std::isnan(score)) return Merge::kNoRank - 1;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // one zero
  constexpr uint32_t kSign = 0x80000000;
  return ~((bits & kSign) != 0 ? ~bits : bits | kSign);
}

// A character as a number; only equality counts.
uint64_t CharacterKey(std::string_view character) {
  uint64_t key = 0;
  for (const char c : character) key = key << 8 | static_cast<uint8_t>(c);
  return key;
}

}  // namespace

SpmEncoder SpmEncoder::Create(const Vocabulary& vocabulary) {
  SpmEncoder encoder(vocabulary.tokens.size());
  encoder.AddTokens(vocabulary);
  return encoder;
}

void SpmEncoder::AddTokens(const Vocabulary& vocabulary) {
  byte_tokens_.fill(TokenTable::kNone);
  unknown_ = vocabulary.unknown;
  ranks_.reserve(vocabulary.tokens.size());
  // 32 bits for each token: about one pair in 20 that stands in no token seems to.
  neighbours_.resize(std::bit_ceil(vocabulary.tokens.size() / 2 + 1));
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view token = vocabulary.tokens[i];
    const TokenType type = vocabulary.types.empty() ? TokenType::kUndefined : vocabulary.types[i];
    ranks_.push_back(RankOfScore(vocabulary.scores[i]));
    const auto byte = ByteOfToken(token);
    if (byte && (type == TokenType::kByte || vocabulary.types.empty())) {
      if (byte_tokens_[*byte] == TokenTable::kNone) byte_tokens_[*byte] = id;
      continue;
    }
    if (type == TokenType::kUnknown && !unknown_) unknown_ = id;
    // Words never become control tokens, whatever the scores say.
    if (token.empty() || type == TokenType::kControl || type == TokenType::kUnknown) continue;
    table_.Insert(token, id);
    max_token_bytes_ = std::max(max_token_bytes_, token.size());
    AddNeighbours(token);
  }
}

void SpmEncoder::AddNeighbours(std::string_view token) {
  std::string_view left = token.substr(0, NextUtf8(token).length);
  size_t at = left.size();
  while (at < token.size()) {
    const std::string_view right = token.substr(at, NextUtf8(token.substr(at)).length);
    const size_t bit = NeighbourBit(left, right);
    neighbours_[bit / 64] |= uint64_t{1} << bit % 64;
    left = right;
    at += right.size();
  }
}

size_t SpmEncoder::NeighbourBit(std::string_view left, std::string_view right) const {
  const uint64_t key = CharacterKey(left) << 32 | CharacterKey(right);
  return (key * 0x9E3779B97F4A7C15) >> 24 & (neighbours_.size() * 64 - 1);
}

bool SpmEncoder::CanMeet(std::string_view left, std::string_view right) const {
  const size_t bit = NeighbourBit(left, right);
  return (neighbours_[bit / 64] >> bit % 64 & 1) != 0;
}

void SpmEncoder::Encode(std::string_view text, bool space_prefix, Scratch* scratch,
                        std::vector<TokenId>* out) const {
  if (text.empty()) return;
  std::string& escaped = scratch->text;
  escaped.clear();
  escaped.reserve(text.size() + text.size() / 2);
  if (space_prefix) escaped += kSpmSpace;
  for (const char c : text) {
    if (c == ' ') {
      escaped += kSpmSpace;
    } else {
      escaped += c;
    }
  }

  // Two characters that stand side by side in no token are never joined: between them the text
  // falls into parts that do not know of each other, and most are short.
  scratch->units.clear();
  const std::string_view whole = escaped;
  std::string_view last;
  for (size_t at = 0; at < whole.size();) {
    const std::string_view character = whole.substr(at, NextUtf8(whole.substr(at)).length);
    if (!scratch->units.empty() && !CanMeet(last, character)) EncodeUnits(scratch, out);
    scratch->units.push_back(
        {static_cast<uint32_t>(at), static_cast<uint32_t>(character.size()), TokenTable::kNone});
    last = character;
    at += character.size();
  }
  EncodeUnits(scratch, out);
}

void SpmEncoder::EncodeUnits(Scratch* scratch, std::vector<TokenId>* out) const {
  const std::string_view text = scratch->text;
  scratch->merger.Run(
      [&](const Unit& left, const Unit& right) {
        const size_t length = size_t{left.length} + right.length;
        if (length > max_token_bytes_) return Merge();
        const TokenId id = table_.Find(text.substr(left.begin, length));
        return id == TokenTable::kNone ? Merge() : Merge{ranks_[id], id};
      },
      &scratch->units);
  for (const Unit& unit : scratch->units) {
    const std::string_view part = text.substr(unit.begin, unit.length);
    const TokenId id = unit.symbol != TokenTable::kNone ? unit.symbol : table_.Find(part);
    if (id != TokenTable::kNone) {
      out->push_back(id);
    } else {
      AppendUnknown(part, out);
    }
  }
  scratch->units.clear();
}

void SpmEncoder::AppendUnknown(std::string_view text, std::vector<TokenId>* out) const {
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<uint8_t>(c)]; };
  if (std::ranges::all_of(text, [&](char c) { return token_of(c) != TokenTable::kNone; })) {
    for (const char c : text) out->push_back(token_of(c));
  } else if (unknown_ && (out->empty() || out->back() != *unknown_)) {
    out->push_back(*unknown_);
  }
}

}  // namespace quire
