// The routes that tell of the model and its text: /v1/models, /tokenize, templates, the OpenAPI
// document. They ask no engine.
//
// Threading: pure; the helper thread, since long texts take time.
#pragma once

#include <string>

#include "server/api/api_error.h"
#include "server/api/served_model.h"
#include "server/routes.h"

namespace quire {

// The body of the answer; 404 unknown_url for another route.
ApiResult<std::string> AnswerOfModel(const RouteMatch& match, const std::string& body,
                                     const ServedModel& model);

}  // namespace quire
