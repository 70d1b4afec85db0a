#include "base/instruction_set.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(InstructionSet, PortableIsAlwaysThereAndFirst) {
  EXPECT_EQ(AvailableInstructionSets().front(), InstructionSet::kPortable);
}

TEST(InstructionSet, DefaultIsTheFastest) {
  EXPECT_EQ(ChooseInstructionSet(std::nullopt).value(), AvailableInstructionSets().back());
  EXPECT_EQ(ChooseInstructionSet("").value(), AvailableInstructionSets().back());
}

TEST(InstructionSet, EachAvailableOneCanBeForced) {
  for (InstructionSet set : AvailableInstructionSets())
    EXPECT_EQ(ChooseInstructionSet(InstructionSetName(set)).value(), set);
}

TEST(InstructionSet, UnknownAndMissingOnesAreErrorsThatNameTheChoice) {
  const Status unknown = ChooseInstructionSet("avx9").status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("portable"), std::string::npos);
  if (AvailableInstructionSets().back() != InstructionSet::kAvx512) {
    EXPECT_EQ(ChooseInstructionSet("avx512").status().code(), StatusCode::kUnsupported);
  }
}

}  // namespace
}  // namespace quire
