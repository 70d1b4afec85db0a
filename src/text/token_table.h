// TokenTable: from a token's bytes to its number. Built once, then only read.
//
// Open addressing with the text's place in the slot: a look-up that finds nothing touches one cache
// line, and a vocabulary of 262,144 tokens takes 8 MiB and no allocation for each token.
//
// Threads: const access from any thread. Owner: the texts are the caller's and must outlive it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace quire {

class TokenTable {
 public:
  static constexpr TokenId kNone = -1;

  // Does not grow before it holds `expected` texts.
  explicit TokenTable(size_t expected) : slots_(std::bit_ceil(2 * expected + 2)) {}

  // Keeps the number that `text` has, if it has one. Requires: id >= 0.
  void Insert(std::string_view text, TokenId id) {
    Slot* slot = &slots_[Locate(text)];
    if (slot->id != kNone) return;
    if (2 * (count_ + 1) > slots_.size()) {
      Grow();
      slot = &slots_[Locate(text)];
    }
    *slot = {text.data(), static_cast<uint32_t>(text.size()), id};
    ++count_;
  }

  // kNone if there is no such text.
  TokenId Find(std::string_view text) const { return slots_[Locate(text)].id; }

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    TokenId id = kNone;
  };

  size_t Locate(std::string_view text) const {
    const size_t mask = slots_.size() - 1;
    size_t at = std::hash<std::string_view>()(text) & mask;
    while (slots_[at].id != kNone && std::string_view(slots_[at].data, slots_[at].size) != text) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id != kNone) slots_[Locate({slot.data, slot.size})] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t count_ = 0;
};

}  // namespace quire
