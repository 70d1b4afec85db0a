#include "server/routes.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

HttpRequest Request(std::string method, std::vector<std::string> segments) {
  HttpRequest request;
  request.method = std::move(method);
  request.segments = std::move(segments);
  return request;
}

TEST(Routes, AreFoundByMethodAndPath) {
  const auto chat = FindRoute(Request("POST", {"v1", "chat", "completions"}));
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(chat.value().route->id, RouteId::kChat);
  const auto add = FindRoute(Request("POST", {"quire", "v1", "prefixes"}));
  ASSERT_TRUE(add.ok());
  EXPECT_EQ(add.value().route->id, RouteId::kAddPrefix);
}

TEST(Routes, EveryGetTakesHead) {
  for (const Route& route : AllRoutes()) {
    std::vector<std::string> segments;
    for (std::string_view rest = route.pattern; !rest.empty();) {
      rest.remove_prefix(1);
      segments.emplace_back(rest.substr(0, rest.find('/')));
      rest.remove_prefix(segments.back().size());
    }
    const auto found = FindRoute(Request("HEAD", segments));
    // The path of another method may fit a GET route too.
    EXPECT_EQ(found.ok() ? found.value().route->method : std::string("GET"), "GET");
    const bool takes_get = route.method == std::string_view("GET");
    EXPECT_TRUE(found.ok() || !takes_get) << route.pattern;
  }
}

TEST(Routes, AModelNameMayHaveSlashes) {
  for (const auto& segments : {std::vector<std::string>{"v1", "models", "org/name"},
                               std::vector<std::string>{"v1", "models", "org", "name"}}) {
    const auto model = FindRoute(Request("GET", segments));
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model.value().route->id, RouteId::kModel);
    EXPECT_EQ(model.value().argument, "org/name");
  }
}

TEST(Routes, AWrongMethodSaysWhatThePathTakes) {
  const auto wrong = FindRoute(Request("PUT", {"quire", "v1", "prefixes"}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().status, 405);
  EXPECT_EQ(wrong.error().allow, "GET, HEAD, POST");
  EXPECT_EQ(FindRoute(Request("HEAD", {"v1", "completions"})).error().allow, "POST");
  EXPECT_EQ(FindRoute(Request("HEAD", {"nothing"})).error().status, 404);
}

// SEC-05
TEST(Routes, NothingElseIsFound) {
  for (const auto& segments : {std::vector<std::string>{},
                               {"V1", "models"},
                               {"v1", "models;x"},
                               {"v1/models"},
                               {"v1"},
                               {"quire", "v1", "prefixes", "1", "2"},
                               {"v1", "chat", "completions", "x"}}) {
    const auto found = FindRoute(Request("GET", segments));
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().status, 404);
    EXPECT_EQ(found.error().code, "unknown_url");
  }
}

}  // namespace
}  // namespace quire
