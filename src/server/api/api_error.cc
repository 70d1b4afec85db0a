#include "server/api/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/api/json_text.h"

namespace quire {
namespace {

constexpr size_t kMaxMessageBytes = 1024;

// At most so many bytes; the JSON writer mends a character that this cuts.
std::string Cut(std::string text, size_t most) {
  if (text.size() > most) text.replace(most - 3, std::string::npos, "...");
  return text;
}

ApiError ServerError(int status, std::string code, std::string message,
                     std::optional<int> retry_after_s = {}) {
  return {.status = status,
          .type = "server_error",
          .code = std::move(code),
          .message = std::move(message),
          .retry_after_s = retry_after_s};
}

}  // namespace

std::string ToJson(const ApiError& error) {
  nlohmann::ordered_json inner;
  inner["message"] = Cut(error.message, kMaxMessageBytes);
  inner["type"] = error.type;
  inner["param"] = nullptr;
  if (!error.param.empty()) inner["param"] = Cut(error.param, 256);
  inner["code"] = error.code;
  const nlohmann::ordered_json body = {{"error", std::move(inner)}};
  // ASCII only, since clients cut lines at U+2028 and the like; ill-formed UTF-8 becomes U+FFFD.
  return ToText(body);
}

ApiError InvalidValue(std::string param, std::string message) {
  return {.message = std::move(message), .param = std::move(param)};
}

ApiError UnsupportedParameter(std::string param, std::string message) {
  return {
      .code = "unsupported_parameter", .message = std::move(message), .param = std::move(param)};
}

ApiError ContextLengthExceeded(uint64_t num_tokens, uint32_t context_len, std::string param) {
  return {
      .code = "context_length_exceeded",
      .message = fmt::format("This model's maximum context length is {} tokens, but the request "
                             "has {} tokens. Shorten the prompt.",
                             context_len, num_tokens),
      .param = std::move(param)};
}

ApiError ModelNotFound(const std::string& name) {
  return {.status = 404,
          .code = "model_not_found",
          .message = fmt::format("The model '{}' is not served here; GET /v1/models lists what is.",
                                 Cut(name, 128)),
          .param = "model"};
}

ApiError UnknownUrl(const std::string& method, const std::string& path) {
  return {.status = 404,
          .code = "unknown_url",
          .message = fmt::format("There is no {} {}. Chat is POST /v1/chat/completions.",
                                 Cut(method, 16), Cut(path, 128))};
}

ApiError MethodNotAllowed(const std::string& method, const std::string& path, std::string allow) {
  return {.status = 405,
          .code = "method_not_allowed",
          .message = fmt::format("{} does not take {}; it takes {}.", Cut(path, 128),
                                 Cut(method, 16), allow),
          .allow = allow};
}

ApiError UnsupportedMediaType() {
  return {.status = 415,
          .code = "unsupported_media_type",
          .message = "The body must be JSON: send the field Content-Type: application/json."};
}

ApiError InvalidApiKey(bool is_missing) {
  return {.status = 401,
          .code = "invalid_api_key",
          .message = is_missing ? "This server wants a key: send Authorization: Bearer KEY."
                                : "The key in Authorization is not known here."};
}

ApiError PermissionDenied(std::string message) {
  return {.status = 403,
          .type = "permission_error",
          .code = "permission_denied",
          .message = std::move(message)};
}

ApiError Loading(int percent) {
  return ServerError(503, "loading", fmt::format("The model is loading: {} %.", percent), 1);
}

ApiError Draining() {
  return ServerError(503, "draining", "The server is shutting down: send this elsewhere.", 1);
}

ApiError QueueFull(uint32_t most_waiting, int retry_after_s) {
  return ServerError(
      503, "queue_full",
      fmt::format("{} requests are waiting, as many as --max-queue allows.", most_waiting),
      std::clamp(retry_after_s, 1, 120));
}

ApiError InternalError() {
  return ServerError(500, "internal", "The server failed at this request; its log says how.");
}

ApiError FromStatus(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
      return InvalidValue("", status.message());
    case StatusCode::kUnsupported:
      return UnsupportedParameter("", status.message());
    case StatusCode::kResourceExhausted:
      return {.code = "kv_capacity_exceeded", .message = status.message()};
    case StatusCode::kNonFinite:
      return ServerError(500, "numeric_error",
                         "The model gave a number that is not finite for this request.");
    case StatusCode::kCancelled:
      return Draining();
    case StatusCode::kUnavailable:
      return ServerError(503, "queue_full", status.message(), 1);
    case StatusCode::kOk:
    case StatusCode::kInvalidFile:
    case StatusCode::kInternal:
      break;
  }
  return InternalError();
}

}  // namespace quire
