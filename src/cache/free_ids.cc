#include "cache/free_ids.h"

#include <bit>
#include <cstddef>

#include "base/check.h"

namespace quire {
namespace {

constexpr uint64_t kFull = ~uint64_t{0};

}  // namespace

FreeIds::FreeIds(uint32_t num_ids) : num_free_(num_ids) {
  uint64_t num_bits = num_ids;
  do {
    const uint64_t num_words = num_bits == 0 ? 1 : (num_bits + 63) / 64;
    std::vector<uint64_t>& words = levels_.emplace_back(num_words, 0);
    const uint64_t num_last = num_bits - (num_words - 1) * 64;
    if (num_last < 64) words.back() = kFull << num_last;
    num_bits = num_words;
  } while (num_bits > 1);
}

uint32_t FreeIds::TakeLowest() {
  QUIRE_CHECK(num_free_ > 0);
  uint64_t word = 0;
  for (size_t level = levels_.size(); level-- > 0;)
    word = word * 64 + static_cast<uint64_t>(std::countr_one(levels_[level][word]));
  const auto id = static_cast<uint32_t>(word);
  Take(id);
  return id;
}

void FreeIds::Take(uint32_t id) {
  QUIRE_CHECK(is_free(id));
  uint64_t bit = id;
  for (std::vector<uint64_t>& words : levels_) {
    uint64_t& bits = words[bit / 64];
    bits |= uint64_t{1} << (bit % 64);
    if (bits != kFull) break;
    bit /= 64;
  }
  --num_free_;
}

void FreeIds::GiveBack(uint32_t id) {
  QUIRE_CHECK(!is_free(id));
  uint64_t bit = id;
  for (std::vector<uint64_t>& words : levels_) {
    uint64_t& bits = words[bit / 64];
    const bool was_full = bits == kFull;
    bits &= ~(uint64_t{1} << (bit % 64));
    if (!was_full) break;
    bit /= 64;
  }
  ++num_free_;
}

}  // namespace quire
