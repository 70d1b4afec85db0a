#include "plan/config_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/message_text.h"
#include "plan/config_families.h"
#include "plan/config_fields.h"
#include "plan/config_params.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMaxWidth = 1 << 24;
constexpr int kMaxDepth = 32;

StatusOr<Json> ParseObject(std::string_view text) {
  if (text.size() > kMaxConfigBytes)
    return InvalidFile("{} bytes: a config.json has at most {}", GroupDigits(text.size()),
                       GroupDigits(kMaxConfigBytes));
  bool is_too_deep = false;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), limit);
    if (is_too_deep) return InvalidFile("nested deeper than {} levels", kMaxDepth);
    if (!json.is_object()) return InvalidFile("the JSON is {}: need an object", json.type_name());
    return json;
  } catch (const Json::parse_error& error) {
    return InvalidFile("not JSON at byte {}{}", error.byte,
                       error.byte > text.size() ? ", its end: was the file cut?" : "");
  } catch (const Json::exception&) {  // a number beyond a double
    return InvalidFile("a number in it is too large for a double");
  }
}

// Parts of the names of fields that speak of memory beside K and V of each token and layer.
constexpr std::string_view kStateFields[] = {"mamba",
                                             "ssm_",
                                             "recurrent",
                                             "rwkv",
                                             "linear_attn",
                                             "linear_num",
                                             "conv_l_",
                                             "conv_L_",
                                             "index_head_dim",
                                             "num_kv_shared_layers",
                                             "hybrid",
                                             "attn_layer",
                                             "full_attention_interval",
                                             "use_bidirectional_attention"};

bool IsSet(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  return !value.empty();  // null is empty, a text is not
}

Status RefuseStateFields(const Json& object) {
  for (const auto& [name, value] : object.items())
    for (const std::string_view part : kStateFields)
      if (name.find(part) != name.npos && IsSet(value))
        return Unsupported(
            "field {} is {}: this model keeps a state beside K and V of each layer or attends in "
            "another way, which is not planned; nothing is guessed",
            Printable(name), ShownJson(value));
  return OkStatus();
}

StatusOr<const ConfigFamily*> FindFamily(std::string_view model_type) {
  if (const ConfigFamily* family = FindConfigFamily(model_type)) return family;
  return Unsupported("model_type {} is not known, so nothing is planned for it: known are {}",
                     Printable(model_type), fmt::join(PlannedModelTypes(), ", "));
}

// The object that describes the language model, and its family.
struct TextPart {
  const Json* object;
  const ConfigFamily* family;
  const ConfigWrapper* wrapper;  // nullptr: the root is it
};

StatusOr<TextPart> FindTextPart(const Json& root) {
  QUIRE_ASSIGN_OR_RETURN(const std::string outer, ConfigFields(root, {}).Text("model_type", ""));
  if (outer.empty())
    return InvalidFile("field model_type is missing: is it a model's config.json?");
  for (const ConfigWrapper& wrapper : ConfigWrappers()) {
    if (wrapper.model_type != outer) continue;
    const auto inner = root.find("text_config");
    if (inner == root.end() || !inner->is_object())
      return InvalidFile("field text_config is missing: a {} model has its shape there", outer);
    QUIRE_ASSIGN_OR_RETURN(const std::string type,
                           ConfigFields(*inner, {}).Text("model_type", wrapper.default_text_type));
    QUIRE_ASSIGN_OR_RETURN(const ConfigFamily* family, FindFamily(type));
    return TextPart{&*inner, family, &wrapper};
  }
  QUIRE_ASSIGN_OR_RETURN(const ConfigFamily* family, FindFamily(outer));
  return TextPart{&root, family, nullptr};
}

