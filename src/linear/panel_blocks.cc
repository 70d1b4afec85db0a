#include "linear/panel_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace quire {
namespace {

using Bytes = const uint8_t*;

uint32_t Word(Bytes p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
  return x;
}

// One lane of one group.
template <WeightType kType>
class LaneWriter {
 public:
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);

  LaneWriter(std::byte* group, int lane) : group_(group), lane_(lane) {}

  void Half(int i, Bytes in) { std::memcpy(group_ + 2 * (i * kPanelLanes + lane_), in, 2); }
  void Byte(int block, int i, int value) {
    Block(block)[i * kPanelLanes + lane_] = static_cast<std::byte>(value);
  }
  void Code(int block, int word, uint32_t value) {
    std::memcpy(Block(block) + kFormat.block_head_bytes() + 4 * (word * kPanelLanes + lane_),
                &value, 4);
  }

 private:
  std::byte* Block(int block) {
    return group_ + kFormat.head_bytes() + block * kFormat.block_stride();
  }
  std::byte* group_;
  int lane_;
};

constexpr uint32_t kLowNibbles = 0x0F0F0F0F;

// 32 bytes whose bits [shift, shift + 4) are the codes: words of the 4-bit part.
template <class Writer>
void WriteSpreadNibbles(Writer& out, int block, Bytes q, int shift) {
  for (int w = 0; w < 4; ++w)
    out.Code(block, w,
             (Word(q + 4 * w) >> shift & kLowNibbles) |
                 (Word(q + 16 + 4 * w) >> shift & kLowNibbles) << 4);
}

// 16 bytes of nibbles in the order of the small types, which is the panel's.
template <class Writer>
void WriteNibbles(Writer& out, int block, Bytes q) {
  for (int w = 0; w < 4; ++w) out.Code(block, w, Word(q + 4 * w));
}

// Bit i of `bits` is element i: to bit f of byte b for element 4 f + b.
uint32_t SpreadBits(uint32_t bits) {
  uint32_t word = 0;
  for (int four = 0; four < 8; ++four)
    word |= ((bits >> 4 * four & 15) * 0x00204081 & 0x01010101) << four;
  return word;
}

// Bit `shift` of 32 bytes: the 1-bit part.
uint32_t GatherBits(Bytes h, int shift) {
  uint32_t word = 0;
  for (int four = 0; four < 8; ++four) word |= (Word(h + 4 * four) >> shift & 0x01010101) << four;
  return word;
}

// Bits [shift, shift + 2) of 16 bytes: a word of the 2-bit part.
uint32_t GatherPairs(Bytes q, int shift) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= (Word(q + 4 * i) >> shift & 0x03030303) << 2 * i;
  return word;
}

// S and M of Q4_K and Q5_K: 6 bits each, in 12 bytes.
template <class Writer>
void WriteSixBitScales(Writer& out, Bytes s) {
  for (int g = 0; g < 8; ++g) {
    const int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) + 16 * (s[g - 4] >> 6);
    const int min = g < 4 ? s[g + 4] & 63 : (s[g + 4] >> 4) + 16 * (s[g] >> 6);
    out.Byte(g, 0, scale);
    out.Byte(g, 1, min);
  }
}

