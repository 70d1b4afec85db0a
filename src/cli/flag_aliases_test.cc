#include "cli/flag_aliases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_sources.h"
#include "cli/serve_flags.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words Ours(const Words& theirs) {
  auto ours = TranslateFlags(theirs);
  EXPECT_TRUE(ours.ok()) << ours.status().message();
  return ours.ok() ? ours.value() : Words();
}

std::string ErrorOf(const Words& theirs) {
  const auto ours = TranslateFlags(theirs);
  return ours.ok() ? "" : ours.status().message();
}

TEST(FlagAliases, TheSameByAnotherNameBecomesOurs) {
  EXPECT_THAT(Ours({"serve", "m.gguf", "--max-num-seqs", "8", "-np=4", "--port", "1"}),
              ElementsAre("serve", "m.gguf", "--max-seqs", "8", "--max-seqs", "4", "--port", "1"));
  EXPECT_THAT(Ours({"--kv-cache-memory-bytes", "1000", "--shutdown-timeout=30"}),
              ElementsAre("--kv-memory", "1000B", "--drain", "30s"));
  EXPECT_THAT(Ours({"--sse-ping-interval", "5s"}), ElementsAre("--sse-keep-alive", "5s"));
  EXPECT_THAT(Ours({"--no-enable-prefix-caching", "--jinja", "-ngl", "0"}),
              ElementsAre("--prefix-cache", "off"));
  EXPECT_THAT(Ours({"--kv-cache-dtype", "auto", "-tp", "1"}), ElementsAre());
}

TEST(FlagAliases, SomethingElseIsAnErrorThatNamesOurs) {
  EXPECT_THAT(ErrorOf({"--gpu-memory-utilization", "0.9"}), HasSubstr("--kv-memory"));
  EXPECT_THAT(ErrorOf({"-kvu"}), HasSubstr("--kv-memory"));
  EXPECT_THAT(ErrorOf({"-ctk", "q8_0"}), HasSubstr("-ctk q8_0: use --kv"));
  EXPECT_THAT(ErrorOf({"--tensor-parallel-size=2"}), HasSubstr("one process"));
  EXPECT_THAT(ErrorOf({"-ngl", "99"}), HasSubstr("CPU"));
  EXPECT_THAT(ErrorOf({"--cache-reuse", "256"}), HasSubstr("changes answers"));
  EXPECT_THAT(ErrorOf({"--max-num-seqs"}), HasSubstr("value is missing"));
}

TEST(FlagAliases, WhatIsAlwaysSoIsTaken) {
  EXPECT_THAT(Ours({"-fa", "-cb", "--no-mmap", "-nkvo", "--enable-chunked-prefill"}),
              ElementsAre());
  EXPECT_THAT(Ours({"-fa", "on", "--flash-attn", "auto", "--flash-attn=on", "m.gguf"}),
              ElementsAre("m.gguf"));
  EXPECT_THAT(Ours({"serve", "-fa", "m.gguf"}), ElementsAre("serve", "m.gguf"));
  EXPECT_THAT(Ours({"--device", "cpu", "--load-format", "gguf", "--swap-space", "0"}),
              ElementsAre());
}

TEST(FlagAliases, WhatIsNotHereIsRefusedWithTheReason) {
  EXPECT_THAT(ErrorOf({"-fa", "off"}), HasSubstr("page by page"));
  EXPECT_THAT(ErrorOf({"--device", "cuda"}), HasSubstr("CPU"));
  EXPECT_THAT(ErrorOf({"--swap-space", "4"}), HasSubstr("tiers"));
  EXPECT_THAT(ErrorOf({"--scheduling-policy", "fcfs"}), HasSubstr("priority"));
  for (const char* flag :
       {"--mlock", "--mmap", "-hf", "--temp", "--seed", "-n", "-v", "--slots", "--lora", "-md",
        "--numa", "--timeout", "--root-path", "--tokenizer", "--no-cont-batching"})
    EXPECT_THAT(ErrorOf({flag, "1"}), HasSubstr(std::string(flag) + ": ")) << flag;
}

// Else a flag of ours could not be given any more.
TEST(FlagAliases, NoneIsAFlagOfOurs) {
  CLI::App app;
  ServeFlags flags;
  AddServeFlags(app, flags, /*with_check=*/true);
  for (const std::string& flag : FlagNames(app))
    EXPECT_EQ(Ours({flag, "value"}), Words({flag, "value"})) << flag;
}

TEST(FlagAliases, WhatIsOursAndWhatIsBehindTwoDashesStays) {
  const Words ours = {"serve", "-c", "4096", "-t", "2", "--kv", "f16", "--", "-np", "-kvu"};
  EXPECT_EQ(Ours(ours), ours);
}

}  // namespace
}  // namespace quire
