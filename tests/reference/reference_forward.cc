#include "reference/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "base/errors.h"
#include "model/gguf_file.h"
#include "reference/dequantise.h"

namespace quire {
namespace {

double Silu(double x) { return x / (1 + std::exp(-x)); }

std::string Layer(int layer, const char* name) { return fmt::format("blk.{}.{}", layer, name); }

struct Rope {
  std::vector<double> frequencies;
  double magnitude = 1;
};

// A key that is absent or 0 has its default.
StatusOr<double> Number(const GgufHeader& header, const std::string& key, double fallback) {
  const GgufKey* found = header.FindKey("llama." + key);
  if (found == nullptr) return fallback;
  double value;
  if (found->type == GgufType::kF32 || found->type == GgufType::kF64) {
    QUIRE_ASSIGN_OR_RETURN(value, ReadNumber(*found));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const int64_t integer, ReadInteger(*found, 0, 1 << 30));
    value = static_cast<double>(integer);
  }
  return value == 0 ? fallback : value;
}

// Angle of pair j at position p: p base^(-2j/n) / ff[j], slowed down by the scaling.
StatusOr<Rope> ReadRope(const GgufHeader& header, int n, const std::vector<double>* factors) {
  QUIRE_ASSIGN_OR_RETURN(const double base, Number(header, "rope.freq_base", 10000));
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type,
                         header.GetStringOr("llama.rope.scaling.type", "linear"));
  QUIRE_ASSIGN_OR_RETURN(const double old_factor, Number(header, "rope.scale_linear", 1));
  QUIRE_ASSIGN_OR_RETURN(double factor, Number(header, "rope.scaling.factor", old_factor));
  QUIRE_ASSIGN_OR_RETURN(const double context, Number(header, "context_length", 1));
  QUIRE_ASSIGN_OR_RETURN(const double original,
                         Number(header, "rope.scaling.original_context_length", context));
  QUIRE_ASSIGN_OR_RETURN(const double fast, Number(header, "rope.scaling.yarn_beta_fast", 32));
  QUIRE_ASSIGN_OR_RETURN(const double slow, Number(header, "rope.scaling.yarn_beta_slow", 1));
  if (type == "none") factor = 1;
  if (type != "none" && type != "linear" && type != "yarn")
    return Unsupported("the reference has no rope scaling {}", type);

  // The pair that turns `beta` times over the original context.
  const auto pair_of = [&](double beta) {
    return n * std::log(original / (2 * std::numbers::pi * beta)) / (2 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_of(fast)));
  const double high = std::min(n - 1.0, std::ceil(pair_of(slow)));

  Rope rope;
  for (int j = 0; j < n / 2; ++j) {
    double frequency = std::pow(base, -2.0 * j / n);
    if (factors != nullptr) frequency /= (*factors)[static_cast<size_t>(j)];
    double kept = 0;  // how much of the unscaled frequency stays
    if (type == "yarn") kept = 1 - std::clamp((j - low) / std::max(0.001, high - low), 0.0, 1.0);
    rope.frequencies.push_back(frequency / factor * (1 - kept) + frequency * kept);
  }
  QUIRE_ASSIGN_OR_RETURN(rope.magnitude, Number(header, "rope.scaling.attn_factor", 1));
  if (type == "yarn") rope.magnitude *= 1 + 0.1 * std::log(std::max(1.0, factor));
  return rope;
}

}  // namespace

