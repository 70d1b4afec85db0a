#include "plan/roofline.h"

#include <gtest/gtest.h>

#include "plan/test_models.h"

namespace quire {
namespace {

KvModel OneB() {
  KvModel model = TestModel(10, 8, 2, 64, 4096);
  model.num_params = 1'000'000'000;
  return model;
}
const MachineRates kRates = {.bytes_per_second = 1e12, .flops = 100e12};

TEST(Roofline, AttentionIsTwoOperationsAValueAndKey) {
  // 10 layers x 8 query heads x (64 + 64) x 2 x 100 keys
  EXPECT_DOUBLE_EQ(AttentionFlops(OneB(), 100), 2'048'000);
  KvModel windowed = OneB();
  windowed.groups.front().window = 30;
  EXPECT_DOUBLE_EQ(AttentionFlops(windowed, 100), 614'400);
  EXPECT_DOUBLE_EQ(AttentionFlops(windowed, 20), 409'600);
  // 61 layers x 128 heads x (576 + 512) x 2
  EXPECT_DOUBLE_EQ(AttentionFlops(DeepSeekV3(), 1), 16'990'208);
}

TEST(Roofline, AStepReadsWeightsOnceAndEachOnesKv) {
  const RooflineLoad load = {
      .weight_bytes = 2'000'000'000, .kv_bytes = 100'000'000, .num_users = 5, .tokens = 1000};
  const auto roofline = MakeRoofline(OneB(), load, kRates);
  ASSERT_TRUE(roofline.has_value());
  EXPECT_DOUBLE_EQ(roofline->read_bytes, 2.5e9);
  EXPECT_DOUBLE_EQ(roofline->step_seconds, 2.5e-3);
  EXPECT_DOUBLE_EQ(roofline->alone_seconds, 2.1e-3);
  EXPECT_FALSE(roofline->step_is_compute_bound);
  // A token: 2e9 + 20.48e6 operations = 20.2e-6 s; its KV is read in 100e-6 s: never.
  EXPECT_FALSE(roofline->knee_users.has_value());
}

TEST(Roofline, TheKneeIsWhereComputingTakesAsLong) {
  RooflineLoad load = {.weight_bytes = 2'000'000'000, .kv_bytes = 1'000'000, .tokens = 1000};
  const auto roofline = MakeRoofline(OneB(), load, kRates);
  ASSERT_TRUE(roofline.has_value() && roofline->knee_users.has_value());
  // 2e-3 s of weights; 20.2048e-6 s to compute a token less 1e-6 s to read its KV.
  EXPECT_NEAR(*roofline->knee_users, 2e-3 / 19.2048e-6, 1e-6);
  load.num_users = static_cast<uint32_t>(*roofline->knee_users);
  EXPECT_FALSE(MakeRoofline(OneB(), load, kRates)->step_is_compute_bound);
  ++load.num_users;
  EXPECT_TRUE(MakeRoofline(OneB(), load, kRates)->step_is_compute_bound);
}

TEST(Roofline, APromptIsComputedButItsSharedPart) {
  RooflineLoad load = {.weight_bytes = 2'000'000'000, .kv_bytes = 1, .tokens = 1000};
  const auto all = MakeRoofline(OneB(), load, kRates);
  // 1,000 x 2e9 + 20,480 a key x 1,000^2 / 2 keys
  EXPECT_DOUBLE_EQ(all->prefill_flops, 2e12 + 20'480.0 * 500'000);
  EXPECT_DOUBLE_EQ(all->prefill_seconds, all->prefill_flops / 100e12);
  load.shared_tokens = 400;
  const auto rest = MakeRoofline(OneB(), load, kRates);
  EXPECT_DOUBLE_EQ(rest->prefill_flops, 1.2e12 + 20'480.0 * (500'000 - 80'000));
  KvModel windowed = OneB();
  windowed.groups.front().window = 100;
  load.shared_tokens = 0;
  EXPECT_DOUBLE_EQ(MakeRoofline(windowed, load, kRates)->prefill_flops,
                   2e12 + 20'480.0 * (5'000 + 900 * 100));
}

TEST(Roofline, ExpertsAreReadAsTheyAreUsed) {
  KvModel model = OneB();
  model.num_active_params = 100'000'000;
  RooflineLoad load = {.weight_bytes = 2'000'000'000, .kv_bytes = 1, .tokens = 10};
  EXPECT_NEAR(MakeRoofline(model, load, kRates)->read_bytes, 2e8 + 1, 1e-3);
  load.num_users = 50;
  EXPECT_NEAR(MakeRoofline(model, load, kRates)->read_bytes, 2e9 + 50, 1e-3);
}

TEST(Roofline, WhatIsNotKnownGivesNone) {
  const RooflineLoad load = {.weight_bytes = 1, .kv_bytes = 1, .tokens = 10};
  EXPECT_FALSE(MakeRoofline(Stories(), load, kRates).has_value());
  EXPECT_FALSE(MakeRoofline(OneB(), load, {}).has_value());
  EXPECT_FALSE(MakeRoofline(OneB(), load, {.bytes_per_second = 1e12}).has_value());
}

}  // namespace
}  // namespace quire
