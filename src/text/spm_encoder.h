// SpmEncoder: SentencePiece's byte-pair encoding by score, of text in which no special token is
// looked for.
//
// Spaces become U+2581; then the pair of neighbours whose joined text is the token with the highest
// score is joined, until none is a token. What is then no token becomes its bytes as byte tokens;
// without those, a run of such characters becomes one unknown token (or nothing if there is none).
//
// Why not libsentencepiece: on a vocabulary without byte tokens it is quadratic in a run of unknown
// characters (17 s for 1 MiB of Chinese, version 0.1.97), it refuses vocabularies with more than
// one unknown token (Phi-3), and it replaces bytes that are not UTF-8. Its ids are the same.
//
// Threads: const access from any thread. Owner: views the vocabulary's tokens; they must outlive
// it. Source: Kudo and Richardson, EMNLP 2018 (SentencePiece), bpe_model.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/merger.h"
#include "text/token_table.h"
#include "text/vocabulary.h"

namespace quire {

inline constexpr std::string_view kSpmSpace = "\u2581";

class SpmEncoder {
 public:
  // Requires: as many scores as tokens.
  static SpmEncoder Create(const Vocabulary& vocabulary);

  // The encoder's working memory for one text.
  struct Scratch {
    Merger merger;
    std::vector<Unit> units;
    std::string text;
  };

  // Appends the ids of `text`, with one space in front if `space_prefix` and `text` is not empty.
  // Requires: less than 1 GiB.
  void Encode(std::string_view text, bool space_prefix, Scratch* scratch,
              std::vector<TokenId>* out) const;

 private:
  explicit SpmEncoder(size_t num_tokens) : table_(num_tokens) {}

  void AddTokens(const Vocabulary& vocabulary);
  void AddNeighbours(std::string_view token);
  // May a token hold these two characters side by side? True for some pairs that none holds.
  bool CanMeet(std::string_view left, std::string_view right) const;
  size_t NeighbourBit(std::string_view left, std::string_view right) const;
  // Encodes scratch->units, which no token that begins or ends elsewhere can touch.
  void EncodeUnits(Scratch* scratch, std::vector<TokenId>* out) const;
  void AppendUnknown(std::string_view text, std::vector<TokenId>* out) const;

  TokenTable table_;
  std::vector<uint32_t> ranks_;       // per token: lower is better
  std::vector<uint64_t> neighbours_;  // a bit per hashed pair of characters; a power of two
  std::array<TokenId, 256> byte_tokens_{};
  std::optional<TokenId> unknown_;
  size_t max_token_bytes_ = 0;
};

}  // namespace quire
