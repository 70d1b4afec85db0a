// Vocabulary: what a model file says about its tokens, as the file says it.
//
// A plain struct that the model layer fills from a file's header and text/tokenizer.h checks and
// takes. Nothing here is checked yet: ids may lie outside the vocabulary, texts may be anything.
//
// Owner: `tokens` and `merges` are views into memory that `owner` keeps alive (262,144 tokens are
// not 262,144 strings). Threads: a value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace quire {

enum class VocabularyKind {
  kNone,  // ids only; there is no text
  kBpe,   // byte pairs with a pre-tokenizer ("gpt2")
  kSpm,   // SentencePiece's merges by score ("llama")
};

// The values are those of tokenizer.ggml.token_type; others count as kUndefined.
enum class TokenType : uint8_t {
  kUndefined = 0,  // as kNormal
  kNormal = 1,
  kUnknown = 2,      // stands for what has no token
  kControl = 3,      // has no text of its own: found in a text only where that is asked for
  kUserDefined = 4,  // found in every text, before all others
  kUnused = 5,
  kByte = 6,  // "<0xHH>": that byte
};

struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kNone;
  std::string pre;  // BPE: the name of the pre-tokenizer; empty if the file has none

  std::vector<std::string_view> tokens;
  std::vector<float> scores;             // SPM: as many as tokens
  std::vector<TokenType> types;          // as many as tokens, or none: all normal
  std::vector<std::string_view> merges;  // BPE: "left right", the most important first

  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> eot;
  std::optional<TokenId> eom;
  std::optional<TokenId> unknown;
  std::optional<TokenId> padding;

  // Not set: the tokenizer's default for the kind.
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;

  // White space right after a special token is no text (Phi-3; its file does not say so).
  bool drops_space_after_special = false;

  std::optional<std::string> chat_template;  // text/jinja renders it

  std::shared_ptr<const void> owner;
};

}  // namespace quire
