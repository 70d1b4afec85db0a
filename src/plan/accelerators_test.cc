#include "plan/accelerators.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

TEST(Accelerators, ASetIsACountAndAName) {
  const auto eight = ParseAccelerators("8xH100");
  ASSERT_TRUE(eight.ok()) << eight.status().message();
  EXPECT_EQ(eight->count, 8u);
  EXPECT_EQ(eight->kind->name, "H100");
  // The case that the golden values of plan_golden_test.cc begin with: 640 GB.
  EXPECT_EQ(eight->count * eight->kind->memory_bytes, 640'000'000'000u);
  const auto one = ParseAccelerators("mi300x");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->count, 1u);
  EXPECT_EQ(one->kind->memory_bytes, 192'000'000'000u);
  EXPECT_EQ(ParseAccelerators("2XA100-40gb")->kind->memory_bytes, 40'000'000'000u);
}

TEST(Accelerators, OtherTextsAreRefusedWithTheNames) {
  for (const char* text : {"", "8", "8x", "x", "0xH100", "5000xH100", "H101", "-1xH100", "8 xH100",
                           "99999999999xH100", "8xH100x", "H1000"}) {
    const auto set = ParseAccelerators(text);
    ASSERT_FALSE(set.ok()) << text;
    EXPECT_NE(set.status().message().find("H100, H100-PCIe"), std::string::npos) << text;
  }
}

TEST(Accelerators, NumbersAreOfTheirKind) {
  for (const Accelerator& kind : Accelerators()) {
    EXPECT_GE(kind.memory_bytes, 16'000'000'000u) << kind.name;
    EXPECT_GE(kind.bytes_per_second, 300e9) << kind.name;
    EXPECT_LE(kind.bytes_per_second, 10e12) << kind.name;
    // Operations a byte: every one of them has between 50 and 500.
    EXPECT_GT(kind.flops / kind.bytes_per_second, 50) << kind.name;
    EXPECT_LT(kind.flops / kind.bytes_per_second, 500) << kind.name;
  }
}

}  // namespace
}  // namespace quire
