// Encoding is linear in the text, whatever the text. TOK-01, TOK-02.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <random>

#include "base/test_data.h"
#include "text/test_gguf.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"

namespace quire {
namespace {

// Of this thread's work alone: other programs on the machine do not count.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double EncodeSeconds(const Tokenizer& tokenizer, std::string_view text) {
  const double start = CpuSeconds();
  const auto ids = tokenizer.Encode(text, EncodeOptions{});
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return CpuSeconds() - start;
}

std::string Repeat(std::string_view unit, size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += unit;
  return text;
}

#ifdef NDEBUG
constexpr size_t kBytes = 1 << 20;
#else
constexpr size_t kBytes = 1 << 18;  // sanitizers
#endif

void ExpectLinear(const Tokenizer& tokenizer) {
  std::string random_bytes;
  std::mt19937 random(5);
  while (random_bytes.size() < kBytes) random_bytes += static_cast<char>(random());
  struct Text {
    const char* name;
    std::string whole;
  };
  for (const Text& text :
       {Text{"letter", Repeat("a", kBytes)}, Text{"capital", Repeat("A", kBytes)},
        Text{"space", Repeat(" ", kBytes)}, Text{"underscore", Repeat("_", kBytes)},
        Text{"dot", Repeat(".", kBytes)}, Text{"Chinese", Repeat("\u4E2D", kBytes)},
        Text{"start of a special token", Repeat("<", kBytes)}, Text{"random", random_bytes}}) {
    const auto quarter_text = std::string_view(text.whole).substr(0, kBytes / 4);
    // 2.5 for each doubling; below some milliseconds a cache that the larger text outgrows is more
    // than that. A quadratic step takes 16 times as long, and minutes.
    double whole = 0, bound = 0;
    for (int i = 0; i < 3 && whole >= bound; ++i) {  // again if another program was in the way
      whole = EncodeSeconds(tokenizer, text.whole);
      bound = std::max(2.5 * 2.5 * EncodeSeconds(tokenizer, quarter_text), 0.3);
    }
    EXPECT_LT(whole, bound) << text.name;
#ifdef NDEBUG
    EXPECT_LT(whole, 1.0) << text.name;  // two to ten times what it takes
#endif
  }
}

TEST(TokenizerSpeed, IsLinearForSmallVocabularies) {
  for (const auto& vocabulary :
       {SmallBpeVocabulary(), SmallSpmVocabulary(), SmallSpmVocabulary(/*with_bytes=*/false)}) {
    const auto tokenizer = Tokenizer::Create(vocabulary);
    ASSERT_TRUE(tokenizer.ok());
    ExpectLinear(*tokenizer);
  }
}

TEST(TokenizerSpeed, IsLinearForRealVocabularies) {
  for (const char* name : {"gpt-2", "llama-spm", "deepseek-llm"}) {
    const auto path = SharedData(std::string("tokenizer/ggml-vocab-") + name + ".gguf");
    if (!path) GTEST_SKIP() << "no shared data";
    SCOPED_TRACE(name);
    const auto tokenizer = Tokenizer::Create(VocabularyOfGguf(*path));
    ASSERT_TRUE(tokenizer.ok());
    ExpectLinear(*tokenizer);
  }
}

}  // namespace
}  // namespace quire
