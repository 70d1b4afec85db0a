#include "text/test_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "text/byte_alphabet.h"

namespace quire {

TokenId VocabularyBuilder::Add(std::string_view text, TokenType type, float score) {
  tokens_.emplace_back(text);
  vocabulary_.types.push_back(type);
  vocabulary_.scores.push_back(score);
  return static_cast<TokenId>(tokens_.size()) - 1;
}

void VocabularyBuilder::AddMerge(std::string_view left, std::string_view right) {
  merges_.push_back(fmt::format("{} {}", left, right));
  const std::string joined = fmt::format("{}{}", left, right);
  if (std::ranges::find(tokens_, joined) == tokens_.end()) Add(joined);
}

void VocabularyBuilder::AddByteTokens() {
  for (int byte = 0; byte < 256; ++byte) Add(fmt::format("<0x{:02X}>", byte), TokenType::kByte);
}

void VocabularyBuilder::AddByteCharacters() {
  for (int byte = 0; byte < 256; ++byte) Add(ByteCharacter(static_cast<uint8_t>(byte)));
}

Vocabulary VocabularyBuilder::Build() const {
  struct Texts {
    std::vector<std::string> tokens;
    std::vector<std::string> merges;
  };
  const auto texts = std::make_shared<const Texts>(Texts{tokens_, merges_});
  Vocabulary vocabulary = vocabulary_;
  vocabulary.tokens.assign(texts->tokens.begin(), texts->tokens.end());
  vocabulary.merges.assign(texts->merges.begin(), texts->merges.end());
  vocabulary.owner = texts;
  return vocabulary;
}

Vocabulary SmallBpeVocabulary() {
  VocabularyBuilder builder(VocabularyKind::kBpe);
  builder.fields().pre = "smollm";
  builder.AddByteCharacters();
  builder.AddMerge("h", "e");
  builder.AddMerge("l", "l");
  builder.AddMerge("he", "ll");
  builder.AddMerge("hell", "o");
  builder.AddMerge(ByteCharacter(' '), "hello");
  builder.AddMerge(ByteCharacter(0xC3), ByteCharacter(0xA9));
  builder.AddMerge("_", "_");
  builder.AddMerge("__", "__");
  builder.fields().bos = builder.Add("<|start|>", TokenType::kControl);
  builder.fields().eos = builder.Add("<|end|>", TokenType::kControl);
  builder.Add("@@", TokenType::kUserDefined);
  builder.Add("@@@", TokenType::kUserDefined);
  return builder.Build();
}

Vocabulary SmallSpmVocabulary(bool with_bytes) {
  VocabularyBuilder builder(VocabularyKind::kSpm);
  builder.fields().unknown = builder.Add("<unk>", TokenType::kUnknown);
  builder.fields().bos = builder.Add("<s>", TokenType::kControl);
  builder.fields().eos = builder.Add("</s>", TokenType::kControl);
  if (with_bytes) builder.AddByteTokens();
  float score = 0;
  for (const char* text :
       {"he", "ll", "lo", "\u2581he", "hell", "\u2581hell", "\u2581hello", "\u2581\u2581",
        "\u2581\u2581\u2581\u2581", "\u2581", "e", "h", "l", "o", ".", "\u4E2D", "\u00E9"}) {
    builder.Add(text, TokenType::kNormal, score);
    score -= 1;
  }
  builder.Add("@@", TokenType::kUserDefined);
  return builder.Build();
}

}  // namespace quire
