// quire_kl: how far the engine's distributions are from a reference's, over the last positions of a
// text. By hand; not a test.
//
//   quire_kl MODEL IDS.json REFERENCE.f32 [--activations f32|int8] [--kv f32|f16] [--threads N]
//
// IDS.json: a list of token ids. REFERENCE.f32: little-endian f32 logits [n][vocab_size] of the
// last n positions; tools/make_kl_reference.py makes both. Prints mean and median of
// KL(reference || engine) in nats, and how often both have the same likeliest token.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "reference/engine_fixture.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

std::vector<double> LogSoftmax(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - top);
  std::vector<double> result;
  for (const float logit : row) result.push_back(logit - top - std::log(sum));
  return result;
}

int Fail(const char* message) {
  std::fprintf(stderr, "quire_kl: %s\n", message);
  return 2;
}

int Run(int argc, char** argv) {
  if (argc < 4 || argc % 2 != 0)
    return Fail(
        "usage: quire_kl MODEL IDS.json REFERENCE.f32 [--activations f32|int8] "
        "[--kv f32|f16] [--threads N]");
  EngineOptions options = ExactOptions();
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--activations")
      options.activations = value == "int8" ? ActivationForm::kInt8 : ActivationForm::kF32;
    else if (flag == "--kv")
      options.kv_codec = value == "f16" ? KvCodec::kF16 : KvCodec::kF32;
    else if (flag == "--threads")
      options.num_threads = std::atoi(value.c_str());
    else
      return Fail(("no such option: " + flag).c_str());
  }
  const std::vector<TokenId> ids = ReadJsonFile(argv[2]);
  const std::vector<float> reference = ReadFloatFile(argv[3]);
  const auto engine = LoadRunner(argv[1], options);
  const auto vocab_size = static_cast<size_t>(engine->model().shape().vocab_size);
  const size_t rows = reference.size() / vocab_size;
  if (rows == 0 || rows * vocab_size != reference.size() || rows > ids.size())
    return Fail("the reference is not [n][vocab_size] with n up to the number of ids");

  const std::vector<float> logits = ComputeLogits(*engine, ids, ids.size() - rows);
  std::vector<double> kl(rows);
  size_t num_same = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto want = std::span(reference).subspan(row * vocab_size, vocab_size);
    const auto got = std::span(logits).subspan(row * vocab_size, vocab_size);
    const std::vector<double> p = LogSoftmax(want), q = LogSoftmax(got);
    for (size_t i = 0; i < vocab_size; ++i) kl[row] += std::exp(p[i]) * (p[i] - q[i]);
    num_same += ArgMax(want) == ArgMax(got);
  }
  const auto n = static_cast<double>(rows);
  const double mean = std::accumulate(kl.begin(), kl.end(), 0.0) / n;
  double squares = 0;
  for (const double value : kl) squares += (value - mean) * (value - mean);
  std::sort(kl.begin(), kl.end());
  std::printf(
      "%zu positions: mean KL %.4e (standard error %.1e), median %.4e, greatest %.3e; "
      "same likeliest token %.2f %%\n",
      rows, mean, std::sqrt(squares / std::max(1.0, n - 1) / n), kl[rows / 2], kl.back(),
      100.0 * static_cast<double>(num_same) / n);
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Run(argc, argv); }
