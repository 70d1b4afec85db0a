#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cache/default_budget.h"
#include "plan/test_models.h"

namespace quire {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

MemoryPlan PlanOf(const KvModel& model, const MemoryRequest& request) {
  auto plan = MakeMemoryPlan(model, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.value();
}

KvModel WithFile(uint64_t weight_bytes) {
  KvModel model = Stories();
  model.source = "GGUF header";
  model.weight_bytes = weight_bytes;
  return model;
}

TEST(MemoryPlan, WithoutWordsItIsTheEnginesDefault) {
  const MemoryPlan plan = PlanOf(WithFile(2 * kGiB), {.machine_bytes = 10 * kGiB});
  EXPECT_EQ(plan.budget_bytes, DefaultKvBudget(10 * kGiB, 2 * kGiB));
  EXPECT_EQ(plan.budget_bytes, 4 * kGiB);
  EXPECT_EQ(plan.total_mark, Mark::kMeasured);
  EXPECT_EQ(plan.weight_mark, Mark::kExact);
  // The least that the engine takes; a container of 512 MiB is not to be killed for it (PLN-07).
  EXPECT_EQ(PlanOf(WithFile(10 * kGiB), {.machine_bytes = 4 * kGiB}).budget_bytes, kGiB / 4);
  EXPECT_EQ(PlanOf(WithFile(10 * kGiB), {.machine_bytes = kGiB / 2}).budget_bytes, kGiB / 8);
  EXPECT_EQ(DefaultKvBudget(kGiB / 2, kGiB / 8), kGiB * 3 / 16);
  EXPECT_EQ(DefaultKvBudget(0, kGiB), kGiB / 4);  // nothing is known of the machine
}

TEST(MemoryPlan, OfAGivenMemoryTheCacheHasWhatIsLeft) {
  const MemoryPlan plan = PlanOf(WithFile(2 * kGiB), {.total_bytes = 64 * kGiB});
  EXPECT_EQ(plan.work_bytes, 2 * kGiB);
  EXPECT_EQ(plan.budget_bytes, 60 * kGiB);
  EXPECT_EQ(PlanOf(WithFile(64 * kGiB), {.total_bytes = 64 * kGiB}).budget_bytes, 0u);
}

TEST(MemoryPlan, AShareIsOfTheWholeMemory) {
  MemoryRequest request{.total_bytes = 640'000'000'000, .cache_share = 0.5};
  EXPECT_EQ(PlanOf(WithFile(1), request).budget_bytes, 320'000'000'000u);
  request.total_bytes = {};
  request.gpus = ParseAccelerators("8xH100").value();
  const MemoryPlan gpus = PlanOf(WithFile(1), request);
  EXPECT_EQ(gpus.budget_bytes, 320'000'000'000u);
  EXPECT_EQ(gpus.total_mark, Mark::kEstimated);
  for (const double share : {0.0, -0.5, 1.01, std::nan("")}) {
    request.cache_share = share;
    EXPECT_FALSE(MakeMemoryPlan(Stories(), request).ok()) << share;
  }
}

TEST(MemoryPlan, AKvMemoryIsTheBudget) {
  EXPECT_EQ(PlanOf(Stories(), {.kv_bytes = 12'345, .machine_bytes = kGiB}).budget_bytes, 12'345u);
}

TEST(MemoryPlan, WeightsAreTheFilesOrParametersTimesBits) {
  EXPECT_EQ(PlanOf(WithFile(77), {.machine_bytes = kGiB}).weight_bytes, 77u);
  KvModel model = Llama70B();  // 70,553,706,496 parameters
  EXPECT_EQ(PlanOf(model, {.machine_bytes = kGiB}).weight_bytes, 141'107'412'992u);
  const MemoryPlan q4 = PlanOf(model, {.weights_dtype = "Q4_K", .machine_bytes = kGiB});
  EXPECT_EQ(q4.weight_bytes, 39'686'459'904u);  // x 4.5 / 8
  EXPECT_EQ(q4.weight_mark, Mark::kEstimated);
  model.num_params = {};
  EXPECT_FALSE(PlanOf(model, {.machine_bytes = kGiB}).weight_bytes.has_value());
  // A type that tells no bits, as of a file that somebody quantised.
  model.num_params = 1000;
  model.weights_dtype = "awq";
  EXPECT_FALSE(PlanOf(model, {.machine_bytes = kGiB}).weight_bytes.has_value());
  // What a user says goes before the file.
  KvModel file = WithFile(77);
  file.num_params = 1000;
  EXPECT_EQ(PlanOf(file, {.weights_dtype = "int8", .machine_bytes = kGiB}).weight_bytes, 1000u);
  EXPECT_FALSE(MakeMemoryPlan(file, {.weights_dtype = "q9", .machine_bytes = kGiB}).ok());
}

TEST(MemoryPlan, TwoWordsForOneThingAreRefused) {
  const auto gpus = ParseAccelerators("H100").value();
  EXPECT_FALSE(MakeMemoryPlan(Stories(), {.total_bytes = kGiB, .gpus = gpus}).ok());
  EXPECT_FALSE(
      MakeMemoryPlan(Stories(), {.total_bytes = kGiB, .cache_share = 0.5, .kv_bytes = 1}).ok());
  EXPECT_FALSE(MakeMemoryPlan(Stories(), {}).ok());
}

}  // namespace
}  // namespace quire
