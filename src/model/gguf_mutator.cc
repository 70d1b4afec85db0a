#include "model/gguf_mutator.h"

#include <algorithm>
#include <cstring>

namespace quire {
namespace {

constexpr uint64_t kEdges[] = {
    0,  1,  2,   3,          5,          8,          9,          12,         13,         31,
    63, 64, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1ull << 32, 1ull << 60, 1ull << 63, ~0ull};

}  // namespace

void GgufMutator::Mutate(Bytes& bytes) {
  const size_t place = Below(bytes.size());
  const size_t rest = bytes.size() - place;
  const auto at = [&](size_t offset) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  };
  switch (Below(6)) {
    case 0:
      bytes[place] ^= static_cast<std::byte>(1u << Below(8));
      break;
    case 1:
      bytes[place] = static_cast<std::byte>(Below(256));
      break;
    case 2: {
      const uint64_t edge = kEdges[Below(std::size(kEdges))];
      std::memcpy(bytes.data() + place, &edge, std::min<size_t>(Below(2) != 0 ? 8 : 4, rest));
      break;
    }
    case 3:
      bytes.erase(at(place), at(place + std::min<size_t>(1 + Below(16), rest)));
      if (bytes.empty()) bytes.resize(1);
      break;
    case 4: {
      const Bytes copy(at(place), at(place + std::min<size_t>(1 + Below(40), rest)));
      bytes.insert(at(Below(bytes.size())), copy.begin(), copy.end());
      break;
    }
    default:  // rare: a cut hides all that follows
      if (Below(8) == 0) bytes.resize(1 + place);
  }
}

}  // namespace quire
