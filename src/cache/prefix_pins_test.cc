#include "cache/prefix_pins.h"

#include "cache/test_cache.h"

namespace quire {
namespace {

TEST(PrefixPins, APrefixHasOnePinThatTakesTheLaterEnd) {
  TestCache c({Full()}, 64);
  c.Run(Text(64));
  const PinResult first = c.cache->Pin(c.ns, Text(40), {.until_s = 100, .label = "one"});
  EXPECT_EQ(first.length, 32u);
  EXPECT_EQ(first.bytes, 2 * kUnit);
  const PinResult second = c.cache->Pin(c.ns, Text(32), {.until_s = 50});
  EXPECT_EQ(second.pin, first.pin);
  EXPECT_EQ(second.bytes, 0u);
  EXPECT_EQ(c.cache->num_pins(), 1u);
  EXPECT_EQ(c.cache->pins().all().begin()->second.until_s, 100u);
  EXPECT_EQ(c.cache->pins().all().begin()->second.label, "one");
  c.cache->Pin(c.ns, Text(32), {.label = "for ever"});
  c.cache->ExpirePins(100);
  ASSERT_EQ(c.cache->num_pins(), 1u);
  EXPECT_EQ(c.cache->pins().all().begin()->second.until_s, 0u);
  EXPECT_EQ(c.cache->pins().all().begin()->second.label, "for ever");
  EXPECT_EQ(c.cache->pool().pinned_bytes(), 2 * kUnit);
  EXPECT_TRUE(c.cache->Unpin(first.pin));
  EXPECT_EQ(c.cache->pool().pinned_bytes(), 0u);
}

TEST(PrefixPins, OverTheBudgetNothingIsPinned) {
  TestCache c({Full(), Window(32)}, 128);
  c.ns = c.cache->Namespace({.tenant = "a"}).value();
  const TenantId tenant = c.cache->tenant_of(c.ns);
  const auto retained = [&] { return c.cache->pool().retained_bytes(tenant) / kUnit; };
  c.Run(Text(64));
  c.Run(Text(64, 1));
  // 4 pages, and 3 of the window: position 64 sees two, and the mark keeps one more.
  PinResult result = c.cache->Pin(c.ns, Text(64), {.most_bytes = 7 * kUnit - 1});
  EXPECT_TRUE(result.is_over_budget);
  EXPECT_EQ(result.pin, 0u);
  EXPECT_EQ(result.length, 64u);
  EXPECT_EQ(retained(), 0u);
  EXPECT_EQ(c.cache->num_pins(), 0u);
  result = c.cache->Pin(c.ns, Text(64), {.most_bytes = 7 * kUnit});
  EXPECT_FALSE(result.is_over_budget);
  EXPECT_EQ(result.bytes, 7 * kUnit);
  EXPECT_EQ(retained(), 7u);
  EXPECT_TRUE(c.cache->Pin(c.ns, Text(64, 1), {.most_bytes = 13 * kUnit}).is_over_budget);
  EXPECT_TRUE(c.cache->Pin(c.ns, Text(64, 1), {.most_total_bytes = 13 * kUnit}).is_over_budget);
  // What is pinned already costs nothing: two pages, whose window pages are too.
  const SequencePages running = c.Started(Text(65));
  EXPECT_EQ(retained(), 7u) << "in use or not";
  EXPECT_FALSE(c.cache->Pin(c.ns, Text(64), {.until_s = 9, .most_bytes = 0}).is_over_budget);
  // Another tenant has a budget of its own.
  c.ns = c.cache->Namespace({.tenant = "b"}).value();
  c.Run(Text(64));
  EXPECT_FALSE(c.cache->Pin(c.ns, Text(64), {.most_bytes = 7 * kUnit}).is_over_budget);
}

TEST(PrefixPins, APinIsChangedByThePrefixesName) {
  TestCache c({Full()}, 64);
  c.ns = c.cache->Namespace({.tenant = "a"}).value();
  c.Run(Text(64));
  const PrefixId id = ListPrefixes(*c.cache, {}).prefixes.at(0).id;
  EXPECT_FALSE(c.cache->SetPin(id + 1, {}, true, {}).has_value());
  EXPECT_FALSE(c.cache->SetPin(id, "b", true, {}).has_value()) << "of another tenant";
  EXPECT_TRUE(c.cache->SetPin(id, "a", true, {.most_bytes = 1})->is_over_budget);
  ASSERT_NE(c.cache->SetPin(id, "a", true, {.until_s = 30, .label = "x"})->pin, 0u);
  const auto prefix = [&] { return ListPrefixes(*c.cache, {}).prefixes.at(0); };
  EXPECT_EQ(c.cache->num_pins(), 1u);
  EXPECT_TRUE(prefix().is_pinned);
  EXPECT_EQ(prefix().retained_until_s, 30u);
  c.cache->SetPin(id, {}, false, {.until_s = 20});
  EXPECT_FALSE(prefix().is_pinned);
  EXPECT_EQ(prefix().retained_until_s, 20u) << "an earlier end too";
  EXPECT_EQ(prefix().label, "x");
  c.cache->SetPin(id, {}, false, {});
  EXPECT_EQ(c.cache->num_pins(), 0u);
  EXPECT_EQ(c.cache->pool().pinned_bytes(), 0u);
}

TEST(PrefixPins, DroppingATextLeavesThePinnedPrefixItGoesOnFrom) {
  TestCache c({Full()}, 64);
  c.Run(Text(96));
  c.cache->Pin(c.ns, Text(32), {});
  EXPECT_EQ(c.cache->DropText(c.ns, Text(96)), 4u);
  EXPECT_EQ(c.Find(Text(96)).length, 32u);
  EXPECT_EQ(c.cache->num_pins(), 1u);
  EXPECT_EQ(c.cache->DropText(c.ns, Text(32)), 2u) << "itself it does not save";
  EXPECT_EQ(c.cache->num_pins(), 0u);
}

}  // namespace
}  // namespace quire
