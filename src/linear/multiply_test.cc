// Products of every type in both forms on every instruction set: against the references, and bit
// for bit against each other for any number of rows, place and range (MAT-13).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "linear/kernels.h"
#include "linear/random_matrix.h"

namespace quire {
namespace {

constexpr int kMaxRows = 65;

struct Shape {
  int n, k;
};

// One matrix, its activations in both forms, and products of them.
class Product {
 public:
  Product(WeightType type, Shape shape, bool int8, uint32_t seed)
      : matrix(type, shape.n, shape.k, seed),
        rows(RandomRows(kMaxRows, shape.k, seed + 1)),
        buffer(kMaxRows, shape.k),
        x{.num_rows = kMaxRows, .num_cols = shape.k, .rows = rows.data(), .row_stride = shape.k} {
    if (!int8) return;
    x.int8 = buffer.Rows(kMaxRows, shape.k);
    for (int m = 0; m < kMaxRows; ++m)
      for (int b = 0; b < shape.k / 32; ++b)
        QuantiseBlock(rows.data() + m * shape.k + 32 * b, m, b, x.int8);
  }

  // Rows [m0, m1) and panels [p0, p1) of the product; all other places keep NaN.
  std::vector<float> Run(InstructionSet set, int m0, int m1, int p0, int p1,
                         const Epilogue& epilogue = {}) const {
    std::vector<float> out(static_cast<size_t>(kMaxRows * stride()), std::nanf(""));
    GetLinearKernels(set).multiply(matrix.packed(), x, m0, m1, p0, p1, out.data(), stride(),
                                   epilogue);
    return out;
  }
  std::vector<float> RunAll(InstructionSet set) const {
    return Run(set, 0, kMaxRows, 0, matrix.packed().num_panels());
  }
  int stride() const { return matrix.packed().num_rows() + 3; }  // gaps show stray writes
  const float* row(int m) const { return rows.data() + m * x.num_cols; }

