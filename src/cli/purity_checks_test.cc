#include "cli/purity_checks.h"

#include <gtest/gtest.h>

#include "base/test_data.h"
#include "engine/model_runner.h"

namespace quire {
namespace {

class PurityChecks : public testing::Test {
 protected:
  void SetUp() override {
    options_.num_threads = 2;
    options_.page_size = 16;
    options_.kv_memory_bytes = uint64_t{16} << 20;
    auto runner = ModelRunner::Load(TestData("models/llama-gqa.gguf"), options_, {});
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    model_ = (*runner)->shared_model();
  }

  EngineOptions options_;
  std::shared_ptr<const Model> model_;
};

TEST_F(PurityChecks, AllPassWithEveryCodec) {
  for (const KvCodec codec : {KvCodec::kF16, KvCodec::kF32, KvCodec::kKivi4}) {
    options_.kv_codec = codec;
    CheckList list([](const CheckResult& result) {
      EXPECT_TRUE(result.ok) << result.group << ": " << result.name << ": " << result.detail;
    });
    list.SetGroup(std::string(KvCodecName(codec)));
    const Status status = RunPurityChecks(model_, options_, {.page_size = 16}, list);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_GE(list.num_checks(), 18u);
    EXPECT_GE(list.num_looks(), 50u);
  }
}

TEST_F(PurityChecks, AModelWithAShortContextIsRefusedWithTheNumbers) {
  options_.context_len = 40;
  const auto lengths = ChooseLengths(model_, options_, /*keeps_page_size=*/false, 1, 30);
  ASSERT_FALSE(lengths.ok());
  EXPECT_NE(lengths.status().message().find("has 40"), std::string::npos);
  options_.context_len = 100;
  EXPECT_EQ(ChooseLengths(model_, options_, false, 1, 1e9)->page_size, 16u);
}

TEST(CheckList, AFailedCheckIsCountedAndToldInItsOwnWords) {
  std::vector<CheckResult> results;
  CheckList list([&](const CheckResult& result) { results.push_back(result); });
  list.SetGroup("f16");
  list.Run("fine", [](std::string& detail) {
    detail = "seen";
    return OkStatus();
  });
  list.Run("broken", [](std::string&) { return CheckList::NoDifference("position 3 differs"); });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0].ok);
  EXPECT_EQ(results[0].detail, "seen");
  EXPECT_FALSE(results[1].ok);
  EXPECT_EQ(results[1].detail, "position 3 differs");
  EXPECT_EQ(list.num_checks(), 2u);
  EXPECT_EQ(list.num_failed(), 1u);
}

// A sequence that is still there is not "at rest".
TEST_F(PurityChecks, PagesThatAreHeldAreSeen) {
  auto runner = ModelRunner::Create(model_, options_).value();
  CheckList list([](const CheckResult&) {});
  Sequence sequence = runner->NewSequence();
  const TokenId token = 1;
  ASSERT_TRUE(runner->Compute(sequence, {&token, 1}).ok());
  EXPECT_TRUE(list.LookAt(runner->cache(), /*at_rest=*/false).ok());
  EXPECT_FALSE(list.LookAt(runner->cache(), /*at_rest=*/true).ok());
}

}  // namespace
}  // namespace quire
