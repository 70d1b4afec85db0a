#include "server/model_answers.h"

#include <fmt/format.h>

#include "server/api/call_reader.h"
#include "server/api/openapi.h"

namespace quire {

ApiResult<std::string> AnswerOfModel(const RouteMatch& match, const std::string& body,
                                     const ServedModel& model) {
  switch (match.route->id) {
    case RouteId::kModels:
      return AnswerModels(model);
    case RouteId::kModel:
      return AnswerModel(match.argument, model);
    case RouteId::kOpenApi:
      return OpenApiDocument(model);
    case RouteId::kTokenize:
      return AnswerTokenize(body, model);
    case RouteId::kDetokenize:
      return AnswerDetokenize(body, model);
    case RouteId::kTokenizerInfo:
      return AnswerTokenizerInfo(model);
    case RouteId::kApplyTemplate:
      return AnswerApplyTemplate(body, model);
    case RouteId::kRenderChat:
      return AnswerRender(ApiForm::kChat, body, model);
    case RouteId::kRenderCompletions:
      return AnswerRender(ApiForm::kCompletions, body, model);
    case RouteId::kEmbeddings:
      return ApiError{.status = 404,
                      .code = "model_not_supported",
                      .message = fmt::format("The model '{}' has no pooling type, so its numbers "
                                             "would mean nothing as embeddings.",
                                             model.names.front()),
                      .param = "model"};
    default:
      return UnknownUrl(match.route->method, match.route->pattern);
  }
}

}  // namespace quire
