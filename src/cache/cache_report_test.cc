#include "cache/cache_report.h"

#include "cache/test_cache.h"

namespace quire {
namespace {

uint64_t Evicted(const CacheReport& report, uint32_t group, EvictReason reason) {
  return report.groups[group].evicted_pages[static_cast<size_t>(reason)];
}

void ExpectSumsToTheBudget(const CacheReport& report) {
  EXPECT_EQ(report.bytes.sum() + report.free_bytes, report.budget_bytes);
  PageStates groups, tenants;
  for (const GroupReport& group : report.groups) {
    groups.held += group.bytes.held;
    groups.cached += group.bytes.cached;
    groups.pinned += group.bytes.pinned;
  }
  for (const TenantReport& tenant : report.tenants) {
    tenants.held += tenant.bytes.held;
    tenants.cached += tenant.bytes.cached;
    tenants.pinned += tenant.bytes.pinned;
  }
  EXPECT_EQ(groups, report.bytes);
  EXPECT_EQ(tenants, report.bytes);
}

TEST(CacheReport, BytesSumToTheBudgetByGroupAndByTenant) {
  TestCache c({Sealed(1), Window(32)}, 64);
  c.ns = c.cache->Namespace({.tenant = "a"}).value();
  c.Run(Text(64));
  PinId pin;
  ASSERT_EQ(c.cache->Pin(c.ns, Text(32), 0, &pin), 32u);
  c.ns = c.cache->Namespace({.tenant = "b"}).value();
  const SequencePages running = c.Started(Text(40));
  SequencePages secret = c.cache->NewPrivateSequence(64);
  ASSERT_TRUE(secret.Reserve(16).ok());
  const CacheReport report = MakeCacheReport(*c.cache);
  ExpectSumsToTheBudget(report);
  EXPECT_EQ(report.budget_bytes, 64 * kUnit);
  ASSERT_EQ(report.groups.size(), 2u);
  // Group 0, tenant a: 4 pages in one form, 2 of them pinned; b: 2 full ones and one in progress.
  EXPECT_EQ(report.groups[0].pages, (PageStates{.held = 3 + 1, .cached = 2, .pinned = 2}));
  // Group 1: both ends of a see 2 pages each; b sees all of its 3.
  EXPECT_EQ(report.groups[1].pages, (PageStates{.held = 3 + 1, .cached = 2, .pinned = 2}));
  EXPECT_EQ(report.groups[0].free_pages, report.free_bytes / kUnit);
  EXPECT_EQ(report.groups[1].window, 32u);
  EXPECT_EQ(report.groups[1].sealed_page_bytes, 0u);
  EXPECT_EQ(report.pages.sum() * kUnit, report.bytes.sum());
  ASSERT_EQ(report.tenants.size(), 3u);
  EXPECT_EQ(report.tenants[0].bytes.held, 2 * kUnit) << "the private sequence";
  EXPECT_EQ(report.tenants[1].tenant, "a");
  EXPECT_EQ(report.tenants[1].bytes.pinned, 4 * kUnit);
  EXPECT_EQ(report.tenants[1].retained_bytes, 4 * kUnit);
  EXPECT_EQ(report.tenants[2].bytes.held, 6 * kUnit);
  EXPECT_EQ(report.num_pins, 1u);
  EXPECT_EQ(report.num_namespaces, 3u);
  EXPECT_EQ(report.committed_page_bytes + report.committed_slack_bytes,
            c.cache->pool().committed_bytes());
  EXPECT_EQ(report.committed_page_bytes, report.bytes.sum());
}

TEST(CacheReport, ATailOfTwoTextsCountsOnceInItsTenant) {
  TestCache c({Full()}, 64);
  SequencePages first = c.Started(Text(30));
  SequencePages second = first.Fork();
  first.End(Text(30));
  ASSERT_EQ(second.Truncate(25), 25u);
  second.End(Text(25));  // the same open page, as a shorter tail
  EXPECT_EQ(c.cache->pool().num_keeps(OpenClass(0), 1), 2u);
  EXPECT_EQ(c.cache->tenant_bytes(""), 2 * kUnit);
  ExpectSumsToTheBudget(MakeCacheReport(*c.cache));
  c.ExpectSound();
}

TEST(CacheReport, EvictedPagesSayWhy) {
  TestCache c({Full(), Window(32)}, 64);
  c.Run(Text(96));
  c.Run(Text(128));  // the first end is in the middle now
  c.Evict(2);
  EXPECT_EQ(Evicted(MakeCacheReport(*c.cache), 1, EvictReason::kWindow), 2u);
  c.Evict(2);
  CacheReport report = MakeCacheReport(*c.cache);
  EXPECT_EQ(Evicted(report, 0, EvictReason::kPoolFull) +
                Evicted(report, 1, EvictReason::kPoolFull) +
                Evicted(report, 1, EvictReason::kWindow),
            4u);
  const uint64_t before = report.pages.sum();
  c.cache->DropAll();
  report = MakeCacheReport(*c.cache);
  EXPECT_EQ(Evicted(report, 0, EvictReason::kDropped) + Evicted(report, 1, EvictReason::kDropped),
            before);
}

TEST(CacheReport, WhoIsOverItsShareLosesPagesByTenantShare) {
  TestCache c({Full()}, 64);
  c.ns = c.cache->Namespace({.tenant = "a"}).value();
  c.Run(Text(64));
  c.Evict(1);
  EXPECT_EQ(Evicted(MakeCacheReport(*c.cache), 0, EvictReason::kPoolFull), 1u);
  c.ns = c.cache->Namespace({.tenant = "b"}).value();
  c.Run(Text(128));
  c.Evict(2);
  EXPECT_EQ(Evicted(MakeCacheReport(*c.cache), 0, EvictReason::kTenantShare), 2u);
}

TEST(CacheReport, WhatOutlivesItsTimeUnusedGoesByTtl) {
  TestCache c({Full()}, 64);
  c.Run(Text(64));
  PinId pin;
  ASSERT_EQ(c.cache->Pin(c.ns, Text(64), 100, &pin), 64u);
  c.cache->ExpirePins(100);
  c.Evict(1);
  EXPECT_EQ(Evicted(MakeCacheReport(*c.cache), 0, EvictReason::kTtl), 1u);
  c.Run(First(Text(64), 49));  // used again: no longer what nobody came back for
  c.Evict(2);
  const CacheReport report = MakeCacheReport(*c.cache);
  EXPECT_EQ(Evicted(report, 0, EvictReason::kTtl), 1u);
  EXPECT_EQ(Evicted(report, 0, EvictReason::kPoolFull), 2u);
}

TEST(CacheReport, ReasonsHaveTheNamesOfTheMetrics) {
  EXPECT_EQ(EvictReasonName(EvictReason::kPoolFull), "pool_full");
  EXPECT_EQ(EvictReasonName(EvictReason::kTenantShare), "tenant_share");
  EXPECT_EQ(EvictReasonName(EvictReason::kTtl), "ttl");
  EXPECT_EQ(EvictReasonName(EvictReason::kDropped), "dropped");
  EXPECT_EQ(EvictReasonName(EvictReason::kWindow), "window");
}

}  // namespace
}  // namespace quire
