// Philox4x32-10: random numbers counted, not stepped. A number is a pure function of key and
// counter, the same on every machine; neighbouring counters give independent numbers.
//
// Not for secrets. Paper: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3,
// SC 2011, sec. 3.3 and table 2 (the constants).
#pragma once

#include <array>
#include <cstdint>

namespace quire {

constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace quire
