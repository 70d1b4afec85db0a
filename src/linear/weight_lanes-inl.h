// The weights of a packed panel as f32 lanes: w = fma(scale, code, min), rounded once.
#if defined(QUIRE_LINEAR_WEIGHT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_WEIGHT_LANES_INL_H_
#undef QUIRE_LINEAR_WEIGHT_LANES_INL_H_
#else
#define QUIRE_LINEAR_WEIGHT_LANES_INL_H_
#endif

#include "base/check.h"
#include "linear/panel_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Byte `byte` of each lane, a u8.
HWY_INLINE F32x16 ByteToFloat(const Lanes& a, int byte) {
  return LanesToFloat(ShiftRightLanes(ShiftLeftLanes(a, 24 - 8 * byte), 24));
}

// Scale and minimum of one half of a block.
template <class P>
HWY_INLINE void HeadOfHalf(const typename P::Head& head, int half, F32x16& scale, F32x16& min) {
  scale = head.scale;
  min = Zero16();
  if constexpr (P::kMin) min = head.min;
  if constexpr (P::kHalves) scale = Mul16(scale, LanesToFloat(PartOfPair(head.scales, half)));
  if constexpr (P::kHalves && P::kMin) min = Mul16(min, LanesToFloat(PartOfPair(head.mins, half)));
}

// Blocks [first, end) of a panel to out [32 (end - first)][16].
template <class P>
HWY_INLINE void WidenBlocks(const uint8_t* panel, int first, int end, float* out) {
  constexpr PanelFormat kFormat = P::kFormat;
  const F32x16 offset = Set16(static_cast<float>(-P::kOffset));
  for (int b = first; b < end; ++b, out += 16 * kPanelBlock) {
    const uint8_t* block = panel + kFormat.BlockAt(b);
    const typename P::Head head = P::LoadHead(panel + kFormat.GroupAt(b), block);
    F32x16 scale[2], min[2];
    for (int half = 0; half < 2; ++half) HeadOfHalf<P>(head, half, scale[half], min[half]);
    for (int step = 0; step < 4; ++step) {
      Lanes z[2];
      P::Step(block + kFormat.block_head_bytes(), step, z);
      for (int i = 0; i < 2; ++i) {
        const int four = P::FourIndex(step, i);
        for (int byte = 0; byte < 4; ++byte)
          Store16(Fma16(scale[four / 4], Add16(ByteToFloat(z[i], byte), offset), min[four / 4]),
                  out + 16 * (4 * four + byte));
      }
    }
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
    default:
      WithPanelType(type, [&]<class P>() {
        WidenBlocks<P>(w, k0 / kPanelBlock, (k0 + num_cols) / kPanelBlock, out);
      });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
