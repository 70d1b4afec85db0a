// Digest: a hash over the exact bits of computed values, for programs that print what they compute
// so that another build's answers can be compared.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/fnv.h"
#include "base/instruction_set.h"

namespace quire {

// FNV-1a, 64 bits: enough to tell two runs apart; nothing here is against an adversary.
class Digest {
 public:
  void Add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) hash_ = FnvStep(hash_, value >> (8 * byte) & 0xFF);
  }
  void Add(float value) { Add(uint64_t{std::bit_cast<uint32_t>(value)}); }
  template <class Values>  // of floats or integers
  void AddAll(const Values& values) {
    for (const auto& value : values) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, float>)
        Add(value);
      else
        Add(static_cast<uint64_t>(value));
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = kFnvStart;
};

// Uniform in [low, high): not a standard distribution, whose values no standard fixes.
inline float UniformFloat(std::mt19937& rng, float low, float high) {
  return low + (high - low) * (static_cast<float>(rng() >> 8) * 0x1p-24f);
}
inline std::vector<float> UniformFloats(std::mt19937& rng, size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) value = UniformFloat(rng, low, high);
  return values;
}

// Prints the line "CASE/INSTRUCTION_SET HASH".
void PrintDigest(const std::string& name, InstructionSet set, const Digest& digest);

// One line or more each. Requires: the machine has the set.
void DigestLinear(InstructionSet set);     // linear_digest.cc
void DigestAttention(InstructionSet set);  // attention_digest.cc
void DigestForward(InstructionSet set);    // forward_digest.cc

}  // namespace quire
