#include "linear/kernels.h"
#include "linear/random_matrix.h"
#include "property/bits_digest.h"

namespace quire {
namespace {

// 50 rows are three panels and a part of one; 1,056 columns are 33 blocks of 32.
constexpr int kNumOutputs = 50, kNumColumns = 1280, kNumRows = 5;

void DigestProducts(InstructionSet set, WeightType type) {
  const LinearKernels& kernels = GetLinearKernels(set);
  const RandomMatrix matrix(type, kNumOutputs, kNumColumns, /*seed=*/3);
  std::mt19937 rng(4);
  auto rows = UniformFloats(rng, size_t{kNumRows} * kNumColumns, -3.0f, 3.0f);
  for (size_t i = 0; i < rows.size(); i += 97) rows[i] *= 30;
  const auto bias = UniformFloats(rng, kNumOutputs, -1.0f, 1.0f);
  Int8Buffer buffer(kNumRows, kNumColumns);
  Activations x{.num_rows = kNumRows,
                .num_cols = kNumColumns,
                .rows = rows.data(),
                .row_stride = kNumColumns,
                .int8 = {}};
  for (const bool int8 : {false, true}) {
    if (int8 && !TakesInt8(type)) continue;
    if (int8) {
      x.int8 = buffer.Rows(kNumRows, kNumColumns);
      kernels.quantise_rows(rows.data(), kNumColumns, 0, kNumRows, x.int8);
    }
    Digest digest;
    std::vector<float> out(size_t{kNumRows} * kNumOutputs, 0.5f);
    for (const Epilogue& epilogue :
         {Epilogue{}, Epilogue{.bias = bias.data(), .scale = 0.7f, .accumulate = true}}) {
      kernels.multiply(matrix.packed(), x, 0, kNumRows, 0, matrix.packed().num_panels(), out.data(),
                       kNumOutputs, epilogue);
      digest.AddAll(out);
    }
    PrintDigest("linear." + std::string(WeightTypeName(type)) + (int8 ? ".int8" : ".f32"), set,
                digest);
  }
}

void DigestQuantisedRows(InstructionSet set) {
  std::mt19937 rng(5);
  const auto rows = UniformFloats(rng, size_t{kNumRows} * kNumColumns, -3.0f, 3.0f);
  Int8Buffer buffer(kNumRows, kNumColumns);
  const Int8Rows out = buffer.Rows(kNumRows, kNumColumns);
  GetLinearKernels(set).quantise_rows(rows.data(), kNumColumns, 0, kNumRows, out);
  const size_t num_blocks = rows.size() / kActivationBlock;
  Digest digest;
  digest.AddAll(std::span(out.codes, rows.size()));
  digest.AddAll(std::span(out.scales, num_blocks));
  digest.AddAll(std::span(out.sums, num_blocks));
  digest.AddAll(std::span(out.half_sums, num_blocks));
  digest.AddAll(std::span(out.scaled_sums, num_blocks));
  PrintDigest("linear.quantise_rows", set, digest);
}

void DigestRowKernels(InstructionSet set) {
  const LinearKernels& kernels = GetLinearKernels(set);
  constexpr int kHeadDim = 80, kNumHeads = 3, kLength = kHeadDim * kNumHeads;
  std::mt19937 rng(6);
  const auto x = UniformFloats(rng, kLength, -20.0f, 20.0f);
  const auto y = UniformFloats(rng, kLength, -2.0f, 2.0f);
  // Any numbers do as cosines and sines here; the forward pass takes those from libm.
  const auto cosines = UniformFloats(rng, kHeadDim / 2, -1.0f, 1.0f);
  const auto sines = UniformFloats(rng, kHeadDim / 2, -1.0f, 1.0f);
  Digest digest;
  for (int n : {1, 15, 16, 17, 100, kLength}) {
    std::vector<float> out(kLength, 0.0f);
    kernels.rms_norm(x.data(), y.data(), n, 1e-5f, out.data());
    digest.AddAll(out);
    kernels.add_rms_norm(y.data(), x.data(), n, 1e-5f, out.data());
    digest.AddAll(out);
    kernels.silu_multiply(x.data(), y.data(), out.data(), n);
    digest.AddAll(out);
    kernels.gelu_multiply(x.data(), y.data(), out.data(), n);
    digest.AddAll(out);
  }
  for (const RopePairs pairs : {RopePairs::kInterleaved, RopePairs::kHalves}) {
    for (int num_rotated : {2, 34, kHeadDim}) {
      std::vector<float> heads = x;
      kernels.rope(heads.data(), kNumHeads, kHeadDim, num_rotated, cosines.data(), sines.data(),
                   pairs);
      digest.AddAll(heads);
    }
  }
  PrintDigest("linear.row_kernels", set, digest);
}

}  // namespace

void DigestLinear(InstructionSet set) {
  for (WeightType type : AllWeightTypes()) DigestProducts(set, type);
  DigestQuantisedRows(set);
  DigestRowKernels(set);
}

}  // namespace quire
