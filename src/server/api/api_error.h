// ApiError: a refusal in the form of the OpenAI API.
//
//   {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
//
// `param` is the path of the field at fault ("messages[2].content"), or null. Messages say what was
// needed, what there was and what to change; they are at most 1 KiB, long values in them are cut,
// and they name no file, address or word of another client.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status.h"

namespace quire {

struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string code = "invalid_value";
  std::string message = {};
  std::string param = {};                 // empty: null
  std::optional<int> retry_after_s = {};  // a Retry-After field, 1 to 120
  std::string allow = {};                 // 405: the Allow field
};

// The JSON text of the body; safe for any bytes in the message.
std::string ToJson(const ApiError& error);

// What became of reading something a client sent.
template <class T>
class [[nodiscard]] ApiResult {
 public:
  ApiResult(T value) : result_(std::move(value)) {}         // NOLINT: implicit by intent
  ApiResult(ApiError error) : result_(std::move(error)) {}  // NOLINT: implicit by intent
  bool ok() const { return result_.index() == 0; }
  T& value() {
    QUIRE_CHECK(ok());
    return std::get<0>(result_);
  }
  const T& value() const {
    QUIRE_CHECK(ok());
    return std::get<0>(result_);
  }
  const ApiError& error() const { return std::get<1>(result_); }

 private:
  std::variant<T, ApiError> result_;
};

// The errors that several places give.
ApiError InvalidValue(std::string param, std::string message);
ApiError UnsupportedParameter(std::string param, std::string message);
ApiError ContextLengthExceeded(uint64_t num_tokens, uint32_t context_len, std::string param);
ApiError ModelNotFound(const std::string& name);
ApiError UnknownUrl(const std::string& method, const std::string& path);
ApiError MethodNotAllowed(const std::string& method, const std::string& path, std::string allow);
ApiError UnsupportedMediaType();
ApiError InvalidApiKey(bool is_missing);
ApiError PermissionDenied(std::string message);
ApiError Loading(int percent);
ApiError Draining();
ApiError QueueFull(uint32_t most_waiting, int retry_after_s);
ApiError InternalError();
// What the engine refused with, or what ended an answer.
ApiError FromStatus(const Status& status);

}  // namespace quire
