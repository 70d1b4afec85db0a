// WIN-07: what a sequence needs by arithmetic is what SequencePages takes.
#include "cache/kv_need.h"

#include <algorithm>
#include <string>

#include "cache/test_cache.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 4;
constexpr uint32_t kMaxLength = 45;

struct Case {
  std::string name;
  std::vector<KvGroupShape> groups;
};

KvGroupShape SealedWindow(uint32_t window, uint32_t recent_pages = 0) {
  KvGroupShape group = Sealed(0, recent_pages);
  group.window = window;
  return group;
}

std::vector<Case> Cases() {
  KvGroupShape large = Full();
  large.open_page_bytes = 2 * kUnit + 1;
  KvGroupShape large_sealed = Sealed(1);
  large_sealed.open_page_bytes = 5 * kUnit;
  std::vector<Case> cases = {{"f16", {Full()}},
                             {"larger pages", {large, Full()}},
                             {"full and window", {Full(), Window(9)}},
                             {"three groups", {Full(), Window(5), Window(16)}},
                             {"sealed larger pages", {large_sealed}},
                             {"sealed, window", {Sealed(1), SealedWindow(9)}},
                             {"sealed, window, recent", {Sealed(2, 1), SealedWindow(6, 1)}}};
  for (uint32_t window = 1; window <= 13; ++window)
    cases.push_back({"window " + std::to_string(window), {Window(window)}});
  for (uint32_t sinks = 0; sinks <= 3; ++sinks)
    for (uint32_t recent = 0; recent <= 3; ++recent)
      cases.push_back({"sinks " + std::to_string(sinks) + ", recent " + std::to_string(recent),
                       {Sealed(sinks, recent)}});
  for (uint32_t window = 1; window <= 13; window += 3)
    for (uint32_t recent = 0; recent <= 2; ++recent)
      cases.push_back(
          {"sealed window " + std::to_string(window) + ", recent " + std::to_string(recent),
           {SealedWindow(window, recent)}});
  return cases;
}

TEST(KvNeed, HeldBytesAreWhatASequenceHoldsBetweenSteps) {
  for (const Case& c : Cases())
    for (const uint32_t chunk : {1u, 3u, 100u}) {
      TestCache cache(c.groups, 256, EvictionPolicyKind::kLru, kPageSize);
      SequencePages pages = cache.cache->NewPrivateSequence(kMaxLength);
      while (pages.length() < kMaxLength) {
        const uint32_t end = std::min(pages.length() + chunk, kMaxLength);
        cache.Compute(pages, Text(end), end, chunk);
        ASSERT_EQ(cache.cache->pool().held_bytes(), HeldBytes(cache.cache->shape(), end))
            << c.name << ", " << end << " tokens in steps of " << chunk;
      }
    }
}

TEST(KvNeed, StepBytesAreWhatAStepTakes) {
  for (const Case& c : Cases()) {
    TestCache cache(c.groups, 256, EvictionPolicyKind::kLru, kPageSize);
    for (uint32_t begin = 0; begin < kMaxLength; ++begin) {
      SequencePages pages = cache.cache->NewPrivateSequence(kMaxLength);
      if (begin > 0) cache.Compute(pages, Text(begin), begin);
      for (uint32_t end = begin; end <= kMaxLength; ++end) {
        ASSERT_EQ(pages.BytesNeeded(end), StepBytes(cache.cache->shape(), begin, end))
            << c.name << ", " << begin << " to " << end;
        const size_t held = cache.cache->pool().held_bytes();
        ASSERT_TRUE(pages.Reserve(end).ok());
        ASSERT_EQ(cache.cache->pool().held_bytes() - held,
                  StepBytes(cache.cache->shape(), begin, end))
            << c.name << ", " << begin << " to " << end;
        pages.Cancel();
        ASSERT_EQ(cache.cache->pool().held_bytes(), held);
      }
    }
  }
}

