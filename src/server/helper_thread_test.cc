#include "server/helper_thread.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

namespace quire {
namespace {

TEST(HelperThread, AJobThatThrowsFailsAloneAndTheNextOnesRun) {
  std::string trouble, order;
  {
    HelperThread helper([&](std::string_view what) { trouble += std::string(what) + ";"; });
    const auto never = [&] { order += "x"; };
    helper.Post([&] { order += "1"; }, never);
    helper.Post([] { throw std::bad_alloc(); }, [&] { order += "a"; });
    helper.Post([&] { order += "2"; }, never);
    helper.Post([] { throw std::length_error("too long"); }, [] { throw std::bad_alloc(); });
    helper.Post([&] { order += "3"; }, never);
  }
  EXPECT_EQ(order, "1a23");
  EXPECT_EQ(trouble, "std::bad_alloc;too long;");
}

}  // namespace
}  // namespace quire
