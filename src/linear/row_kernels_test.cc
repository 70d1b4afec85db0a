#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "linear/kernels.h"
#include "linear/random_matrix.h"

namespace quire {
namespace {

constexpr double kU = 0x1p-24;  // half a unit in the last place of 1.0f

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(std::memcmp(&a[i], &b[i], 4) == 0 || (std::isnan(a[i]) && std::isnan(b[i])))
        << i << ": " << a[i] << " and " << b[i];
}

std::vector<float> Random(int n, uint32_t seed, float size = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, size);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& y : x) y = normal(rng);
  return x;
}

TEST(QuantiseRows, CodesAreThoseOfThePlainRuleOnEveryInstructionSet) {
  constexpr int kRows = 9, kCols = 576;
  auto x = RandomRows(kRows, kCols, 51);
  const float odd[] = {0x1p-121f, 0x1p-119f,     1e-40f,
                       3e38f,     std::nanf(""), std::numeric_limits<float>::infinity()};
  for (size_t i = 0; i < std::size(odd); ++i) x[64 * i + 7] = odd[i];
  for (size_t i = 0; i < 32; ++i) x[kCols + i] = 0.5f * static_cast<float>(i);   // ties
  for (size_t i = 0; i < 32; ++i) x[2 * kCols + i] = i == 5 ? 1e-39f : -1e-41f;  // denormals only
  x[kCols + 31] = 127.0f;
  Int8Buffer want_buffer(kRows, kCols), buffer(kRows, kCols);
  const Int8Rows want = want_buffer.Rows(kRows, kCols), got = buffer.Rows(kRows, kCols);
  for (int m = 0; m < kRows; ++m)
    for (int b = 0; b < kCols / 32; ++b)
      QuantiseBlock(&x[static_cast<size_t>(m * kCols + 32 * b)], m, b, want);
  for (InstructionSet set : AvailableInstructionSets()) {
    GetLinearKernels(set).quantise_rows(x.data(), kCols, 0, 4, got);
    GetLinearKernels(set).quantise_rows(x.data(), kCols, 4, kRows, got);
    for (int i = 0; i < kRows * kCols; ++i) {
      ASSERT_EQ(got.codes[i], want.codes[i]) << i;
      if (set == InstructionSet::kAvx2) {
        ASSERT_EQ(got.wide[i], want.wide[i]) << i;
      }
    }
    const int blocks = kRows * kCols / 32;
    ExpectSameBits({got.scales, got.scales + blocks}, {want.scales, want.scales + blocks});
    ExpectSameBits({got.scaled_sums, got.scaled_sums + blocks},
                   {want.scaled_sums, want.scaled_sums + blocks});
    for (int i = 0; i < blocks; ++i) {
      ASSERT_EQ(got.sums[i], want.sums[i]);
      ASSERT_EQ(got.half_sums[i], want.half_sums[i]);
    }
  }
}

TEST(QuantiseRows, PartsAreThoseOfTheWholeAndTouchNothingElse) {
  constexpr int kRows = 5, kCols = 160, kBlocks = kCols / 32;
  const auto x = RandomRows(kRows, kCols, 52);
  Int8Buffer whole_buffer(kRows, kCols);
  const Int8Rows whole = whole_buffer.Rows(kRows, kCols);
  for (InstructionSet set : AvailableInstructionSets()) {
    GetLinearKernels(set).quantise_rows(x.data(), kCols, 0, kRows, whole);
    Int8Buffer buffer(kRows, kCols);  // zeros
    const Int8Rows part = buffer.Rows(kRows, kCols);
    GetLinearKernels(set).quantise_blocks(x.data(), kCols, 1, 4, 2, 4, part);
    for (int block = 0; block < kRows * kBlocks; ++block) {
      const int row = block % kRows, column = block / kRows;
      const bool inside = row >= 1 && row < 4 && column >= 2 && column < 4;
      EXPECT_EQ(part.scales[block], inside ? whole.scales[block] : 0.0f) << block;
      EXPECT_EQ(part.sums[block], inside ? whole.sums[block] : 0) << block;
      for (int i = 32 * block; i < 32 * block + 32; ++i)
        ASSERT_EQ(part.codes[i], inside ? whole.codes[i] : 0) << i;
    }
  }
}

TEST(QuantiseRows, RuleRoundsToNearestEvenAndKeepsSums) {
  float x[32] = {};
  x[0] = 127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[4] = -126.7f;
  Int8Buffer buffer(1, 32);
  const Int8Rows rows = buffer.Rows(1, 32);
  QuantiseBlock(x, 0, 0, rows);
  EXPECT_EQ(rows.scales[0], 1.0f);
  const int want[] = {127, 0, 2, -2, -127};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rows.codes[i], want[i]) << i;
  const int wide[] = {127, 2, 0, -2, -127};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rows.wide[i], wide[i]) << i;
  EXPECT_EQ(rows.sums[0], 0);
  EXPECT_EQ(rows.half_sums[0], 0);
  EXPECT_EQ(rows.scaled_sums[0], 0.0f);
}