// Token by token to `length` in a budget of this many bytes.
bool Fits(const Case& c, size_t bytes, uint32_t length, bool shares) {
  auto cache = KvCache::Create({.shape = {.page_size = kPageSize, .groups = c.groups},
                                .budget_bytes = bytes,
                                .policy = EvictionPolicyKind::kLru,
                                .keeps_prefixes = shares,
                                .max_namespaces = 2});
  if (!cache.ok()) return false;  // not even one page of each kind
  const NamespaceId ns = (*cache)->Namespace({}).value();
  SequencePages pages = (*cache)->NewSequence(ns, length);
  const Tokens text = Text(length);
  for (uint32_t end = 1; end <= length; ++end) {
    if (!pages.Reserve(end).ok()) return false;
    pages.Commit(end, text);
  }
  return true;
}

TEST(KvNeed, LeastBytesAreEnoughAndAUnitLessIsNot) {
  for (const Case& c : Cases())
    for (uint32_t length = 1; length <= kMaxLength; ++length) {
      const size_t least = LeastBytes({.page_size = kPageSize, .groups = c.groups}, length);
      for (const bool shares : {false, true})
        ASSERT_TRUE(Fits(c, least, length, shares)) << c.name << ", " << length;
      ASSERT_FALSE(Fits(c, least - kUnit, length, false)) << c.name << ", " << length;
    }
}

// PLN-11: what a second sequence holds beside the first, which stays at the end of the prefix.
TEST(KvNeed, OwnBytesAreWhatASequenceAddsToASharedPrefix) {
  for (const Case& c : Cases())
    for (const uint32_t shared : {kPageSize, 3 * kPageSize, 6 * kPageSize}) {
      TestCache cache(c.groups, 256, EvictionPolicyKind::kLru, kPageSize);
      const KvShape& shape = cache.cache->shape();
      const Tokens text = Text(kMaxLength);
      const SequencePages first = cache.Started(First(text, shared));
      ASSERT_EQ(cache.cache->pool().held_bytes(), HeldBytes(shape, shared)) << c.name;
      SequencePages second = cache.Start(text);
      ASSERT_EQ(second.length(), shared) << c.name;
      while (second.length() < kMaxLength) {
        const uint32_t end = second.length() + 1;
        cache.Compute(second, text, end);
        ASSERT_EQ(cache.cache->pool().held_bytes(),
                  HeldBytes(shape, shared) + HeldBytes(shape, end, shared))
            << c.name << ", " << end << " tokens, " << shared << " shared";
      }
    }
}

TEST(KvNeed, TheLargestStepIsTheLargestOfAllSteps) {
  for (const Case& c : Cases()) {
    const KvShape shape = {.page_size = kPageSize, .groups = c.groups};
    for (const uint32_t shared : {0u, kPageSize, 3 * kPageSize}) {
      size_t most = 0;
      for (uint32_t length = shared; length <= kMaxLength; ++length) {
        most = std::max(most, HeldBytes(shape, length, shared));
        ASSERT_EQ(LeastBytes(shape, length, shared), most) << c.name << ", " << length;
        most =
            std::max(most, HeldBytes(shape, length, shared) + StepBytes(shape, length, length + 1));
      }
    }
  }
}

TEST(KvNeed, NoTokensNeedNothing) {
  for (const Case& c : Cases()) {
    const KvShape shape = {.page_size = kPageSize, .groups = c.groups};
    EXPECT_EQ(HeldBytes(shape, 0), 0u);
    EXPECT_EQ(StepBytes(shape, 7, 7), 0u);
    EXPECT_EQ(LeastBytes(shape, 0), 0u);
  }
}

// 100 tokens, page 16, window 16: 7 pages of the full layer, at most 2 of the window layer.
TEST(KvNeed, AWindowLayerNeedsItsWindowOnly) {
  const KvShape shape = {.page_size = 16, .groups = {Full(), Window(16)}};
  EXPECT_EQ(HeldBytes(shape, 100), (7 + 2) * kUnit);
  EXPECT_EQ(HeldBytes(shape, 96), (6 + 1) * kUnit);
}

}  // namespace
}  // namespace quire
