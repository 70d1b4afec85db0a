// CAC-10, CAC-15, CAC-16, PFX-05, PFX-15, PFX-16, WIN-06, WIN-08: the cache as a whole.
#include "cache/kv_cache.h"

#include <algorithm>
#include <random>

#include "cache/test_cache.h"

namespace quire {
namespace {

// PFX-05 and PFX-16.
TEST(KvCache, NamespacesOfDifferentKeysShareNothing) {
  TestCache c({Full()}, 64);
  const std::vector<NamespaceKey> keys = {
      {},
      {.salt = "X"},
      {.adapter = "X"},
      {.tenant = "X"},
      {.identity = "X"},
      {.salt = "X", .adapter = "X"},
  };
  std::vector<NamespaceId> ids;
  for (const NamespaceKey& key : keys) {
    const auto ns = c.cache->Namespace(key);
    ASSERT_TRUE(ns.ok());
    for (const NamespaceId other : ids) EXPECT_NE(*ns, other);
    ids.push_back(*ns);
    EXPECT_EQ(*c.cache->Namespace(key), *ns);
  }
  c.ns = ids[1];
  c.Run(Text(64));
  for (const NamespaceId ns : ids) {
    c.ns = ns;
    EXPECT_EQ(c.Find(Text(65)).length, ns == ids[1] ? 64u : 0u);
    EXPECT_EQ(c.Run(Text(65)), ns == ids[1] ? 64u : 0u);
    EXPECT_EQ(c.Find(Text(65)).length, 65u);  // it has its own from here on
  }
}

TEST(KvCache, ANamespaceTooManyIsRefusedWhileAllAreHeld) {
  TestCache c({Full()}, 64);
  std::vector<NamespaceHold> holds;
  Status status = OkStatus();
  for (int i = 0; i < 10 && status.ok(); ++i) {
    const auto ns = c.cache->Namespace({.salt = std::to_string(i)});
    status = ns.status();
    if (ns.ok()) holds.push_back(c.cache->Hold(*ns));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(holds.size(), 7u) << "8, less that of private sequences; the test's own is idle";
  EXPECT_TRUE(c.cache->Namespace({.salt = "0"}).ok()) << "known ones still work";
  holds.pop_back();
  EXPECT_TRUE(c.cache->Namespace({.salt = "new"}).ok());
}

TEST(KvCache, WithoutKeptPrefixesNothingIsShared) {
  auto cache = KvCache::Create({.shape = {.page_size = 16, .groups = {Full()}},
                                .budget_bytes = 64 * kUnit,
                                .keeps_prefixes = false});
  ASSERT_TRUE(cache.ok());
  const NamespaceId ns = (*cache)->Namespace({}).value();
  for (int round = 0; round < 2; ++round) {
    PrefixMatch match;
    SequencePages pages = (*cache)->NewSequence(ns, Text(64), 100, &match);
    EXPECT_EQ(pages.length(), 0u);
    ASSERT_TRUE(pages.Reserve(64).ok());
    pages.Commit(64, Text(64));
    pages.End(Text(64));
    EXPECT_EQ((*cache)->pool().free_bytes(), 64 * kUnit);
  }
  EXPECT_EQ((*cache)->match_counts().num_matches, 2u);
  EXPECT_EQ((*cache)->match_counts().matched_tokens, 0u);
}

TEST(KvCache, MatchesAreCounted) {
  TestCache c({Full()}, 64);
  c.Run(Text(40));
  c.Run(Text(40) + Text(10, 1));
  c.Run(First(Text(40), 20) + Text(20, 2));
  const MatchCounts& counts = c.cache->match_counts();
  EXPECT_EQ(counts.num_matches, 3u);
  EXPECT_EQ(counts.queried_tokens, 40u + 50u + 40u);
  EXPECT_EQ(counts.matched_tokens, 0u + 40u + 16u);
  EXPECT_EQ(counts.by_stop[static_cast<size_t>(MatchStop::kNamespace)], 1u);
  EXPECT_EQ(counts.by_stop[static_cast<size_t>(MatchStop::kDiverged)], 2u);
}

TEST(KvCache, MakeRoomGivesAllThatNobodyNeedsAndNoMore) {
  TestCache c({Full()}, 16);
  c.Run(Text(160));
  PinId pin;
  ASSERT_EQ(c.cache->Pin(c.ns, Text(32), 0, &pin), 32u);
  SequencePages running = c.Started(Text(64));
  EXPECT_EQ(c.cache->available_bytes(), 12 * kUnit);
  const size_t cached = c.cached();
  EXPECT_FALSE(c.cache->MakeRoom(13 * kUnit));
  EXPECT_EQ(c.cached(), cached) << "a refusal evicts nothing";
  EXPECT_TRUE(c.cache->MakeRoom(12 * kUnit));
  running.Release();
  EXPECT_EQ(c.cache->available_bytes(), 14 * kUnit);
  EXPECT_TRUE(c.cache->MakeRoom(14 * kUnit));
  EXPECT_EQ(c.Find(Text(64)).length, 32u);
  EXPECT_TRUE(c.cache->Unpin(pin));
  EXPECT_FALSE(c.cache->Unpin(pin));
  EXPECT_TRUE(c.cache->MakeRoom(16 * kUnit));
}

TEST(KvCache, PinsHoldUntilTheirTime) {
  TestCache c({Full()}, 16);
  c.Run(Text(64));
  PinId forever, timed, none = 77;
  EXPECT_EQ(c.cache->Pin(c.ns, Text(64) + Text(50, 1), 100, &timed), 64u);
  EXPECT_EQ(c.cache->Pin(c.ns, Text(40), 0, &forever), 32u);
  EXPECT_EQ(c.cache->Pin(c.ns, Text(64, 5), 0, &none), 0u);
  EXPECT_EQ(none, 77u);
  EXPECT_EQ(c.cache->num_pins(), 2u);
  c.cache->ExpirePins(99);
  EXPECT_EQ(c.cache->pool().pinned_bytes(), 4 * kUnit);
  c.cache->ExpirePins(100);
  EXPECT_EQ(c.cache->pool().pinned_bytes(), 2 * kUnit);
  EXPECT_EQ(c.cache->num_pins(), 1u);
  EXPECT_FALSE(c.cache->Unpin(timed));
  EXPECT_TRUE(c.cache->Unpin(forever));
}

// PFX-15.
TEST(KvCache, DropsForgetWhatTheyNameAndKeepWhatIsShared) {
  TestCache c({Full()}, 64);
  const Tokens shared = Text(36), a = shared + Text(60, 1), b = shared + Text(60, 2);
  c.Run(a);
  c.Run(b);
  ASSERT_EQ(c.cached(), 2u + 4u + 4u);
  EXPECT_EQ(c.cache->DropText(c.ns, shared), 0u) << "others have all of it";
  EXPECT_EQ(c.cache->DropText(c.ns, a), 4u);
  EXPECT_EQ(c.Find(a).length, 32u);
  EXPECT_EQ(c.Find(b).length, 96u);
  EXPECT_EQ(c.cached(), 6u);
  c.Run(a);
  EXPECT_EQ(c.cache->DropPrefix(c.ns, shared + Text(1, 2)), 4u) << "inside a page";
  EXPECT_EQ(c.Find(b).length, 32u);
  EXPECT_EQ(c.Find(a).length, 96u);
  EXPECT_EQ(c.cache->DropPrefix(c.ns, Text(5, 3)), 0u);
  EXPECT_EQ(c.Find(a).length, 96u) << "a short prefix is not a namespace";
  EXPECT_EQ(c.cache->DropPrefix(c.ns, Text(5)), 6u);
  EXPECT_EQ(c.cached(), 0u);
  c.Run(a);
  c.Run(Text(40, 7));
  EXPECT_EQ(c.cache->DropNamespace(c.ns), 6u + 3u);
  c.Run(a);
  const NamespaceId ns = c.ns;
  c.ns = c.cache->Namespace({.salt = "2"}).value();
  c.Run(a);
  EXPECT_EQ(c.cache->DropNamespace(ns), 6u);
  EXPECT_EQ(c.cached(), 6u);
  EXPECT_EQ(c.cache->DropAll(), 6u);
  EXPECT_EQ(c.cached(), 0u);
}

TEST(KvCache, DropsEndPinsAndLeaveWhatRunsItsPages) {
  TestCache c({Full()}, 64);
  SequencePages running = c.Started(Text(64));
  PinId pin;
  ASSERT_EQ(c.cache->Pin(c.ns, Text(48), 0, &pin), 48u);
  EXPECT_EQ(c.cache->DropAll(), 0u);
  EXPECT_EQ(c.cache->num_pins(), 0u);
  EXPECT_FALSE(c.cache->Unpin(pin));
  EXPECT_EQ(c.Find(Text(64)).length, 0u);
  EXPECT_EQ(c.held(), 4u);
  c.Compute(running, Text(100), 100);
  EXPECT_EQ(c.Find(Text(100)).length, 0u);
  running.End(Text(100));
  EXPECT_EQ(c.held() + c.cached(), 0u);
  c.Run(Text(64));
  EXPECT_EQ(c.Find(Text(65)).length, 64u);
}

TEST(KvCache, BytesOfATenantAreThoseItsNamespacesKeep) {
  TestCache c({Full()}, 64);
  EXPECT_EQ(c.cache->tenant_bytes("a"), 0u);
  c.ns = c.cache->Namespace({.tenant = "a"}).value();
  c.Run(Text(64));
  c.ns = c.cache->Namespace({.tenant = "a", .salt = "s"}).value();
  c.Run(Text(32));
  c.ns = c.cache->Namespace({.tenant = "b"}).value();
  c.Run(Text(16));
  EXPECT_EQ(c.cache->tenant_bytes("a"), 6 * kUnit);
  EXPECT_EQ(c.cache->tenant_bytes("b"), 1 * kUnit);
  c.cache->SetTenantShare("a", 0.1);
  c.Evict(1);
  EXPECT_EQ(c.cache->tenant_bytes("a"), 5 * kUnit);
}

// CAC-15: all that is held has an owner.
TEST(KvCache, TheOwnersPagesAreAllPages) {
  TestCache c({Full(), Window(32)}, 256);
  std::vector<SequencePages> chats;
  for (TokenId i = 0; i < 5; ++i) chats.push_back(c.Started(Text(100, i)));
  chats.push_back(chats[0].Fork());
  size_t own = 0;
  for (const SequencePages& chat : chats) own += chat.ReleasableBytes();
  size_t shared = 0;  // of the first and its fork
  for (uint32_t g = 0; g < 2; ++g)
    for (uint32_t page = chats[0].table(g).first_page(); page < 7; ++page) shared += kUnit;
  EXPECT_EQ(own + shared, c.cache->pool().held_bytes());
  for (TokenId i = 0; i < 5; ++i) chats[static_cast<size_t>(i)].End(Text(100, i));
  chats.clear();
  EXPECT_EQ(c.held(), 0u);
  EXPECT_EQ(c.cache->tenant_bytes(""), c.cache->pool().cached_bytes());
}

// CAC-16: an end at each step of a request's life, 1,000 times.
TEST(KvCache, NoLockIsLeftWhereverARequestEnds) {
  for (const std::vector<KvGroupShape>& groups :
       {std::vector{Full()}, {Full(), Window(32)}, {Sealed(1, 1)}}) {
    TestCache c(groups, 64);
    c.Run(Text(100));
    for (TokenId i = 0; i < 1000; ++i) {
      const Tokens text = First(Text(100), 20 + static_cast<uint32_t>(i) % 70) + Text(60, i % 7);
      c.Find(text);
      SequencePages pages = c.Start(text);
      const auto end = static_cast<uint32_t>(text.size());
      switch (i % 6) {
        case 0:
          break;
        case 1:
          pages.Follow(text);
          break;
        case 2:
          ASSERT_TRUE(pages.Reserve(end).ok());
          break;
        case 3:
          ASSERT_TRUE(pages.Reserve(end).ok());
          pages.Cancel();
          break;
        case 4:
          c.Compute(pages, text, end);
          break;
        case 5:
          c.Compute(pages, text, end);
          pages.End(text);
          break;
      }
    }
    EXPECT_EQ(c.held(), 0u);
    EXPECT_EQ(c.cache->pool().evictable_bytes(), c.cache->pool().cached_bytes());
    c.cache->DropAll();
    EXPECT_EQ(c.cache->pool().free_bytes(), 64 * kUnit);
    EXPECT_EQ(c.cache->tree().nodes().num_nodes(), 2u);
  }
}

// WIN-06: 200 chats that come again, with room for 25, 50, 75 and 100 % of their pages.
TEST(KvCache, HitsOfAWindowModelFallWithPressureNotAtOnce) {
  std::vector<double> rates;
  for (const uint32_t percent : {25u, 50u, 75u, 110u}) {
    TestCache c({Full(), Window(32)}, 200 * 9 * percent / 100);
    std::mt19937 random(1);
    uint64_t queried = 0, hit = 0;
    for (int request = 0; request < 2000; ++request) {
      const auto chat = static_cast<TokenId>(random() % 200);
      hit += c.Run(Text(96, chat));
      queried += 96;
    }
    rates.push_back(static_cast<double>(hit) / static_cast<double>(queried));
  }
  EXPECT_GT(rates[0], 0.15);
  EXPECT_GT(rates[1], rates[0] + 0.1);
  EXPECT_GT(rates[2], rates[1] + 0.1);
  EXPECT_GT(rates[3], 0.85);
}

// WIN-08: 20 short, then 2 long; each class from the one budget.
TEST(KvCache, NoClassRunsOutWhileTheBudgetHasRoom) {
  TestCache c({Full(), Window(32)}, 100);
  std::vector<SequencePages> all;
  for (TokenId i = 0; i < 20; ++i) all.push_back(c.Started(Text(16, i)));
  EXPECT_EQ(c.held(), 40u);
  all.push_back(c.Started(Text(400, 50)));
  EXPECT_EQ(c.held(), 40u + 25u + 2u);
  SequencePages last = c.Start(Text(1000, 51));
  uint32_t length = 0;
  while (last.Reserve(length + 16).ok()) {
    length += 16;
    last.Commit(length, Text(length, 51));
    EXPECT_EQ(last.CheckInvariants().message(), "");
  }
  EXPECT_EQ(c.held(), 99u) << "what is left is less than a page of each group";
  EXPECT_EQ(length, 30u * 16);
}

// CAC-10: a large budget takes no memory and no time before it is used.
TEST(KvCache, AnIdleCacheOfAnySizeCommitsNothing) {
  KvGroupShape full = Sealed(1), window = Window(4096);
  full.open_page_bytes = window.open_page_bytes = size_t{1} << 20;
  full.sealed_page_bytes = size_t{1} << 18;
  auto cache = KvCache::Create(
      {.shape = {.page_size = 64, .groups = {full, window}}, .budget_bytes = size_t{1} << 40});
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  EXPECT_EQ((*cache)->pool().committed_bytes(), 0u);
}

}  // namespace
}  // namespace quire
