// `quire inspect`: what a model file holds, from its header alone; no weights are read.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/message_text.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "codec/kv_codec.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "model/vocabulary_reader.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  EngineFlags engine;
  bool tensors = false;
  bool json = false;
};

std::string_view VocabularyKindName(VocabularyKind kind) {
  switch (kind) {
    case VocabularyKind::kNone:
      return "none";
    case VocabularyKind::kBpe:
      return "bpe";
    case VocabularyKind::kSpm:
      return "spm";
  }
  return "?";
}

// Bytes and elements of the tensors of one weight type.
struct TypeTotal {
  uint64_t num_tensors = 0, num_elements = 0, size_bytes = 0;
};

std::string_view NormPlacementName(NormPlacement placement) {
  return placement == NormPlacement::kSandwich ? "before and after" : "before";
}
std::string_view HeadNormName(HeadNorm norm) { return norm == HeadNorm::kRms ? "rms" : "none"; }
std::string_view ActivationName(Activation activation) {
  return activation == Activation::kGeluGate ? "gelu" : "silu";
}

// The window of each layer, as runs: "5 x 512, 1 x all, ...".
std::string WindowsText(const Json& windows) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < windows.size(); begin = end) {
    while (end < windows.size() && windows[end] == windows[begin]) ++end;
    text += fmt::format("{}{} x {}", begin == 0 ? "" : ", ", end - begin,
                        windows[begin] == 0 ? "all" : windows[begin].dump());
  }
  return text;
}

Json RopeJson(const RopeShape& rope) {
  return {{"dimension_count", rope.dimension_count},
          {"freq_base", rope.freq_base},
          {"scaling", RopeScalingName(rope.scaling)},
          {"factor", rope.factor}};
}

Json ShapeJson(const ModelShape& shape, const Architecture& architecture) {
  Json windows = Json::array();
  for (const LayerShape& layer : shape.layers) windows.push_back(layer.window);
  Json json = {{"architecture", shape.architecture},
               {"context_length", shape.context_length},
               {"embedding_length", shape.embedding_length},
               {"num_layers", shape.num_layers},
               {"feed_forward_length", shape.feed_forward_length},
               {"num_q_heads", shape.num_q_heads},
               {"num_kv_heads", shape.num_kv_heads},
               {"group_size", shape.group_size()},
               {"head_dim_k", shape.head_dim_k},
               {"head_dim_v", shape.head_dim_v},
               {"rms_epsilon", shape.rms_epsilon},
               {"sliding_window", shape.sliding_window},
               {"vocab_size", shape.vocab_size},
               {"rope", RopeJson(shape.rope())},
               {"norms", NormPlacementName(architecture.norm_placement)},
               {"head_norm", HeadNormName(architecture.head_norm)},
               {"activation", ActivationName(architecture.activation)}};
  if (shape.num_windowed_layers() > 0) json["layer_windows"] = windows;
  if (shape.ropes.size() > 1) json["windowed_rope"] = RopeJson(shape.ropes[1]);
  return json;
}

Json TensorJson(const GgufTensor& tensor) {
  Json dims = Json::array();
  for (int i = 0; i < tensor.num_dims; ++i) dims.push_back(tensor.dims[i]);
  return {{"name", Printable(tensor.name)},
          {"type", WeightTypeName(tensor.type)},
          {"dims", dims},
          {"size_bytes", tensor.size_bytes},
          {"part", tensor.part},
          {"file_offset", tensor.file_offset}};
}

