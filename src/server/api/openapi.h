// OpenApiDocument: what this server offers, as an OpenAPI 3.1 document in JSON (GET /openapi.json).
//
// The bodies of chat and completions come from the table of fields (api/field_table.h), so that
// document and reader can't differ; rules that tie two fields are told in words only. Its paths are
// those of server/routes.h (openapi_routes_test.cc).
//
// Threading: a pure function.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "server/api/field_table.h"
#include "server/api/served_model.h"

namespace quire {

std::string OpenApiDocument(const ServedModel& model);

// The JSON schema of a body's fields.
nlohmann::ordered_json BodySchema(ApiForm form, const ServedModel& model);

// Schemas that no table has: messages, answers, errors. For `components.schemas`.
nlohmann::ordered_json AnswerSchemas();

}  // namespace quire