StatusOr<ReferenceModel> ReferenceModel::Load(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  const GgufHeader& header = file.header();
  QUIRE_ASSIGN_OR_RETURN(const std::string_view architecture,
                         header.GetString("general.architecture"));
  if (architecture != "llama") return Unsupported("the reference has no {}", architecture);

  ReferenceModel model;
  for (const GgufTensor& tensor : header.tensors()) {
    std::vector<std::byte> bytes(tensor.size_bytes);
    QUIRE_RETURN_IF_ERROR(file.Read(tensor, 0, bytes));
    QUIRE_ASSIGN_OR_RETURN(model.tensors_[std::string(tensor.name)],
                           Dequantise(tensor.type, bytes, tensor.columns() * tensor.rows()));
    if (tensor.name == "token_embd.weight") model.vocab_size_ = static_cast<int>(tensor.rows());
  }

  const auto read_int = [&](const char* key, double fallback, int& into) -> Status {
    QUIRE_ASSIGN_OR_RETURN(const double value, Number(header, key, fallback));
    into = static_cast<int>(value);
    return OkStatus();
  };
  int embedding = 0;
  QUIRE_RETURN_IF_ERROR(read_int("embedding_length", 0, embedding));
  QUIRE_RETURN_IF_ERROR(read_int("block_count", 0, model.num_layers_));
  QUIRE_RETURN_IF_ERROR(read_int("attention.head_count", 1, model.num_q_heads_));
  const int heads = model.num_q_heads_;
  QUIRE_RETURN_IF_ERROR(read_int("attention.head_count_kv", heads, model.num_kv_heads_));
  QUIRE_RETURN_IF_ERROR(read_int("attention.key_length", embedding / heads, model.head_dim_k_));
  QUIRE_RETURN_IF_ERROR(read_int("attention.value_length", embedding / heads, model.head_dim_v_));
  QUIRE_RETURN_IF_ERROR(read_int("attention.sliding_window", 0, model.sliding_window_));
  QUIRE_RETURN_IF_ERROR(read_int("rope.dimension_count", model.head_dim_k_, model.rope_dims_));
  QUIRE_ASSIGN_OR_RETURN(model.epsilon_, Number(header, "attention.layer_norm_rms_epsilon", 0));
  QUIRE_ASSIGN_OR_RETURN(Rope rope,
                         ReadRope(header, model.rope_dims_, model.Find("rope_freqs.weight")));
  model.rope_frequencies_ = std::move(rope.frequencies);
  model.rope_magnitude_ = rope.magnitude;
  return model;
}

const std::vector<double>* ReferenceModel::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const std::vector<double>& ReferenceModel::Tensor(const std::string& name) const {
  const Vector* found = Find(name);
  QUIRE_CHECK(found != nullptr);
  return *found;
}

// W x.
std::vector<double> ReferenceModel::Multiply(const std::string& name, const Vector& x) const {
  const Vector& w = Tensor(name);
  Vector y(w.size() / x.size());
  for (size_t row = 0; row < y.size(); ++row)
    for (size_t column = 0; column < x.size(); ++column)
      y[row] += w[row * x.size() + column] * x[column];
  return y;
}

// (W x) scale + bias.
std::vector<double> ReferenceModel::AttentionLinear(const std::string& name,
                                                    const Vector& x) const {
  Vector y = Multiply(name + ".weight", x);
  if (const Vector* scale = Find(name + ".scale"))
    for (double& value : y) value *= (*scale)[0];
  if (const Vector* bias = Find(name + ".bias"))
    for (size_t row = 0; row < y.size(); ++row) y[row] += (*bias)[row];
  return y;
}

// (W x + bias) scale.
std::vector<double> ReferenceModel::FeedForwardLinear(const std::string& name,
                                                      const Vector& x) const {
  Vector y = Multiply(name + ".weight", x);
  if (const Vector* bias = Find(name + ".bias"))
    for (size_t row = 0; row < y.size(); ++row) y[row] += (*bias)[row];
  if (const Vector* scale = Find(name + ".scale"))
    for (double& value : y) value *= (*scale)[0];
  return y;
}

// x / sqrt(mean(x^2) + epsilon) w.
std::vector<double> ReferenceModel::Norm(const std::string& name, const Vector& x) const {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double root = std::sqrt(squares / static_cast<double>(x.size()) + epsilon_);
  const Vector& w = Tensor(name);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / root * w[i];
  return y;
}

// Turns the neighbours (2j, 2j + 1) of each head.
void ReferenceModel::Rotate(Vector& heads, size_t position) const {
  const size_t head_dim = static_cast<size_t>(head_dim_k_);
  for (size_t head = 0; head < heads.size(); head += head_dim)
    for (size_t j = 0; j < rope_frequencies_.size(); ++j) {
      const double angle = static_cast<double>(position) * rope_frequencies_[j];
      const double c = std::cos(angle) * rope_magnitude_, s = std::sin(angle) * rope_magnitude_;
      double& a = heads[head + 2 * j];
      double& b = heads[head + 2 * j + 1];
      std::tie(a, b) = std::pair(a * c - b * s, a * s + b * c);
    }
}

