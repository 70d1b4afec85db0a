// exp and ln of our own: the same bits on every machine, unlike libm's.
//
// Only + - * / and integer steps on doubles (built with -ffp-contract=off), so that every compiler
// and every vector width agrees. For the sampler: arguments that are not needed there are left out.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace quire {

inline constexpr double kTwo52 = 4503599627370496.0;

// exp(x) for x <= 0, within 2 units in the last place; below -700 that of -700 (1e-304), which is
// nothing beside 1.
inline double ExpOfNegative(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0.693147180369123816490;  // 33 bits: n * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 1.5 * kTwo52;  // the low bits of x + kRound are x rounded
  // 1/13!, 1/12!, ... 1/0!: the next term is below 2^-57 for |r| <= ln 2 / 2.
  constexpr double kTerms[] = {1.0 / 6227020800,
                               1.0 / 479001600,
                               1.0 / 39916800,
                               1.0 / 3628800,
                               1.0 / 362880,
                               1.0 / 40320,
                               1.0 / 5040,
                               1.0 / 720,
                               1.0 / 120,
                               1.0 / 24,
                               1.0 / 6,
                               1.0 / 2,
                               1.0,
                               1.0};
  const double clamped = x < -700.0 ? -700.0 : x;
  const double shifted = clamped * kLog2E + kRound;
  const double n = shifted - kRound;
  const double r = (clamped - n * kLn2High) - n * kLn2Low;
  double sum = kTerms[0];
  for (int i = 1; i < 14; ++i) sum = sum * r + kTerms[i];
  // n sits in the low bits of `shifted`; 2^n is built in the exponent field.
  return sum * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

// ln(x) for x >= 1, by Halley's steps on our own exp.
inline double LogOfAtLeastOne(double x) {
  int exponent = 0;
  double y = std::frexp(x, &exponent);  // [1/2, 1)
  y = 0.6931471805599453 * exponent + (y - 1.0);
  for (int i = 0; i < 4; ++i) {
    const double ratio = x * ExpOfNegative(-y);
    y += 2.0 * (ratio - 1.0) / (ratio + 1.0);
  }
  return y;
}

}  // namespace quire
