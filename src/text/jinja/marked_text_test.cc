#include "text/jinja/marked_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace quire::jinja {
namespace {

// [text.mark.1]
bool IsSound(const MarkedText& text) {
  size_t end = 0;
  bool first = true;
  for (const ByteRange& range : text.plain()) {
    if (range.begin >= range.end || range.end > text.size()) return false;
    if (!first && range.begin <= end) return false;
    end = range.end;
    first = false;
  }
  return true;
}

// Model: one flag a byte. [text.mark.1] [text.mark.2]
TEST(MarkedTextTest, RandomOperationsEqualAFlagForEachByte) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    MarkedText text;
    std::vector<bool> model;
    for (int step = 0; step < 60; ++step) {
      const bool plain = random() % 2 == 0;
      const size_t length = random() % 4;
      if (random() % 3 == 0) {
        const size_t begin = random() % (text.size() + 1);
        const size_t end = begin + random() % (text.size() - begin + 1);
        const MarkedText slice = text.Slice(begin, end);
        text.Append(slice);
        const std::vector<bool> part(model.begin() + begin, model.begin() + end);
        model.insert(model.end(), part.begin(), part.end());
      } else {
        text.Append(std::string(length, 'x'), plain);
        model.insert(model.end(), length, plain);
      }
      ASSERT_TRUE(IsSound(text));
      ASSERT_EQ(text.size(), model.size());
      std::vector<bool> flags(text.size());
      for (const ByteRange& range : text.plain()) {
        for (size_t i = range.begin; i < range.end; ++i) flags[i] = true;
      }
      ASSERT_EQ(flags, model);
    }
  }
}

}  // namespace
}  // namespace quire::jinja
