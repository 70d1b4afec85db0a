#include "linear/kernels.h"

#include "base/check.h"
#include "linear/kernel_parts.h"

namespace quire {
namespace {

template <InstructionSet kSet>
void Multiply(const PackedMatrix& matrix, const Activations& x, int m0, int m1, int p0, int p1,
              float* out, int64_t out_stride, const Epilogue& epilogue) {
  QUIRE_CHECK(x.num_cols == matrix.num_cols());
  QUIRE_CHECK(0 <= m0 && m0 <= m1 && m1 <= x.num_rows);
  QUIRE_CHECK(0 <= p0 && p0 <= p1 && p1 <= matrix.num_panels());
  static const MultiplyFunction int8 = Int8Multiply(kSet), f32 = F32Multiply(kSet);
  if (x.int8.codes != nullptr && TakesInt8(matrix.type())) {
    QUIRE_CHECK(x.int8.num_cols == x.num_cols);
    int8(matrix, x, m0, m1, p0, p1, out, out_stride, epilogue);
  } else {
    QUIRE_CHECK(x.rows != nullptr);
    f32(matrix, x, m0, m1, p0, p1, out, out_stride, epilogue);
  }
}

template <InstructionSet kSet>
const LinearKernels& Table() {
  static const LinearKernels table = [] {
    LinearKernels t = RowKernels(kSet);
    t.multiply = Multiply<kSet>;
    return t;
  }();
  return table;
}

}  // namespace

const LinearKernels& GetLinearKernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return Table<InstructionSet::kPortable>();
    case InstructionSet::kAvx2:
      return Table<InstructionSet::kAvx2>();
    case InstructionSet::kAvx512:
      return Table<InstructionSet::kAvx512>();
  }
  QUIRE_CHECK(false);
}

}  // namespace quire
