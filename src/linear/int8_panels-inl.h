// The quantised types as the int8 products see them: one small struct each.
//
// A block of 32 k is taken in kSteps steps. A step reads 64 bytes of codes (16 rows x 4 bytes) and
// makes two sets of lanes, each of which meets 4 bytes of a row's activations.
#if defined(QUIRE_LINEAR_INT8_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_INT8_PANELS_INL_H_
#undef QUIRE_LINEAR_INT8_PANELS_INL_H_
#else
#define QUIRE_LINEAR_INT8_PANELS_INL_H_
#endif

#include "linear/activations.h"
#include "linear/byte_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Nibbles as u8 times s8. Sixteen products of a block fit in s16: 8 * 2 * 15 * 127 < 2^15.
struct Nibbles {
  static constexpr int kSteps = 4;
  static constexpr int kXBytes = 1;  // bytes of an activation code
  static const uint8_t* Codes(const Int8Rows& x) {
    return reinterpret_cast<const uint8_t*>(x.codes);
  }
  static constexpr int XOffset(int step, int half) { return 4 * step + 16 * half; }
  static HWY_INLINE void Unpack(const Lanes& packed, Lanes (&w)[2]) {
    w[0] = LowNibbles(packed);
    w[1] = HighNibbles(packed);
  }
  static HWY_INLINE void Add(Lanes& sum, const Lanes& w, Four x, bool first) {
    AddByteProducts(sum, w, x, first);
  }
};

struct Q40 : Nibbles {
  static constexpr int kHeadBytes = 32;
  static constexpr bool kHasMin = false;
  static HWY_INLINE F32x16 BlockSum(const Lanes& sum, int32_t x_sum) {
    return LanesToFloat(AddToLanes(SumPairs(sum), -8 * x_sum));  // codes are q - 8
  }
};

struct Q41 : Nibbles {
  static constexpr int kHeadBytes = 64;
  static constexpr bool kHasMin = true;
  static HWY_INLINE F32x16 BlockSum(const Lanes& sum, int32_t) {
    return LanesToFloat(SumPairs(sum));
  }
};

// Both sides as s16: bytes 0 and 2 of a lane, then 1 and 3, as Int8Rows.wide has them.
struct Q80 {
  static constexpr int kSteps = 8;
  static constexpr int kXBytes = 2;
  static constexpr int kHeadBytes = 32;
  static constexpr bool kHasMin = false;
  static const uint8_t* Codes(const Int8Rows& x) {
    return reinterpret_cast<const uint8_t*>(x.wide);
  }
  static constexpr int XOffset(int step, int half) { return 8 * step + 4 * half; }
  static HWY_INLINE void Unpack(const Lanes& packed, Lanes (&w)[2]) {
    w[0] = EvenBytes(packed);
    w[1] = OddBytes(packed);
  }
  static HWY_INLINE void Add(Lanes& sum, const Lanes& w, Four x, bool first) {
    AddWordProducts(sum, w, x, first);
  }
  static HWY_INLINE F32x16 BlockSum(const Lanes& sum, int32_t) { return LanesToFloat(sum); }
};

template <class W>
inline constexpr int kBlockBytes = W::kHeadBytes + 64 * W::kSteps;

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
