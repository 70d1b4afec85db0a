// The OpenAPI document has the server's routes, all of them and no others.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "server/api/openapi.h"
#include "server/api/test_served_model.h"
#include "server/routes.h"

namespace quire {
namespace {

// "get /v1/models/{}": what stands in the braces is a matter of taste.
std::string Key(std::string method, std::string path) {
  for (char& c : method) c = static_cast<char>(std::tolower(c));
  for (size_t open = 0; (open = path.find('{', open)) != std::string::npos; ++open)
    path.replace(open + 1, path.find('}', open) - open - 1, "");
  return method + " " + path;
}

TEST(OpenApiRoutes, AreTheServers) {
  std::set<std::string> routes;
  for (const Route& route : AllRoutes()) routes.insert(Key(route.method, route.pattern));
  std::set<std::string> documented;
  TestServedModel served;
  const auto document = nlohmann::json::parse(OpenApiDocument(served.model()));
  for (const auto& [path, operations] : document["paths"].items())
    for (const auto& [method, operation] : operations.items()) documented.insert(Key(method, path));
  EXPECT_EQ(documented, routes);
}

}  // namespace
}  // namespace quire
