#include "cache/trace_replay.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/test_data.h"

namespace quire {
namespace {

using Requests = std::vector<TraceRequest>;

Requests OneTenant(const std::vector<std::vector<uint64_t>>& ids) {
  Requests requests;
  for (const auto& list : ids) requests.push_back({.tenant = 0, .ids = list});
  return requests;
}

uint64_t Hits(const Requests& requests, uint32_t num_pages, EvictionPolicyKind policy) {
  const auto counts = ReplayPolicy(requests, num_pages, 512, policy);
  EXPECT_TRUE(counts.ok());
  return counts.ok() && !counts.value().empty() ? counts.value()[0].hits : 0;
}

TEST(TraceReplay, HitsAreTheLeadingPagesThatArePresent) {
  const Requests requests = OneTenant({{1, 2, 3}, {1, 2, 4}, {5}, {1, 2, 3, 6}});
  for (const auto policy : {EvictionPolicyKind::kLru, EvictionPolicyKind::kReuse}) {
    EXPECT_EQ(Hits(requests, 100, policy), 2u + 3u);
    EXPECT_EQ(Hits(requests, 0, policy), 0u);
  }
  EXPECT_EQ(ReplayPlainLru(requests, 100).hits, 5u);
  EXPECT_EQ(ReplayBestPossible(requests, 100).hits, 5u);
  EXPECT_EQ(ReplayPlainLru(requests, 100).pages, 11u);
}

TEST(TraceReplay, LeavesGoFirstAndTheRequestsOwnPagesStay) {
  // Room for 3. After {1, 2, 3} the request {1, 4} drops 3 only, {7, 8, 9, 10} all but itself.
  const Requests requests = OneTenant({{1, 2, 3}, {1, 4}, {1, 2}, {7, 8, 9, 10}, {7, 8, 9, 10}});
  EXPECT_EQ(Hits(requests, 3, EvictionPolicyKind::kLru), 1u + 2u + 3u);
}

TEST(TraceReplay, AMatchedLeafIsNotEvictedForItsOwnNextPage) {
  const Requests requests = OneTenant({{1, 2}, {1, 2, 3}, {1, 2}});
  EXPECT_EQ(Hits(requests, 2, EvictionPolicyKind::kLru), 2u + 2u);
}

TEST(TraceReplay, PlainLruDropsTheStartOfThePrefixAndWithItAllHits) {
  const Requests requests = OneTenant({{1, 2, 3}, {4}, {1, 2, 3}});
  EXPECT_EQ(ReplayPlainLru(requests, 3).hits, 0u);
  EXPECT_EQ(Hits(requests, 3, EvictionPolicyKind::kLru), 2u);
  EXPECT_EQ(ReplayBestPossible(requests, 3).hits, 3u);  // 4 is never kept
}

TEST(TraceReplay, PagesThatAreNoTreeAreRefused) {
  for (const Requests& requests :
       {OneTenant({{1, 2}, {3, 2}}), OneTenant({{1, 2, 1}}), OneTenant({{1, 2}, {2}})}) {
    const auto counts = ReplayPolicy(requests, 10, 512, EvictionPolicyKind::kLru);
    EXPECT_EQ(counts.status().code(), StatusCode::kInvalidArgument);
  }
}

// The traces of Mooncake; the figures of docs/performance.md with some room.
Requests Trace(const std::string& path) {
  std::istringstream lines(ReadTestFile(path));
  Requests requests;
  for (std::string line; std::getline(lines, line);)
    requests.push_back({.tenant = 0, .ids = nlohmann::json::parse(line)["hash_ids"]});
  return requests;
}

double Rate(const StatusOr<std::vector<HitCount>>& counts) {
  EXPECT_TRUE(counts.ok());
  return counts.value()[0].rate();
}

constexpr uint32_t Pages(double million_tokens) {
  return static_cast<uint32_t>(million_tokens * 1e6 / 512);
}

TEST(MooncakeTraceSlow, ReuseBeatsLruOnMooncakesTraces) {
  for (const std::string name : {"conversation", "synthetic"}) {
    const auto path = SharedData("traces/mooncake/" + name + "_trace.jsonl");
    if (!path) GTEST_SKIP() << "no shared data";
    const Requests trace = Trace(*path);
    for (const double memory : {0.5, 2.6, 10.0}) {
      const double reuse =
          Rate(ReplayPolicy(trace, Pages(memory), 512, EvictionPolicyKind::kReuse));
      EXPECT_GE(reuse, Rate(ReplayPolicy(trace, Pages(memory), 512, EvictionPolicyKind::kLru)));
      EXPECT_GE(reuse, ReplayPlainLru(trace, Pages(memory)).rate()) << name << memory;
      if (name != "conversation" || memory != 2.6) continue;
      EXPECT_GE(reuse, 0.17);
      EXPECT_NEAR(ReplayPlainLru(trace, Pages(memory)).rate(), 0.112, 0.001);
      EXPECT_NEAR(ReplayBestPossible(trace, Pages(memory)).rate(), 0.342, 0.001);
    }
  }
}

// The same requests in pages of 64 tokens: eight times as many, and no worse than LRU either.
TEST(MooncakeTraceSlow, SmallPagesAreNoMoreEvidenceThanLargeOnes) {
  const auto path = SharedData("traces/mooncake/synthetic_trace.jsonl");
  if (!path) GTEST_SKIP() << "no shared data";
  Requests trace;
  for (const TraceRequest& request : Trace(*path)) {
    TraceRequest& small = trace.emplace_back();
    for (const uint64_t id : request.ids)
      for (uint64_t i = 0; i < 8; ++i) small.ids.push_back(8 * id + i);
  }
  const uint32_t num_pages = 8 * Pages(2.6);
  EXPECT_GT(Rate(ReplayPolicy(trace, num_pages, 64, EvictionPolicyKind::kReuse)),
            Rate(ReplayPolicy(trace, num_pages, 64, EvictionPolicyKind::kLru)) + 0.01);
}

TEST(MooncakeTraceSlow, AFloodLeavesTheOtherTenantFourFifthsOfItsHits) {
  const auto path = SharedData("traces/mooncake/conversation_trace.jsonl");
  if (!path) GTEST_SKIP() << "no shared data";
  const Requests trace = Trace(*path);
  const double alone = Rate(ReplayPolicy(trace, Pages(2.6), 512, EvictionPolicyKind::kReuse));
  const Requests flooded = WithFlood(trace, 10);
  EXPECT_GE(Rate(ReplayPolicy(flooded, Pages(2.6), 512, EvictionPolicyKind::kReuse)), 0.8 * alone);
}

}  // namespace
}  // namespace quire
