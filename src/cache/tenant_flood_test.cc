// A tenant that floods the cache leaves the other at least four fifths of its hits, however long
// the prompts are: in whole pages, in tails, or in tails alone. (Real conversations:
// trace_replay_test.cc.)
#include "cache/test_cache.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 16;

class TenantFlood {
 public:
  // Room for so many pages.
  explicit TenantFlood(uint32_t num_pages)
      : cache_({Full()}, num_pages, EvictionPolicyKind::kReuse, kPageSize),
        ann_(cache_.cache->Namespace({.tenant = "ann"}).value()),
        bob_(cache_.cache->Namespace({.tenant = "bob"}).value()) {}

  // Tokens that Ann finds in `num_rounds` rounds of the same eight prompts, while Bob asks
  // `num_flood` new ones before each.
  uint64_t Hits(uint32_t prompt_len, uint32_t num_rounds, uint32_t num_flood) {
    return Hits(8, prompt_len, num_rounds, prompt_len, num_flood);
  }
  // The same of so many prompts, beside a flood of another length; each of it is asked `num_asked`
  // times.
  uint64_t Hits(TokenId num_prompts, uint32_t prompt_len, uint32_t num_rounds, uint32_t flood_len,
                uint32_t num_flood, uint32_t num_asked = 1) {
    uint64_t hits = 0;
    for (uint32_t round = 0; round < num_rounds; ++round)
      for (TokenId prompt = 0; prompt < num_prompts; ++prompt) {
        for (uint32_t i = 0; i < num_flood; ++i, ++num_texts_)
          for (uint32_t time = 0; time < num_asked; ++time)
            Run(bob_, Text(flood_len, 100 + num_texts_));
        hits += Run(ann_, Text(prompt_len, prompt));
      }
    return hits;
  }

 private:
  uint32_t Run(NamespaceId ns, const Tokens& prompt) {
    cache_.ns = ns;
    return cache_.Run(prompt);
  }

  TestCache cache_;
  NamespaceId ann_, bob_;
  TokenId num_texts_ = 0;
};

TEST(TenantFlood, LeavesTheOtherItsHitsWhateverTheLengthOfPrompts) {
  for (const uint32_t prompt_len : {5u, 15u, 16u, 24u, 31u, 40u, 48u, 60u}) {
    const uint32_t num_pages = 8 * (prompt_len / kPageSize + 1);
    TenantFlood flood(5 * num_pages / 2);  // Ann's pages, as many for Bob, and what runs
    flood.Hits(prompt_len, 2, 0);
    const uint64_t alone = flood.Hits(prompt_len, 10, 0);
    EXPECT_EQ(alone, 80u * (prompt_len - 1)) << prompt_len;
    const uint64_t flooded = flood.Hits(prompt_len, 10, 4);
    EXPECT_GE(flooded, alone * 4 / 5) << prompt_len;
  }
}

// Ann's pages are full and come again after 600 others; Bob's are tails, once or twice each.
TEST(TenantFlood, OfShortPromptsTakesNoFullPagesFromOthers) {
  for (const uint32_t num_asked : {1u, 2u}) {
    TenantFlood flood(1'500);
    flood.Hits(60, 160, 2, 0, 0);
    const uint64_t alone = flood.Hits(60, 160, 3, 0, 0);
    EXPECT_EQ(alone, 3u * 60 * 159);
    const uint64_t flooded = flood.Hits(60, 160, 4, 5, 80, num_asked);
    EXPECT_GE(flooded, alone / 3 * 4 * 4 / 5) << num_asked;
  }
}

}  // namespace
}  // namespace quire