// Of a multimodal model the outer object may have it.
Status ReadWeightsType(const ConfigFields& fields, KvModel& model) {
  QUIRE_ASSIGN_OR_RETURN(const std::string older, fields.Text("torch_dtype", ""));
  QUIRE_ASSIGN_OR_RETURN(const std::string type, fields.Text("dtype", older));
  const std::pair<std::string_view, std::string_view> names[] = {
      {"bfloat16", "bf16"}, {"float16", "f16"}, {"float32", "f32"}};
  for (const auto& [name, ours] : names)
    if (type == name) model.weights_dtype = ours;
  const Json* quantised = fields.Find("quantization_config");
  if (quantised == nullptr || !quantised->is_object()) return OkStatus();
  QUIRE_ASSIGN_OR_RETURN(const std::string method,
                         ConfigFields(*quantised, {}).Text("quant_method", "unknown"));
  model.weights_dtype = Printable(method, 32);
  return OkStatus();
}

class Reader {
 public:
  Reader(const ConfigFamily& family, const Json& object, KvModel& model)
      : family_(family), fields_(object, family.aliases), model_(model) {}

  Status Read() {
    QUIRE_ASSIGN_OR_RETURN(model_.num_layers,
                           fields_.Required("num_hidden_layers", kMaxPlanLayers));
    QUIRE_ASSIGN_OR_RETURN(width_, fields_.Required("hidden_size", kMaxWidth));
    QUIRE_ASSIGN_OR_RETURN(
        model_.context_length,
        fields_.Optional("max_position_embeddings", family_.default_context, kMaxPlanContext));
    QUIRE_ASSIGN_OR_RETURN(
        model_.num_q_heads,
        fields_.ShapeField("num_attention_heads", family_.default_q_heads, kMaxPlanDim));
    KvLayers layer;
    if (family_.attention == ConfigAttention::kLatent) {
      QUIRE_RETURN_IF_ERROR(ReadLatent(layer));
    } else {
      QUIRE_RETURN_IF_ERROR(ReadHeads(layer));
    }
    QUIRE_ASSIGN_OR_RETURN(const std::vector<uint32_t> windows, ReadWindows());
    model_.groups = GroupLayers(layer, windows);
    QUIRE_RETURN_IF_ERROR(CheckKvModel(model_));
    QUIRE_RETURN_IF_ERROR(CountParams(family_, fields_, model_));
    return ReadNotes();
  }

 private:
  Status ReadHeads(KvLayers& layer) {
    QUIRE_ASSIGN_OR_RETURN(layer.num_kv_heads, ReadNumKvHeads());
    const uint32_t q_heads = model_.num_q_heads;
    if (q_heads % layer.num_kv_heads != 0)
      return InvalidFile("field {} is {} and {} is {}: the first must be a multiple of the second",
                         fields_.NameOf("num_attention_heads"), q_heads,
                         fields_.NameOf("num_key_value_heads"), layer.num_kv_heads);
    uint32_t head_dim = 0;
    if (family_.default_head_dim != 0 && !fields_.IsNull("head_dim")) {
      QUIRE_ASSIGN_OR_RETURN(head_dim,
                             fields_.ShapeField("head_dim", family_.default_head_dim, kMaxPlanDim));
    } else {
      QUIRE_ASSIGN_OR_RETURN(head_dim, fields_.Optional("head_dim", 0, kMaxPlanDim));
    }
    if (head_dim == 0) {
      if (width_ % q_heads != 0 || width_ / q_heads > kMaxPlanDim)
        return InvalidFile("field {} is {} and {} is {}, which gives no head_dim: that is needed",
                           fields_.NameOf("hidden_size"), width_,
                           fields_.NameOf("num_attention_heads"), q_heads);
      head_dim = width_ / q_heads;
    }
    layer.head_dim_k = layer.head_dim_v = head_dim;
    model_.q_head_dim = model_.v_head_dim = head_dim;
    return OkStatus();
  }

