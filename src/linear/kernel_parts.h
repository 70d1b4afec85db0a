// The pieces of a LinearKernels table, one source file each. Private to this folder.
//
// Each getter requires a set of AvailableInstructionSets().
#pragma once

#include "linear/kernels.h"

namespace quire {

using MultiplyFunction = decltype(LinearKernels::multiply);

// linear/int8_multiply.cc: quantised types with x.int8.
MultiplyFunction Int8Multiply(InstructionSet set);

// linear/f32_multiply.cc: all types with x.rows.
MultiplyFunction F32Multiply(InstructionSet set);

// linear/row_kernels.cc: the table without `multiply`.
LinearKernels RowKernels(InstructionSet set);

}  // namespace quire
