#include "base/errors.h"
#include "plan/config_json.h"
#include "plan/gguf_model.h"
#include "plan/read_kv_model.h"
#include "plan/shape_text.h"

namespace quire {

StatusOr<KvModel> ReadGgufModel(const GgufHeader&) { return Unsupported("not written yet"); }
StatusOr<KvModel> ReadConfigJson(std::string_view) { return Unsupported("not written yet"); }
StatusOr<KvModel> ReadShapeText(std::string_view) { return Unsupported("not written yet"); }
StatusOr<KvModel> ReadKvModel(const std::string&) { return Unsupported("not written yet"); }
std::span<const std::string_view> PlannedGgufArchitectures() { return {}; }
std::span<const std::string_view> PlannedModelTypes() { return {}; }

}  // namespace quire
