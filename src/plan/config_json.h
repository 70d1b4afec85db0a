// ConfigJson: what a planner needs of a model from its config.json, the file that Hugging Face's
// transformers writes beside the weights.
//
// Field names and what an absent field means follow the config classes of transformers: a file
// holds only what differs from its class. A field that gives the shape (layers, heads, width) must
// be there all the same: a class's default is one certain model's number, and a file without it is
// most often cut. Numbers of parameters are computed from the fields, as the family's layers have
// them; a multimodal model counts its language model only, and a note says so.
//
// Threads: pure functions. Throws nothing.
// Source: configuration_*.py of transformers 4.57.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/kv_model.h"

namespace quire {

// A file of more bytes is no config.json.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// kUnsupported (exit code 2) for a model_type that is not known, by name and with the list;
// kInvalidFile for text that is not JSON, and for fields that are missing or out of range.
StatusOr<KvModel> ReadConfigJson(std::string_view text);

// Names that model_type may have, in the order of the alphabet.
std::vector<std::string_view> PlannedModelTypes();

}  // namespace quire
