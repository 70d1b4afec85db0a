#include "cli/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/measure.h"
#include "base/ceilings.h"
#include "base/threads.h"
#include "linear/kernels.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRepetitions = 7;

template <class Work>
double Seconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class KernelBench {
 public:
  KernelBench(const Engine& engine)
      : shape_(engine.model().shape()),
        options_(engine.options()),
        team_(options_.num_threads),
        ceilings_(GetCeilings(options_.instruction_set)),
        linear_(GetLinearKernels(options_.instruction_set)) {
    const ModelWeights& weights = engine.model().weights();
    for (const LayerWeights& layer : weights.layers)
      for (const LinearLayer* linear :
           {&layer.attn_q, &layer.attn_k, &layer.attn_v, &layer.attn_output, &layer.ffn_gate,
            &layer.ffn_up, &layer.ffn_down})
        matrices_[linear->matrix.type()].push_back(&linear->matrix);
    matrices_[weights.output.matrix.type()].push_back(&weights.output.matrix);
  }

  StatusOr<Json> Run(bool all_shapes) {
    for (const auto& [type, matrices] : matrices_)
      for (const int rows : {1, 8, 64}) MeasureProducts(type, matrices, rows);
    QUIRE_RETURN_IF_ERROR(MeasureAttention(all_shapes));
    return results_;
  }

 private:
  // Bytes a second of a plain read of all of `matrices`, on all workers.
  double ReadRate(const std::vector<const PackedMatrix*>& matrices) {
    int64_t bytes = 0;
    const double seconds = Seconds([&] {
      team_.Run([&](int) {
        for (const PackedMatrix* matrix : matrices)
          team_.ForEach(static_cast<uint32_t>(Items(*matrix)), [&](uint32_t item) {
            const auto [begin, end] = Panels(*matrix, item);
            const int64_t size = (end - begin) * matrix->panel_bytes();
            ceilings_.read(matrix->panel(begin), static_cast<size_t>(size / 256 * 256));
          });
      });
    });
    for (const PackedMatrix* matrix : matrices)
      bytes += matrix->panel_bytes() * matrix->num_panels();
    return static_cast<double>(bytes) / seconds;
  }

  // Multiply-adds a second of a register-only loop on all workers.
  double PeakRate(void (*loop)(int64_t), int64_t per_round) {
    constexpr int64_t kRounds = 1'000'000;
    const double seconds = Seconds([&] { team_.Run([&](int) { loop(kRounds); }); });
    return static_cast<double>(kRounds * per_round * team_.num_threads()) / seconds;
  }

  double PeakOf(WeightType type) {
    if (options_.activations == ActivationForm::kF32 || !TakesInt8(type))
      return PeakRate(ceilings_.fma, ceilings_.fma_per_round);
    if (type == WeightType::kQ8_0)
      return PeakRate(ceilings_.word_products, ceilings_.word_products_per_round);
    return PeakRate(ceilings_.byte_products, ceilings_.byte_products_per_round);
  }

  static constexpr int kPanelsPerItem = 4;
  static int Items(const PackedMatrix& matrix) {
    return (matrix.num_panels() + kPanelsPerItem - 1) / kPanelsPerItem;
  }
  static std::pair<int, int> Panels(const PackedMatrix& matrix, uint32_t item) {
    const int begin = static_cast<int>(item) * kPanelsPerItem;
    return {begin, std::min(begin + kPanelsPerItem, matrix.num_panels())};
  }

  // All products of the model with weights of this type, one after the other.
  void MeasureProducts(WeightType type, const std::vector<const PackedMatrix*>& matrices,
                       int num_rows) {
    int64_t widest = 0, tallest = 0, macs = 0, bytes = 0;
    for (const PackedMatrix* matrix : matrices) {
      widest = std::max<int64_t>(widest, matrix->num_cols());
      tallest = std::max<int64_t>(tallest, matrix->num_rows());
      macs += int64_t{matrix->num_rows()} * matrix->num_cols() * num_rows;
      bytes += matrix->panel_bytes() * matrix->num_panels();
    }
    std::vector<float> input(static_cast<size_t>(widest * num_rows));
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 31) - 15.0f;
    std::vector<float> output(static_cast<size_t>(tallest * num_rows) + 16);
    Int8Buffer buffer(num_rows, static_cast<int>(widest / kActivationBlock * kActivationBlock));

    std::vector<double> read_ratios, peak_ratios, rates;
    for (int i = 0; i < kRepetitions; ++i) {
      const double read = ReadRate(matrices), peak = PeakOf(type);
      const double seconds = Seconds([&] {
        for (const PackedMatrix* matrix : matrices)
          Multiply(*matrix, num_rows, input, buffer, output);
      });
      rates.push_back(static_cast<double>(macs) / seconds);
      read_ratios.push_back(static_cast<double>(bytes) / seconds / read);
      peak_ratios.push_back(rates.back() / peak);
    }
    Add(fmt::format("product {} M={}", WeightTypeName(type), num_rows), rates, read_ratios,
        peak_ratios);
  }

  void Multiply(const PackedMatrix& matrix, int num_rows, const std::vector<float>& input,
                Int8Buffer& buffer, std::vector<float>& output) {
    Activations x;
    x.num_rows = num_rows;
    x.num_cols = matrix.num_cols();
    x.rows = input.data();
    x.row_stride = matrix.num_cols();
    if (options_.activations == ActivationForm::kInt8 && TakesInt8(matrix.type())) {
      x.int8 = buffer.Rows(num_rows, matrix.num_cols());
      linear_.quantise_rows(x.rows, x.row_stride, 0, num_rows, x.int8);
    }
    team_.Run([&](int) {
      team_.ForEach(static_cast<uint32_t>(Items(matrix)), [&](uint32_t item) {
        const auto [begin, end] = Panels(matrix, item);
        linear_.multiply(matrix, x, 0, num_rows, begin, end, output.data(), matrix.num_rows(), {});
      });
    });
  }

  // With one thread, and, what comes from memory, with all: in cache, threads do not share.
  Status MeasureAttention(bool all_shapes) {
    std::vector<AttentionTest> tests = AttentionTests(all_shapes);
    AddOwnShape(tests);
    for (const int num_threads : {1, team_.num_threads()}) {
      AttentionMeter meter(options_.instruction_set, num_threads);
      for (const AttentionTest& test : tests) {
        if (num_threads > 1 && !test.in_memory) continue;
        QUIRE_ASSIGN_OR_RETURN(const AttentionSpeed speed, meter.Measure(test, kRepetitions));
        results_.push_back({{"kernel", "attention " + NameOf(test)},
                            {"threads", num_threads},
                            {"giga_ops_per_second", 2e-9 * speed.macs_per_second},
                            {"of_read_roof", speed.of_read_roof},
                            {"of_arithmetic_peak", speed.of_fma_peak}});
      }
      if (team_.num_threads() == 1) break;
    }
    return OkStatus();
  }

  // The tests of the model's own heads, unless they are there already.
  void AddOwnShape(std::vector<AttentionTest>& tests) const {
    AttentionTest own = {
        .head_dim = static_cast<uint32_t>(shape_.head_dim_k),
        .group_size = static_cast<uint32_t>(shape_.num_q_heads / shape_.num_kv_heads),
        .page_size = options_.page_size,
        .codec = options_.kv_codec};
    for (const AttentionTest& test : tests)
      if (test.head_dim == own.head_dim && test.group_size == own.group_size &&
          test.page_size == own.page_size && test.codec == own.codec)
        return;
    for (const uint32_t depth : {0u, 4096u}) {
      own.num_rows = 64;
      own.depth = depth;
      own.in_memory = false;
      tests.push_back(own);
    }
    own.num_rows = 1;
    own.in_memory = true;
    tests.push_back(own);
  }

  void Add(const std::string& kernel, const std::vector<double>& rates,
           const std::vector<double>& read_ratios, const std::vector<double>& peak_ratios) {
    results_.push_back({{"kernel", kernel},
                        {"threads", team_.num_threads()},
                        {"giga_ops_per_second", 2e-9 * Median(rates)},
                        {"of_read_roof", Median(read_ratios)},
                        {"of_arithmetic_peak", Median(peak_ratios)}});
  }

  const ModelShape& shape_;
  const EngineOptions& options_;
  ThreadTeam team_;
  const Ceilings& ceilings_;
  const LinearKernels& linear_;
  std::map<WeightType, std::vector<const PackedMatrix*>> matrices_;
  Json results_ = Json::array();
};

}  // namespace

