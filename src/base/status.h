// Status and StatusOr<T>: errors as values, for all that input, load or the world can cause.
//
// A message says what was needed, what there was and what to change. A failed call changes nothing.
// For our own bugs there is QUIRE_CHECK (base/check.h).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace quire {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's words are wrong: an option, a prompt, an id
  kNotFound,           // a file or a name that is not there
  kInvalidFile,        // a file that breaks its format, or is cut
  kUnsupported,        // well formed, but this program or this machine cannot do it
  kResourceExhausted,  // pages, memory or a limit
  kNonFinite,          // NaN or infinity where a number was needed
  kCancelled,          // the caller asked for it
  kUnavailable,        // not now: too many others wait; later it can work
  kInternal,           // the system refused something that should work
};

// What a process exits with: 0 success, 2 kUnsupported (an unknown architecture, most often), 3 the
// caller's words or a file that cannot be used, 1 anything else.
int ExitCode(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with "context: " in front of the message.
  Status WithContext(const std::string& context) const {
    return ok() ? *this : Status(code_, context + ": " + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }

template <class T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}         // NOLINT: implicit by intent
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT: implicit by intent
    QUIRE_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // Requires: ok().
  T& value() & {
    QUIRE_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    QUIRE_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    QUIRE_CHECK(ok());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace quire

// Returns the error of `expression` from the enclosing function, if it is one.
#define QUIRE_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                           \
    if (::quire::Status quire_status_ = (expression); !quire_status_.ok()) return quire_status_; \
  } while (false)

// QUIRE_ASSIGN_OR_RETURN(auto x, MakeX()): declares x, or returns MakeX()'s error.
#define QUIRE_ASSIGN_OR_RETURN(declaration, expression) \
  QUIRE_ASSIGN_OR_RETURN_(QUIRE_CONCAT_(quire_or_, __LINE__), declaration, expression)
#define QUIRE_ASSIGN_OR_RETURN_(temporary, declaration, expression) \
  auto temporary = (expression);                                    \
  if (!temporary.ok()) return temporary.status();                   \
  declaration = std::move(temporary).value()
#define QUIRE_CONCAT_(a, b) QUIRE_CONCAT2_(a, b)
#define QUIRE_CONCAT2_(a, b) a##b
