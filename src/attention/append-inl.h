// Writes K and V of new tokens into their slots, for the instruction set that is being compiled.
//
// The bytes are those of the plain codecs (docs/formats.md): f32 as it is, f16 rounded to nearest
// even with finite values clamped to +-65,504; infinity stays, NaN becomes the canonical quiet one.
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_APPEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_APPEND_INL_H_
#undef QUIRE_ATTENTION_APPEND_INL_H_
#else
#define QUIRE_ATTENTION_APPEND_INL_H_
#endif

#include "attention/kernels.h"
#include "base/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

HWY_INLINE void Canonical(float x, float& to) { to = x == x ? x : __builtin_nanf(""); }
HWY_INLINE void Canonical(float x, uint16_t& to) {
  to = x == x ? FloatToHalfSaturated(x) : uint16_t{0x7E00};
}
HWY_INLINE void Encode16(F32x16 x, float* to) { Store16(x, to); }
HWY_INLINE void Encode16(F32x16 x, uint16_t* to) { StoreHalf16Saturated(x, to); }

// Up to 16 values. The common case, all within the codec's range, is vector code.
template <class T>
HWY_INLINE void Encode(const float* from, size_t n, T* to, AppendResult& result) {
  constexpr float kLargest = sizeof(T) == 2 ? 65504.0f : 3.402823466e+38f;
  const DF d;
  alignas(64) float padded[16] = {};
  alignas(64) T codes[16];
  for (size_t i = 0; n < 16 && i < n; ++i) padded[i] = from[i];
  const float* x = n < 16 ? padded : from;
  const F32x16 values = Load16(x);
  bool fits = true;
  for (size_t i = 0; i < kVecs; ++i)  // false for a NaN
    fits = fits && hn::AllTrue(d, hn::Le(hn::Abs(values.v[i]), hn::Set(d, kLargest)));
  if (fits) {
    Encode16(values, codes);
  } else {
    for (size_t i = 0; i < n; ++i) {
      const float size = x[i] < 0 ? -x[i] : x[i];
      if (!(size <= 3.402823466e+38f))
        result.non_finite = true;
      else if (size > kLargest)
        ++result.num_saturated;
      Canonical(x[i], codes[i]);
    }
  }
  for (size_t i = 0; i < n; ++i) to[i] = codes[i];
}

// One token's channels into its column of K: 16 tokens lie between two of its channels.
template <class T>
HWY_INLINE void AppendK(const KvLayout& layout, uint32_t token, const float* k, std::byte* codes,
                        AppendResult& result) {
  T* to = reinterpret_cast<T*>(codes) + KElement(layout, token, 0);
  for (size_t c = 0; c < layout.head_dim_k; c += 16) {
    const size_t n = layout.head_dim_k - c < 16 ? layout.head_dim_k - c : 16;
    T part[16];
    Encode(k + c, n, part, result);
    for (size_t i = 0; i < n; ++i) to[(c + i) * 16] = part[i];
  }
}

template <class T>
HWY_INLINE void AppendV(const KvLayout& layout, uint32_t token, const float* v, std::byte* codes,
                        AppendResult& result) {
  for (uint32_t c = 0; c < layout.head_dim_v; c += 16) {
    const size_t n = layout.head_dim_v - c < 16 ? layout.head_dim_v - c : 16;
    Encode(v + c, n, reinterpret_cast<T*>(codes) + VElement(layout, token, c), result);
  }
}

AppendResult Append(const KvLayout& layout, KvCodec k_codec, KvCodec v_codec, uint32_t layer,
                    uint32_t kv_head, const KvView& kv, uint32_t first_position, uint32_t num_rows,
                    const float* k, size_t k_stride, const float* v, size_t v_stride) {
  AppendResult result;
  for (size_t i = 0; i < num_rows; ++i, k += k_stride, v += v_stride) {
    const uint32_t position = first_position + static_cast<uint32_t>(i);
    const uint32_t token = position % layout.page_size;
    std::byte* chunk = kv.pages[position / layout.page_size] + layout.ChunkOffset(layer, kv_head);
    std::byte* k_codes = chunk + layout.k_codes_offset;
    std::byte* v_codes = chunk + layout.v_codes_offset;
    if (k_codec == KvCodec::kF32)
      AppendK<float>(layout, token, k, k_codes, result);
    else
      AppendK<uint16_t>(layout, token, k, k_codes, result);
    if (v_codec == KvCodec::kF32)
      AppendV<float>(layout, token, v, v_codes, result);
    else
      AppendV<uint16_t>(layout, token, v, v_codes, result);
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