StatusOr<int> RunKernelBench(const EngineFlags& flags, int num_threads, bool all_shapes,
                             bool json) {
  EngineFlags with_threads = flags;
  with_threads.num_threads = num_threads;
  QUIRE_ASSIGN_OR_RETURN(const auto engine, LoadEngine(with_threads));
  QUIRE_ASSIGN_OR_RETURN(const Json results, KernelBench(*engine).Run(all_shapes));
  if (json) {
    fmt::print("{}\n", results.dump(2));
    return 0;
  }
  fmt::print("{}; each kernel beside its ceilings, {} repetitions\n\n",
             InstructionSetName(engine->options().instruction_set), kRepetitions);
  fmt::print("{:<46}{:>8}{:>10}{:>14}{:>10}\n", "kernel", "threads", "GOP/s", "of read roof",
             "of peak");
  for (const Json& row : results) {
    const double read = row["of_read_roof"].get<double>();
    fmt::print("{:<46}{:>8}{:>10.1f}{:>14}{:>10.2f}\n", row["kernel"].get<std::string>(),
               row["threads"].get<int>(), row["giga_ops_per_second"].get<double>(),
               read == 0 ? "-" : fmt::format("{:.2f}", read),
               row["of_arithmetic_peak"].get<double>());
  }
  fmt::print(
      "\nA kernel is bound by the larger of the two. Read roof: a plain read of the same bytes; "
      "peak: a register-only loop of the kernel's multiply-adds (2 operations each). Products: "
      "medians. Attention: the best share of the peak, the median share of the roof; dN: tokens "
      "before, hdN: head_dim, gN: query heads of a KV head; in cache, or pages from memory.\n");
  return 0;
}

}  // namespace quire
