// Runs a body through every reader of request bodies and checks what must hold whatever it says:
// for the fuzzer and the mutations.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/served_model.h"

namespace quire {

constexpr int kNumCallKinds = 8;

struct CallOutcome {
  std::string fault;  // what is wrong with what came of it, or empty
  bool was_taken = false;
};

// `kind`, modulo kNumCallKinds, says which reader. It is a fault unless:
//   an error is a 400 or 404 whose JSON has `error` with message, type, param and code, in ASCII;
//   a call holds prompts that fit, choices within their bound and sampling that the engine takes.
CallOutcome ExerciseCall(int kind, std::string_view body, const ServedModel& model);

// A valid body for that reader, with fields that `random` picks.
std::string ValidBody(int kind, uint64_t random);

// The body with up to four changes: values, keys and nesting of its JSON, or bytes.
std::string MutatedBody(std::string_view body, uint64_t random);

}  // namespace quire
