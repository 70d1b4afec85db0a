// Writes the sixteen sums of one activation row and one panel to where they go, as Epilogue says.
#if defined(QUIRE_LINEAR_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_EPILOGUE_INL_H_
#undef QUIRE_LINEAR_EPILOGUE_INL_H_
#else
#define QUIRE_LINEAR_EPILOGUE_INL_H_
#endif

#include "base/vector-inl.h"
#include "linear/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

HWY_INLINE F32x16 EpilogueOf(F32x16 y, const float* bias, const Epilogue& epilogue) {
  const F32x16 scale = Set16(epilogue.scale);
  if (!epilogue.scale_after_bias) y = Mul16(y, scale);
  if (bias != nullptr) y = Add16(y, Load16(bias));
  if (epilogue.scale_after_bias) y = Mul16(y, scale);
  return y;
}

// `out` points to the row's output of the panel's first lane; num_lanes (1..16) of them exist.
HWY_INLINE void WriteOutput(F32x16 y, int first_output, int num_lanes, const Epilogue& epilogue,
                            float* out) {
  const float* bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + first_output;
  if (num_lanes == 16) {
    y = EpilogueOf(y, bias, epilogue);
    if (epilogue.accumulate) y = Add16(Load16(out), y);
    Store16(y, out);
    return;
  }
  alignas(64) float lanes[16] = {}, lane_bias[16] = {};
  for (int i = 0; i < num_lanes && bias != nullptr; ++i) lane_bias[i] = bias[i];
  Store16(EpilogueOf(y, bias == nullptr ? nullptr : lane_bias, epilogue), lanes);
  for (int i = 0; i < num_lanes; ++i) out[i] = epilogue.accumulate ? out[i] + lanes[i] : lanes[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
