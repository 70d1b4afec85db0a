// BpeEncoder: byte-pair encoding of text in which no special token is looked for.
//
// The pre-tokenizer cuts the text into pieces; within a piece the pair of neighbours that stands
// first in the list of merges is joined, until none is in the list. What is then no token falls
// apart into its bytes; bytes without a token are dropped. A run of bytes that are not UTF-8 is a
// piece. Some pre-tokenizers' names say that a piece that is a token is not merged at all.
//
// Threads: const access from any thread. Owner: keeps no view into the vocabulary.
// Source: Sennrich et al., ACL 2016, section 3.2, on bytes as in GPT-2.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/merger.h"
#include "text/pretokenizer.h"
#include "text/token_table.h"
#include "text/vocabulary.h"

namespace quire {

class BpeEncoder {
 public:
  // Errors: kUnsupported for an unknown pre-tokenizer, kInvalidFile for a merge without a space.
  static StatusOr<BpeEncoder> Create(const Vocabulary& vocabulary);

  // The encoder's working memory for one text.
  class Scratch {
   public:
    static StatusOr<Scratch> Create();

   private:
    friend class BpeEncoder;
    explicit Scratch(Pretokenizer::Matcher matcher) : matcher_(std::move(matcher)) {}
    Pretokenizer::Matcher matcher_;
    Merger merger_;
    std::vector<Unit> units_;
  };

  // Appends the ids of `text`. Requires: less than 4 GiB.
  Status Encode(std::string_view text, Scratch* scratch, std::vector<TokenId>* out) const;

 private:
  // A symbol is a token's number, or, from num_tokens_ on, a text that only merges know.
  struct Pair {
    uint64_t symbols = kFree;  // left << 32 | right
    Merge merge;
  };
  static constexpr uint64_t kFree = UINT64_MAX;

  explicit BpeEncoder(Pretokenizer pretokenizer) : pretokenizer_(std::move(pretokenizer)) {}

  Status AddMerges(const Vocabulary& vocabulary);
  void AddWholeTokens(const Vocabulary& vocabulary);
  size_t Locate(uint64_t symbols) const;
  void EncodePiece(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;

  Pretokenizer pretokenizer_;
  int32_t num_tokens_ = 0;
  std::array<int32_t, 256> byte_symbols_{};
  std::vector<Pair> pairs_;  // open addressing; a power of two
  // From a piece's bytes to its token; none where pieces are always merged.
  std::optional<TokenTable> whole_tokens_;
  std::shared_ptr<const std::string> whole_token_bytes_;  // what whole_tokens_ views
};

}  // namespace quire
