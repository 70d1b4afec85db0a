#include "text/special_tokens.h"

#include <algorithm>

namespace quire {
namespace {

bool Touches(std::span<const ByteRange> plain, size_t begin, size_t end) {
  const auto range = std::partition_point(plain.begin(), plain.end(),
                                          [&](const ByteRange& r) { return r.end <= begin; });
  return range != plain.end() && range->begin < end;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) : nodes_(1) {
  for (size_t i = 0; i < vocabulary.types.size(); ++i) {
    const TokenType type = vocabulary.types[i];
    const bool user_defined = type == TokenType::kUserDefined;
    if (user_defined || type == TokenType::kControl || type == TokenType::kUnknown) {
      Add(vocabulary.tokens[i], static_cast<TokenId>(i), user_defined);
    }
  }
}

void SpecialTokens::Add(std::string_view text, TokenId id, bool user_defined) {
  if (text.empty()) return;
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    uint32_t child = Child(node, byte);
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.byte = byte});
      if (node == 0) {
        first_[byte] = child;
      } else {
        nodes_[child].sibling = nodes_[node].first_child;
        nodes_[node].first_child = child;
      }
    }
    node = child;
  }
  if (nodes_[node].id >= 0) return;  // a duplicate: the lower number stays
  nodes_[node].id = id;
  nodes_[node].user_defined = user_defined;
}

uint32_t SpecialTokens::Child(uint32_t node, uint8_t byte) const {
  if (node == 0) return first_[byte];
  uint32_t child = nodes_[node].first_child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

SpecialTokens::Cut SpecialTokens::Longest(const Request& request, size_t begin,
                                          size_t max_length) const {
  Cut longest{begin, begin, -1};
  uint32_t node = 0;
  const size_t end = begin + std::min(max_length, request.text.size() - begin);
  for (size_t at = begin; at < end; ++at) {
    node = Child(node, static_cast<uint8_t>(request.text[at]));
    if (node == 0) break;
    const Node& found = nodes_[node];
    if (found.id < 0) continue;
    if (!found.user_defined && (!request.parse_special || Touches(request.plain, begin, at + 1))) {
      continue;
    }
    longest = {begin, at + 1, found.id};
  }
  return longest;
}

std::vector<SpecialTokens::Cut> SpecialTokens::Find(std::string_view text,
                                                    std::span<const ByteRange> plain,
                                                    bool parse_special) const {
  const Request request{text, plain, parse_special};
  // by_length[n]: cuts of n bytes that are still possible. At each place only the longest is
  // listed; the next shorter one takes its turn when that one meets a longer token.
  std::vector<std::vector<Cut>> by_length;
  const auto list = [&](const Cut& cut) {
    const size_t length = cut.end - cut.begin;
    if (by_length.size() <= length) by_length.resize(length + 1);
    by_length[length].push_back(cut);
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (first_[static_cast<uint8_t>(text[at])] == 0) continue;
    const Cut cut = Longest(request, at, text.size());
    if (cut.end > at) list(cut);
  }
  std::vector<Cut> taken;
  if (by_length.empty()) return taken;

  // Any token taken so far is at least as long as the one at hand, so it overlaps that one exactly
  // where it covers its first or its last byte.
  std::vector<bool> covered(text.size());
  for (size_t length = by_length.size() - 1; length > 0; --length) {
    std::vector<Cut> cuts = std::move(by_length[length]);
    std::ranges::sort(cuts, [](const Cut& a, const Cut& b) {
      return a.id != b.id ? a.id < b.id : a.begin < b.begin;
    });
    for (const Cut& cut : cuts) {
      if (covered[cut.begin]) continue;
      if (covered[cut.end - 1]) {
        const Cut shorter = Longest(request, cut.begin, length - 1);
        if (shorter.end > shorter.begin) list(shorter);
        continue;
      }
      std::fill(covered.begin() + static_cast<ptrdiff_t>(cut.begin),
                covered.begin() + static_cast<ptrdiff_t>(cut.end), true);
      taken.push_back(cut);
    }
  }
  std::ranges::sort(taken, {}, &Cut::begin);
  return taken;
}

}  // namespace quire