void PrintText(const Json& report) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<18}{}\n", name, value);
  };
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  const Json& shape = report["shape"];
  const std::string num_files =
      report["num_files"] == 1 ? "" : fmt::format("{} files, ", text(report["num_files"]));
  line("file", fmt::format("{} ({}{:.1f} MB, GGUF version {})", text(report["file"]), num_files,
                           report["file_bytes"].get<double>() / 1e6, text(report["version"])));
  if (report.contains("name")) line("name", text(report["name"]));
  line("architecture", text(shape["architecture"]));
  line("parameters", fmt::format("{:.1f} M", report["num_parameters"].get<double>() / 1e6));
  line("layers", text(shape["num_layers"]));
  line("width", fmt::format("{} (feed forward {})", text(shape["embedding_length"]),
                            text(shape["feed_forward_length"])));
  line("heads", fmt::format("{} query, {} KV, of {}", text(shape["num_q_heads"]),
                            text(shape["num_kv_heads"]), text(shape["head_dim_k"])));
  line("context", fmt::format("{} tokens", text(shape["context_length"])));
  if (shape.contains("layer_windows"))
    line("windows", fmt::format("{} (layers x tokens)", WindowsText(shape["layer_windows"])));
  line("norms",
       fmt::format("{} each branch, of heads: {}", text(shape["norms"]), text(shape["head_norm"])));
  line("activation", text(shape["activation"]));
  const auto rope = [&](std::string_view name, const Json& values) {
    const std::string scaling = text(values["scaling"]);
    line(name, fmt::format("base {}, {} of {} values, scaling {}{}", text(values["freq_base"]),
                           text(values["dimension_count"]), text(shape["head_dim_k"]), scaling,
                           scaling == "none" ? "" : " by " + text(values["factor"])));
  };
  rope("rope", shape["rope"]);
  if (shape.contains("windowed_rope")) rope("rope, windowed", shape["windowed_rope"]);
  const auto pre = text(report["vocabulary"]["pre"]);
  line("vocabulary",
       fmt::format("{} tokens, {}{}", text(report["vocabulary"]["num_tokens"]),
                   text(report["vocabulary"]["kind"]), pre.empty() ? "" : ", pre " + pre));
  line("chat template", report["vocabulary"]["has_chat_template"].get<bool>() ? "yes" : "no");
  for (const auto& [name, total] : report["weights"].items())
    line(name == report["weights"].begin().key() ? "weights" : "",
         fmt::format("{:<5} {:>4} tensors, {:>9.2f} MB", name, text(total["num_tensors"]),
                     total["size_bytes"].get<double>() / 1e6));
  for (const auto& [codec, bytes] : report["kv_bytes_per_token"].items())
    line(codec == report["kv_bytes_per_token"].begin().key() ? "KV per token" : "",
         fmt::format("{:<5} {} bytes, {:.1f} MB for the whole context", codec, text(bytes),
                     bytes.get<double>() * shape["context_length"].get<double>() / 1e6));
  if (!report.contains("tensors")) return;
  fmt::print("\n{:<32}{:<7}{:<20}{:>14}\n", "tensor", "type", "dims", "bytes");
  for (const Json& tensor : report["tensors"])
    fmt::print("{:<32}{:<7}{:<20}{:>14}\n", text(tensor["name"]), text(tensor["type"]),
               tensor["dims"].dump(), text(tensor["size_bytes"]));
}

StatusOr<Json> Report(const GgufFile& file, bool with_tensors) {
  const GgufHeader& header = file.header();
  QUIRE_ASSIGN_OR_RETURN(const Architecture* architecture, ReadArchitecture(header));
  QUIRE_ASSIGN_OR_RETURN(const ModelShape shape, ReadShape(header));
  QUIRE_ASSIGN_OR_RETURN(const auto ignored, CheckTensors(header, shape));
  QUIRE_ASSIGN_OR_RETURN(const Vocabulary vocabulary, ReadVocabulary(header, file.header_memory()));
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, header.GetStringOr("general.name", ""));

  Json report = {{"file", file.path()},
                 {"num_files", file.num_parts()},
                 {"file_bytes", file.size_bytes()},
                 {"version", header.version()}};
  if (!name.empty()) report["name"] = Printable(name);
  report["shape"] = ShapeJson(shape, *architecture);
  std::map<std::string_view, TypeTotal> totals;
  uint64_t num_parameters = 0;
  for (const GgufTensor& tensor : header.tensors()) {
    TypeTotal& total = totals[WeightTypeName(tensor.type)];
    const auto elements = static_cast<uint64_t>(tensor.columns() * tensor.rows());
    ++total.num_tensors;
    total.num_elements += elements;
    total.size_bytes += tensor.size_bytes;
    num_parameters += elements;
  }
  report["num_parameters"] = num_parameters;
  report["num_tensors"] = header.tensors().size();
  report["ignored_tensors"] = ignored;
  for (const auto& [type, total] : totals)
    report["weights"][std::string(type)] = {{"num_tensors", total.num_tensors},
                                            {"num_elements", total.num_elements},
                                            {"size_bytes", total.size_bytes}};
  for (const KvCodec codec : {KvCodec::kF16, KvCodec::kF32})
    report["kv_bytes_per_token"][std::string(KvCodecName(codec))] =
        shape.KvBytesPerToken(static_cast<int>(KvElementBytes(codec)));
  report["vocabulary"] = {{"kind", VocabularyKindName(vocabulary.kind)},
                          {"pre", vocabulary.pre},
                          {"num_tokens", shape.num_tokens},
                          {"has_chat_template", vocabulary.chat_template.has_value()}};
  if (with_tensors) {
    report["tensors"] = Json::array();
    for (const GgufTensor& tensor : header.tensors())
      report["tensors"].push_back(TensorJson(tensor));
  }
  return report;
}

}  // namespace

CommandBody AddInspectCommand(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command =
      app.add_subcommand("inspect", "Shapes, types and sizes of a model, and its KV per token");
  AddModelArgument(*command, flags->engine);
  command->add_flag("--tensors", flags->tensors, "List every tensor");
  command->add_flag("--json", flags->json, "Print one JSON object");
  return [flags]() -> StatusOr<int> {
    QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(flags->engine.model_path));
    const StatusOr<Json> report = Report(file, flags->tensors);
    if (!report.ok()) return report.status().WithContext(file.path());
    if (flags->json) {
      fmt::print("{}\n", report.value().dump(2, ' ', false, Json::error_handler_t::replace));
    } else {
      PrintText(report.value());
    }
    return 0;
  };
}

}  // namespace quire
