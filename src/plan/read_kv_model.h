// ReadKvModel: the one entry to what a planner knows of a model, from whatever names it.
//
// Reads headers and small text files, never weights.
#pragma once

#include <string>

#include "base/status.h"
#include "plan/kv_model.h"

namespace quire {

// `path`: a GGUF file (or a part of a split one), a config.json, or a folder that holds a
// config.json. Which it is follows from the first bytes, not from the name. Errors name the path;
// kNotFound if there is nothing, otherwise as ReadGgufModel and ReadConfigJson.
// (A shape in words is ReadShapeText of shape_text.h.)
StatusOr<KvModel> ReadKvModel(const std::string& path);

}  // namespace quire
