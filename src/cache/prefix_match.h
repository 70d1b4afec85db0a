// How much of a prompt the prefix tree can give, and why not more.
//
// A match is whole pages, and after them an ended sequence's open page if the prompt goes on with
// all its tokens. A prefix of length L is usable if, for the next position that is computed,
//   - every full group has all its pages in the form that they are read in;
//   - every window group has those that the position sees;
//   - the page of that position is there in the open form, if it has tokens already.
// The last token of a prompt is always computed, since its logits are wanted: of a prompt that is
// cached whole, position L - 1. Page-wise codecs read that position's page open, which the tree
// has only of sinks and tails: so they compute the whole last page again.
//
// Threading: as the tree.
// Cost: O(pages of the prompt x log children).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cache/prefix_tree.h"

namespace quire {

enum class MatchStop {
  kWhole,         // the tree has all tokens
  kDiverged,      // the tree goes on with other tokens, or not at all
  kPageRounding,  // what is shared ends inside a page
  kEvicted,       // the next page was there (by its hash: a hint)
  kWindow,        // the tokens are there, the pages of a window group are not
  kNamespace,     // nothing is cached in this namespace
};
std::string_view MatchStopName(MatchStop stop);  // "diverged", "page_rounding", ...

struct PrefixMatch {
  uint32_t length = 0;    // tokens whose pages can be used
  NodeId node = kNoNode;  // of the last whole page of them; the root if there is none
  NodeId tail = kNoNode;  // the open page after it, if any
  MatchStop stop = MatchStop::kNamespace;
  uint32_t num_shared = 0;  // tokens that the tree has, usable or not: it stops at this one
};

// Changes nothing. Requires: tokens not empty.
PrefixMatch FindPrefix(const PrefixTree& tree, const KvShape& shape, NodeId root,
                       std::span<const TokenId> tokens);

}  // namespace quire
