#include "cli/serve_bench/event_scanner.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire {
namespace {

std::vector<std::string> DataOf(std::string_view stream, size_t piece_len) {
  EventScanner scanner;
  std::vector<std::string> data;
  for (size_t at = 0; at < stream.size(); at += piece_len)
    scanner.Feed(stream.substr(at, piece_len),
                 [&](std::string_view line) { data.emplace_back(line); });
  return data;
}

TEST(EventScanner, FindsTheSameDataWhereverTheBytesAreCut) {
  const std::string_view stream =
      "data: {\"a\": 1}\n\n: keep-alive\n\nevent: x\ndata:{\"b\"}\r\n\r\ndata: [DONE]\n\n";
  const std::vector<std::string> expected = {"{\"a\": 1}", "{\"b\"}", "[DONE]"};
  for (size_t piece_len = 1; piece_len <= stream.size(); ++piece_len)
    EXPECT_EQ(DataOf(stream, piece_len), expected) << piece_len;
}

TEST(EventScanner, ALineWithoutItsEndIsKeptBack) { EXPECT_TRUE(DataOf("data: x", 3).empty()); }

TEST(ChunkKind, FindsKeysAndNotTexts) {
  ChunkKind kind = KindOfChunk(R"({"id":"1","choices":[{"text":"a"}],"usage":null})");
  EXPECT_TRUE(kind.has_choices);
  EXPECT_FALSE(kind.has_usage);
  EXPECT_FALSE(kind.has_error);

  kind = KindOfChunk(R"({"choices": [ ], "usage": {"prompt_tokens": 3}})");
  EXPECT_FALSE(kind.has_choices);
  EXPECT_TRUE(kind.has_usage);

  kind = KindOfChunk(R"({"choices":[{"text":"error","x":"usage"},{"text":"\"error\":{"}]})");
  EXPECT_TRUE(kind.has_choices);
  EXPECT_FALSE(kind.has_usage);
  EXPECT_FALSE(kind.has_error);

  EXPECT_TRUE(KindOfChunk(R"({"error" : {"message":"x"}})").has_error);
  EXPECT_FALSE(KindOfChunk("").has_choices);
  EXPECT_FALSE(KindOfChunk("\"choices\"").has_choices);
}

}  // namespace
}  // namespace quire
