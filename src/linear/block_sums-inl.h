// The integer sums of one block of 32 for some rows of activations: 16 lanes of s32 a row.
//
// Kind says what a type asks of the products, so that types of one kind share their code:
//   kMax       the largest code. AVX2 adds byte products in s16, which holds 16 of them up to 15, 8
//              up to 31, 4 up to 63; above that both sides are s16. With byte dots it is 0.
//   kHalves    two sums, each times an integer
//   kMin       a minimum is to be added; types without one have an offset instead, except that
//              s16 codes are signed already
#if defined(QUIRE_LINEAR_BLOCK_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_BLOCK_SUMS_INL_H_
#undef QUIRE_LINEAR_BLOCK_SUMS_INL_H_
#else
#define QUIRE_LINEAR_BLOCK_SUMS_INL_H_
#endif

#include "linear/activations.h"
#include "linear/panel_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

template <int kMax, bool kInHalves, bool kHasMin>
struct Kind {
  static constexpr bool kHalves = kInHalves, kMin = kHasMin;
  static constexpr bool kWords = kMax > 63;
  static constexpr bool kOffset = !kHasMin && !kWords;
  static constexpr int kSteps = kWords ? 8 : 4;  // each with two sets of lanes of codes
  // Steps whose byte products fit in s16: 2 fours x 2 products x 127 x code each.
  static constexpr int kStepsInWords = kMax <= 15 ? 4 : kMax <= 31 ? 2 : 1;
  static constexpr size_t kXStride = kActivationBlock * (kWords ? 2 : 1);  // bytes of a row's block
  using Head = BlockHead<kHalves, kMin>;

  static const uint8_t* Codes(const Int8Rows& x) {
    return kWords ? reinterpret_cast<const uint8_t*>(x.wide)
                  : reinterpret_cast<const uint8_t*>(x.codes);
  }
};

constexpr int CodeClass(int max_code) {
  if (kHasByteDots) return 0;
  return max_code <= 15 ? 15 : max_code <= 31 ? 31 : max_code <= 63 ? 63 : 255;
}
template <class P>
using KindOf = Kind<CodeClass(P::kMaxCode), P::kHalves, P::kMin>;

// Where a step's codes come from: a packed block, ...
template <class P>
struct PackedCodes {
  using K = KindOf<P>;
  const uint8_t* codes;
  HWY_INLINE void Step(int step, Lanes (&z)[2]) const {
#if HWY_TARGET == HWY_AVX2
    if constexpr (K::kWords) {
      const Lanes four = P::SignedFour(codes, step);
      z[0] = EvenBytes(four);
      z[1] = OddBytes(four);
      return;
    }
#endif
    P::Step(codes, step, z);
  }
  static constexpr size_t XOffset(int step, int half) {
    const int four = K::kWords ? 2 * step + half : P::FourIndex(step, half);  // of bytes
    return size_t{4} * static_cast<size_t>(four);
  }
};

// ... or one that was unpacked before.
struct UnpackedCodes {
  const uint8_t* codes;
  HWY_INLINE void Step(int step, Lanes (&z)[2]) const {
    z[0] = LoadLanes(codes + 128 * step);
    z[1] = LoadLanes(codes + 128 * step + 64);
  }
  static constexpr size_t XOffset(int step, int half) {
    return size_t{4} * static_cast<size_t>(2 * step + half);
  }
};
template <class K>
inline constexpr int kUnpackedBytes = 128 * K::kSteps;  // of a block

// Unpacks a block to where UnpackedCodes finds it.
template <class P>
HWY_INLINE void Unpack(const uint8_t* codes, uint8_t* out) {
  const PackedCodes<P> source{codes};
  for (int step = 0; step < KindOf<P>::kSteps; ++step) {
    Lanes z[2];
    source.Step(step, z);
    for (int half = 0; half < 2; ++half) StoreLanes(z[half], out + 16 * source.XOffset(step, half));
  }
}

#if HWY_TARGET == HWY_AVX2

template <class K, int R, class Source>
HWY_INLINE void BlockSums(const Source& source, const typename K::Head& head, const uint8_t* x,
                          Lanes (&total)[R]) {
  if constexpr (K::kWords) {
    HWY_UNROLL(8)
    for (int step = 0; step < 8; ++step) {
      Lanes z[2];
      source.Step(step, z);
      HWY_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        HWY_UNROLL(8)
        for (size_t r = 0; r < R; ++r)
          AddWordProducts(total[r], z[half], x + r * K::kXStride + source.XOffset(step, half),
                          step + half == 0);
      }
    }
  } else {
    constexpr int kSteps = K::kHalves && K::kStepsInWords > 2 ? 2 : K::kStepsInWords;
    HWY_UNROLL(4)
    for (int first = 0; first < 4; first += kSteps) {
      Lanes sum[R];
      HWY_UNROLL(4)
      for (int step = first; step < first + kSteps; ++step) {
        Lanes z[2];
        source.Step(step, z);
        HWY_UNROLL(2)
        for (int half = 0; half < 2; ++half) {
          HWY_UNROLL(8)
          for (size_t r = 0; r < R; ++r)
            AddByteProducts(sum[r], z[half], x + r * K::kXStride + source.XOffset(step, half),
                            step == first && half == 0);
        }
      }
      Lanes factor = SetLanes(0x00010001);
      if constexpr (K::kHalves) {
        const Lanes part = PartOfPair(head.scales, first / 2);
        factor = PairOf(part, part);
      }
      HWY_UNROLL(8)
      for (size_t r = 0; r < R; ++r) {
        const Lanes wide = WordDots(sum[r], factor);
        total[r] = first == 0 ? wide : AddLanes(total[r], wide);
      }
    }
  }
}

#else

template <class K, int R, class Source>
HWY_INLINE void BlockSums(const Source& source, const typename K::Head& head, const uint8_t* x,
                          Lanes (&total)[R]) {
  constexpr int kParts = K::kHalves ? 2 : 1;
  HWY_UNROLL(2)
  for (int part = 0; part < kParts; ++part) {
    Lanes sum[R];
    HWY_UNROLL(16)
    for (size_t r = 0; r < R; ++r) sum[r] = SetLanes(0);
    HWY_UNROLL(4)
    for (int i = 0; i < 4 / kParts; ++i) {
      const int step = part * 2 + i;
      Lanes z[2];
      source.Step(step, z);
      HWY_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        HWY_UNROLL(16)
        for (size_t r = 0; r < R; ++r)
          AddByteDots(sum[r], z[half], x + r * K::kXStride + source.XOffset(step, half));
      }
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < R; ++r) {
      if constexpr (K::kHalves) {
        const Lanes scaled = MulLanes(sum[r], PartOfPair(head.scales, part));
        total[r] = part == 0 ? scaled : AddLanes(total[r], scaled);
      } else {
        total[r] = sum[r];
      }
    }
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