TEST(RmsNorm, IsWithinItsRoundingsOfDoubleAndTheSameEverywhere) {
  for (int n : {1, 5, 15, 16, 17, 64, 576, 1003}) {
    const auto x = Random(n, 61), w = Random(n, 62);
    const float eps = 1e-5f;
    double squares = 0;
    for (float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
    const double inverse = 1 / std::sqrt(squares / n + static_cast<double>(eps));
    std::vector<float> plain;
    for (InstructionSet set : AvailableInstructionSets()) {
      std::vector<float> out(x.size());
      GetLinearKernels(set).rms_norm(x.data(), w.data(), n, eps, out.data());
      // n / 16 + 4 additions of positive terms, division, eps, root, inverse; then two products.
      const double bound = ((n / 16 + 1 + 4 + 2) / 2.0 + 5) * kU * 1.01;
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = static_cast<double>(x[i]) * inverse * static_cast<double>(w[i]);
        ASSERT_NEAR(out[i], want, bound * std::fabs(want));
      }
      if (plain.empty()) plain = out;
      ExpectSameBits(out, plain);
      auto in_place = x;
      GetLinearKernels(set).rms_norm(in_place.data(), w.data(), n, eps, in_place.data());
      ExpectSameBits(in_place, plain);
    }
  }
}

TEST(AddRmsNorm, IsTheNormAndOneAddition) {
  for (int n : {1, 5, 16, 64, 1003}) {
    const auto x = Random(n, 63), w = Random(n, 64), before = Random(n, 65);
    for (InstructionSet set : AvailableInstructionSets()) {
      std::vector<float> want(x.size());
      GetLinearKernels(set).rms_norm(x.data(), w.data(), n, 1e-6f, want.data());
      for (size_t i = 0; i < want.size(); ++i) want[i] = before[i] + want[i];
      auto got = before;
      GetLinearKernels(set).add_rms_norm(x.data(), w.data(), n, 1e-6f, got.data());
      ExpectSameBits(got, want);
    }
  }
}

TEST(Rope, TurnsPairsOfBothLayouts) {
  struct Layout {
    int head_dim, n_rot;
  };
  for (Layout l : {Layout{64, 64}, {80, 80}, {96, 64}, {34, 34}, {8, 2}, {128, 128}, {6, 0}}) {
    for (RopePairs pairs : {RopePairs::kInterleaved, RopePairs::kHalves}) {
      constexpr int kHeads = 3;
      const auto x = Random(kHeads * l.head_dim, 71);
      std::vector<float> cos(static_cast<size_t>(l.n_rot / 2)), sin(cos.size());
      for (size_t j = 0; j < cos.size(); ++j) {
        cos[j] = static_cast<float>(std::cos(0.3 * static_cast<double>(j) + 1));
        sin[j] = static_cast<float>(std::sin(0.3 * static_cast<double>(j) + 1));
      }
      std::vector<float> plain;
      for (InstructionSet set : AvailableInstructionSets()) {
        auto out = x;
        GetLinearKernels(set).rope(out.data(), kHeads, l.head_dim, l.n_rot, cos.data(), sin.data(),
                                   pairs);
        for (int h = 0; h < kHeads; ++h) {
          const auto head = static_cast<size_t>(h * l.head_dim);
          for (size_t j = 0; j < cos.size(); ++j) {
            const bool halves = pairs == RopePairs::kHalves;
            const size_t i0 = head + (halves ? j : 2 * j);
            const size_t i1 = head + (halves ? j + cos.size() : 2 * j + 1);
            const double a = x[i0], b = x[i1], c = cos[j], s = sin[j];
            // A product's rounding and the FMA's.
            const double bound = 2 * kU * (std::fabs(a) + std::fabs(b));
            ASSERT_NEAR(out[i0], a * c - b * s, bound);
            ASSERT_NEAR(out[i1], a * s + b * c, bound);
          }
          for (size_t i = static_cast<size_t>(l.n_rot); i < static_cast<size_t>(l.head_dim); ++i)
            ASSERT_EQ(out[head + i], x[head + i]);
        }
        if (plain.empty()) plain = out;
        ExpectSameBits(out, plain);
      }
    }
  }
}