template <WeightType kType>
void WriteGroup(Bytes in, LaneWriter<kType> out) {
  if constexpr (kType == WeightType::kQ8_0) {
    out.Half(0, in);
    for (int w = 0; w < 8; ++w) out.Code(0, w, Word(in + 2 + 4 * w));
  } else if constexpr (kType == WeightType::kQ4_0 || kType == WeightType::kIq4Nl) {
    out.Half(0, in);
    WriteNibbles(out, 0, in + 2);
  } else if constexpr (kType == WeightType::kQ4_1) {
    out.Half(0, in);
    out.Half(1, in + 2);
    WriteNibbles(out, 0, in + 4);
  } else if constexpr (kType == WeightType::kQ5_0) {
    out.Half(0, in);
    out.Code(0, 4, SpreadBits(Word(in + 2)));
    WriteNibbles(out, 0, in + 6);
  } else if constexpr (kType == WeightType::kQ5_1) {
    out.Half(0, in);
    out.Half(1, in + 2);
    out.Code(0, 4, SpreadBits(Word(in + 4)));
    WriteNibbles(out, 0, in + 8);
  } else if constexpr (kType == WeightType::kMxfp4) {
    out.Byte(0, 0, in[0]);
    WriteNibbles(out, 0, in + 1);
  } else if constexpr (kType == WeightType::kQ4K) {
    out.Half(0, in);
    out.Half(1, in + 2);
    WriteSixBitScales(out, in + 4);
    for (int g = 0; g < 8; ++g) WriteSpreadNibbles(out, g, in + 16 + 32 * (g / 2), 4 * (g % 2));
  } else if constexpr (kType == WeightType::kQ5K) {
    out.Half(0, in);
    out.Half(1, in + 2);
    WriteSixBitScales(out, in + 4);
    for (int g = 0; g < 8; ++g) {
      WriteSpreadNibbles(out, g, in + 48 + 32 * (g / 2), 4 * (g % 2));
      out.Code(g, 4, GatherBits(in + 16, g));
    }
  } else if constexpr (kType == WeightType::kIq4Xs) {
    const int high = in[2] | in[3] << 8;
    out.Half(0, in);
    for (int g = 0; g < 8; ++g) {
      const int x = (in[4 + g / 2] >> 4 * (g % 2) & 15) + 16 * (high >> 2 * g & 3);
      out.Byte(g, 0, x - 32);
      WriteNibbles(out, g, in + 8 + 16 * g);
    }
  } else if constexpr (kType == WeightType::kQ6K) {
    out.Half(0, in + 208);
    for (int g = 0; g < 8; ++g) {
      const int n = g / 4, j = g % 4;
      const Bytes low = in + 64 * n + 32 * (j % 2), high = in + 128 + 32 * n;
      for (int w = 0; w < 4; ++w)
        out.Code(g, w,
                 (Word(low + 8 * w) >> 4 * (j / 2) & kLowNibbles) |
                     (Word(low + 8 * w + 4) >> 4 * (j / 2) & kLowNibbles) << 4);
      for (int w = 0; w < 2; ++w) out.Code(g, 4 + w, GatherPairs(high + 16 * w, 2 * j));
      for (int h = 0; h < 2; ++h) out.Byte(g, h, in[192 + 2 * g + h]);
    }
  } else if constexpr (kType == WeightType::kQ3K) {
    const Bytes s = in + 96;
    out.Half(0, in + 108);
    for (int g = 0; g < 8; ++g) {
      for (int w = 0; w < 2; ++w)
        out.Code(g, w, GatherPairs(in + 32 + 32 * (g / 4) + 16 * w, 2 * (g % 4)));
      out.Code(g, 2, GatherBits(in, g));
      for (int h = 0; h < 2; ++h) {
        const int i = 2 * g + h;
        const int scale = (s[i % 8] >> 4 * (i / 8) & 15) + 16 * (s[8 + i % 4] >> 2 * (i / 4) & 3);
        out.Byte(g, h, scale - 32);
      }
    }
  } else if constexpr (kType == WeightType::kQ2K) {
    out.Half(0, in + 80);
    out.Half(1, in + 82);
    for (int g = 0; g < 8; ++g) {
      for (int w = 0; w < 2; ++w)
        out.Code(g, w, GatherPairs(in + 16 + 32 * (g / 4) + 16 * w, 2 * (g % 4)));
      for (int h = 0; h < 2; ++h) out.Byte(g, h, in[2 * g + h]);
    }
  }
}

template <WeightType kType>
void WriteLaneAs(const std::byte* row, int num_blocks, int lane, std::byte* panel) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  const size_t file_stride = static_cast<size_t>(BlockBytes(kType)) *
                             (kFormat.blocks * kPanelBlock / BlockElements(kType));
  auto in = reinterpret_cast<Bytes>(row);
  for (int b = 0; b < num_blocks; b += kFormat.blocks) {
    WriteGroup<kType>(in, LaneWriter<kType>(panel, lane));
    in += file_stride;
    panel += kFormat.group_stride();
  }
}

// One lane's fields of one block.
class LaneReader {
 public:
  LaneReader(WeightType type, const std::byte* panel, int block, int lane)
      : format_(PanelFormatOf(type)),
        group_(reinterpret_cast<Bytes>(panel) + format_.GroupAt(block)),
        block_(reinterpret_cast<Bytes>(panel) + format_.BlockAt(block)),
        lane_(lane) {}

