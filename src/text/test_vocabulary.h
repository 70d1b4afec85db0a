// Small vocabularies made in memory, for tests and fuzzers that have no model file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace quire {

// Adds tokens one by one; their ids count from 0.
class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(VocabularyKind kind) { vocabulary_.kind = kind; }

  TokenId Add(std::string_view text, TokenType type = TokenType::kNormal, float score = 0);
  // Byte pairs: adds a merge, and its joined token unless it is there.
  void AddMerge(std::string_view left, std::string_view right);
  // SPM: "<0x00>" to "<0xFF>".
  void AddByteTokens();
  // Byte pairs: the 256 characters that stand for bytes.
  void AddByteCharacters();

  // The fields that are no lists.
  Vocabulary& fields() { return vocabulary_; }
  // May be called more than once; what was returned lives on its own.
  Vocabulary Build() const;

 private:
  Vocabulary vocabulary_;  // without tokens and merges
  std::vector<std::string> tokens_;
  std::vector<std::string> merges_;
};

// All bytes, "he", "ll", "hell", "hello", " hello", "\xC3\xA9" (é), a run of "_"; control
// tokens <|start|>, <|end|>, user-defined "@@", "@@@".
Vocabulary SmallBpeVocabulary();

// Control tokens <unk> (unknown, 0), <s> (1), </s> (2), byte tokens 3 to 258 if `with_bytes`, then
// some words and the letters that make them.
Vocabulary SmallSpmVocabulary(bool with_bytes = true);

}  // namespace quire
