// SpecialTokens: where a text holds tokens that are found as a whole, before anything is merged.
//
// Longer tokens are taken first, wherever they stand; among equal lengths the lower number, then
// the leftmost place. User-defined tokens are found in any text. Control and unknown tokens are
// found only on request, and never where they touch a range of `plain`: words of a user's message
// are words.
//
// Threads: const access from any thread. Owner: holds no text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/marked_text.h"
#include "text/vocabulary.h"

namespace quire {

class SpecialTokens {
 public:
  struct Cut {
    size_t begin = 0;
    size_t end = 0;
    TokenId id = 0;
  };

  explicit SpecialTokens(const Vocabulary& vocabulary);

  // The special tokens in `text`, in order; they do not overlap. `plain` is sorted and its ranges
  // do not overlap. Cost: linear in the text for a given vocabulary.
  std::vector<Cut> Find(std::string_view text, std::span<const ByteRange> plain,
                        bool parse_special) const;

 private:
  // A tree of bytes: the children of a node are a list.
  struct Node {
    uint8_t byte = 0;
    bool user_defined = false;
    uint32_t first_child = 0;  // 0: none
    uint32_t sibling = 0;      // 0: none
    TokenId id = -1;           // of the token that ends here
  };
  struct Request {
    std::string_view text;
    std::span<const ByteRange> plain;
    bool parse_special = false;
  };

  void Add(std::string_view text, TokenId id, bool user_defined);
  uint32_t Child(uint32_t node, uint8_t byte) const;
  // The longest token at `begin` of at most `max_length` bytes that the request allows; an empty
  // cut if there is none.
  Cut Longest(const Request& request, size_t begin, size_t max_length) const;

  std::vector<Node> nodes_;            // nodes_[0] is the root
  std::array<uint32_t, 256> first_{};  // the root's children
};

}  // namespace quire
