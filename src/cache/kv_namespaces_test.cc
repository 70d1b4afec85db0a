// SEC-03, PFX-05: namespaces are bounded, and clients that choose salts exhaust nothing.
#include <string>
#include <tuple>
#include <vector>

#include "cache/cache_report.h"
#include "cache/kv_cache.h"
#include "cache/test_cache.h"

namespace quire {
namespace {

NamespaceId Make(TestCache& c, const std::string& tenant, const std::string& salt) {
  const auto ns = c.cache->Namespace({.tenant = tenant, .salt = salt});
  EXPECT_TRUE(ns.ok()) << ns.status().message();
  return ns.ok() ? *ns : 0;
}

TEST(KvNamespaces, ALookMakesNone) {
  TestCache c({Full()}, 16);
  const size_t num_nodes = c.cache->tree().nodes().num_nodes();
  for (int i = 0; i < 100; ++i) {
    const NamespaceKey key = {.tenant = std::to_string(i), .salt = std::to_string(i)};
    EXPECT_FALSE(c.cache->FindNamespace(key).has_value());
    const PrefixMatch match = c.cache->Find(key, Text(40));
    EXPECT_EQ(match.length, 0u);
    EXPECT_EQ(match.stop, MatchStop::kNamespace);
  }
  EXPECT_EQ(c.cache->num_namespaces(), 1u);
  EXPECT_EQ(c.cache->num_tenants(), 1u);
  EXPECT_EQ(c.cache->tree().nodes().num_nodes(), num_nodes);
  c.Run(Text(40));
  EXPECT_EQ(c.cache->Find(NamespaceKey(), Text(40)).length, 40u);
}

TEST(KvNamespaces, ALookChangesNothing) {
  TestCache c({Full(), Window(32), Sealed(1)}, 128);
  c.Run(Text(100));
  const auto uses_of = [&] {
    std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> all;
    for (const PrefixUse& use : c.cache->tree().uses())
      all.emplace_back(use.key, use.num_hits, use.last_used_s);
    return all;
  };
  const auto before = uses_of();
  const CacheReport report = MakeCacheReport(*c.cache);
  c.cache->ExpirePins(50);
  for (uint32_t length = 1; length < 120; ++length) c.Find(First(Text(60) + Text(60, 1), length));
  EXPECT_EQ(uses_of(), before);
  EXPECT_EQ(c.cache->match_counts().num_matches, 1u);
  const CacheReport after = MakeCacheReport(*c.cache);
  EXPECT_EQ(after.bytes, report.bytes);
  EXPECT_EQ(after.num_nodes, report.num_nodes);
}

TEST(KvNamespaces, AFloodOfSaltsUsesIdleOnesAgainOldestFirst) {
  TestCache c({Full()}, 64);  // 8 namespaces, 2 taken
  c.Run(Text(32));
  for (int i = 0; i < 6; ++i) Make(c, "", std::to_string(i));
  for (int i = 6; i < 1000; ++i) {
    c.ns = Make(c, "", std::to_string(i));
    EXPECT_EQ(c.Find(Text(32)).stop, MatchStop::kNamespace) << "what its place had is gone";
    EXPECT_FALSE(c.cache->FindNamespace({.salt = std::to_string(i - 6)}).has_value());
    EXPECT_TRUE(c.cache->FindNamespace({.salt = std::to_string(i - 5)}).has_value());
    c.ExpectSound();
  }
  EXPECT_EQ(c.cache->num_namespaces(), 7u);
  EXPECT_EQ(c.cache->Find(NamespaceKey(), Text(32)).length, 32u) << "it was not idle";
}

TEST(KvNamespaces, WhoHasMostGivesTheOneItLeftLongestAgo) {
  TestCache c({Full()}, 64);
  c.cache->DropAll();
  for (const char* tenant : {"a", "b"})
    for (int i = 0; i < (tenant[0] == 'a' ? 2 : 4); ++i) {
      c.ns = Make(c, tenant, std::to_string(i));
      c.Run(Text(32));
    }
  // All 8 have something now but that of private sequences and the test's own, which is idle.
  c.ns = Make(c, "b", "x");
  c.Run(Text(32));
  c.ns = *c.cache->FindNamespace({.tenant = "b", .salt = "0"});
  c.Run(Text(32));  // "1" is that of longest ago now
  for (int i = 0; i < 2; ++i) {
    c.ns = Make(c, "b", std::to_string(100 + i));
    c.Run(Text(32));
    c.ExpectSound();
  }
  const auto has = [&](const char* tenant, const char* salt) {
    return c.cache->Find({.tenant = tenant, .salt = salt}, Text(32)).length == 32;
  };
  EXPECT_TRUE(has("a", "0") && has("a", "1")) << "the other tenant's stay";
  EXPECT_TRUE(has("b", "0") && has("b", "3") && has("b", "x") && has("b", "101"));
  EXPECT_FALSE(has("b", "1") || has("b", "2"));
  const CacheReport report = MakeCacheReport(*c.cache);
  EXPECT_EQ(report.groups[0].evicted_pages[static_cast<size_t>(EvictReason::kTenantShare)], 4u);
}

TEST(KvNamespaces, WhatIsHeldRunsOrIsPinnedIsNotGivenAway) {
  TestCache c({Full()}, 64);
  const NamespaceId held = Make(c, "", "held");
  const NamespaceHold hold = c.cache->Hold(held);
  const NamespaceId runs = Make(c, "", "runs");
  c.ns = runs;
  SequencePages running = c.Started(Text(40));
  const NamespaceId pinned = c.ns = Make(c, "", "pinned");
  c.Run(Text(40));
  PinId pin;
  ASSERT_EQ(c.cache->Pin(c.ns, Text(40), 0, &pin), 32u);
  for (int i = 0; i < 100; ++i) {
    c.ns = Make(c, "", std::to_string(i));
    if (i % 2 == 0) c.Run(Text(20));
    for (const NamespaceId stays : {held, runs, pinned}) EXPECT_NE(c.ns, stays);
    c.ExpectSound();
  }
  EXPECT_EQ(c.cache->Find({.salt = "pinned"}, Text(40)).length, 32u + 8u);
  running.End(Text(40));
  EXPECT_EQ(c.cache->Find({.salt = "runs"}, Text(40)).length, 40u);
}

TEST(KvNamespaces, ATenantsCacheIsDroppedAlone) {
  TestCache c({Full()}, 64);
  for (const char* tenant : {"a", "b"})
    for (const char* salt : {"", "s"}) {
      c.ns = Make(c, tenant, salt);
      c.Run(Text(32));
    }
  EXPECT_EQ(c.cache->DropTenant("a"), 4u);
  EXPECT_EQ(c.cache->DropTenant("c"), 0u);
  EXPECT_EQ(c.cache->tenant_bytes("a"), 0u);
  EXPECT_EQ(c.cache->tenant_bytes("b"), 4 * kUnit);
}

}  // namespace
}  // namespace quire
