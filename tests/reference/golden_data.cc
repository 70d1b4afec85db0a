#include "reference/golden_data.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "base/check.h"
#include "base/fnv.h"
#include "base/test_data.h"
#include "model/gguf_file.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kGoldenSeed = 20261130;  // goldens.json, token_lcg
constexpr uint32_t kTinySeed = 12345;       // greedy.json, standard_tokens

Bound ReadBound(const Json& json) { return {json.at("max_abs"), json.at("rel_rms")}; }

// A name of the list `positions`, or "1984..2047".
std::vector<uint32_t> ReadPositions(const Json& root, const std::string& text) {
  if (root.at("positions").contains(text)) return root.at("positions").at(text);
  uint32_t first = 0, last = 0;
  QUIRE_CHECK(std::sscanf(text.c_str(), "%u..%u", &first, &last) == 2 && first <= last);
  std::vector<uint32_t> positions;
  for (uint32_t position = first; position <= last; ++position) positions.push_back(position);
  return positions;
}

// The ids are in the file up to 160; those of longer prompts are made, and the head is compared.
std::vector<TokenId> ReadTokens(const Json& root, const std::string& name, size_t count,
                                size_t vocab_size) {
  const std::vector<TokenId> made =
      LcgTokens(kGoldenSeed, count, static_cast<uint32_t>(vocab_size));
  const Json& listed = root.at("tokens").at(name);
  if (listed.is_array()) QUIRE_CHECK(listed.get<std::vector<TokenId>>() == made);
  return made;
}

// `folder` ends with a slash.
GoldenModel ReadGoldenModel(const Json& root, const Json& json, const std::string& folder) {
  GoldenModel model;
  model.name = json.at("name");
  model.architecture = json.at("arch");
  model.path = folder + json.at("file").get<std::string>();
  model.vocab_size = json.at("n_vocab");
  const Json& tolerance = json.at("tolerance");
  model.double_bound = ReadBound(tolerance.at("float64"));
  model.float_bound = ReadBound(tolerance.at("float32"));
  model.f16_kv_cost = ReadBound(json.at("f16_kv_oracle"));
  if (tolerance.contains("8-bit activations"))
    model.int8_bound = ReadBound(tolerance.at("8-bit activations"));
  for (const Json& golden : json.at("goldens")) {
    const std::string file = golden.at("file");
    // The oracle with its own rounding of activations: only its distance counts, in the tolerance.
    if (file.find(".q8act.") != file.npos) continue;
    const std::string tokens = golden.value("tokens", json.at("tokens").get<std::string>());
    GoldenLogits& added = model.goldens.emplace_back();
    added.label = file.substr(0, file.find(".logits"));
    added.tokens = ReadTokens(root, tokens, golden.at("n_tokens"), model.vocab_size);
    added.positions = ReadPositions(root, golden.at("positions"));
    added.logits = ToDouble(ReadFloatFile(folder + file));
    if (golden.contains("tolerance_max_abs"))
      added.max_abs_bound = golden.at("tolerance_max_abs").get<double>();
    QUIRE_CHECK(added.logits.size() == added.positions.size() * model.vocab_size);
  }
  for (const Json& greedy : json.value("greedy", Json::array())) {
    const std::string prompt = greedy.at("prompt");  // "v256 (160 ids)"
    const size_t blank = prompt.find(' ');
    const size_t count = std::stoul(prompt.substr(prompt.find('(') + 1));
    model.greedy.push_back(
        {.prompt = ReadTokens(root, prompt.substr(0, blank), count, model.vocab_size),
         .answer = greedy.at("ids")});
  }
  return model;
}

// splitmix64 of the name's FNV-1a hash and the index: 24 bits of it as a number in [-1, 1).
float TinyValue(const std::string& name, uint64_t index) {
  uint64_t hash = kFnvStart;
  for (const char c : name) hash = FnvStep(hash, static_cast<unsigned char>(c));
  uint64_t z = hash + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  const double u = (static_cast<double>(z >> 40) - 0x1p23) / 0x1p23;
  double base = 0, amplitude = 0.25;
  if (name.ends_with("norm.weight")) base = 1;
  if (name.starts_with("rope_f")) base = 1.5, amplitude = 0.5;
  if (name == "token_embd.weight") amplitude = 1;
  return static_cast<float>(base + amplitude * u);
}

GgufWriter TinyWriter(const Json& model) {
  GgufWriter writer;
  const std::string architecture = model.at("arch");
  writer.SetString("general.architecture", architecture);
  writer.SetString("tokenizer.ggml.model", "no_vocab");
  for (const auto& [key, value] : model.at("kv").items()) {
    const std::string name = architecture + "." + key;
    if (value.is_string())
      writer.SetString(name, value.get<std::string>());
    else if (value.is_number_float())
      writer.Set(name, value.get<float>());
    else
      writer.Set(name, value.get<uint32_t>());
  }
  for (const auto& [name, shape] : model.at("tensors").items()) {
    std::vector<uint64_t> dims = shape;  // slowest first
    std::reverse(dims.begin(), dims.end());
    SetTinyTensor(writer, name, dims);
  }
  return writer;
}

}  // namespace

