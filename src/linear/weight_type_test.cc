#include "linear/weight_type.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(WeightType, IdsAndSizesAreThoseOfTheFormat) {
  struct Expected {
    uint32_t id;
    const char* name;
    int elements, bytes;
  };
  const Expected table[] = {
      {0, "F32", 1, 4},       {1, "F16", 1, 2},       {30, "BF16", 1, 2},
      {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},
      {7, "Q5_1", 32, 24},    {8, "Q8_0", 32, 34},    {10, "Q2_K", 256, 84},
      {11, "Q3_K", 256, 110}, {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210}, {20, "IQ4_NL", 32, 18}, {23, "IQ4_XS", 256, 136},
      {39, "MXFP4", 32, 17},
  };
  EXPECT_EQ(std::size(table), AllWeightTypes().size());
  for (const Expected& expected : table) {
    const auto type = WeightTypeFromId(expected.id);
    ASSERT_TRUE(type.has_value()) << expected.name;
    EXPECT_EQ(WeightTypeName(*type), expected.name);
    EXPECT_EQ(BlockElements(*type), expected.elements) << expected.name;
    EXPECT_EQ(BlockBytes(*type), expected.bytes) << expected.name;
    EXPECT_EQ(RowBytes(*type, 512), 512 / expected.elements * expected.bytes) << expected.name;
  }
}

TEST(WeightType, IdsOutsideTheEnumHaveNamesForMessages) {
  for (uint32_t id = 0; id < 64; ++id) EXPECT_FALSE(WeightTypeIdName(id).empty()) << id;
  EXPECT_FALSE(WeightTypeFromId(16).has_value());
  EXPECT_EQ(WeightTypeIdName(16), "IQ2_XXS");
  EXPECT_EQ(WeightTypeIdName(12), "Q4_K");
  EXPECT_EQ(WeightTypeIdName(4), "type 4");
  EXPECT_EQ(WeightTypeIdName(0xFFFFFFFFu), "type 4294967295");
}

TEST(WeightType, RowsOfNoElementsHaveNoBytes) {
  for (const WeightType type : AllWeightTypes()) EXPECT_EQ(RowBytes(type, 0), 0);
}

}  // namespace
}  // namespace quire
