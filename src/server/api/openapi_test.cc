#include "server/api/openapi.h"

#include <gtest/gtest.h>

#include "server/api/test_served_model.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// Calls `visit` with every "$ref".
template <class Visit>
void ForEachRef(const Json& json, const Visit& visit) {
  if (json.is_object())
    for (const auto& [key, value] : json.items())
      if (key == "$ref") visit(value.template get<std::string>());
  if (json.is_structured())
    for (const auto& item : json) ForEachRef(item, visit);
}

TEST(OpenApi, EveryReferenceLeadsToAPart) {
  TestServedModel served;
  const Json document = Json::parse(OpenApiDocument(served.model()));
  EXPECT_EQ(document["openapi"], "3.1.0");
  int num_refs = 0;
  ForEachRef(document, [&](const std::string& ref) {
    ASSERT_EQ(ref.substr(0, 2), "#/");
    EXPECT_TRUE(document.contains(Json::json_pointer(ref.substr(1)))) << ref;
    ++num_refs;
  });
  EXPECT_GT(num_refs, 100);
}

TEST(OpenApi, BodiesHaveEveryFieldWithItsRange) {
  TestServedModel served;
  for (const ApiForm form : {ApiForm::kChat, ApiForm::kCompletions}) {
    const Json properties = BodySchema(form, served.model())["properties"];
    for (const ApiField& field : ApiFields())
      EXPECT_EQ(properties.contains(field.name), FindApiField(field.name, form) != nullptr)
          << field.name;
    EXPECT_EQ(properties["n"]["minimum"], 1);
    EXPECT_EQ(properties["n"]["maximum"], 128);
    EXPECT_EQ(properties["temperature"]["maximum"], 2);
    EXPECT_EQ(properties["model"]["enum"], Json({"tiny", nullptr}));
    EXPECT_EQ(properties["stop_token_ids"]["items"]["maximum"], 267);
  }
}

}  // namespace
}  // namespace quire
