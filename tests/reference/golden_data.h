// Golden answers that tests read: files of logits, the list of models that have them, tiny models
// made on the spot, and the measures of a difference.
//
// A file that should be there and is not, or that cannot be read, ends the test program
// (QUIRE_CHECK): it is a broken checkout.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "model/gguf_writer.h"

namespace quire {

std::vector<float> ReadFloatFile(const std::string& path);
nlohmann::json ReadJsonFile(const std::string& path);

// A file of our own for this test program, removed when this dies.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const std::byte> bytes);
  explicit TemporaryFile(const GgufWriter& writer) : TemporaryFile(writer.File()) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// An empty folder of our own, removed with what is in it when this dies.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// How far `got` is from `want`. NaN anywhere gives NaN or infinity, which no bound admits.
struct Difference {
  double max_abs = 0;  // max |got - want|
  double rel_rms = 0;  // sqrt(sum (got - want)^2 / sum want^2)
  double nmse = 0;     // the square of rel_rms

  bool Within(double max_abs_bound, double rel_rms_bound) const {
    return max_abs <= max_abs_bound && rel_rms <= rel_rms_bound;
  }
};
// Requires: equal sizes, not empty.
Difference Compare(std::span<const double> got, std::span<const double> want);
std::ostream& operator<<(std::ostream& out, const Difference& difference);

std::vector<double> ToDouble(std::span<const float> values);

// The rows `positions` of [num_tokens][row_len].
template <class T>
std::vector<double> PickRows(std::span<const T> all, std::span<const uint32_t> positions,
                             size_t row_len) {
  std::vector<double> picked;
  for (const uint32_t position : positions)
    for (size_t i = 0; i < row_len; ++i) picked.push_back(all[position * row_len + i]);
  return picked;
}

struct Bound {
  double max_abs = 0;
  double rel_rms = 0;
};

struct GoldenLogits {
  std::string label;            // "llama-gqa.long", for messages
  std::vector<TokenId> tokens;  // the prompt
  std::vector<uint32_t> positions;
  std::vector<double> logits;           // [positions.size()][vocab_size]
  std::optional<double> max_abs_bound;  // of this golden, in place of the model's f32 bound
};

struct GreedyGolden {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;
};

struct GoldenModel {
  std::string name;
  std::string architecture;
  std::string path;
  size_t vocab_size = 0;
  Bound double_bound;               // for a double reference
  Bound float_bound;                // for an f32 engine
  Bound f16_kv_cost;                // what f16 K and V cost the oracle; allow three times this
  std::optional<Bound> int8_bound;  // of a quantised one: for an engine that rounds activations
  std::vector<GoldenLogits> goldens;
  std::vector<GreedyGolden> greedy;
};

// The models of tests/data/models/goldens.json. Oracle: llama.cpp 3f545be; how: that file.
std::vector<GoldenModel> GoldenModels();

// One of models/rplus of the shared data; nothing if there is no such folder.
std::optional<GoldenModel> RplusModel(const std::string& name);

// A tiny model of tests/data/models/tiny.json, whose weights are a hash of name and index.
struct TinyModel {
  std::string name;
  std::string architecture;
  GgufWriter writer;  // change what a test is about; then the logits below no longer hold
  std::vector<TokenId> tokens;
  std::vector<uint32_t> positions;
  std::vector<double> logits;  // [positions.size()][vocab_size]
  size_t vocab_size = 0;
};
std::vector<TinyModel> TinyModels();
TinyModel FindTinyModel(const std::string& name);
// A tensor like theirs, for a test that adds one: F32, dims fastest first.
void SetTinyTensor(GgufWriter& writer, const std::string& name, std::vector<uint64_t> dims);
// Puts attn_q, attn_k and attn_v (F32) of a layer, weights and biases, into one attn_qkv.
void FuseQkv(GgufWriter& writer, int layer);

// ids of a linear congruential generator: s = s * 1103515245 + 12345 mod 2^32, (s >> 16) % vocab.
std::vector<TokenId> LcgTokens(uint32_t seed, size_t count, uint32_t vocab_size);

}  // namespace quire
