// AdminWork: the answer to a request about the engine's state, in two parts, so that no thread of
// the server waits for the end of a step:
//   the work  on the engine's thread, between two steps: looks, changes, takes numbers along;
//   the rest  on any other thread: JSON of those numbers, or the error that came of it.
#pragma once

#include <functional>
#include <string>

#include "engine/step_loop.h"
#include "server/api/api_error.h"

namespace quire {

using AdminAnswer = std::function<ApiResult<std::string>()>;
using AdminWork = std::function<AdminAnswer(StepLoop&)>;

}  // namespace quire
