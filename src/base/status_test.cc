#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/errors.h"

namespace quire {
namespace {

StatusOr<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("{} is odd: give an even number", x);
  return x / 2;
}
StatusOr<int> Quarter(int x) {
  QUIRE_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(Status, ErrorsPassThroughTheMacros) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd: give an even number");
}

TEST(Status, ContextGoesInFront) {
  EXPECT_EQ(NotFound("no such file").WithContext("model.gguf").message(),
            "model.gguf: no such file");
  EXPECT_TRUE(OkStatus().WithContext("x").ok());
}

TEST(Status, ExitCodesTellWrongInputFromWhatIsNotSupported) {
  EXPECT_EQ(ExitCode(StatusCode::kOk), 0);
  EXPECT_EQ(ExitCode(StatusCode::kInvalidArgument), 3);
  EXPECT_EQ(ExitCode(StatusCode::kNotFound), 3);
  EXPECT_EQ(ExitCode(StatusCode::kInvalidFile), 3);
  EXPECT_EQ(ExitCode(StatusCode::kUnsupported), 2);
  EXPECT_EQ(ExitCode(StatusCode::kInternal), 1);
}

TEST(Status, HoldsMoveOnlyValues) {
  StatusOr<std::unique_ptr<int>> pointer = std::make_unique<int>(7);
  auto taken = std::move(pointer).value();
  EXPECT_EQ(*taken, 7);
}

}  // namespace
}  // namespace quire
