// The weights of a packed panel as f32 lanes: w = fma(d, q, m), exact but for Q4_1's one rounding.
#if defined(QUIRE_LINEAR_WEIGHT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_WEIGHT_LANES_INL_H_
#undef QUIRE_LINEAR_WEIGHT_LANES_INL_H_
#else
#define QUIRE_LINEAR_WEIGHT_LANES_INL_H_
#endif

#include "base/check.h"
#include "linear/byte_products-inl.h"
#include "linear/weight_type.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Byte `kByte` of each lane.
template <int kByte, bool kSigned>
HWY_INLINE F32x16 ByteToFloat(const Lanes& a) {
  alignas(64) int32_t x[16];
  StoreLanes(a, x);
  F32x16 r;
  for (size_t i = 0; i < kVecs; ++i) {
    const auto v = hn::Load(DI(), x + i * kVecLanes);
    if constexpr (kSigned) {
      r.v[i] = hn::ConvertTo(DF(), hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * kByte>(v)));
    } else {
      const auto byte = hn::And(hn::ShiftRight<8 * kByte>(v), hn::Set(DI(), 255));
      r.v[i] = hn::ConvertTo(DF(), byte);
    }
  }
  return r;
}

// Four k, one in each byte of a lane, to out [4][16].
template <bool kSigned>
HWY_INLINE void StoreFour(const Lanes& codes, F32x16 scale, F32x16 min, float offset, float* out) {
  const F32x16 shift = Set16(offset);
  Store16(Fma16(scale, Add16(ByteToFloat<0, kSigned>(codes), shift), min), out);
  Store16(Fma16(scale, Add16(ByteToFloat<1, kSigned>(codes), shift), min), out + 16);
  Store16(Fma16(scale, Add16(ByteToFloat<2, kSigned>(codes), shift), min), out + 32);
  Store16(Fma16(scale, Add16(ByteToFloat<3, kSigned>(codes), shift), min), out + 48);
}

HWY_INLINE void WidenNibbles(const uint8_t* codes, F32x16 scale, F32x16 min, float offset,
                             float* out) {
  for (int four = 0; four < 4; ++four) {
    const Lanes packed = LoadLanes(codes + 64 * four);
    StoreFour<false>(LowNibbles(packed), scale, min, offset, out + 64 * four);
    StoreFour<false>(HighNibbles(packed), scale, min, offset, out + 64 * (4 + four));
  }
}

// Weights k0 .. k0 + num_cols of a panel to out [num_cols][16]. For types with blocks both are
// multiples of 32.
inline HWY_NOINLINE void WidenWeights(WeightType type, const std::byte* panel, int k0, int num_cols,
                                      float* out) {
  const auto* w = reinterpret_cast<const uint8_t*>(panel);
  const size_t k = static_cast<size_t>(k0);
  const DF d;
  switch (type) {
    case WeightType::kF32:
      for (int i = 0; i < num_cols; ++i)
        Store16(Load16(reinterpret_cast<const float*>(w) + 16 * (k0 + i)), out + 16 * i);
      return;
    case WeightType::kF16:
      for (int i = 0; i < num_cols; ++i)
        Store16(LoadHalf16(reinterpret_cast<const uint16_t*>(w) + 16 * (k0 + i)), out + 16 * i);
      return;
    case WeightType::kBf16: {
      const auto* in = reinterpret_cast<const uint16_t*>(w) + 16 * k;
      const DI di;
      const hn::Rebind<uint16_t, DI> du;
      for (size_t i = 0; i < 16 * static_cast<size_t>(num_cols); i += kVecLanes) {
        const auto bits = hn::PromoteTo(di, hn::LoadU(du, in + i));
        hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(bits)), d, out + i);
      }
      return;
    }
    case WeightType::kQ8_0:
      w += k / 32 * 544;
      for (int i = 0; i < num_cols; i += 32, w += 544, out += 512) {
        const F32x16 scale = LoadHalf16(reinterpret_cast<const uint16_t*>(w));
        for (int four = 0; four < 8; ++four)
          StoreFour<true>(LoadLanes(w + 32 + 64 * four), scale, Zero16(), 0.0f, out + 64 * four);
      }
      return;
    case WeightType::kQ4_0:
      w += k / 32 * 288;
      for (int i = 0; i < num_cols; i += 32, w += 288, out += 512)
        WidenNibbles(w + 32, LoadHalf16(reinterpret_cast<const uint16_t*>(w)), Zero16(), -8.0f,
                     out);
      return;
    case WeightType::kQ4_1:
      w += k / 32 * 320;
      for (int i = 0; i < num_cols; i += 32, w += 320, out += 512)
        WidenNibbles(w + 64, LoadHalf16(reinterpret_cast<const uint16_t*>(w)),
                     LoadHalf16(reinterpret_cast<const uint16_t*>(w) + 16), 0.0f, out);
      return;
    default:
      QUIRE_CHECK(false);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
