// FNV-1a, one value of up to 64 bits a step: for hashes that must be the same on every machine and
// that nobody trusts (keys of estimates, digests of tests).
#pragma once

#include <cstdint>

namespace quire {

inline constexpr uint64_t kFnvStart = 0xCBF29CE484222325u;

constexpr uint64_t FnvStep(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x100000001B3u;
}

}  // namespace quire
