// The fields of a body that say how tokens are chosen, how many, and what ends the answer.
//
// Threading: a pure function.
#pragma once

#include "server/api/api_error.h"
#include "server/api/call_fields.h"
#include "server/api/generation_call.h"
#include "server/api/served_model.h"

namespace quire {

// Sets the call's sampling (with a seed, random unless one is given), max_tokens, num_choices,
// num_sampled and log-probabilities. `num_prompts` bounds the choices: 1024 in all.
std::optional<ApiError> ReadSampling(const CallFields& fields, const ServedModel& model,
                                     size_t num_prompts, GenerationCall* call);

}  // namespace quire
