// CAC-01 to CAC-06, CAC-12, PFX-08, PFX-13, PFX-17, PFX-19: sequences and the pages they hold.
#include "cache/sequence_pages.h"

#include <algorithm>
#include <cstring>

#include "cache/test_cache.h"

namespace quire {
namespace {

void ExpectSound(const TestCache& c, const SequencePages& pages) {
  const Status status = pages.CheckInvariants();
  EXPECT_TRUE(status.ok()) << status.message();
  c.ExpectSound();
}

// CAC-01: 3 sequences share 10 pages and part at pages 3 and 7.
TEST(SequencePages, SharedPagesCountOnce) {
  TestCache c({Full()}, 64);
  const Tokens text = Text(160);
  const auto part_at = [&](uint32_t page, TokenId kind) {
    return First(text, page * 16) + Text(16, kind);
  };
  {
    SequencePages a = c.Started(text), b = c.Started(text), d = c.Started(text);
    EXPECT_EQ(c.held(), 10u);
    SequencePages e = c.Started(part_at(3, 1)), f = c.Started(part_at(7, 2));
    EXPECT_EQ(c.held(), 12u);
    EXPECT_EQ(c.cached(), 0u);
    ExpectSound(c, f);
  }
  EXPECT_EQ(c.held(), 0u);
  EXPECT_EQ(c.cached(), 12u);
  EXPECT_EQ(c.cache->available_bytes(), 64 * kUnit);
  EXPECT_TRUE(c.cache->MakeRoom(64 * kUnit));
  EXPECT_EQ(c.cache->tree().nodes().num_nodes(), 2u) << "the roots";
}

// CAC-02: 32 tokens with page 16; one more; end; all pages used again.
TEST(SequencePages, NoPageWithoutATokenIsTaken) {
  TestCache c({Full()}, 3);
  SequencePages pages = c.Started(Text(32));
  EXPECT_EQ(c.held(), 2u);
  EXPECT_EQ(pages.BytesNeeded(32), 0u);
  c.Compute(pages, Text(33), 33);
  EXPECT_EQ(c.held(), 3u);
  pages.End(Text(33));
  EXPECT_EQ(c.held(), 0u);
  EXPECT_EQ(c.cached(), 3u);
  c.Run(Text(48, 1));
  EXPECT_EQ(c.cached(), 3u);
  EXPECT_EQ(c.Find(Text(33)).num_shared, 0u) << "no stale entry";
}

// CAC-03: 8 pages, 3 sequences that each need a page in the same step.
TEST(SequencePages, AStepThatCantBeTakenTakesNothing) {
  TestCache c({Full()}, 8);
  SequencePages a = c.Started(Text(48)), b = c.Started(Text(48, 1)), d = c.Started(Text(32, 2));
  ASSERT_EQ(c.held(), 8u);
  for (SequencePages* pages : {&a, &b, &d}) {
    const uint32_t length = pages->length();
    EXPECT_EQ(pages->Reserve(length + 1).code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(pages->length(), length);
    EXPECT_EQ(c.held(), 8u);
    ExpectSound(c, *pages);
  }
  EXPECT_EQ(d.ReleasableBytes(), 2 * kUnit);
  d.End(Text(32, 2));  // preempted
  c.Compute(a, Text(49), 49);
  c.Compute(b, Text(49, 1), 49);
  a.End(Text(49));
  b.End(Text(49, 1));
  c.Run(Text(40, 2));
}

// CAC-04: ask for 5 with 3 free.
TEST(SequencePages, AFailedReserveNamesWhatIsMissing) {
  TestCache c({Full()}, 8);
  SequencePages a = c.Started(Text(80)), b = c.Start(Text(80, 1));
  const Status status = b.Reserve(80);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("need 20,480 bytes of KV pages, 12,288 of 32,768 can be free"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(c.cache->pool().free_bytes(), 3 * kUnit);
  EXPECT_TRUE(b.Reserve(48).ok());
  b.Cancel();
  EXPECT_EQ(c.cache->pool().free_bytes(), 3 * kUnit);
}

TEST(SequencePages, ReserveEvictsCachedPagesFirst) {
  TestCache c({Full()}, 8);
  c.Run(Text(96));
  SequencePages pages = c.Started(Text(64, 1));
  EXPECT_EQ(c.held(), 4u);
  EXPECT_EQ(c.cached(), 4u);
  EXPECT_EQ(c.Find(Text(96)).length, 64u) << "leaves go first";
}

// CAC-05 and PFX-17: 100 tokens, n = 4: 6 shared pages, 4 of their own.
TEST(SequencePages, ForksShareFullPagesAndCopyTheOpenOneWhenTheyWrite) {
  TestCache c({Full()}, 10);
  const Tokens prompt = Text(100);
  std::vector<SequencePages> forks;
  forks.push_back(c.Started(prompt));
  for (int i = 1; i < 4; ++i) forks.push_back(forks[0].Fork());
  EXPECT_EQ(c.held(), 7u);
  for (SequencePages& fork : forks) {
    ASSERT_TRUE(fork.Reserve(101).ok());
    std::memset(fork.views()[0].pages[6], 1, 8);
  }
  EXPECT_EQ(c.held(), 10u) << "the last one alone writes in place";
  for (size_t i = 0; i < 4; ++i) {
    forks[i].Commit(101, prompt + Text(1, static_cast<TokenId>(i) + 1));
    ExpectSound(c, forks[i]);
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(forks[i].views()[0].pages[6], forks[j].views()[0].pages[6]);
    EXPECT_EQ(forks[i].views()[0].pages[5], forks[0].views()[0].pages[5]);
  }
}

// CAC-05: n = 8, 40 tokens, 5 pages: some wait, all end.
TEST(SequencePages, CopiesWaitForRoom) {
  TestCache c({Full()}, 5);
  const Tokens prompt = Text(40);
  std::vector<SequencePages> forks;
  forks.push_back(c.Started(prompt));
  for (int i = 1; i < 8; ++i) forks.push_back(forks[0].Fork());
  EXPECT_EQ(c.held(), 3u);
  int num_done = 0, num_waits = 0;
  for (int round = 0; round < 8 && !forks.empty(); ++round) {
    for (SequencePages& fork : forks) {
      if (!fork.Reserve(48).ok()) {
        ++num_waits;
        continue;
      }
      fork.Commit(48, prompt + Text(8, static_cast<TokenId>(++num_done)));
    }
    std::erase_if(forks, [](const SequencePages& fork) { return fork.length() == 48; });
    c.ExpectSound();
  }
  EXPECT_EQ(num_done, 8);
  EXPECT_GT(num_waits, 0);
}

// CAC-06, at page level: what a step holds is nobody else's until its end.
TEST(SequencePages, PagesOfAStepStayHeldUntilCommitOrCancel) {
  TestCache c({Full()}, 4);
  SequencePages a = c.Start(Text(32));
  ASSERT_TRUE(a.Reserve(32).ok());
  SequencePages b = c.Start(Text(48, 1));
  EXPECT_FALSE(b.Reserve(48).ok());
  ASSERT_TRUE(b.Reserve(32).ok());
  EXPECT_NE(a.views()[0].pages[0], b.views()[0].pages[0]);
  a.Cancel();
  EXPECT_EQ(a.length(), 0u);
  EXPECT_EQ(c.held(), 2u);
  b.Commit(32, Text(32, 1));
  c.Compute(b, Text(48, 1), 48);
}

// CAC-12: one request of 500 tokens, then 7 of 8.
TEST(SequencePages, OneLongSequenceTakesWhatItNeeds) {
  TestCache c({Full()}, 40);
  std::vector<SequencePages> all;
  all.push_back(c.Started(Text(500)));
  EXPECT_EQ(c.held(), 32u);
  for (TokenId kind = 1; kind <= 7; ++kind) all.push_back(c.Started(Text(8, kind)));
  EXPECT_EQ(c.held(), 39u);
}

// PFX-08.
TEST(SequencePages, ACachedPrefixServesOneAfterAnother) {
  TestCache c({Full()}, 64);
  const Tokens prefix = Text(320);
  c.Run(prefix);
  for (TokenId kind = 1; kind <= 3; ++kind) EXPECT_EQ(c.Run(prefix + Text(40, kind)), 320u);
}

// PFX-13: the same prefix computed twice, the second a step later.
TEST(SequencePages, WhatIsComputedTwiceIsHeldOnce) {
  for (const KvGroupShape& group : {Full(), Window(64), Sealed(1), Sealed(1, 1)}) {
    TestCache c({group}, 64);
    const Tokens text = Text(64);
    SequencePages a = c.Start(text), b = c.Start(text);
    ASSERT_TRUE(a.Reserve(64).ok());
    ASSERT_TRUE(b.Reserve(64).ok());
    a.Commit(64, text);
    const size_t held = c.cache->pool().held_bytes();
    b.Commit(64, text);
    EXPECT_LT(c.cache->pool().held_bytes(), held);
    ExpectSound(c, a);
    ExpectSound(c, b);
    EXPECT_EQ(a.node(), b.node());
    const bool is_sealed = group.has_sealed();
    for (uint32_t page = 1; page < 4; ++page)
      EXPECT_EQ((is_sealed ? a.views()[0].sealed : a.views()[0].pages)[page],
                (is_sealed ? b.views()[0].sealed : b.views()[0].pages)[page]);
    EXPECT_EQ(a.ReleasableBytes(), 0u);
  }
}

TEST(SequencePages, FollowTakesWhatOthersHaveComputedByNow) {
  for (const KvGroupShape& group : {Full(), Window(40), Sealed(1), Sealed(1, 2)}) {
    TestCache c({group}, 64);
    const Tokens text = Text(100);
    SequencePages a = c.Start(text), b = c.Start(text);
    c.Compute(a, text, 50);
    EXPECT_EQ(b.Follow(text), 48u);
    EXPECT_EQ(b.next_position(), 48u);
    ExpectSound(c, b);
    c.Compute(a, text, 100);
    EXPECT_EQ(b.Follow(text), 96u);
    ExpectSound(c, b);
    EXPECT_EQ(b.Follow(text), 96u);
    SequencePages d = c.Start(First(text, 8));
    EXPECT_EQ(d.Follow(First(text, 96)), 80u) << "a token must be left to compute";
  }
}

// PFX-19 with n = 2: a whole prompt from the cache, forked.
TEST(SequencePages, AWholeCachedPromptIsNotWritten) {
  TestCache c({Full()}, 64);
  c.Run(Text(96));
  SequencePages a = c.Start(Text(96)), b = a.Fork();
  EXPECT_EQ(b.next_position(), 95u);
  EXPECT_EQ(c.held(), 6u);
  const std::byte* page = a.views()[0].pages[5];
  const Tokens text = Text(96) + Text(2, 1);
  for (SequencePages* pages : {&a, &b}) {
    ASSERT_TRUE(pages->Reserve(96).ok());
    EXPECT_EQ(pages->views()[0].pages[5], page);
    pages->Commit(96, text);
    EXPECT_EQ(pages->next_position(), 96u);
    c.Compute(*pages, text, 98);
    EXPECT_EQ(pages->views()[0].pages[5], page);
  }
  EXPECT_EQ(c.held(), 8u) << "6 shared pages and one each";
}

// The last token of a whole prompt sees a page more than the one after it.
TEST(SequencePages, CancelKeepsWhatTheNextPositionSees) {
  for (const KvGroupShape& group : {Window(17), Sealed(0, 1)}) {
    TestCache c({group}, 64);
    SequencePages first = c.Started(Text(96));
    SequencePages pages = c.Start(Text(96));
    ASSERT_EQ(pages.next_position(), 95u);
    ExpectSound(c, pages);
    ASSERT_TRUE(pages.Reserve(97).ok());
    pages.Cancel();
    EXPECT_EQ(pages.next_position(), 95u);
    ExpectSound(c, pages);
  }
}

TEST(SequencePages, TheDestructorGivesAllBackAndEndLeavesAll) {
  TestCache c({Full()}, 64);
  { const SequencePages pages = c.Started(Text(40)); }
  EXPECT_EQ(c.held(), 0u);
  EXPECT_EQ(c.cached(), 2u) << "full pages are in the tree while it runs";
  c.Run(Text(40, 1));
  EXPECT_EQ(c.cached(), 2u + 3u);
  SequencePages empty = c.Start(Text(5, 2));
  empty.End({});
  EXPECT_EQ(c.cached(), 5u);
}

TEST(SequencePages, MovingKeepsOneOwner) {
  TestCache c({Full()}, 64);
  SequencePages a = c.Started(Text(40)), b = c.Started(Text(40, 1));
  const KvView view = a.views()[0];
  SequencePages moved = std::move(a);
  EXPECT_EQ(moved.views()[0].pages, view.pages);
  EXPECT_EQ(c.held(), 6u);
  b = std::move(moved);
  EXPECT_EQ(c.held(), 3u);
  ExpectSound(c, b);
  b.Release();
  b.Release();
  EXPECT_EQ(c.held(), 0u);
}

TEST(SequencePages, TruncationForgetsTokensAndLeavesTheTreeAlone) {
  TestCache c({Full()}, 64);
  const Tokens text = Text(80);
  SequencePages pages = c.Started(text);
  EXPECT_EQ(pages.Truncate(80), 80u);
  EXPECT_EQ(pages.Truncate(40), 40u);
  EXPECT_EQ(pages.next_position(), 40u);
  EXPECT_EQ(pages.num_shared_pages(), 2u);
  ExpectSound(c, pages);
  EXPECT_EQ(c.cached(), 2u) << "pages 3 and 4 stay in the tree";
  EXPECT_EQ(c.Find(text + Text(1, 1)).length, 80u);
  c.Compute(pages, First(text, 40) + Text(40, 1), 80);  // page 2 is shared: copied
  EXPECT_EQ(c.Find(text + Text(1, 1)).length, 80u);
  EXPECT_EQ(pages.Truncate(0), 0u);
  EXPECT_EQ(c.held(), 0u);
  ExpectSound(c, pages);
  c.Compute(pages, text, 80);
}

TEST(SequencePages, TruncationGoesBackToWhereTheFormsAreThere) {
  TestCache sealed({Sealed(1)}, 64);
  SequencePages a = sealed.Started(Text(70));
  EXPECT_EQ(a.Truncate(66), 66u) << "inside the open page";
  EXPECT_EQ(a.Truncate(40), 32u) << "page 2 is sealed only";
  ExpectSound(sealed, a);
  sealed.Compute(a, Text(70), 70);
  EXPECT_EQ(a.Truncate(10), 10u) << "inside the sink";
  ExpectSound(sealed, a);

  TestCache recent({Sealed(1, 2)}, 64);
  SequencePages b = recent.Started(Text(96));  // open: 0, 4, 5
  EXPECT_EQ(b.Truncate(95), 0u) << "page 3 is wanted open";
  ExpectSound(recent, b);

  TestCache window({Full(), Window(16)}, 64);
  SequencePages d = window.Started(Text(80));  // of the window: page 4
  EXPECT_EQ(d.Truncate(79), 79u);
  EXPECT_EQ(d.Truncate(78), 0u) << "position 78 sees page 3";
  ExpectSound(window, d);
  EXPECT_EQ(d.Follow(Text(80)), 64u) << "which the tree has still";
  ExpectSound(window, d);
}

// Drafted tokens: a step of 8 of which 3 are wanted.
TEST(SequencePages, CommitOfAPartGivesBackWhatIsBehind) {
  for (const KvGroupShape& group : {Full(), Window(16), Sealed(0), Sealed(0, 1)}) {
    TestCache c({group}, 64);
    SequencePages pages = c.Started(Text(28));
    ASSERT_TRUE(pages.Reserve(36).ok());
    pages.Commit(31, Text(36));
    EXPECT_EQ(pages.length(), 31u);
    ExpectSound(c, pages);
    EXPECT_EQ(pages.num_shared_pages(), 1u);
    c.Compute(pages, Text(64), 64);
  }
}

TEST(SequencePages, APrivateSequenceSharesNothing) {
  TestCache c({Full()}, 64);
  c.Run(Text(40));
  const size_t cached = c.cached();
  SequencePages pages = c.cache->NewPrivateSequence(100);
  c.Compute(pages, Text(40), 40);
  EXPECT_EQ(pages.num_shared_pages(), 0u);
  EXPECT_EQ(c.held(), 3u);
  pages.End(Text(40));
  EXPECT_EQ(c.cached(), cached);
}

TEST(SequencePages, PinnedPagesAreNotReleasable) {
  TestCache c({Full()}, 64);
  SequencePages pages = c.Started(Text(40));
  EXPECT_EQ(pages.ReleasableBytes(), 3 * kUnit);
  PinId pin;
  ASSERT_EQ(c.cache->Pin(c.ns, Text(40), 0, &pin), 32u);
  EXPECT_EQ(pages.ReleasableBytes(), 1 * kUnit);
}

}  // namespace
}  // namespace quire