  float Half(int i) const {
    uint16_t x;
    std::memcpy(&x, group_ + 2 * (i * kPanelLanes + lane_), 2);
    return HalfToFloat(x);
  }
  int Byte(int i) const { return block_[i * kPanelLanes + lane_]; }
  int SignedByte(int i) const { return static_cast<int8_t>(Byte(i)); }
  // Byte b of code word w.
  int Code(int w, int b) const {
    return block_[format_.block_head_bytes() + 4 * (w * kPanelLanes + lane_) + b];
  }
  int Nibble(int i) const {  // small types' order
    return Code(i % 16 / 4, i % 4) >> 4 * (i / 16) & 15;
  }
  int NibbleOfHalves(int i) const { return Code(i / 8, i % 4) >> 4 * (i / 4 % 2) & 15; }
  int Pair(int first_word, int i) const {
    return Code(first_word + i / 16, i % 4) >> 2 * (i / 4 % 4) & 3;
  }
  int Bit(int word, int i) const { return Code(word, i % 4) >> i / 4 & 1; }

 private:
  PanelFormat format_;
  Bytes group_, block_;
  int lane_;
};

int CodeOf(WeightType type, const LaneReader& in, int i) {
  switch (type) {
    case WeightType::kQ8_0:
      return static_cast<int8_t>(in.Code(i / 4, i % 4));
    case WeightType::kQ4_0:
      return in.Nibble(i) - 8;
    case WeightType::kQ4_1:
    case WeightType::kQ4K:
      return in.Nibble(i);
    case WeightType::kQ5_0:
      return in.Nibble(i) + 16 * in.Bit(4, i) - 16;
    case WeightType::kQ5_1:
    case WeightType::kQ5K:
      return in.Nibble(i) + 16 * in.Bit(4, i);
    case WeightType::kIq4Nl:
    case WeightType::kIq4Xs:
      return kIq4Values[in.Nibble(i)];
    case WeightType::kMxfp4:
      return kMxfp4Values[in.Nibble(i)];
    case WeightType::kQ6K:
      return in.NibbleOfHalves(i) + 16 * in.Pair(4, i) - 32;
    case WeightType::kQ3K:
      return in.Pair(0, i) + 4 * in.Bit(2, i) - 4;
    case WeightType::kQ2K:
      return in.Pair(0, i);
    default:
      QUIRE_CHECK(false);
  }
}

}  // namespace

void WriteLane(WeightType type, const std::byte* file_row, int num_blocks, int lane,
               std::byte* panel) {
  switch (type) {
#define QUIRE_CASE(t) \
  case t:             \
    return WriteLaneAs<t>(file_row, num_blocks, lane, panel);
    QUIRE_CASE(WeightType::kQ8_0)
    QUIRE_CASE(WeightType::kQ4_0)
    QUIRE_CASE(WeightType::kQ4_1)
    QUIRE_CASE(WeightType::kQ5_0)
    QUIRE_CASE(WeightType::kQ5_1)
    QUIRE_CASE(WeightType::kIq4Nl)
    QUIRE_CASE(WeightType::kMxfp4)
    QUIRE_CASE(WeightType::kQ4K)
    QUIRE_CASE(WeightType::kQ5K)
    QUIRE_CASE(WeightType::kIq4Xs)
    QUIRE_CASE(WeightType::kQ6K)
    QUIRE_CASE(WeightType::kQ3K)
    QUIRE_CASE(WeightType::kQ2K)
#undef QUIRE_CASE
    default:
      QUIRE_CHECK(false);
  }
}

LaneBlock ReadLane(WeightType type, const std::byte* panel, int block, int lane) {
  const LaneReader in(type, panel, block, lane);
  LaneBlock out{};
  for (int h = 0; h < 2; ++h) {
    switch (type) {
      case WeightType::kQ4_1:
      case WeightType::kQ5_1:
        out.scale[h] = in.Half(0);
        out.min[h] = in.Half(1);
        break;
      case WeightType::kMxfp4:
        out.scale[h] = std::ldexp(1.0f, in.Byte(0) - 128);
        break;
      case WeightType::kQ4K:
      case WeightType::kQ5K:
        out.scale[h] = in.Half(0) * static_cast<float>(in.Byte(0));
        out.min[h] = -in.Half(1) * static_cast<float>(in.Byte(1));
        break;
      case WeightType::kIq4Xs:
        out.scale[h] = in.Half(0) * static_cast<float>(in.SignedByte(0));
        break;
      case WeightType::kQ6K:
      case WeightType::kQ3K:
        out.scale[h] = in.Half(0) * static_cast<float>(in.SignedByte(h));
        break;
      case WeightType::kQ2K:
        out.scale[h] = in.Half(0) * static_cast<float>(in.Byte(h) & 15);
        out.min[h] = -in.Half(1) * static_cast<float>(in.Byte(h) >> 4);
        break;
      default:
        out.scale[h] = in.Half(0);
    }
  }
  for (int i = 0; i < kPanelBlock; ++i) out.code[i] = CodeOf(type, in, i);
  return out;
}

}  // namespace quire
