// Encodes any text with small vocabularies, decodes it in a stream and whole, and makes a
// vocabulary of any bytes. The first byte chooses the vocabulary, the second the options and a
// plain range.
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

namespace quire {
namespace {

void CheckDecode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (const bool special : {false, true}) {
    const DecodeOptions options{.starts_text = true, .show_special = special};
    Detokenizer detokenizer(&tokenizer, options);
    std::string joined;
    for (const TokenId id : ids) {
      const auto part = detokenizer.Push(id);
      QUIRE_CHECK(part.ok());
      joined += *part;
    }
    joined += detokenizer.Finish();
    QUIRE_CHECK(*Decode(tokenizer, ids, options) == joined);
  }
}

void CheckText(const Tokenizer& tokenizer, std::string_view text, uint8_t options,
               bool has_all_bytes) {
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
  CheckDecode(tokenizer, *ids);
}

// Lines are tokens; a line's first byte is its type. A line "+a b" is a merge.
Vocabulary AnyVocabulary(VocabularyKind kind, std::string_view bytes) {
  VocabularyBuilder builder(kind);
  builder.fields().pre = "gpt-2";
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

void Run(const uint8_t* data, size_t size) {
  if (size < 2) return;
  static const auto bpe = Tokenizer::Create(SmallBpeVocabulary());
  static const auto spm = Tokenizer::Create(SmallSpmVocabulary());
  static const auto letters = Tokenizer::Create(SmallSpmVocabulary(/*with_bytes=*/false));
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  switch (data[0] % 6) {
    case 0:
      return CheckText(*bpe, text, data[1], /*has_all_bytes=*/true);
    case 1:
      return CheckText(*spm, text, data[1], /*has_all_bytes=*/true);
    case 2:
      return CheckText(*letters, text, data[1], /*has_all_bytes=*/false);
    case 3: {
      const Tokenizer& tokenizer = data[1] % 2 == 0 ? *bpe : *spm;
      std::vector<TokenId> ids;
      for (const char c : text) {
        ids.push_back(static_cast<uint8_t>(c) + (data[1] >> 1) % 12);
      }
      return CheckDecode(tokenizer, ids);
    }
    default: {
      const auto kind = data[0] % 6 == 4 ? VocabularyKind::kBpe : VocabularyKind::kSpm;
      const auto tokenizer = Tokenizer::Create(AnyVocabulary(kind, text));
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
