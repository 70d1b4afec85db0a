// The quantised types as vector code sees them: one small struct each, over panel_format.h.
//
// A block's codes come as eight fours: sixteen lanes of four u8, biased so that none is negative
// (kOffset is to be subtracted). A step makes two of them. LoadHead gives what a block's sum is
// scaled by.
#if defined(QUIRE_LINEAR_PANEL_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_PANEL_CODES_INL_H_
#undef QUIRE_LINEAR_PANEL_CODES_INL_H_
#else
#define QUIRE_LINEAR_PANEL_CODES_INL_H_
#endif

#include "linear/byte_products-inl.h"
#include "linear/panel_format.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// What the sums of a block are multiplied by:
//   whole    scale * sum (+ min * activation sum)
//   halves   scale * (S0 sum0 + S1 sum1) (+ min * (M0 x0 + M1 x1)): two integers a lane, as s16
template <bool kHalves, bool kMin>
struct BlockHead;
template <>
struct BlockHead<false, false> {
  F32x16 scale;
};
template <>
struct BlockHead<false, true> {
  F32x16 scale, min;
};
template <>
struct BlockHead<true, false> {
  F32x16 scale;
  Lanes scales;
};
template <>
struct BlockHead<true, true> {
  F32x16 scale, min;
  Lanes scales, mins;
};

HWY_INLINE F32x16 GroupHalf(const uint8_t* group, int i) {
  return LoadHalf16(reinterpret_cast<const uint16_t*>(group + 32 * i));
}
HWY_INLINE F32x16 Negative(F32x16 a) { return Sub16(Zero16(), a); }
template <class Byte>
HWY_INLINE F32x16 BytesToFloat(const uint8_t* p) {
  return LanesToFloat(BytesToLanes<Byte>(p));
}

// --- Places of fours ---------------------------------------------------------------------------

// Low nibbles are the first four fours of a block, high nibbles the others.
struct SplitFours {
  static constexpr int FourIndex(int step, int half) { return step + 4 * half; }
};
// A step's fours are neighbours.
struct NeighbourFours {
  static constexpr int FourIndex(int step, int half) { return 2 * step + half; }
};

// --- Codes --------------------------------------------------------------------------------------

struct NibbleCodes : SplitFours {
  static constexpr int kMaxCode = 15;
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    const Lanes packed = LoadLanes(codes + 64 * step);
    z[0] = LowNibbles(packed);
    z[1] = HighNibbles(packed);
  }
};

struct FiveBitCodes : SplitFours {
  static constexpr int kMaxCode = 31;
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    const Lanes bits = LoadLanes(codes + 256);
    NibbleCodes::Step(codes, step, z);
    z[0] = OrLanes(z[0], MovedBits(bits, 4 - step, 16));
    z[1] = OrLanes(z[1], MovedBits(bits, -step, 16));
  }
};

struct SixBitCodes : NeighbourFours {
  static constexpr int kMaxCode = 63;
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    const Lanes pairs = LoadLanes(codes + 256 + 64 * (step / 2));
    NibbleCodes::Step(codes, step, z);
    const int first = step % 2 == 0 ? 4 : 0;
    z[0] = OrLanes(z[0], MovedBits(pairs, first, 48));
    z[1] = OrLanes(z[1], MovedBits(pairs, first - 2, 48));
  }
};

struct TwoBitCodes : NeighbourFours {
  static constexpr int kMaxCode = 3;
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    const Lanes pairs = LoadLanes(codes + 64 * (step / 2));
    const int first = step % 2 == 0 ? 0 : -4;
    z[0] = MovedBits(pairs, first, 3);
    z[1] = MovedBits(pairs, first - 2, 3);
  }
};

struct ThreeBitCodes : NeighbourFours {
  static constexpr int kMaxCode = 7;
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    const Lanes bits = LoadLanes(codes + 128);
    TwoBitCodes::Step(codes, step, z);
    z[0] = OrLanes(z[0], MovedBits(bits, 2 - 2 * step, 4));
    z[1] = OrLanes(z[1], MovedBits(bits, 1 - 2 * step, 4));
  }
};

