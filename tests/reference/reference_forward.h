// ReferenceModel: llama, qwen2, qwen3 and gemma3 as plain double arithmetic, to judge the engine
// by.
//
// Reads keys and tensors from a GGUF file by itself (not through model/shape.h or linear/), so
// that one mistake is not made on both sides. All forms: MHA to MQA, any head dimension, biases,
// tied output, fused attn_qkv, .scale factors, rope plain, linear, yarn and with rope_freqs, head
// norms, norms of the branches' outputs, sliding windows on all layers or some, with a rope of
// their own. K and V are kept as doubles, or as a codec gives them back (kv_emulation.h).
//
// Cost: all weights as doubles in memory, and some 10^9 multiplications a second.
// Threads: constant after loading.
// Papers: Touvron et al., LLaMA, 2023; Su et al., RoFormer, 2021; Peng et al., YaRN, 2023; Qwen
// team, Qwen2 and Qwen3 reports, 2024 and 2025; Gemma team, Gemma 3 report, 2025.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "model/gguf_header.h"
#include "reference/kv_emulation.h"

namespace quire {

class ReferenceModel {
 public:
  static StatusOr<ReferenceModel> Load(const std::string& path);

  int vocab_size() const { return vocab_size_; }

  // Logits of positions [first, tokens.size()), row-major [tokens.size() - first][vocab_size].
  // Requires: 0 <= token < vocab_size, first <= tokens.size().
  // K and V are read as `kv` gives them back; by default they are kept as doubles.
  std::vector<double> Logits(std::span<const TokenId> tokens, size_t first = 0,
                             const KvEmulation& kv = KvEmulation({.k_codec = KvCodec::kF32,
                                                                  .v_codec = KvCodec::kF32},
                                                                 64)) const;

  // Up to `most` tokens after `prompt`, each the likeliest; ends before the first whose logit is
  // less than least_gap above the second, since rounding may choose the other there.
  std::vector<TokenId> Greedy(std::span<const TokenId> prompt, size_t most, double least_gap) const;

 private:
  using Vector = std::vector<double>;

  struct Rope {
    Vector frequencies;  // radians a position, of each pair
    double magnitude = 1;
  };
  // K and V of the positions so far, of each layer.
  struct Cache {
    KvEmulation::Side keys, values;
  };

  static StatusOr<Rope> ReadRope(const GgufHeader& header, const std::string& prefix, int dims,
                                 double base, bool scaled, const Vector* factors);
  Status ReadLayers(const GgufHeader& header, const std::string& prefix);
  const Vector* Find(const std::string& name) const;    // nullptr: the file has none
  const Vector& Tensor(const std::string& name) const;  // must be there
  Vector Multiply(const std::string& name, const Vector& x) const;
  Vector AttentionLinear(const std::string& name, const Vector& x) const;
  Vector FeedForwardLinear(const std::string& name, const Vector& x) const;
  Vector Norm(const std::string& name, const Vector& x) const;
  void NormHeads(const std::string& name, Vector& heads) const;
  void Rotate(Vector& heads, size_t position, const Rope& rope) const;
  Vector Attend(const Vector& q, const Cache& cache, size_t window, const KvEmulation& kv) const;
  void ComputeLayer(int layer, Vector& x, size_t position, Cache& cache,
                    const KvEmulation& kv) const;

  int vocab_size_ = 0;
  int num_layers_ = 0;
  int num_q_heads_ = 0;
  int num_kv_heads_ = 0;
  int head_dim_k_ = 0;
  int head_dim_v_ = 0;
  double epsilon_ = 0;
  std::string architecture_;
  std::map<bool, Rope> ropes_;             // of layers without a window, and with one
  std::vector<int> windows_;               // of each layer; 0: none
  std::map<std::string, Vector> tensors_;  // row-major [rows][columns]
};

}  // namespace quire