// Softmax of q.k / sqrt(head_dim_k) over the keys up to now, times the values. The last entry of
// `keys` is the row's own.
std::vector<double> ReferenceModel::Attend(const Vector& q, const std::vector<Vector>& keys,
                                           const std::vector<Vector>& values) const {
  const size_t dim_k = static_cast<size_t>(head_dim_k_), dim_v = static_cast<size_t>(head_dim_v_);
  const size_t num_heads = static_cast<size_t>(num_q_heads_);
  const size_t group = num_heads / static_cast<size_t>(num_kv_heads_);
  const size_t length = keys.size(), window = static_cast<size_t>(sliding_window_);
  const size_t begin = window != 0 && length > window ? length - window : 0;
  Vector out(num_heads * dim_v), weights(length);
  for (size_t h = 0; h < num_heads; ++h) {
    const size_t kv_head = h / group;
    double top = -INFINITY;
    for (size_t j = begin; j < length; ++j) {
      double score = 0;
      for (size_t i = 0; i < dim_k; ++i) score += q[h * dim_k + i] * keys[j][kv_head * dim_k + i];
      weights[j] = score / std::sqrt(static_cast<double>(dim_k));
      top = std::max(top, weights[j]);
    }
    double sum = 0;
    for (size_t j = begin; j < length; ++j) sum += weights[j] = std::exp(weights[j] - top);
    for (size_t j = begin; j < length; ++j)
      for (size_t i = 0; i < dim_v; ++i)
        out[h * dim_v + i] += weights[j] / sum * values[j][kv_head * dim_v + i];
  }
  return out;
}

std::vector<double> ReferenceModel::Logits(std::span<const TokenId> tokens, size_t first) const {
  const Vector& embedding = Tensor("token_embd.weight");
  const size_t width = embedding.size() / static_cast<size_t>(vocab_size_);
  const size_t q_rows = static_cast<size_t>(num_q_heads_ * head_dim_k_);
  const size_t k_rows = static_cast<size_t>(num_kv_heads_ * head_dim_k_);
  std::vector<std::vector<Vector>> keys(static_cast<size_t>(num_layers_)), values(keys);
  Vector logits;
  for (size_t position = 0; position < tokens.size(); ++position) {
    const auto row = embedding.begin() + static_cast<ptrdiff_t>(width) * tokens[position];
    Vector x(row, row + static_cast<ptrdiff_t>(width));
    for (int layer = 0; layer < num_layers_; ++layer) {
      const Vector h = Norm(Layer(layer, "attn_norm.weight"), x);
      Vector q, k, v;
      if (Find(Layer(layer, "attn_qkv.weight")) != nullptr) {
        const Vector qkv = AttentionLinear(Layer(layer, "attn_qkv"), h);
        const auto k_begin = qkv.begin() + static_cast<ptrdiff_t>(q_rows);
        const auto v_begin = k_begin + static_cast<ptrdiff_t>(k_rows);
        q.assign(qkv.begin(), k_begin);
        k.assign(k_begin, v_begin);
        v.assign(v_begin, qkv.end());
      } else {
        q = AttentionLinear(Layer(layer, "attn_q"), h);
        k = AttentionLinear(Layer(layer, "attn_k"), h);
        v = AttentionLinear(Layer(layer, "attn_v"), h);
      }
      Rotate(q, position);
      Rotate(k, position);
      auto& layer_keys = keys[static_cast<size_t>(layer)];
      auto& layer_values = values[static_cast<size_t>(layer)];
      layer_keys.push_back(std::move(k));
      layer_values.push_back(std::move(v));
      const Vector attended = Attend(q, layer_keys, layer_values);
      const Vector y = AttentionLinear(Layer(layer, "attn_output"), attended);
      for (size_t i = 0; i < width; ++i) x[i] += y[i];

      const Vector g = Norm(Layer(layer, "ffn_norm.weight"), x);
      Vector gate = FeedForwardLinear(Layer(layer, "ffn_gate"), g);
      const Vector up = FeedForwardLinear(Layer(layer, "ffn_up"), g);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = Silu(gate[i]) * up[i];
      const Vector z = FeedForwardLinear(Layer(layer, "ffn_down"), gate);
      for (size_t i = 0; i < width; ++i) x[i] += z[i];
    }
    if (position < first) continue;
    const bool tied = Find("output.weight") == nullptr;
    const Vector row_logits =
        Multiply(tied ? "token_embd.weight" : "output.weight", Norm("output_norm.weight", x));
    logits.insert(logits.end(), row_logits.begin(), row_logits.end());
  }
  return logits;
}

}  // namespace quire