// Codes of eight bits: `SignedFour` gives a four as s8, without the bias.
struct ByteCodes : NeighbourFours {
  static constexpr int kMaxCode = 255;
  static HWY_INLINE Lanes SignedFour(const uint8_t* codes, int four) {
    return LoadLanes(codes + 64 * four);
  }
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    z[0] = XorBytes(SignedFour(codes, 2 * step), 128);
    z[1] = XorBytes(SignedFour(codes, 2 * step + 1), 128);
  }
};

alignas(16) inline constexpr auto kIq4Table = [] {
  struct {
    uint8_t x[16];
  } table{};
  for (int i = 0; i < 16; ++i) table.x[i] = static_cast<uint8_t>(kIq4Values[i]);
  return table;
}();
alignas(16) inline constexpr auto kMxfp4Table = [] {
  struct {
    uint8_t x[16];
  } table{};
  for (int i = 0; i < 16; ++i) table.x[i] = static_cast<uint8_t>(kMxfp4Values[i] + 16);
  return table;
}();

struct Iq4Codes : SplitFours {
  static constexpr int kMaxCode = 255;
  static HWY_INLINE Lanes SignedFour(const uint8_t* codes, int four) {
    const Lanes packed = LoadLanes(codes + 64 * (four % 4));
    return LookUp(kIq4Table.x, four < 4 ? LowNibbles(packed) : HighNibbles(packed));
  }
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    z[0] = XorBytes(SignedFour(codes, step), 128);
    z[1] = XorBytes(SignedFour(codes, step + 4), 128);
  }
};

struct Mxfp4Codes : SplitFours {
  static constexpr int kMaxCode = 28;
  static HWY_INLINE void Step(const uint8_t* codes, int step, Lanes (&z)[2]) {
    NibbleCodes::Step(codes, step, z);
    z[0] = LookUp(kMxfp4Table.x, z[0]);
    z[1] = LookUp(kMxfp4Table.x, z[1]);
  }
};

// --- Types --------------------------------------------------------------------------------------

// `group` is the head of the block's group, `block` the block's own bytes.
template <class C, int kBias>
struct ScaledPanel : C {  // d c
  static constexpr bool kHalves = false, kMin = false;
  static constexpr int kOffset = kBias;
  using Head = BlockHead<false, false>;
  static HWY_INLINE Head LoadHead(const uint8_t* group, const uint8_t*) {
    return {GroupHalf(group, 0)};
  }
};

template <class C>
struct MinPanel : C {  // d c + m
  static constexpr bool kHalves = false, kMin = true;
  static constexpr int kOffset = 0;
  using Head = BlockHead<false, true>;
  static HWY_INLINE Head LoadHead(const uint8_t* group, const uint8_t*) {
    return {GroupHalf(group, 0), GroupHalf(group, 1)};
  }
};

template <class C>
struct SixBitScalePanel : C {  // d S c - e M
  static constexpr bool kHalves = false, kMin = true;
  static constexpr int kOffset = 0;
  using Head = BlockHead<false, true>;
  static HWY_INLINE Head LoadHead(const uint8_t* group, const uint8_t* block) {
    return {Mul16(GroupHalf(group, 0), BytesToFloat<uint8_t>(block)),
            Mul16(Negative(GroupHalf(group, 1)), BytesToFloat<uint8_t>(block + 16))};
  }
};

struct Iq4XsPanel : Iq4Codes {  // d (x - 32) T[c]
  static constexpr bool kHalves = false, kMin = false;
  static constexpr int kOffset = 128;
  using Head = BlockHead<false, false>;
  static HWY_INLINE Head LoadHead(const uint8_t* group, const uint8_t* block) {
    return {Mul16(GroupHalf(group, 0), BytesToFloat<int8_t>(block))};
  }
};