  StatusOr<uint32_t> ReadNumKvHeads() {
    constexpr std::string_view kField = "num_key_value_heads";
    if (family_.attention == ConfigAttention::kFalcon) {
      QUIRE_ASSIGN_OR_RETURN(const bool is_new, fields_.Bool("new_decoder_architecture", false));
      QUIRE_ASSIGN_OR_RETURN(const bool is_mqa, fields_.Bool("multi_query", true));
      if (!is_new && is_mqa) return 1;
    }
    if (family_.default_kv_heads == 0 || fields_.IsNull(kField))
      return fields_.Optional(kField, model_.num_q_heads, kMaxPlanDim);
    return fields_.ShapeField(kField, family_.default_kv_heads, kMaxPlanDim);
  }

  // The latent and one rotated key part for all heads; num_key_value_heads says nothing here.
  Status ReadLatent(KvLayers& layer) {
    layer.num_kv_heads = 1;
    QUIRE_ASSIGN_OR_RETURN(layer.head_dim_k, fields_.ShapeField("kv_lora_rank", 512, kMaxPlanDim));
    QUIRE_ASSIGN_OR_RETURN(layer.latent_rope_dim,
                           fields_.ShapeField("qk_rope_head_dim", 64, kMaxPlanDim));
    QUIRE_ASSIGN_OR_RETURN(const uint32_t nope,
                           fields_.Optional("qk_nope_head_dim", 128, kMaxPlanDim));
    QUIRE_ASSIGN_OR_RETURN(model_.v_head_dim, fields_.Optional("v_head_dim", 128, kMaxPlanDim));
    model_.q_head_dim = nope + layer.latent_rope_dim;
    return OkStatus();
  }

  // The number that windows have, 0 for none.
  StatusOr<uint32_t> ReadWindow() {
    constexpr std::string_view kField = "sliding_window";
    if (family_.window == ConfigWindow::kUpper || family_.window == ConfigWindow::kIfUsed) {
      QUIRE_ASSIGN_OR_RETURN(const bool is_used, fields_.Bool("use_sliding_window", false));
      if (!is_used) return 0;
    }
    if (fields_.IsNull(kField)) return 0;
    if (family_.default_window == 0) return fields_.Optional(kField, 0, kMaxPlanContext);
    return fields_.ShapeField(kField, family_.default_window, kMaxPlanContext);
  }

  StatusOr<std::vector<uint32_t>> ReadWindows() {
    const uint32_t num_layers = model_.num_layers;
    QUIRE_ASSIGN_OR_RETURN(const std::vector<bool> listed, ReadLayerTypes());
    std::vector<uint32_t> windows(num_layers, 0);
    if (family_.window == ConfigWindow::kNone && listed.empty()) return windows;
    QUIRE_ASSIGN_OR_RETURN(const uint32_t window, ReadWindow());
    if (family_.window == ConfigWindow::kIgnored) {
      if (window != 0)
        model_.notes.push_back(
            fmt::format("sliding_window is {}, but files of this family hold wrong ones and "
                        "engines leave it out: planned as full attention",
                        window));
      return windows;
    }
    uint32_t first = 0, period = 0;
    if (family_.window == ConfigWindow::kUpper) {
      QUIRE_ASSIGN_OR_RETURN(first, fields_.Count("max_window_layers", 28, kMaxPlanLayers));
    }
    if (family_.window == ConfigWindow::kPattern && listed.empty()) {
      QUIRE_ASSIGN_OR_RETURN(period, fields_.Optional("sliding_window_pattern",
                                                      family_.default_period, kMaxPlanLayers));
    }
    for (uint32_t i = 0; i < num_layers; ++i) {
      const bool is_windowed =
          listed.empty() ? i >= first && (period == 0 || (i + 1) % period != 0) : listed[i];
      if (is_windowed) windows[i] = window;
    }
    return windows;
  }

