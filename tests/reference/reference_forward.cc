#include "reference/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <tuple>
#include <utility>

#include "base/errors.h"
#include "model/gguf_file.h"
#include "reference/dequantise.h"

namespace quire {
namespace {

double Silu(double x) { return x / (1 + std::exp(-x)); }
double TanhGelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

std::string InLayer(int layer, const std::string& name) {
  return fmt::format("blk.{}.{}", layer, name);
}

// A key that is absent or 0 has its default.
StatusOr<double> Number(const GgufHeader& header, const std::string& key, double fallback) {
  const GgufKey* found = header.FindKey(key);
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

}  // namespace

// Angle of pair j at position p: p base^(-2j/n) / ff[j], slowed down by the scaling.
StatusOr<ReferenceModel::Rope> ReferenceModel::ReadRope(const GgufHeader& header,
                                                        const std::string& prefix, int n,
                                                        double base, bool scaled,
                                                        const Vector* factors) {
  const std::string keys = prefix + "rope.scaling.";
  QUIRE_ASSIGN_OR_RETURN(std::string_view type, header.GetStringOr(keys + "type", "linear"));
  QUIRE_ASSIGN_OR_RETURN(const double old_factor, Number(header, prefix + "rope.scale_linear", 1));
  QUIRE_ASSIGN_OR_RETURN(double factor, Number(header, keys + "factor", old_factor));
  QUIRE_ASSIGN_OR_RETURN(const double context, Number(header, prefix + "context_length", 1));
  QUIRE_ASSIGN_OR_RETURN(const double original,
                         Number(header, keys + "original_context_length", context));
  QUIRE_ASSIGN_OR_RETURN(const double fast, Number(header, keys + "yarn_beta_fast", 32));
  QUIRE_ASSIGN_OR_RETURN(const double slow, Number(header, keys + "yarn_beta_slow", 1));
  if (type != "none" && type != "linear" && type != "yarn")
    return Unsupported("the reference has no rope scaling {}", type);
  if (!scaled) type = "none";
  if (type == "none") factor = 1;

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
  QUIRE_ASSIGN_OR_RETURN(rope.magnitude, Number(header, keys + "attn_factor", 1));
  if (type == "yarn") rope.magnitude *= 1 + 0.1 * std::log(std::max(1.0, factor));
  return rope;
}

// Which layers see a window only, and how each turns.
Status ReferenceModel::ReadLayers(const GgufHeader& header, const std::string& prefix) {
  const bool gemma = architecture_ == "gemma3";
  QUIRE_ASSIGN_OR_RETURN(const double dims,
                         Number(header, prefix + "rope.dimension_count", head_dim_k_));
  QUIRE_ASSIGN_OR_RETURN(const double base, Number(header, prefix + "rope.freq_base", 10000));
  QUIRE_ASSIGN_OR_RETURN(const double window_base,
                         Number(header, prefix + "rope.freq_base_swa", 10000));
  const Vector* factors = architecture_ == "llama" ? Find("rope_freqs.weight") : nullptr;
  const int n = static_cast<int>(dims);
  QUIRE_ASSIGN_OR_RETURN(ropes_[false], ReadRope(header, prefix, n, base, true, factors));
  QUIRE_ASSIGN_OR_RETURN(ropes_[true],
                         ReadRope(header, prefix, n, gemma ? window_base : base, !gemma, factors));

  double window = 0;
  if (gemma || architecture_ == "llama") {
    QUIRE_ASSIGN_OR_RETURN(window, Number(header, prefix + "attention.sliding_window", 0));
  }
  const GgufKey* pattern = header.FindKey(prefix + "attention.sliding_window_pattern");
  const bool is_list = pattern != nullptr && pattern->is_array();
  double period = 6;
  if (gemma && !is_list) {
    QUIRE_ASSIGN_OR_RETURN(period, Number(header, prefix + "attention.sliding_window_pattern", 6));
  }
  for (int layer = 0; layer < num_layers_; ++layer) {
    bool has_window = window > 0;
    if (gemma && is_list)
      has_window = has_window && pattern->bytes[static_cast<size_t>(layer)] == std::byte{1};
    else if (gemma)
      has_window = has_window && layer % static_cast<int>(period) != static_cast<int>(period) - 1;
    windows_.push_back(has_window ? static_cast<int>(window) : 0);
  }
  return OkStatus();
}

StatusOr<ReferenceModel> ReferenceModel::Load(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  const GgufHeader& header = file.header();
  QUIRE_ASSIGN_OR_RETURN(const std::string_view architecture,
                         header.GetString("general.architecture"));
  ReferenceModel model;
  model.architecture_ = architecture;
  if (architecture != "llama" && architecture != "qwen2" && architecture != "qwen3" &&
      architecture != "gemma3")
    return Unsupported("the reference has no {}", architecture);

  for (const GgufTensor& tensor : header.tensors()) {
    std::vector<std::byte> bytes(tensor.size_bytes);
    QUIRE_RETURN_IF_ERROR(file.Read(tensor, 0, bytes));
    QUIRE_ASSIGN_OR_RETURN(model.tensors_[std::string(tensor.name)],
                           Dequantise(tensor.type, bytes, tensor.columns() * tensor.rows()));
    if (tensor.name == "token_embd.weight") model.vocab_size_ = static_cast<int>(tensor.rows());
  }

  const std::string prefix = model.architecture_ + ".";
  const auto read_int = [&](const char* key, double fallback, int& into) -> Status {
    QUIRE_ASSIGN_OR_RETURN(const double value, Number(header, prefix + key, fallback));
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
  QUIRE_ASSIGN_OR_RETURN(model.epsilon_,
                         Number(header, prefix + "attention.layer_norm_rms_epsilon", 0));
  QUIRE_RETURN_IF_ERROR(model.ReadLayers(header, prefix));
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

// (W x + bias) scale; some architectures leave the scale out.
std::vector<double> ReferenceModel::FeedForwardLinear(const std::string& name,
                                                      const Vector& x) const {
  Vector y = Multiply(name + ".weight", x);
  if (const Vector* bias = Find(name + ".bias"))
    for (size_t row = 0; row < y.size(); ++row) y[row] += (*bias)[row];
  const bool scaled = architecture_ == "llama" || architecture_ == "qwen3";
  if (const Vector* scale = Find(name + ".scale"); scale != nullptr && scaled)
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

// Each head by itself, where the file has a weight for it.
void ReferenceModel::NormHeads(const std::string& name, Vector& heads) const {
  if (architecture_ != "qwen3" && architecture_ != "gemma3") return;
  const auto head_dim = static_cast<ptrdiff_t>(head_dim_k_);
  for (auto head = heads.begin(); head != heads.end(); head += head_dim) {
    const Vector normed = Norm(name, Vector(head, head + head_dim));
    std::copy(normed.begin(), normed.end(), head);
  }
}

// Turns the neighbours (2j, 2j + 1) of each head, or j and j + n / 2.
void ReferenceModel::Rotate(Vector& heads, size_t position, const Rope& rope) const {
  const size_t head_dim = static_cast<size_t>(head_dim_k_), pairs = rope.frequencies.size();
  const bool halves = architecture_ != "llama";
  for (size_t head = 0; head < heads.size(); head += head_dim)
    for (size_t j = 0; j < pairs; ++j) {
      const double angle = static_cast<double>(position) * rope.frequencies[j];
      const double c = std::cos(angle) * rope.magnitude, s = std::sin(angle) * rope.magnitude;
      double& a = heads[head + (halves ? j : 2 * j)];
      double& b = heads[head + (halves ? j + pairs : 2 * j + 1)];
      std::tie(a, b) = std::pair(a * c - b * s, a * s + b * c);
    }
}

// Softmax of the scaled q.k over the keys up to now, times the values. The last entry of the cache
// is the row's own.
std::vector<double> ReferenceModel::Attend(const Vector& q, const Cache& cache, size_t window,
                                           const KvEmulation& kv) const {
  const size_t dim_k = static_cast<size_t>(head_dim_k_), dim_v = static_cast<size_t>(head_dim_v_);
  const size_t num_heads = static_cast<size_t>(num_q_heads_);
  const size_t group = num_heads / static_cast<size_t>(num_kv_heads_);
  const size_t length = cache.keys.open.size();
  const auto key = [&](size_t j) -> const Vector& {
    return kv.Read(cache.keys, length - 1, j, window != 0, kv.options().k_codec);
  };
  const auto value = [&](size_t j) -> const Vector& {
    return kv.Read(cache.values, length - 1, j, window != 0, kv.options().v_codec);
  };
  const size_t begin = window != 0 && length > window ? length - window : 0;
  double divisor = static_cast<double>(head_dim_k_);
  if (architecture_ == "gemma3" && num_layers_ == 62)  // the 27B
    divisor = static_cast<double>(Tensor("output_norm.weight").size()) / num_q_heads_;
  Vector out(num_heads * dim_v), weights(length);
  for (size_t h = 0; h < num_heads; ++h) {
    const size_t kv_head = h / group;
    double top = -INFINITY;
    for (size_t j = begin; j < length; ++j) {
      double score = 0;
      for (size_t i = 0; i < dim_k; ++i) score += q[h * dim_k + i] * key(j)[kv_head * dim_k + i];
      weights[j] = score / std::sqrt(divisor);
      top = std::max(top, weights[j]);
    }
    double sum = 0;
    for (size_t j = begin; j < length; ++j) sum += weights[j] = std::exp(weights[j] - top);
    for (size_t j = begin; j < length; ++j)
      for (size_t i = 0; i < dim_v; ++i)
        out[h * dim_v + i] += weights[j] / sum * value(j)[kv_head * dim_v + i];
  }
  return out;
}

void ReferenceModel::ComputeLayer(int index, Vector& x, size_t position, Cache& cache,
                                  const KvEmulation& kv) const {
  const auto name = [&](const char* part) { return InLayer(index, part); };
  const int window = windows_[static_cast<size_t>(index)];
  const Rope& rope = ropes_.at(window > 0);
  const bool gemma = architecture_ == "gemma3";
  const Vector h = Norm(name("attn_norm.weight"), x);
  Vector q, k, v;
  if (Find(name("attn_qkv.weight")) != nullptr) {
    const Vector qkv = AttentionLinear(name("attn_qkv"), h);
    const auto k_begin = qkv.begin() + num_q_heads_ * head_dim_k_;
    const auto v_begin = k_begin + num_kv_heads_ * head_dim_k_;
    q.assign(qkv.begin(), k_begin);
    k.assign(k_begin, v_begin);
    v.assign(v_begin, qkv.end());
  } else {
    q = AttentionLinear(name("attn_q"), h);
    k = AttentionLinear(name("attn_k"), h);
    v = AttentionLinear(name("attn_v"), h);
  }
  NormHeads(name("attn_q_norm.weight"), q);
  NormHeads(name("attn_k_norm.weight"), k);
  Rotate(q, position, rope);
  Rotate(k, position, rope);
  kv.AppendK(std::move(k), cache.keys);
  kv.AppendV(std::move(v), static_cast<uint32_t>(head_dim_v_), cache.values);
  const Vector attended = Attend(q, cache, static_cast<size_t>(window), kv);
  Vector y = AttentionLinear(name("attn_output"), attended);
  if (gemma) y = Norm(name("post_attention_norm.weight"), y);
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];

  const Vector g = Norm(name("ffn_norm.weight"), x);
  Vector gate = FeedForwardLinear(name("ffn_gate"), g);
  const Vector up = FeedForwardLinear(name("ffn_up"), g);
  for (size_t i = 0; i < gate.size(); ++i)
    gate[i] = (gemma ? TanhGelu(gate[i]) : Silu(gate[i])) * up[i];
  Vector z = FeedForwardLinear(name("ffn_down"), gate);
  if (gemma) z = Norm(name("post_ffw_norm.weight"), z);
  for (size_t i = 0; i < x.size(); ++i) x[i] += z[i];
}

std::vector<double> ReferenceModel::Logits(std::span<const TokenId> tokens, size_t first,
                                           const KvEmulation& kv) const {
  std::vector<Cache> caches(static_cast<size_t>(num_layers_));
  const Vector& embedding = Tensor("token_embd.weight");
  const auto width = static_cast<ptrdiff_t>(embedding.size()) / vocab_size_;
  Vector logits;
  for (size_t position = 0; position < tokens.size(); ++position) {
    const auto row = embedding.begin() + width * tokens[position];
    Vector x(row, row + width);
    if (architecture_ == "gemma3")
      for (double& value : x) value *= std::sqrt(static_cast<double>(width));
    for (int layer = 0; layer < num_layers_; ++layer)
      ComputeLayer(layer, x, position, caches[static_cast<size_t>(layer)], kv);
    if (position < first) continue;
    const bool tied = Find("output.weight") == nullptr;
    Vector row_logits =
        Multiply(tied ? "token_embd.weight" : "output.weight", Norm("output_norm.weight", x));
    if (const Vector* bias = Find("output.bias"); bias != nullptr && architecture_ == "qwen2")
      for (size_t i = 0; i < row_logits.size(); ++i) row_logits[i] += (*bias)[i];
    logits.insert(logits.end(), row_logits.begin(), row_logits.end());
  }
  return logits;
}

std::vector<TokenId> ReferenceModel::Greedy(std::span<const TokenId> prompt, size_t most,
                                            double least_gap) const {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end()), answer;
  while (answer.size() < most) {
    std::vector<double> row = Logits(tokens, tokens.size() - 1);
    const auto best = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
    std::nth_element(row.begin(), row.begin() + 1, row.end(), std::greater<>());
    if (row[0] - row[1] < least_gap) break;
    answer.push_back(best);
    tokens.push_back(best);
  }
  return answer;
}

}  // namespace quire
