#include "cache/prefix_list.h"

#include <set>

#include "cache/kv_cache.h"
#include "cache/test_cache.h"

namespace quire {
namespace {

std::vector<uint32_t> Lengths(const PrefixListing& listing) {
  std::vector<uint32_t> lengths;
  for (const PrefixInfo& info : listing.prefixes) lengths.push_back(info.length);
  return lengths;
}

using Numbers = std::vector<uint32_t>;

TEST(PrefixList, EndsBranchesAndPinsAreListedAndNothingElse) {
  TestCache c({Full()}, 64);
  EXPECT_TRUE(ListPrefixes(*c.cache, {}).prefixes.empty());
  c.Run(Text(100));
  EXPECT_EQ(Lengths(ListPrefixes(*c.cache, {})), Numbers{100});
  c.Run(Text(64) + Text(40, 1));
  c.Run(Text(64) + Text(20, 2));
  EXPECT_EQ(Lengths(ListPrefixes(*c.cache, {})), (Numbers{104, 100, 84, 64}));
  c.cache->Pin(c.ns, Text(32), {.label = "system"});
  EXPECT_EQ(Lengths(ListPrefixes(*c.cache, {})), (Numbers{104, 100, 84, 64, 32}));
  c.Run(Text(100) + Text(30, 5));  // goes on from an end
  EXPECT_EQ(Lengths(ListPrefixes(*c.cache, {})), (Numbers{130, 104, 100, 96, 84, 64, 32}))
      << "its last, open page stays, beside the full one that goes on";
  c.cache->DropPrefix(c.ns, Text(64) + Text(16, 1));
  const SequencePages running = c.Started(Text(64) + Text(20, 2));
  c.cache->DropText(c.ns, Text(64) + Text(20, 2));
  EXPECT_EQ(c.Find(Text(64) + Text(20, 2)).length, 64u + 16u) << "what runs keeps its full page";
}

TEST(PrefixList, ALineSaysWhatThePrefixHasAndWhoUsesIt) {
  TestCache c({Full(), Window(32)}, 128);
  c.ns = c.cache->Namespace({.tenant = "a"}).value();
  c.cache->ExpirePins(10);
  c.Run(Text(64));
  c.cache->ExpirePins(20);
  const SequencePages one = c.Started(Text(64) + Text(20, 1));
  const SequencePages two = c.Started(Text(64) + Text(20, 2));
  c.cache->Pin(c.ns, Text(64), {.until_s = 500, .label = "system"});
  const PrefixListing listing = ListPrefixes(*c.cache, {.order = PrefixOrder::kHits});
  EXPECT_EQ(listing.num_prefixes, 3u);
  const PrefixInfo& info = listing.prefixes.at(0);
  EXPECT_EQ(info.tenant, "a");
  EXPECT_EQ(info.length, 64u);
  EXPECT_EQ(info.num_hits, 2u);
  EXPECT_EQ(info.num_holders, 2u);
  EXPECT_EQ(info.last_used_s, 20u);
  EXPECT_EQ(info.num_pages, 4u + 3u) << "position 64 sees two, and the mark keeps one more";
  EXPECT_EQ(info.bytes, 7 * kUnit);
  EXPECT_FALSE(info.is_pinned);
  EXPECT_EQ(info.retained_until_s, 500u);
  EXPECT_EQ(info.label, "system");
  EXPECT_EQ(listing.prefixes[1].num_holders, 1u);
}

TEST(PrefixList, OrdersAndLimits) {
  TestCache c({Full()}, 128);
  for (const uint32_t i : {4u, 3u, 2u, 1u}) {
    c.cache->ExpirePins(100 - 10 * i);
    for (uint32_t round = 0; round <= 6 - i; ++round)
      c.Run(Text(16 * i, static_cast<TokenId>(i)) + Text(1, static_cast<TokenId>(50 + round)));
    c.cache->DropPrefix(c.ns, Text(16 * i, static_cast<TokenId>(i)) + Text(1, 50));
  }
  const auto list = [&](PrefixOrder order, uint32_t limit) {
    Numbers branches;
    for (const PrefixInfo& info : ListPrefixes(*c.cache, {.order = order, .limit = limit}).prefixes)
      if (info.length % 16 == 0) branches.push_back(info.length / 16);
    return branches;
  };
  EXPECT_EQ(list(PrefixOrder::kHits, 4), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(list(PrefixOrder::kHits, 2), (Numbers{1, 2}));
  EXPECT_EQ(list(PrefixOrder::kBytes, 99), (Numbers{4, 3, 2, 1}));
  EXPECT_EQ(list(PrefixOrder::kAge, 99), (Numbers{4, 3, 2, 1}));
  EXPECT_TRUE(list(PrefixOrder::kAge, 0).empty());
  EXPECT_GT(ListPrefixes(*c.cache, {.limit = 0}).num_prefixes, 4u);
}

TEST(PrefixList, ATenantSeesItsOwnAndNamesNoOther) {
  TestCache c({Full()}, 128);
  for (const char* tenant : {"a", "b"}) {
    c.ns = c.cache->Namespace({.tenant = tenant}).value();
    c.Run(Text(64));
  }
  const PrefixListing of_a = ListPrefixes(*c.cache, {.tenant = "a"});
  ASSERT_EQ(of_a.prefixes.size(), 1u);
  EXPECT_EQ(of_a.prefixes[0].tenant, "a");
  EXPECT_EQ(of_a.num_prefixes, 1u);
  EXPECT_EQ(ListPrefixes(*c.cache, {}).num_prefixes, 2u);
  EXPECT_EQ(ListPrefixes(*c.cache, {.tenant = "c"}).num_prefixes, 0u);
  const PrefixId id = of_a.prefixes[0].id;
  EXPECT_NE(ListPrefixes(*c.cache, {.tenant = "b"}).prefixes.at(0).id, id) << "equal texts";
  EXPECT_EQ(FindPrefixNode(*c.cache, id, "b"), kNoNode);
  EXPECT_NE(FindPrefixNode(*c.cache, id, "a"), kNoNode);
  EXPECT_FALSE(c.cache->DropPrefixById(id, "b").has_value());
  EXPECT_EQ(c.cache->DropPrefixById(id, "a"), 4u);
  EXPECT_FALSE(c.cache->DropPrefixById(id, "a").has_value());
  EXPECT_EQ(c.cache->tenant_bytes("b"), 4 * kUnit);
}

TEST(PrefixList, TheSameTextHasTheSameNameInEveryRun) {
  std::set<PrefixId> ids;
  for (int run = 0; run < 2; ++run) {
    TestCache c({Full()}, 128);
    if (run == 1) {  // other places in the tree
      c.ns = c.cache->Namespace({.tenant = "z"}).value();
      c.Run(Text(16, 9));
    }
    c.ns = c.cache->Namespace({.tenant = "a", .salt = "s"}).value();
    c.Run(Text(70));
    ids.insert(ListPrefixes(*c.cache, {.tenant = "a"}).prefixes.at(0).id);
  }
  EXPECT_EQ(ids.size(), 1u);
}

TEST(PrefixList, DroppingByNameTakesWhatGoesOnAndLeavesWhatOthersHave) {
  TestCache c({Full()}, 128);
  c.Run(Text(64) + Text(40, 1));
  c.Run(Text(64) + Text(40, 2));
  const auto id_of = [&](uint32_t length) {
    for (const PrefixInfo& info : ListPrefixes(*c.cache, {}).prefixes)
      if (info.length == length) return info.id;
    return PrefixId{0};
  };
  EXPECT_EQ(c.cache->DropPrefixById(id_of(104), {}), 3u) << "an end: what only it has";
  EXPECT_EQ(c.cached(), 4u + 3u);
  c.Run(Text(64) + Text(40, 3));
  EXPECT_EQ(c.cache->DropPrefixById(id_of(64), {}), 4u + 3u + 3u) << "a branch: all of it";
  EXPECT_EQ(c.cached(), 0u);
}

}  // namespace
}  // namespace quire
