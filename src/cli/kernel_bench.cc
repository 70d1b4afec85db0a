#include "cli/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/measure.h"
#include "base/machine.h"
#include "linear/measure.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRepetitions = 7;

class KernelBench {
 public:
  // options: instruction set, threads (not 0), and the forms of a model's own tests.
  KernelBench(const EngineOptions& options, bool all_shapes)
      : options_(options),
        products_(ProductTests(all_shapes)),
        attention_(AttentionTests(all_shapes)) {}

  // The weight types and heads of a model, unless they are there already.
  void AddOwn(const Model& model) {
    AddOwnTypes(model.weights());
    AddOwnShape(model.shape());
  }

  // With one thread, and with all. In cache, threads of attention do not share: one is enough.
  StatusOr<Json> Run() {
    for (const int num_threads : {1, options_.num_threads}) {
      ProductMeter products(options_.instruction_set, num_threads);
      for (const ProductTest& test : products_) {
        QUIRE_ASSIGN_OR_RETURN(const ProductSpeed speed, products.Measure(test, kRepetitions));
        Add(NameOf(test), num_threads, speed.macs_per_second, speed.of_read_roof, speed.of_peak,
            speed.read_bytes_per_second);
      }
      AttentionMeter attention(options_.instruction_set, num_threads);
      for (const AttentionTest& test : attention_) {
        if (num_threads > 1 && !test.in_memory) continue;
        QUIRE_ASSIGN_OR_RETURN(const AttentionSpeed speed, attention.Measure(test, kRepetitions));
        Add("attention " + NameOf(test), num_threads, speed.macs_per_second, speed.of_read_roof,
            speed.of_fma_peak, speed.read_bytes_per_second);
      }
      if (options_.num_threads == 1) break;
    }
    return results_;
  }

 private:
  // In the activation form of the options.
  void AddOwnTypes(const ModelWeights& weights) {
    const auto add = [&](const LinearLayer& layer) {
      for (const int num_rows : {1, 8, 64}) {
        ProductTest own{.type = layer.matrix.type(), .num_rows = num_rows};
        own.form = options_.activations;
        if (!TakesInt8(own.type)) own.form = ActivationForm::kF32;
        const auto same = [&](const ProductTest& test) { return NameOf(test) == NameOf(own); };
        if (std::none_of(products_.begin(), products_.end(), same)) products_.push_back(own);
      }
    };
    for (const LayerWeights& layer : weights.layers)
      for (const LinearLayer* linear :
           {&layer.attn_q, &layer.attn_k, &layer.attn_v, &layer.attn_output, &layer.ffn_gate,
            &layer.ffn_up, &layer.ffn_down})
        add(*linear);
    add(weights.output);
  }

  void AddOwnShape(const ModelShape& shape) {
    AttentionTest own = {
        .head_dim = static_cast<uint32_t>(shape.head_dim_k),
        .group_size = static_cast<uint32_t>(shape.num_q_heads / shape.num_kv_heads),
        .page_size = options_.page_size,
        .codec = options_.kv_codec};
    for (const AttentionTest& test : attention_)
      if (test.head_dim == own.head_dim && test.group_size == own.group_size &&
          test.page_size == own.page_size && test.codec == own.codec)
        return;
    for (const uint32_t depth : {0u, 4096u}) {
      own.num_rows = 64;
      own.depth = depth;
      own.in_memory = false;
      attention_.push_back(own);
    }
    own.num_rows = 1;
    own.in_memory = true;
    attention_.push_back(own);
  }

  void Add(const std::string& kernel, int num_threads, double macs_per_second, double of_read_roof,
           double of_peak, double read_bytes_per_second) {
    results_.push_back({{"kernel", kernel},
                        {"threads", num_threads},
                        {"giga_ops_per_second", 2e-9 * macs_per_second},
                        {"of_read_roof", of_read_roof},
                        {"read_roof_gigabytes_per_second", 1e-9 * read_bytes_per_second},
                        {"of_arithmetic_peak", of_peak}});
  }

  const EngineOptions options_;
  std::vector<ProductTest> products_;
  std::vector<AttentionTest> attention_;
  Json results_ = Json::array();
};

}  // namespace

StatusOr<int> RunKernelBench(const EngineFlags& flags, int num_threads, bool all_shapes,
                             bool json) {
  EngineFlags with_threads = flags;
  with_threads.num_threads = num_threads;
  QUIRE_ASSIGN_OR_RETURN(EngineOptions options, ToEngineOptions(with_threads));
  if (options.num_threads == 0) options.num_threads = UsableCores();
  KernelBench bench(options, all_shapes);
  if (!flags.model_path.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const auto engine, LoadEngine(with_threads));
    bench.AddOwn(engine->model());
  }
  QUIRE_ASSIGN_OR_RETURN(const Json results, bench.Run());
  if (json) {
    fmt::print("{}\n", results.dump(2));
    return 0;
  }
  fmt::print("{}; each kernel beside its ceilings, {} repetitions\n\n",
             InstructionSetName(options.instruction_set), kRepetitions);
  fmt::print("{:<46}{:>8}{:>10}{:>10}{:>14}{:>12}\n", "kernel", "threads", "GOP/s", "of peak",
             "of read roof", "roof, GB/s");
  for (const Json& row : results) {
    const double read = row["of_read_roof"].get<double>();
    fmt::print(
        "{:<46}{:>8}{:>10.1f}{:>10.2f}{:>14}{:>12}\n", row["kernel"].get<std::string>(),
        row["threads"].get<int>(), row["giga_ops_per_second"].get<double>(),
        row["of_arithmetic_peak"].get<double>(), read == 0 ? "-" : fmt::format("{:.2f}", read),
        read == 0 ? "-"
                  : fmt::format("{:.1f}", row["read_roof_gigabytes_per_second"].get<double>()));
  }
  fmt::print(
      "\nA kernel is bound by the larger of the two. Read roof: a plain read of the same bytes; "
      "peak: a register-only loop of the kernel's multiply-adds (2 operations each); the best "
      "share "
      "of the peak, the median share of the roof. Products: 4,096 x 4,096, weights from memory. "
      "Attention: dN: tokens before, hdN: head_dim, gN: query heads of a KV head; in cache, or "
      "pages from memory.\n");
  return 0;
}

}  // namespace quire