  RandomMatrix matrix;
  std::vector<float> rows;
  Int8Buffer buffer;
  Activations x;
};

struct Case {
  WeightType type;
  bool int8;
};
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (WeightType type : AllWeightTypes()) {
    cases.push_back({type, false});
    if (TakesInt8(type)) cases.push_back({type, true});
  }
  return cases;
}
std::vector<Shape> Shapes(WeightType type) {
  std::vector<Shape> shapes = {{1, 32}, {15, 64}, {16, 96}, {17, 576}, {50, 1056}};
  if (BlockElements(type) == 256) shapes = {{1, 256}, {17, 512}, {50, 1280}};
  if (BlockElements(type) == 1) shapes.insert(shapes.end(), {{5, 1}, {33, 7}, {17, 131}});
  return shapes;
}
std::string Name(const Case& c, Shape s, InstructionSet set) {
  return std::string(WeightTypeName(c.type)) + (c.int8 ? " int8 " : " f32 ") + std::to_string(s.n) +
         "x" + std::to_string(s.k) + " " + std::string(InstructionSetName(set));
}
bool SameBits(float a, float b) { return std::memcmp(&a, &b, 4) == 0; }

TEST(Multiply, F32FormIsWithinTheRoundingBoundOfTheDoubleReference) {
  for (const Case& c : Cases()) {
    if (c.int8) continue;
    for (Shape s : Shapes(c.type)) {
      const Product product(c.type, s, false, 21);
      // K roundings of the sum and one of the weight, each at most 2^-24 of a partial sum.
      const double u = (s.k + 1) * 0x1p-24, bound = u / (1 - u);
      for (InstructionSet set : AvailableInstructionSets()) {
        const auto out = product.RunAll(set);
        for (int m = 0; m < kMaxRows; ++m)
          for (int n = 0; n < s.n; ++n)
            ASSERT_NEAR(out[static_cast<size_t>(m * product.stride() + n)],
                        ReferenceDot(product.matrix.file(), n, product.row(m)),
                        bound * ReferenceAbsDot(product.matrix.file(), n, product.row(m)))
                << Name(c, s, set) << " m " << m << " n " << n;
      }
    }
  }
}

TEST(Multiply, Int8FormEqualsItsReferenceBitForBit) {
  for (const Case& c : Cases()) {
    if (!c.int8) continue;
    for (Shape s : Shapes(c.type)) {
      const Product product(c.type, s, true, 22);
      std::vector<std::vector<float>> outs;
      for (InstructionSet set : AvailableInstructionSets()) outs.push_back(product.RunAll(set));
      for (int m = 0; m < kMaxRows; ++m) {
        for (int n = 0; n < s.n; ++n) {
          const float want = ReferenceInt8Dot(product.matrix.file(), n, product.x.int8, m);
          for (const auto& out : outs)
            ASSERT_TRUE(SameBits(out[static_cast<size_t>(m * product.stride() + n)], want))
                << Name(c, s, InstructionSet::kPortable) << " m " << m << " n " << n;
        }
      }
    }
  }
}

TEST(Multiply, Int8FormErrsByNoMoreThanTheRoundingOfTheActivations) {
  for (const Case& c : Cases()) {
    if (!c.int8) continue;
    const Shape s{17, 768};
    const Product product(c.type, s, true, 23);
    for (int m = 0; m < kMaxRows; ++m) {
      for (int n = 0; n < s.n; ++n) {
        // Half a step for each code (a little more where 127 / amax was rounded), and the f32 sum.
        double bound = ReferenceAbsDot(product.matrix.file(), n, product.row(m)) * 0x1p-24 * s.k;
        for (int k = 0; k < s.k; ++k)
          bound += std::fabs(WeightAt(product.matrix.file(), n, k)) * 0.5001 *
                   static_cast<double>(product.x.int8.scales[product.x.int8.At(m, k / 32)]);
        ASSERT_NEAR(ReferenceInt8Dot(product.matrix.file(), n, product.x.int8, m),
                    ReferenceDot(product.matrix.file(), n, product.row(m)), bound);
      }
    }
  }
}

// MAT-13: no bit depends on how many rows there are, where a row stands, or which panels a call
// computes; and only the asked outputs are written.
TEST(Multiply, BitsDoNotDependOnRowsPlacesRangesOrInstructionSet) {
  for (const Case& c : Cases()) {
    for (Shape s : Shapes(c.type)) {
      const Product product(c.type, s, c.int8, 24);
      const auto whole = product.RunAll(InstructionSet::kPortable);
      const int panels = product.matrix.packed().num_panels();
      for (InstructionSet set : AvailableInstructionSets()) {
        std::mt19937 rng(5);
        for (int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 33, 64, 65}) {
          const int m0 = static_cast<int>(rng() % static_cast<unsigned>(kMaxRows - rows + 1));
          const int p0 = static_cast<int>(rng() % static_cast<unsigned>(panels));
          const int p1 = p0 + 1 + static_cast<int>(rng() % static_cast<unsigned>(panels - p0));
          const auto part = product.Run(set, m0, m0 + rows, p0, p1);
          for (int m = 0; m < kMaxRows; ++m) {
            for (int n = 0; n < product.stride(); ++n) {
              const auto at = static_cast<size_t>(m * product.stride() + n);
              const bool asked = m >= m0 && m < m0 + rows && n >= 16 * p0 && n < 16 * p1 && n < s.n;
              ASSERT_TRUE(asked ? SameBits(part[at], whole[at]) : std::isnan(part[at]))
                  << Name(c, s, set) << " rows " << rows << " from " << m0 << ", m " << m << " n "
                  << n;
            }
          }
        }
      }
    }
  }
}

// More rows than a chunk, and a chunk's edges.
TEST(Multiply, ManyRowsEqualOneRowAtATime) {
  constexpr int kRows = 211, kCols = 256, kOutputs = 20;
  for (const Case& c : Cases()) {
    const RandomMatrix matrix(c.type, kOutputs, kCols, 31);
    const auto rows = RandomRows(kRows, kCols, 32);
    Int8Buffer buffer(kRows, kCols);
    Activations x{.num_rows = kRows, .num_cols = kCols, .rows = rows.data(), .row_stride = kCols};
    if (c.int8) x.int8 = buffer.Rows(kRows, kCols);
    for (InstructionSet set : AvailableInstructionSets()) {
      const LinearKernels& kernels = GetLinearKernels(set);
      if (c.int8) kernels.quantise_rows(rows.data(), kCols, 0, kRows, x.int8);
      std::vector<float> all(kRows * kOutputs), one(all.size());
      kernels.multiply(matrix.packed(), x, 0, kRows, 0, 2, all.data(), kOutputs, {});
      for (int m = 0; m < kRows; ++m)
        kernels.multiply(matrix.packed(), x, m, m + 1, 0, 2, one.data(), kOutputs, {});
      EXPECT_EQ(all, one) << Name(c, {kOutputs, kCols}, set);
    }
  }
}

