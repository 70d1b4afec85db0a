// Turns any ids into text, in a stream and whole; the two must agree, and all that is sent must be
// whole UTF-8. The first byte chooses the vocabulary, the second where ids begin and the options.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace quire {
namespace {

void Run(const uint8_t* data, size_t size) {
  if (size < 2) return;
  static const auto bpe = Tokenizer::Create(SmallBpeVocabulary());
  static const auto spm = Tokenizer::Create(SmallSpmVocabulary());
  static const auto letters = Tokenizer::Create(SmallSpmVocabulary(/*with_bytes=*/false));
  const Tokenizer* const tokenizers[] = {&*bpe, &*spm, &*letters};
  const Tokenizer& tokenizer = *tokenizers[data[0] % 3];
  const DecodeOptions options{.starts_text = (data[1] & 1) != 0,
                              .show_special = (data[1] & 2) != 0};
  const int shift = (data[1] >> 2) % 24 - 2;

  Detokenizer detokenizer(&tokenizer, options);
  std::vector<TokenId> ids;
  std::string joined, pieces;
  for (size_t i = 2; i < size; ++i) {
    const TokenId id = data[i] + shift;
    const auto part = detokenizer.Push(id);
    QUIRE_CHECK(part.ok() == tokenizer.IsValid(id));
    if (!part.ok()) continue;  // refused ids change nothing
    QUIRE_CHECK(ValidUtf8Length(*part) == part->size());
    joined += *part;
    pieces += tokenizer.Piece(id);
    ids.push_back(id);
  }
  const std::string tail = detokenizer.Finish();
  QUIRE_CHECK(tail.empty() || tail == "\uFFFD");
  joined += tail;
  QUIRE_CHECK(*Decode(tokenizer, ids, options) == joined);
  if (options.show_special || ValidUtf8Length(pieces) != pieces.size()) return;
  // Nothing to replace: the text is the pieces, but for the one space that may be in front.
  const bool strips =
      options.starts_text && tokenizer.adds_space_prefix() && pieces.starts_with(' ');
  QUIRE_CHECK(joined == (strips ? pieces.substr(1) : pieces));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Run(data, size);
  return 0;
}