std::vector<float> ReadFloatFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  QUIRE_CHECK(in.good());
  std::vector<float> values(std::filesystem::file_size(path) / sizeof(float));
  in.read(reinterpret_cast<char*>(values.data()),
          static_cast<std::streamsize>(values.size() * sizeof(float)));
  QUIRE_CHECK(in.good());
  return values;
}

Json ReadJsonFile(const std::string& path) {
  std::ifstream in(path);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  QUIRE_CHECK(!json.is_discarded());
  return json;
}

TemporaryFile::TemporaryFile(std::span<const std::byte> bytes) {
  std::string name = (std::filesystem::temp_directory_path() / "quire-test-XXXXXX").string();
  const int descriptor = mkstemp(name.data());
  QUIRE_CHECK(descriptor >= 0);
  close(descriptor);
  path_ = name;
  std::ofstream out(path_, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  QUIRE_CHECK(out.good());
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

TemporaryFolder::TemporaryFolder()
    : path_((std::filesystem::temp_directory_path() / "quire-test-XXXXXX").string()) {
  QUIRE_CHECK(mkdtemp(path_.data()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Difference Compare(std::span<const double> got, std::span<const double> want) {
  QUIRE_CHECK(got.size() == want.size() && !want.empty());
  double error = 0, norm = 0, max_abs = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(got[i] - want[i]);
    max_abs = d <= max_abs ? max_abs : d;  // a NaN stays: no comparison with it is true
    error += d * d;
    norm += want[i] * want[i];
  }
  if (std::isnan(error)) max_abs = error;
  return {.max_abs = max_abs, .rel_rms = std::sqrt(error / norm), .nmse = error / norm};
}

std::ostream& operator<<(std::ostream& out, const Difference& difference) {
  return out << "max |difference| " << difference.max_abs << ", relative RMS " << difference.rel_rms
             << ", NMSE " << difference.nmse;
}

std::vector<double> ToDouble(std::span<const float> values) {
  return {values.begin(), values.end()};
}

std::vector<TokenId> LcgTokens(uint32_t seed, size_t count, uint32_t vocab_size) {
  std::vector<TokenId> tokens;
  uint32_t s = seed;
  for (size_t i = 0; i < count; ++i) {
    s = s * 1103515245u + 12345u;
    tokens.push_back(static_cast<TokenId>((s >> 16) % vocab_size));
  }
  return tokens;
}

std::vector<GoldenModel> GoldenModels() {
  const Json root = ReadJsonFile(TestData("models/goldens.json"));
  std::vector<GoldenModel> models;
  for (const Json& json : root.at("models"))
    models.push_back(ReadGoldenModel(root, json, TestData("models/")));
  return models;
}

std::optional<GoldenModel> RplusModel(const std::string& name) {
  const auto folder = SharedData("models/rplus");
  if (!folder) return std::nullopt;
  const Json root = ReadJsonFile(*folder + "/manifest.json");
  for (const Json& json : root.at("models"))
    if (json.at("name") == name) return ReadGoldenModel(root, json, *folder + "/");
  QUIRE_CHECK(false);
}

void SetTinyTensor(GgufWriter& writer, const std::string& name, std::vector<uint64_t> dims) {
  uint64_t count = 1;
  for (const uint64_t dim : dims) count *= dim;
  Bytes data(count * sizeof(float));
  for (uint64_t i = 0; i < count; ++i) {
    const float value = TinyValue(name, i);
    std::memcpy(data.data() + i * sizeof value, &value, sizeof value);
  }
  writer.SetTensor(name, std::move(dims), WeightType::kF32, std::move(data));
}

void FuseQkv(GgufWriter& writer, int layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".attn_";
  for (const std::string suffix : {".weight", ".bias"}) {
    std::vector<uint64_t> dims;
    Bytes data;
    for (const std::string part : {"q", "k", "v"}) {
      const GgufWriter::Tensor* tensor = writer.FindTensor(prefix + part + suffix);
      if (tensor == nullptr) continue;
      GgufWriter::Append(data, tensor->data);
      if (dims.empty())
        dims = tensor->dims;
      else
        dims.back() += tensor->dims.back();  // rows lie one after the other
      writer.RemoveTensor(prefix + part + suffix);
    }
    if (!dims.empty())
      writer.SetTensor(prefix + "qkv" + suffix, dims, WeightType::kF32, std::move(data));
  }
}

TinyModel FindTinyModel(const std::string& name) {
  for (TinyModel& model : TinyModels())
    if (model.name == name) return std::move(model);
  QUIRE_CHECK(false);
}

std::vector<TinyModel> TinyModels() {
  const Json root = ReadJsonFile(TestData("models/tiny.json"));
  std::vector<TinyModel> models;
  for (const Json& json : root.at("models")) {
    TinyModel& model = models.emplace_back();
    model.name = json.at("name");
    model.architecture = json.at("arch");
    model.writer = TinyWriter(json);
    model.vocab_size = json.at("kv").at("vocab_size");
    model.tokens = LcgTokens(kTinySeed, 48, static_cast<uint32_t>(model.vocab_size));
    for (const uint32_t position : {0u, 15u, 47u}) {
      const std::vector<double> row = json.at("logits").at(std::to_string(position));
      model.positions.push_back(position);
      model.logits.insert(model.logits.end(), row.begin(), row.end());
    }
  }
  return models;
}

}  // namespace quire
