#include "attention/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "attention/append-inl.h"
#include "attention/item-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

inline constexpr AttentionKernels kKernels = {RunItem, MergeItem, Append};

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

const AttentionKernels& GetAttentionKernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::kKernels;
    case InstructionSet::kAvx2:
      return N_AVX2::kKernels;
    case InstructionSet::kAvx512:
      return N_AVX3::kKernels;
  }
  return N_SCALAR::kKernels;
}

}  // namespace quire
#endif  // HWY_ONCE