TEST(SiluMultiply, IsWithinItsBoundForAnySizeOfInput) {
  auto gate = Random(1003, 81, 8.0f);
  const float odd[] = {0.0f,   -0.0f,  1e-45f, -1e-45f, 1e-39f, -1e-39f, 87.3f, -87.3f,
                       -87.4f, -88.0f, 88.8f,  -104.0f, 1e4f,   -1e4f,   3e38f, -3e38f};
  std::copy(std::begin(odd), std::end(odd), gate.begin() + 100);
  const auto up = Random(1003, 82);
  std::vector<float> plain;
  for (InstructionSet set : AvailableInstructionSets()) {
    std::vector<float> out(gate.size());
    GetLinearKernels(set).silu_multiply(gate.data(), up.data(), out.data(), 1003);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i], u = up[i];
      const double want = g / (1 + std::exp(-g)) * u;
      // exp: its argument |g| log2(e) is rounded twice (constant and product), which moves e by
      // 2 |g| kU; the polynomial 3e-7; sum, product, quotient and the product with up: 4 kU.
      // Below -126 log(2) exp is taken as 0; results in the denormal range round by 2^-150.
      const double relative = 2 * std::fmin(std::fabs(g), 88.0) * kU + 3e-7 + 4 * kU;
      const double flushed = g < -87 ? 88 * 0x1p-125 * std::fabs(u) : 0;
      ASSERT_NEAR(out[i], want, relative * std::fabs(want) + flushed + 0x1p-149) << g;
    }
    if (plain.empty()) plain = out;
    ExpectSameBits(out, plain);
  }
}

TEST(GeluMultiply, IsWithinItsBoundForAnySizeOfInput) {
  auto gate = Random(1003, 85, 3.0f);
  const float odd[] = {0.0f,  -0.0f,  1e-45f, -1e-45f, 1e-39f, -1e-39f, 5.5f,  -5.5f,
                       -9.9f, -9.99f, -10.1f, -13.0f,  1e4f,   -1e4f,   3e38f, -3e38f};
  std::copy(std::begin(odd), std::end(odd), gate.begin() + 100);
  const auto up = Random(1003, 86);
  std::vector<float> plain;
  for (InstructionSet set : AvailableInstructionSets()) {
    std::vector<float> out(gate.size());
    GetLinearKernels(set).gelu_multiply(gate.data(), up.data(), out.data(), 1003);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i], u = up[i];
      const double twice = 2 * std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
      // g / 2 (1 + tanh) in a form that does not cancel for g < 0.
      const double want = g / (1 + std::exp(-twice)) * u;
      if (std::fabs(g) < 4) {  // where the usual form does not cancel either
        ASSERT_NEAR(want, 0.5 * g * (1 + std::tanh(twice / 2)) * u, 1e-12);
      }
      // exp: its argument is a product of |g| and a sum of positive terms, one with two roundings
      // (constant, square), which with those of the sum and the product moves it by 4 kU of
      // itself; the polynomial 3e-7; sum, product, quotient and the product with up: 4 kU. Below
      // -126 log(2), where |g| < 11 or the value is smaller still, exp is taken as 0; results in
      // the denormal range round by 2^-150.
      const double relative = 4 * std::fmin(std::fabs(twice), 88.0) * kU + 3e-7 + 4 * kU;
      const double flushed = twice < -87 ? 11 * 0x1p-125 * std::fabs(u) : 0;
      ASSERT_NEAR(out[i], want, relative * std::fabs(want) + flushed + 0x1p-149) << g;
    }
    if (plain.empty()) plain = out;
    ExpectSameBits(out, plain);
  }
}

// Both activations.
TEST(GatedMultiply, NaNStaysAndOutMayBeAnInput) {
  for (InstructionSet set : AvailableInstructionSets()) {
    const LinearKernels& kernels = GetLinearKernels(set);
    for (const auto multiply : {kernels.silu_multiply, kernels.gelu_multiply})
      for (int n : {1, 15, 16, 33}) {
        const auto gate = Random(n, 83), up = Random(n, 84);
        std::vector<float> apart(gate.size());
        multiply(gate.data(), up.data(), apart.data(), n);
        auto in_gate = gate, in_up = up;
        multiply(in_gate.data(), up.data(), in_gate.data(), n);
        multiply(gate.data(), in_up.data(), in_up.data(), n);
        ExpectSameBits(in_gate, apart);
        ExpectSameBits(in_up, apart);
        in_gate = gate;
        in_gate[0] = std::nanf("");
        multiply(in_gate.data(), up.data(), in_gate.data(), n);
        EXPECT_TRUE(std::isnan(in_gate[0]));
        for (size_t i = 1; i < apart.size(); ++i) EXPECT_EQ(in_gate[i], apart[i]);
      }
  }
}

}  // namespace
}  // namespace quire
