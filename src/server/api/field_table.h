// The fields of the bodies of POST /v1/chat/completions and /v1/completions: one table, from which
// the reader checks types and ranges (api/call_fields.h), the OpenAPI document is made
// (api/openapi.h), the table in docs/api_fields.md and the tests of every field.
//
// Rules that tie two fields together, or a field to the model, are the readers'.
//
// Threading: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/api/generation_call.h"

namespace quire {

enum class FieldKind {
  kBool,
  kInteger,    // least to most; may be written 16.0
  kNumber,     // least to most
  kString,     // of least to most bytes
  kChoice,     // one of `values`, separated by spaces
  kStrings,    // a string, or a list of at most `most` strings; each of 1 to 256 bytes
  kIds,        // a list of at most `most` token ids
  kTokenBias,  // {"id": -100 to 100} of at most `most` ids
  kObject,
  kList,
  kPrompt,    // a string, strings, ids, lists of ids
  kMessages,  // a list of objects
  kAny,
};

enum class FieldEffect {
  kHonoured,
  kIgnored,  // by meaning: it has no effect on the output
  kRefused,  // unless its value is among `values`, a JSON list
};

// Which of the two bodies.
enum : uint8_t { kInChat = 1, kInCompletions = 2, kInBoth = 3 };

struct ApiField {
  std::string_view name;
  uint8_t bodies = kInBoth;
  FieldKind kind = FieldKind::kAny;
  FieldEffect effect = FieldEffect::kHonoured;
  double least = 0;
  double most = 0;
  std::string_view fallback = {};  // the default, as JSON or in words; empty: absent
  std::string_view values = {};
  std::string_view help = {};

  bool IsIn(ApiForm form) const {
    return (bodies & (form == ApiForm::kChat ? kInChat : kInCompletions)) != 0;
  }
};

// All fields; a name is there once for each body at most.
std::span<const ApiField> ApiFields();

// The field of that body, or null.
const ApiField* FindApiField(std::string_view name, ApiForm form);

// What values it takes, for messages and documents: "an integer from 0 to 20".
std::string ValuesInWords(const ApiField& field);

}  // namespace quire
