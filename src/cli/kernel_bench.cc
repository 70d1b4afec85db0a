#include "cli/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/kernels.h"
#include "attention/plan.h"
#include "base/ceilings.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linear/kernels.h"
#include "model/kv_geometry.h"

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
        linear_(GetLinearKernels(options_.instruction_set)),
        attention_(GetAttentionKernels(options_.instruction_set)) {
    const ModelWeights& weights = engine.model().weights();
    for (const LayerWeights& layer : weights.layers)
      for (const LinearLayer* linear :
           {&layer.attn_q, &layer.attn_k, &layer.attn_v, &layer.attn_output, &layer.ffn_gate,
            &layer.ffn_up, &layer.ffn_down})
        matrices_[linear->matrix.type()].push_back(&linear->matrix);
    matrices_[weights.output.matrix.type()].push_back(&weights.output.matrix);
  }

  StatusOr<Json> Run() {
    for (const auto& [type, matrices] : matrices_)
      for (const int rows : {1, 8, 64}) MeasureProducts(type, matrices, rows);
    for (const uint32_t depth : {1024u, 4096u}) QUIRE_RETURN_IF_ERROR(MeasureAttention(1, depth));
    for (const uint32_t depth : {0u, 4096u}) QUIRE_RETURN_IF_ERROR(MeasureAttention(64, depth));
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

  // `num_rows` query rows of one sequence after `depth` tokens, one layer after the other, so that
  // the pages come from memory.
  Status MeasureAttention(uint32_t num_rows, uint32_t depth) {
    const uint32_t length = depth + num_rows;
    QUIRE_ASSIGN_OR_RETURN(const KvLayout layout, Layout());
    const uint32_t num_pages = (length + layout.page_size - 1) / layout.page_size;
    QUIRE_ASSIGN_OR_RETURN(AnonymousMemory memory,
                           AnonymousMemory::Reserve(num_pages * layout.page_bytes() + 256));
    std::fill_n(memory.data(), memory.size(), std::byte{0});
    std::vector<std::byte*> pages;
    for (uint32_t i = 0; i < num_pages; ++i)
      pages.push_back(memory.data() + i * layout.page_bytes());

    const AttentionShape shape{.layout = layout,
                               .k_codec = options_.kv_codec,
                               .v_codec = options_.kv_codec,
                               .num_q_heads = static_cast<uint32_t>(shape_.num_q_heads),
                               .num_kv_heads = static_cast<uint32_t>(shape_.num_kv_heads),
                               .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim_k))};
    const SequenceRows rows{.kv = {pages.data(), num_pages},
                            .first_row = 0,
                            .num_rows = num_rows,
                            .first_position = depth};
    AttentionPlan plan;
    plan.Build(shape, {&rows, 1}, team_.num_threads());
    std::vector<float> q(size_t{num_rows} * static_cast<size_t>(shape_.q_rows()) + 16, 0.5f);
    std::vector<float> out(size_t{num_rows} * static_cast<size_t>(shape_.attention_columns()) + 16);
    QUIRE_ASSIGN_OR_RETURN(AnonymousMemory workspace,
                           AnonymousMemory::Reserve(plan.workspace_floats() * 4 + 64));
    const size_t scratch_bytes = (plan.scratch_floats() * 4 + 63) / 64 * 64;
    QUIRE_ASSIGN_OR_RETURN(
        AnonymousMemory scratch,
        AnonymousMemory::Reserve(scratch_bytes * static_cast<size_t>(team_.num_threads())));

    const auto attend = [&](int worker, uint32_t layer) {
      auto* own =
          reinterpret_cast<float*>(scratch.data() + static_cast<size_t>(worker) * scratch_bytes);
      auto* shared = reinterpret_cast<float*>(workspace.data());
      team_.ForEach(plan.num_items(), [&](uint32_t item) {
        attention_.run_item(plan, item, layer, q.data(), out.data(), shared, own);
      });
      team_.ForEach(plan.num_merge_items(), [&](uint32_t item) {
        attention_.merge_item(plan, item, shared, out.data(), own);
      });
    };
    // Keys that a row sees, on average.
    const double keys = depth + (num_rows + 1) / 2.0;
    const double macs = keys * num_rows * shape_.num_q_heads *
                        (shape_.head_dim_k + shape_.head_dim_v) * shape_.num_layers;
    std::vector<double> read_ratios, peak_ratios, rates;
    for (int i = 0; i < kRepetitions; ++i) {
      const double peak = PeakRate(ceilings_.fma, ceilings_.fma_per_round);
      const double read_seconds = Seconds([&] {
        team_.Run([&](int) {
          team_.ForEach(num_pages, [&](uint32_t page) {
            ceilings_.read(pages[page], layout.page_bytes() / 256 * 256);
          });
        });
      });
      const double seconds = Seconds([&] {
        team_.Run([&](int worker) {
          for (int layer = 0; layer < shape_.num_layers; ++layer)
            attend(worker, static_cast<uint32_t>(layer));
        });
      });
      rates.push_back(macs / seconds);
      read_ratios.push_back(read_seconds / seconds);
      peak_ratios.push_back(rates.back() / peak);
    }
    Add(fmt::format("attention {} rows={} depth={}", KvCodecName(options_.kv_codec), num_rows,
                    depth),
        rates, read_ratios, peak_ratios);
    return OkStatus();
  }

  StatusOr<KvLayout> Layout() const {
    return MakeKvLayout(KvGeometryOf(shape_, options_.page_size), options_.kv_codec,
                        options_.kv_codec);
  }

  void Add(const std::string& kernel, const std::vector<double>& rates,
           const std::vector<double>& read_ratios, const std::vector<double>& peak_ratios) {
    results_.push_back({{"kernel", kernel},
                        {"giga_ops_per_second", 2e-9 * Median(rates)},
                        {"of_read_roof", Median(read_ratios)},
                        {"of_arithmetic_peak", Median(peak_ratios)}});
  }

  const ModelShape& shape_;
  const EngineOptions& options_;
  ThreadTeam team_;
  const Ceilings& ceilings_;
  const LinearKernels& linear_;
  const AttentionKernels& attention_;
  std::map<WeightType, std::vector<const PackedMatrix*>> matrices_;
  Json results_ = Json::array();
};

}  // namespace

StatusOr<int> RunKernelBench(const EngineFlags& flags, int num_threads, bool json) {
  EngineFlags with_threads = flags;
  with_threads.num_threads = num_threads;
  QUIRE_ASSIGN_OR_RETURN(const auto engine, LoadEngine(with_threads));
  QUIRE_ASSIGN_OR_RETURN(const Json results, KernelBench(*engine).Run());
  if (json) {
    fmt::print("{}\n", results.dump(2));
    return 0;
  }
  fmt::print("{}, {} threads; medians of {} repetitions, each beside its ceilings\n\n",
             InstructionSetName(engine->options().instruction_set), engine->options().num_threads,
             kRepetitions);
  fmt::print("{:<34}{:>10}{:>16}{:>16}\n", "kernel", "GOP/s", "of read roof", "of peak");
  for (const Json& row : results)
    fmt::print("{:<34}{:>10.1f}{:>16.2f}{:>16.2f}\n", row["kernel"].get<std::string>(),
               row["giga_ops_per_second"].get<double>(), row["of_read_roof"].get<double>(),
               row["of_arithmetic_peak"].get<double>());
  fmt::print(
      "\nA kernel is bound by the larger of the two. Read roof: a plain read of the same bytes; "
      "peak: a register-only loop of the kernel's multiply-adds (2 operations each).\n");
  return 0;
}

}  // namespace quire