struct Mxfp4Panel : Mxfp4Codes {  // 2^(e - 128) F[c]
  static constexpr bool kHalves = false, kMin = false;
  static constexpr int kOffset = 16;
  using Head = BlockHead<false, false>;
  // As a product of two powers that are normal numbers: 2^(a - 64) 2^(b - 64), a + b = e.
  static HWY_INLINE Head LoadHead(const uint8_t*, const uint8_t* block) {
    const Lanes e = BytesToLanes<uint8_t>(block), a = ShiftRightLanes(e, 1);
    return {Mul16(PowerOfTwo(a), PowerOfTwo(SubLanes(e, a)))};
  }
  static HWY_INLINE F32x16 PowerOfTwo(const Lanes& a) {  // 2^(a - 64), a in 0..128
    alignas(64) float x[16];
    StoreLanes(ShiftLeftLanes(AddLanes(a, SetLanes(63)), 23), x);
    return Load16(x);
  }
};

template <class C, int kBias>
struct HalvesPanel : C {  // d S c, S for each half
  static constexpr bool kHalves = true, kMin = false;
  static constexpr int kOffset = kBias;
  using Head = BlockHead<true, false>;
  static HWY_INLINE Head LoadHead(const uint8_t* group, const uint8_t* block) {
    return {GroupHalf(group, 0),
            PairOf(BytesToLanes<int8_t>(block), BytesToLanes<int8_t>(block + 16))};
  }
};

struct Q2KPanel : TwoBitCodes {  // d S c - e M, for each half
  static constexpr bool kHalves = true, kMin = true;
  static constexpr int kOffset = 0;
  using Head = BlockHead<true, true>;
  static HWY_INLINE Head LoadHead(const uint8_t* group, const uint8_t* block) {
    const Lanes first = BytesToLanes<uint8_t>(block), second = BytesToLanes<uint8_t>(block + 16);
    return {GroupHalf(group, 0), Negative(GroupHalf(group, 1)),
            PairOf(LowNibbles(first), LowNibbles(second)),
            PairOf(ShiftRightLanes(first, 4), ShiftRightLanes(second, 4))};
  }
};

template <class P, WeightType kWeightType>
struct Typed : P {
  static constexpr WeightType kType = kWeightType;
  static constexpr PanelFormat kFormat = PanelFormatOf(kWeightType);
};

// Calls f.template operator()<P>() with the struct of `type`. Requires: a quantised type.
template <class F>
HWY_INLINE void WithPanelType(WeightType type, F&& f) {
  switch (type) {
#define QUIRE_CASE(t, ...) \
  case WeightType::t:      \
    return f.template operator()<Typed<__VA_ARGS__, WeightType::t>>();
    QUIRE_CASE(kQ8_0, ScaledPanel<ByteCodes, 128>)
    QUIRE_CASE(kQ4_0, ScaledPanel<NibbleCodes, 8>)
    QUIRE_CASE(kQ4_1, MinPanel<NibbleCodes>)
    QUIRE_CASE(kQ5_0, ScaledPanel<FiveBitCodes, 16>)
    QUIRE_CASE(kQ5_1, MinPanel<FiveBitCodes>)
    QUIRE_CASE(kIq4Nl, ScaledPanel<Iq4Codes, 128>)
    QUIRE_CASE(kMxfp4, Mxfp4Panel)
    QUIRE_CASE(kQ4K, SixBitScalePanel<NibbleCodes>)
    QUIRE_CASE(kQ5K, SixBitScalePanel<FiveBitCodes>)
    QUIRE_CASE(kIq4Xs, Iq4XsPanel)
    QUIRE_CASE(kQ6K, HalvesPanel<SixBitCodes, 32>)
    QUIRE_CASE(kQ3K, HalvesPanel<ThreeBitCodes, 4>)
    QUIRE_CASE(kQ2K, Q2KPanel)
#undef QUIRE_CASE
    default:
      QUIRE_CHECK(false);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
