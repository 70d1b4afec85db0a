// ReferenceModel: the llama architecture as plain double arithmetic, to judge the engine by.
//
// Reads keys and tensors from a GGUF file by itself (not through model/shape.h or linear/), so
// that one mistake is not made on both sides. All forms: MHA to MQA, any head dimension, biases,
// tied output, fused attn_qkv, .scale factors, rope plain, linear, yarn and with rope_freqs, a
// sliding window on all layers. K and V are kept as doubles.
//
// Cost: all weights as doubles in memory, and some 10^9 multiplications a second.
// Threads: constant after loading.
// Papers: Touvron et al., LLaMA, 2023; Su et al., RoFormer, 2021; Peng et al., YaRN, 2023.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace quire {

class ReferenceModel {
 public:
  static StatusOr<ReferenceModel> Load(const std::string& path);

  int vocab_size() const { return vocab_size_; }

  // Logits of positions [first, tokens.size()), row-major [tokens.size() - first][vocab_size].
  // Requires: 0 <= token < vocab_size, first <= tokens.size().
  std::vector<double> Logits(std::span<const TokenId> tokens, size_t first = 0) const;

 private:
  using Vector = std::vector<double>;

  const Vector* Find(const std::string& name) const;    // nullptr: the file has none
  const Vector& Tensor(const std::string& name) const;  // must be there
  Vector Multiply(const std::string& name, const Vector& x) const;
  Vector AttentionLinear(const std::string& name, const Vector& x) const;
  Vector FeedForwardLinear(const std::string& name, const Vector& x) const;
  Vector Norm(const std::string& name, const Vector& x) const;
  void Rotate(Vector& heads, size_t position) const;
  Vector Attend(const Vector& q, const std::vector<Vector>& keys,
                const std::vector<Vector>& values) const;

  int vocab_size_ = 0;
  int num_layers_ = 0;
  int num_q_heads_ = 0;
  int num_kv_heads_ = 0;
  int head_dim_k_ = 0;
  int head_dim_v_ = 0;
  int sliding_window_ = 0;  // 0: none
  double epsilon_ = 0;
  int rope_dims_ = 0;
  Vector rope_frequencies_;  // radians a position, of each pair
  double rope_magnitude_ = 1;
  std::map<std::string, Vector> tensors_;  // row-major [rows][columns]
};

}  // namespace quire