// Would these tests see a subtly wrong kernel? Two mutants must differ from the reference.
TEST(Multiply, DataTellsWrongRoundingAndWrongBlockOrderApart) {
  const Shape s{17, 576};
  const Product product(WeightType::kQ4_1, s, true, 25);
  int rounding = 0, order = 0;
  for (int n = 0; n < s.n; ++n) {
    const float want = ReferenceInt8Dot(product.matrix.file(), n, product.x.int8, 0);
    float separate = 0, backward = 0;
    for (int i = 0; i < s.k / 32; ++i) {
      for (int way : {0, 1}) {
        const int b = way == 0 ? i : s.k / 32 - 1 - i;
        int32_t sum = 0;
        for (int j = 0; j < 32; ++j)
          sum += static_cast<int32_t>(ElementAt(product.matrix.file(), n, 32 * b + j).code) *
                 product.x.int8.codes[32 * product.x.int8.At(0, b) + static_cast<size_t>(j)];
        const FileElement e = ElementAt(product.matrix.file(), n, 32 * b);
        const float scale = e.scale * product.x.int8.scales[product.x.int8.At(0, b)];
        if (way == 0) {
          separate += e.min * product.x.int8.scaled_sums[product.x.int8.At(0, b)];
          separate += static_cast<float>(sum) * scale;
        } else {
          backward =
              std::fmaf(e.min, product.x.int8.scaled_sums[product.x.int8.At(0, b)], backward);
          backward = std::fmaf(static_cast<float>(sum), scale, backward);
        }
      }
    }
    rounding += separate != want;
    order += backward != want;
  }
  EXPECT_GT(rounding, 0);
  EXPECT_GT(order, 0);
}

TEST(Multiply, EpilogueScalesBiasesAndAdds) {
  const Shape s{50, 64};
  const std::vector<float> bias = RandomRows(1, s.n, 41);
  for (bool int8 : {false, true}) {
    const Product product(WeightType::kQ8_0, s, int8, 42);
    const auto plain = product.RunAll(InstructionSet::kPortable);
    for (InstructionSet set : AvailableInstructionSets()) {
      for (int options = 0; options < 16; ++options) {
        const Epilogue epilogue{.bias = options & 1 ? bias.data() : nullptr,
                                .scale = options & 2 ? 0.37f : 1.0f,
                                .scale_after_bias = (options & 4) != 0,
                                .accumulate = (options & 8) != 0};
        std::vector<float> out(plain.size(), 0.7f);
        GetLinearKernels(set).multiply(product.matrix.packed(), product.x, 0, kMaxRows, 0, 4,
                                       out.data(), product.stride(), epilogue);
        for (int m = 0; m < kMaxRows; ++m) {
          for (int n = 0; n < s.n; ++n) {
            const auto at = static_cast<size_t>(m * product.stride() + n);
            float y = plain[at];
            if (!epilogue.scale_after_bias) y = y * epilogue.scale;
            if (epilogue.bias != nullptr) y = y + bias[static_cast<size_t>(n)];
            if (epilogue.scale_after_bias) y = y * epilogue.scale;
            if (epilogue.accumulate) y = 0.7f + y;
            ASSERT_EQ(out[at], y) << "options " << options << " m " << m << " n " << n;
          }
        }
      }
    }
  }
}

TEST(Multiply, NoRowsOrNoPanelsWriteNothing) {
  const Product product(WeightType::kQ4_0, {20, 32}, true, 43);
  for (InstructionSet set : AvailableInstructionSets()) {
    for (float y : product.Run(set, 3, 3, 0, 2)) EXPECT_TRUE(std::isnan(y));
    for (float y : product.Run(set, 0, 9, 1, 1)) EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Multiply, ANaNOfOneRowStaysInThatRow) {
  for (const Case& c : Cases()) {
    Product product(c.type, {20, 256}, c.int8, 44);
    const auto clean = product.RunAll(InstructionSet::kPortable);
    product.rows[3 * 256 + 40] = std::nanf("");
    for (InstructionSet set : AvailableInstructionSets()) {
      if (c.int8)
        GetLinearKernels(set).quantise_rows(product.rows.data(), 256, 0, kMaxRows, product.x.int8);
      const auto out = product.RunAll(set);
      for (int m = 0; m < 8; ++m) {
        for (int n = 0; n < 20; ++n) {
          const auto at = static_cast<size_t>(m * product.stride() + n);
          EXPECT_TRUE(m == 3 ? std::isnan(out[at]) : SameBits(out[at], clean[at]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire
