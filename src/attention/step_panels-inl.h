// StepPanels: K and V of one step as the micro-kernels read them, in panels of floats or halves:
// where the page has them, or decoded into the scratch. For the instruction set that is being
// compiled.
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_STEP_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_STEP_PANELS_INL_H_
#undef QUIRE_ATTENTION_STEP_PANELS_INL_H_
#else
#define QUIRE_ATTENTION_STEP_PANELS_INL_H_
#endif

#include "attention/scratch.h"
#include "attention/sealed-inl.h"
#include "codec/kv_forms.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

struct Panels {
  const char* first = nullptr;
  bool is_half = false;  // else floats

  size_t bytes() const { return is_half ? 2 : 4; }  // of a value
  const char* At(size_t element) const { return first + element * bytes(); }
};

// From the first token of the step on. V's last panel, if it is narrower than 16 channels, is in
// narrow_v, 16 wide.
struct StepPanels {
  Panels k;
  Panels v;
  size_t v_panel_step = 0;  // elements from one panel of V to the next
  const float* narrow_v = nullptr;
};

// Tokens [first, first + num) of a page; no row sees one before first + first_visible.
struct StepTokens {
  uint32_t first;
  uint32_t num;
  uint32_t first_visible;
};

template <class T>
HWY_INLINE void WidenNarrow(const T* from, size_t width, uint32_t first, uint32_t last, float* to) {
  for (size_t token = first; token < last; ++token)
    for (size_t c = 0; c < 16; ++c) {
      float x = 0.0f;
      if (c < width) {
        if constexpr (sizeof(T) == 2)
          x = HalfToFloat(from[token * width + c]);
        else
          x = from[token * width + c];
      }
      to[token * 16 + c] = x;
    }
}

HWY_INLINE StepPanels OpenPanels(const KvForm& form, const char* chunk, const StepTokens& tokens,
                                 const ScratchLayout& at, float* scratch) {
  const KvLayout& layout = form.layout;
  const size_t num_decoded = (size_t{tokens.num} + 15) / 16 * 16;  // pages are multiples of 16
  const size_t num_panels = layout.head_dim_v / 16, narrow = layout.head_dim_v % 16;
  StepPanels step;
  if (IsPageWise(form.k_codec)) {
    float* to = scratch + at.decoded_k;
    DecodeK(layout, chunk, tokens.first, num_decoded, scratch + at.k_params, to);
    step.k = {reinterpret_cast<const char*>(to), false};
  } else {
    step.k = {chunk + layout.k_codes_offset, form.k_codec == KvCodec::kF16};
    step.k.first = step.k.At(size_t{tokens.first} * layout.head_dim_k);
  }
  if (IsPageWise(form.v_codec)) {
    float* to = scratch + at.decoded_v;
    DecodeV(layout, chunk, tokens.first, num_decoded, scratch + at.v_params, to);
    step.v = {reinterpret_cast<const char*>(to), false};
    step.v_panel_step = 16 * num_decoded;
    step.narrow_v = to + num_panels * step.v_panel_step;
    return step;
  }
  const Panels codes = {chunk + layout.v_codes_offset, form.v_codec == KvCodec::kF16};
  step.v = {codes.At(size_t{tokens.first} * 16), codes.is_half};
  step.v_panel_step = size_t{16} * layout.page_size;
  step.narrow_v = scratch + at.narrow_v;
  if (narrow == 0) return step;
  const char* panel = codes.At(num_panels * step.v_panel_step + tokens.first * narrow);
  float* to = scratch + at.narrow_v;
  if (codes.is_half)
    WidenNarrow(reinterpret_cast<const uint16_t*>(panel), narrow, tokens.first_visible, tokens.num,
                to);
  else
    WidenNarrow(reinterpret_cast<const float*>(panel), narrow, tokens.first_visible, tokens.num,
                to);
  return step;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
