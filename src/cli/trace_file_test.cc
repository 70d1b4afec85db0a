#include "cli/trace_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace quire {
namespace {

class TraceFile : public testing::Test {
 protected:
  StatusOr<std::vector<PlannedRequest>> Read(const std::string& text,
                                             const TraceOptions& options = {}) {
    std::ofstream(path_) << text;
    return ReadTraceFile(path_, options);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "quire_trace_file_test";
};

constexpr char kJson[] =
    R"({"timestamp": 2000, "input_length": 1100, "output_length": 50, "hash_ids": [4, 5, 6]}
{"timestamp": 1000, "input_length": 600, "output_length": 0, "hash_ids": [4, 7]}
)";

TEST_F(TraceFile, EqualHashIdsGiveEqualTokens) {
  const auto requests = Read(kJson);
  ASSERT_TRUE(requests.ok()) << requests.status().message();
  ASSERT_EQ(requests->size(), 2u);
  const PlannedRequest &first = (*requests)[0], &second = (*requests)[1];  // by time
  EXPECT_EQ(first.arrival_seconds, 0);
  EXPECT_EQ(second.arrival_seconds, 1);
  EXPECT_EQ(first.prompt_len(), 600u);
  EXPECT_EQ(second.prompt_len(), 1100u);
  EXPECT_EQ(first.output_len, 1u);
  const auto a = MakePrompt(first.prompt, 1, 1000), b = MakePrompt(second.prompt, 1, 1000);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 512, b.begin()));
  EXPECT_NE(a[512], b[512]);
}

TEST_F(TraceFile, LengthsAndTimesAreScaled) {
  const auto requests = Read(kJson, {.scale = 0.125, .speed = 4});
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ((*requests)[1].arrival_seconds, 0.25);
  EXPECT_EQ((*requests)[0].prompt_len(), 75u);
  EXPECT_EQ((*requests)[0].prompt[0].length, 64u);
  EXPECT_EQ((*requests)[1].output_len, 6u);
  EXPECT_EQ(Read(kJson, {.speed = 0})->back().arrival_seconds, 0);
  EXPECT_EQ(Read(kJson, {.limit = 1})->size(), 1u);
}

TEST_F(TraceFile, ReadsTimesOfCsvAcrossMidnight) {
  const auto requests = Read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:01.2500000,396,109\r\n");
  ASSERT_TRUE(requests.ok()) << requests.status().message();
  EXPECT_EQ((*requests)[0].prompt_len(), 374u);
  EXPECT_EQ((*requests)[1].output_len, 109u);
  EXPECT_NEAR((*requests)[1].arrival_seconds, 1.75, 1e-6);
}

TEST_F(TraceFile, DamagedLinesAreNamed) {
  for (const char* text :
       {"{\"timestamp\": 1}\n", "{}\n{\n",
        "{\"timestamp\": 1, \"input_length\": -1, "
        "\"output_length\": 1}\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", "words\n", "{"}) {
    const auto requests = Read(text);
    ASSERT_FALSE(requests.ok()) << text;
    EXPECT_EQ(requests.status().code(), StatusCode::kInvalidFile);
    EXPECT_NE(requests.status().message().find(path_), std::string::npos);
  }
  EXPECT_FALSE(Read("").ok());
  EXPECT_FALSE(ReadTraceFile("/no/such/trace", {}).ok());
}

}  // namespace
}  // namespace quire