  // Whether each layer is windowed, as layer_types says; empty if it does not say.
  StatusOr<std::vector<bool>> ReadLayerTypes() {
    std::vector<bool> windowed;
    const Json* list = fields_.Find("layer_types");
    if (list == nullptr || list->is_null()) return windowed;
    if (!list->is_array() || list->size() != model_.num_layers)
      return InvalidFile("field layer_types is {}: need a list of {} texts", ShownJson(*list),
                         model_.num_layers);
    for (const Json& type : *list) {
      if (type != "full_attention" && (type != "sliding_attention" || !family_.has_layer_types))
        return Unsupported(
            "field layer_types has {}: of model_type {} only {}full_attention is planned",
            ShownJson(type), family_.model_type,
            family_.has_layer_types ? "sliding_attention and " : "");
      windowed.push_back(type == "sliding_attention");
    }
    if (!family_.has_layer_types) windowed.clear();
    return windowed;
  }

  Status ReadNotes() {
    if (!fields_.assumed().empty())
      model_.notes.push_back(fmt::format("not in the file, so as the class {} has it: {}",
                                         family_.model_type, fields_.assumed()));
    QUIRE_ASSIGN_OR_RETURN(const uint32_t predicting,
                           fields_.Optional("num_nextn_predict_layers", 0, kMaxPlanLayers));
    if (predicting > 0)
      model_.notes.push_back(fmt::format(
          "layers that predict further tokens: {}; neither their KV nor their weights are counted",
          predicting));
    return ReadWhetherItRuns();
  }

  Status ReadWhetherItRuns() {
    model_.runs = family_.runs;
    if (!family_.runs) return OkStatus();
    const auto refuse = [&](const std::string& why) {
      model_.runs = false;
      model_.notes.push_back("planned only, this version does not run it: " + why);
    };
    if (family_.window == ConfigWindow::kUpper && model_.groups.back().window != 0)
      refuse(fmt::format("{} with a window", family_.model_type));
    if (family_.window == ConfigWindow::kEveryLayer && model_.groups.back().window != 0)
      refuse("a GGUF file of it has no key for the window, and runs with all tokens kept");
    const Json* scaling = fields_.Find("rope_scaling");
    if (scaling == nullptr || !scaling->is_object()) return OkStatus();
    const ConfigFields rope(*scaling, {});
    QUIRE_ASSIGN_OR_RETURN(const std::string older, rope.Text("type", "default"));
    QUIRE_ASSIGN_OR_RETURN(const std::string type, rope.Text("rope_type", older));
    constexpr std::string_view kKnown[] = {"default", "linear", "llama3", "yarn"};
    if (std::find(std::begin(kKnown), std::end(kKnown), type) == std::end(kKnown))
      refuse(fmt::format("rope scaling of type {}", Printable(type)));
    return OkStatus();
  }

  const ConfigFamily& family_;
  ConfigFields fields_;
  KvModel& model_;
  uint32_t width_ = 0;
};

}  // namespace

std::vector<std::string_view> PlannedModelTypes() {
  std::vector<std::string_view> names;
  for (const ConfigFamily& family : ConfigFamilies()) names.push_back(family.model_type);
  for (const ConfigWrapper& wrapper : ConfigWrappers()) names.push_back(wrapper.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

StatusOr<KvModel> ReadConfigJson(std::string_view text) {
  QUIRE_ASSIGN_OR_RETURN(const Json root, ParseObject(text));
  QUIRE_ASSIGN_OR_RETURN(const TextPart part, FindTextPart(root));
  QUIRE_RETURN_IF_ERROR(RefuseStateFields(*part.object));
  KvModel model;
  model.architecture = part.family->model_type;
  model.source = "config.json";
  QUIRE_ASSIGN_OR_RETURN(const std::string name, ConfigFields(root, {}).Text("_name_or_path", ""));
  model.name = Printable(name);
  if (part.wrapper != nullptr)
    model.notes.push_back("a multimodal model: the language model alone is planned");
  QUIRE_RETURN_IF_ERROR(ReadWeightsType(ConfigFields(root, {}), model));
  QUIRE_RETURN_IF_ERROR(ReadWeightsType(ConfigFields(*part.object, {}), model));
  QUIRE_RETURN_IF_ERROR(Reader(*part.family, *part.object, model).Read());
  if (part.wrapper != nullptr && !part.wrapper->runs) model.runs = false;
  return model;
}

}  // namespace quire
