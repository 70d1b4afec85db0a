// Encodes any text with small vocabularies, under every rule of pre-tokenizers, and with a
// vocabulary made of any bytes; what comes back must be the text. The first byte chooses the
// vocabulary, the second the options and a plain range, the third the rule. Any ids are
// detokenizer_fuzz.cc's.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace quire {
namespace {

void CheckText(const Tokenizer& tokenizer, std::string_view text, uint8_t options,
               bool has_all_bytes, bool is_byte_pairs = false) {
  const bool parse_special = (options & 1) != 0;
  const size_t middle = text.size() * (options >> 2) / 64;
  const ByteRange plain[] = {{middle / 2, middle}};
  const auto ids = tokenizer.Encode(
      text, plain, {.add_special = (options & 2) != 0, .parse_special = parse_special});
  QUIRE_CHECK(ids.ok());
  std::string bytes;
  for (const TokenId id : *ids) {
    QUIRE_CHECK(tokenizer.IsValid(id));
    bytes += tokenizer.Piece(id);
  }
  // A user-defined token cuts the text, and SPM starts each part with a space.
  const bool has_space = tokenizer.adds_space_prefix() && !text.empty();
  // SPM writes a space as U+2581, so one of the text's own comes back as a space.
  const bool is_lossy = tokenizer.adds_space_prefix() && text.find("\xE2\x96\x81") != text.npos;
  if (has_all_bytes && !parse_special && !is_lossy && text.find("@@") == text.npos) {
    QUIRE_CHECK(bytes == (has_space ? " " : "") + std::string(text));
  }
  const auto decoded = Decode(tokenizer, *ids, {.show_special = true});
  QUIRE_CHECK(decoded.ok());
  // Control tokens come back as their texts; what the options added stands around.
  if (is_byte_pairs && (options & 2) == 0 && ValidUtf8Length(text) == text.size()) {
    QUIRE_CHECK(*decoded == text);
  }
}

// Lines are tokens; a line's first byte is its type. A line "+a b" is a merge.
Vocabulary AnyVocabulary(VocabularyKind kind, std::string_view pre, std::string_view bytes) {
  VocabularyBuilder builder(kind);
  builder.fields().pre = pre;
  builder.fields().drops_space_after_special = bytes.size() % 2 == 0;
  size_t num_merges = 0;  // each looks through all tokens
  while (!bytes.empty()) {
    std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    if (line.empty()) continue;
    const auto first = static_cast<uint8_t>(line[0]);
    line.remove_prefix(1);
    const size_t space = line.find(' ', 1);
    if (first == '+' && space != line.npos && num_merges < 32) {
      ++num_merges;
      builder.AddMerge(line.substr(0, space), line.substr(space + 1));
    } else {
      builder.Add(line, static_cast<TokenType>(first % 8), static_cast<float>(first % 5));
    }
  }
  return builder.Build();
}

// One name for each rule.
constexpr const char* kRules[] = {
    "default",     "gpt-2",          "llama-bpe",    "qwen2",  "qwen35", "tekken",    "gpt-4o",
    "deepseek-v3", "deepseek-coder", "deepseek-llm", "smollm", "falcon", "bailingmoe"};

std::vector<Tokenizer> BytePairTokenizers() {
  std::vector<Tokenizer> tokenizers;
  for (const char* rule : kRules) {
    Vocabulary vocabulary = SmallBpeVocabulary();
    vocabulary.pre = rule;
    auto tokenizer = Tokenizer::Create(std::move(vocabulary));
    QUIRE_CHECK(tokenizer.ok());
    tokenizers.push_back(std::move(tokenizer).value());
  }
  return tokenizers;
}

void Run(const uint8_t* data, size_t size) {
  if (size < 3) return;
  static const std::vector<Tokenizer> bpe = BytePairTokenizers();
  static const auto spm = Tokenizer::Create(SmallSpmVocabulary());
  static const auto letters = Tokenizer::Create(SmallSpmVocabulary(/*with_bytes=*/false));
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  const size_t rule = data[2] % std::size(kRules);
  switch (data[0] % 6) {
    case 0:
    case 1:
      return CheckText(bpe[rule], text, data[1], /*has_all_bytes=*/true, /*is_byte_pairs=*/true);
    case 2:
      return CheckText(*spm, text, data[1], /*has_all_bytes=*/true);
    case 3:
      return CheckText(*letters, text, data[1], /*has_all_bytes=*/false);
    default: {
      const auto kind = data[0] % 6 == 4 ? VocabularyKind::kBpe : VocabularyKind::kSpm;
      const auto tokenizer = Tokenizer::Create(AnyVocabulary(kind, kRules[rule], text));
      if (tokenizer.ok()) CheckText(*tokenizer, text, data[1], /*has_all_bytes=*/false);
    }
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Run(data, size);
  return 0;
}
