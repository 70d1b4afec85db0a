// PFX-04, PFX-06, PFX-07, PFX-09, PFX-10, PFX-14, PFX-19, WIN-05: how much of a prompt the cache
// gives, and what it says where it stops.
#include "cache/prefix_match.h"

#include <algorithm>

#include "cache/test_cache.h"

namespace quire {
namespace {

TEST(PrefixMatch, AnEmptyNamespaceHasNothing) {
  TestCache c({Full()}, 64);
  const PrefixMatch match = c.Find(Text(40));
  EXPECT_EQ(match.length, 0u);
  EXPECT_EQ(match.stop, MatchStop::kNamespace);
  EXPECT_EQ(match.node, c.cache->tree().root(c.ns));
}

// PFX-10.
TEST(PrefixMatch, WhatIsShorterThanAPageIsNamedPageRounding) {
  TestCache c({Full()}, 64);
  const Tokens shared = Text(12);
  c.Run(shared + Text(40, 1));
  const PrefixMatch match = c.Find(shared + Text(40, 2));
  EXPECT_EQ(match.length, 0u);
  EXPECT_EQ(match.stop, MatchStop::kPageRounding);
  EXPECT_EQ(MatchStopName(match.stop), "page_rounding");
  EXPECT_EQ(match.num_shared, 12u);
}

// PFX-14.
TEST(PrefixMatch, ADivergingPromptIsToldTheToken) {
  TestCache c({Full()}, 64);
  const Tokens shared = Text(20);
  c.Run(shared + Text(20, 1));
  const PrefixMatch match = c.Find(shared + Text(20, 2));
  EXPECT_EQ(match.length, 16u);
  EXPECT_EQ(match.stop, MatchStop::kDiverged);
  EXPECT_EQ(match.num_shared, 20u);
  EXPECT_EQ(c.Run(shared + Text(20, 2)), 16u);
  EXPECT_EQ(c.cache->tree().nodes()[match.node].num_children, 2u) << "one shared page";
}

TEST(PrefixMatch, AShorterPromptStopsInsideAPage) {
  TestCache c({Full()}, 64);
  c.Run(Text(64));
  const PrefixMatch match = c.Find(Text(40));
  EXPECT_EQ(match.length, 32u);
  EXPECT_EQ(match.num_shared, 40u);
  EXPECT_EQ(match.stop, MatchStop::kPageRounding);
}

// PFX-04: as lists with one polynomial hash, below the first page too.
TEST(PrefixMatch, TokensAreComparedNotHashes) {
  TestCache c({Full()}, 64);
  const Tokens tokens = Text(48, 1);
  c.Run(tokens);
  for (const size_t j : {0u, 7u, 20u, 33u}) {
    Tokens twin = tokens;
    twin[j] += 31;
    twin[j + 1] -= 1;
    const PrefixMatch match = c.Find(twin);
    EXPECT_EQ(match.num_shared, j);
    EXPECT_EQ(match.length, j / 16 * 16);
  }
}

// PFX-06: 411 tokens of a sequence that still decodes.
TEST(PrefixMatch, PagesOfARunningSequenceAreFound) {
  TestCache c({Full()}, 64);
  const Tokens prompt = Text(411);
  SequencePages running = c.Started(prompt);
  EXPECT_EQ(c.Find(prompt).length, 400u);
  c.Compute(running, prompt + Text(30, 1), 430, 1);
  SequencePages second = c.Started(prompt);
  EXPECT_EQ(c.match.length, 400u);
  EXPECT_EQ(c.held(), 27u + 1u) << "25 shared pages, two and one of their own";
}

// PFX-07: 290 tokens of a conversation of 2,161.
TEST(PrefixMatch, AShortPrefixOfALongConversationIsUsed) {
  TestCache c({Full()}, 256);
  c.Run(Text(2161));
  const PrefixMatch match = c.Find(First(Text(2161), 290) + Text(100, 1));
  EXPECT_EQ(match.length, 288u);
  EXPECT_EQ(match.num_shared, 290u);
}

// PFX-09.
TEST(PrefixMatch, TheLongestCachedPrefixWins) {
  TestCache c({Full()}, 64);
  const Tokens text = Text(320);
  c.Run(First(text, 64));
  c.Run(text);
  EXPECT_EQ(c.Find(text + Text(1, 1)).length, 320u);
  SequencePages same = c.Start(text);
  EXPECT_EQ(same.next_position(), 319u);
}

TEST(PrefixMatch, AnOpenPageIsUsedIfThePromptGoesOnWithAllOfIt) {
  TestCache c({Full()}, 64);
  const Tokens text = Text(21);
  c.Run(text);
  PrefixMatch match = c.Find(text + Text(30, 1));
  EXPECT_EQ(match.length, 21u);
  EXPECT_NE(match.tail, kNoNode);
  match = c.Find(First(text, 20));
  EXPECT_EQ(match.length, 16u);
  EXPECT_EQ(match.num_shared, 20u);
  c.Run(First(text, 18) + Text(1, 2));  // another tail beside it
  EXPECT_EQ(c.Find(text + Text(30, 1)).length, 21u);
  c.Run(First(text, 18));  // and a shorter one
  EXPECT_EQ(c.Find(First(text, 19)).length, 18u);
  EXPECT_EQ(c.Find(text).length, 21u);
}

// A tail of the same text does not hide that a whole page is there.
TEST(PrefixMatch, AWholePageGoesBeforeATail) {
  TestCache c({Full()}, 64);
  c.Run(Text(20));
  c.Run(Text(32));
  const PrefixMatch match = c.Find(Text(40));
  EXPECT_EQ(match.length, 32u);
  EXPECT_EQ(match.tail, kNoNode);
}

// PFX-19, f16: the last token is computed again, and written nowhere.
TEST(PrefixMatch, OfAPromptThatIsCachedWholeOneTokenIsLeft) {
  TestCache c({Full()}, 64);
  c.Run(Text(96));
  SequencePages pages = c.Start(Text(96));
  EXPECT_EQ(c.match.stop, MatchStop::kWhole);
  EXPECT_EQ(c.match.length, 96u);
  EXPECT_EQ(pages.length(), 96u);
  EXPECT_EQ(pages.next_position(), 95u);
  EXPECT_EQ(pages.BytesNeeded(96), 0u) << "nothing is written";
  EXPECT_EQ(c.cache->match_counts().matched_tokens, 95u);
}

// PFX-19, page-wise codecs: the last token reads its own page open, and only a sink has that.
TEST(PrefixMatch, PageWiseCodecsComputeTheLastPageAgain) {
  TestCache c({Sealed(1)}, 64);
  c.Run(Text(96));
  SequencePages pages = c.Start(Text(96));
  EXPECT_EQ(c.match.stop, MatchStop::kWhole) << "nothing is missing in the cache";
  EXPECT_EQ(pages.length(), 80u);
  EXPECT_EQ(pages.next_position(), 80u);
  EXPECT_EQ(c.Find(Text(96) + Text(1, 1)).length, 96u) << "the next page begins: all are sealed";
  EXPECT_EQ(c.Find(Text(16)).length, 16u) << "the sink is there open";
  EXPECT_EQ(c.Find(Text(32)).length, 16u);
  c.Run(Text(100));
  EXPECT_EQ(c.Run(Text(100)), 99u) << "the open page of an ended sequence";
}

TEST(PrefixMatch, RecentPagesAreNeededOpen) {
  TestCache c({Sealed(1, 2)}, 64);
  SequencePages running = c.Started(Text(96));
  EXPECT_EQ(c.Find(Text(96) + Text(4, 1)).length, 96u);
  running.End(Text(96));
  EXPECT_EQ(c.Find(Text(96) + Text(4, 1)).length, 96u) << "kept at the end of a sequence";
  EXPECT_EQ(c.Find(Text(96)).length, 96u) << "and so the page of the last token is there open";
  while (c.cache->tree().num_evicted_secondary_pages() < 1) c.Evict(1);
  const PrefixMatch match = c.Find(Text(48) + Text(4, 1));
  EXPECT_EQ(match.length, 16u) << "pages 1 and 2 have no open form any more";
  EXPECT_EQ(match.stop, MatchStop::kWindow);
  EXPECT_EQ(match.num_shared, 48u);
}

TEST(PrefixMatch, AnEvictedPageIsNamed) {
  TestCache c({Full()}, 64);
  c.Run(Text(64));
  c.Evict(1);
  const PrefixMatch match = c.Find(Text(64));
  EXPECT_EQ(match.length, 48u);
  EXPECT_EQ(match.stop, MatchStop::kEvicted);
  EXPECT_EQ(c.Find(First(Text(64), 48) + Text(16, 1)).stop, MatchStop::kDiverged);
  c.cache->DropPrefix(c.ns, Text(48));
  EXPECT_EQ(c.Find(Text(64)).stop, MatchStop::kDiverged) << "what was dropped was not evicted";
  TestCache window({Window(16)}, 64);
  window.Run(Text(64));
  window.Evict(4);
  window.Run(Text(16, 1));
  EXPECT_EQ(window.Find(Text(64)).stop, MatchStop::kEvicted) << "nodes without pages are gone";
}

// WIN-05, at page level: a full and a window group of 16, page 16. Shared 48 tokens, tails of 40.
TEST(PrefixMatch, AWindowGivesWhatItSeesOrSaysSo) {
  TestCache c({Full(), Window(16)}, 64);
  const Tokens shared = Text(48), a = shared + Text(40, 1), b = shared + Text(40, 2);
  c.Run(a);
  const PrefixMatch first_b = c.Find(b);
  EXPECT_EQ(first_b.length, 48u) << "all is still there: nobody needed room";
  c.Run(b);
  EXPECT_GE(c.Run(a), 80u);
  // The window pages at no mark go first: then B's twin stops at the window of the shared part.
  TestCache d({Full(), Window(16)}, 64);
  d.Run(a);
  while (d.cache->tree().num_evicted_secondary_pages() < 3) d.Evict(1);
  EXPECT_EQ(d.cache->tree().num_evicted_nodes(), 0u);
  const PrefixMatch stopped = d.Find(b);
  EXPECT_EQ(stopped.length, 0u);
  EXPECT_EQ(stopped.stop, MatchStop::kWindow);
  EXPECT_EQ(stopped.num_shared, 48u);
  EXPECT_GE(d.Find(a).length, 80u) << "the end of a sequence is a mark: its window stays";
}

TEST(PrefixMatch, AMatchCanEndBehindAGapOfTheWindow) {
  TestCache c({Full(), Window(32)}, 64);
  c.Run(Text(160));
  while (c.cache->tree().num_evicted_secondary_pages() < 5) c.Evict(1);
  EXPECT_EQ(c.Find(Text(160) + Text(1, 1)).length, 160u);
  const PrefixMatch match = c.Find(Text(64) + Text(1, 1));
  EXPECT_EQ(match.length, 0u);
  EXPECT_EQ(match.stop, MatchStop::kWindow);
  EXPECT_EQ(match.num_shared, 64u);
}

TEST(PrefixMatch, AMatchChangesNothing) {
  TestCache c({Full(), Window(16)}, 64);
  c.Run(Text(90));
  const size_t cached = c.cached();
  for (uint32_t length = 1; length < 90; ++length) c.Find(Text(length));
  EXPECT_EQ(c.cached(), cached);
  EXPECT_EQ(c.held(), 0u);
  EXPECT_EQ(c.cache->match_counts().num_matches, 1u);
}

}  // namespace
}  // namespace quire
