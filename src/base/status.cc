#include "base/status.h"

namespace quire {

int ExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kUnsupported:
      return 2;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kInvalidFile:
    case StatusCode::kResourceExhausted:
      return 3;
    case StatusCode::kNonFinite:
    case StatusCode::kCancelled:
    case StatusCode::kUnavailable:
    case StatusCode::kInternal:
      return 1;
  }
  return 1;
}

}  // namespace quire
