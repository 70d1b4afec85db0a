// LinearKernels: the products and row operations of a forward pass, for one instruction set.
//
// Every function gives the same bits on every instruction set, and an output depends only on its
// own row of activations and its own weights: never on the other rows, the tile, or the ranges that
// a call computes. Per output, in order of k:
//   f32 form   acc = fma(w[k], x[k], acc), w[k] = fma(d, q, m) rounded once
//   int8 form  for each block of 32: s = exact integer sum of w codes times x codes;
//              types with a minimum: acc = fma(m, x.scaled_sum, acc);
//              acc = fma(float(s), d * x.scale, acc), the product d * x.scale rounded once.
//              Where the scale changes within the block (Q2_K, Q3_K, Q6_K) d is the file's f16, and
//              s the sum of S times w codes times x codes; Q2_K's minimum is
//              acc = fma(float(sum of M times x codes), -e * x.scale, acc).
// Reference code: linear/reference.h.
//
// Threads: no state; calls that write disjoint outputs may run at the same time.
// Errors: none; shapes are the caller's duty (checked with QUIRE_CHECK).
#pragma once

#include <cstdint>

#include "base/instruction_set.h"
#include "linear/activations.h"
#include "linear/packed_matrix.h"

namespace quire {

// What happens to y = W x before it is written:
//   y = y * scale, y = y + bias   (scale_after_bias: y = y + bias, y = y * scale)
//   out = y                       (accumulate: out = out + y)
struct Epilogue {
  const float* bias = nullptr;  // [N], or null
  float scale = 1.0f;
  bool scale_after_bias = false;
  bool accumulate = false;
};

enum class RopePairs { kInterleaved, kHalves };  // (2j, 2j + 1); (j, j + n_rot / 2)

struct LinearKernels {
  // Rows [m0, m1) of `rows` (row_stride floats apart, out.num_cols values each) to codes.
  void (*quantise_rows)(const float* rows, int64_t row_stride, int m0, int m1, const Int8Rows& out);
  // Of the same rows only the blocks [b0, b1), each of kActivationBlock values.
  void (*quantise_blocks)(const float* rows, int64_t row_stride, int m0, int m1, int b0, int b1,
                          const Int8Rows& out);

  // out[m * out_stride + n] for m in [m0, m1) and the rows n < N of panels [p0, p1).
  // Reads x.int8 if it is there and the type takes it, else x.rows. Several threads share a product
  // by disjoint panel ranges. Cost: M = 1 streams the weights once; from M = 8 on arithmetic.
  // Requires: x.num_cols == matrix.num_cols().
  void (*multiply)(const PackedMatrix& matrix, const Activations& x, int m0, int m1, int p0, int p1,
                   float* out, int64_t out_stride, const Epilogue& epilogue);

  // out[i] = (x[i] * (1 / sqrt(sum16(x^2) / n + eps))) * weight[i]. out may be x.
  void (*rms_norm)(const float* x, const float* weight, int n, float eps, float* out);

  // out[i] = out[i] + y[i], with y what rms_norm would write.
  void (*add_rms_norm)(const float* x, const float* weight, int n, float eps, float* out);

  // Turns the first n_rot values of each head in place, by the angles whose cos and sin [n_rot / 2]
  // are given: (a, b) -> (a cos - b sin, a sin + b cos).
  //   x [num_heads, head_dim] f32, contiguous. n_rot even, at most head_dim.
  void (*rope)(float* x, int num_heads, int head_dim, int n_rot, const float* cos, const float* sin,
               RopePairs pairs);

  // out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. out may be gate or up.
  void (*silu_multiply)(const float* gate, const float* up, float* out, int n);

  // out[i] = gelu(gate[i]) * up[i], gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
  // out may be gate or up.
  void (*gelu_multiply)(const float* gate, const float* up, float* out, int n);
};

// Requires: `set` is one of AvailableInstructionSets().
const LinearKernels& GetLinearKernels(InstructionSet set);

}  // namespace quire
