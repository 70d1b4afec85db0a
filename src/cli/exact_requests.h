// Requests whose answers are known in length and don't depend on chance: for measurements and
// checks.
#pragma once

#include <memory>
#include <vector>

#include "engine/engine.h"

namespace quire {

// Greedy, and as long as was asked for; the answer keeps its times. 0 tokens: the prompt alone.
Request ExactRequest(std::vector<TokenId> prompt, uint32_t output_len);

// Submits all between two steps, so that the first step sees all of them.
StatusOr<std::vector<std::shared_ptr<Answer>>> SubmitAtOnce(Engine& engine,
                                                            std::vector<Request> requests);

}  // namespace quire
