#include "plan/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/message_text.h"
#include "cache/default_budget.h"

namespace quire {
namespace {

struct WeightBits {
  std::string_view name;
  double bits;
};

// GGUF's block types with their scales: bytes of a block x 8 / values of a block.
constexpr WeightBits kWeightBits[] = {
    {"f32", 32},   {"f16", 16},      {"bf16", 16},  {"fp8", 8},       {"int8", 8},
    {"q8_0", 8.5}, {"q6_k", 6.5625}, {"q5_k", 5.5}, {"q5_0", 5.5},    {"q4_k", 4.5},
    {"q4_0", 4.5}, {"mxfp4", 4.25},  {"int4", 4},   {"q3_k", 3.4375}, {"q2_k", 2.625},
};

// For activations, logits, token texts and the program: a part of the memory, and at least what a
// small model takes.
constexpr uint64_t kLeastWorkBytes = uint64_t{128} << 20;
constexpr uint64_t kWorkPart = 32;

Status SetTotal(const MemoryRequest& request, MemoryPlan* plan) {
  if (request.total_bytes.has_value() && request.gpus.has_value())
    return InvalidArgument("memory and gpus both say how much memory there is: give one");
  if (request.total_bytes.has_value()) {
    plan->total_bytes = *request.total_bytes;
    plan->total_source = "as given";
  } else if (request.gpus.has_value()) {
    const AcceleratorSet& gpus = *request.gpus;
    plan->total_bytes = gpus.count * gpus.kind->memory_bytes;
    plan->total_source = fmt::format("{} x {}, data sheet", gpus.count, gpus.kind->name);
    plan->total_mark = Mark::kEstimated;
  } else if (request.machine_bytes > 0) {
    plan->total_bytes = request.machine_bytes;
    plan->total_source = request.machine_source;
    plan->total_mark = Mark::kMeasured;
  } else {
    return InvalidArgument(
        "how much memory there is is not known: say it (--memory 64GiB, memory_bytes) or name "
        "accelerators (--gpus 8xH100, gpus)");
  }
  return OkStatus();
}

Status SetWeights(const KvModel& model, const MemoryRequest& request, MemoryPlan* plan) {
  if (!request.weights_dtype.has_value() && model.weight_bytes.has_value()) {
    plan->weight_bytes = model.weight_bytes;
    const bool is_file = model.source.starts_with("GGUF");
    plan->weight_source = is_file ? "tensors of the file" : "parameters x " + model.weights_dtype;
    plan->weight_mark = is_file ? Mark::kExact : Mark::kEstimated;
    return OkStatus();
  }
  plan->weight_mark = Mark::kEstimated;
  const std::string own = model.weights_dtype.empty() ? "bf16" : model.weights_dtype;
  const StatusOr<double> bits = BitsOfWeights(request.weights_dtype.value_or(own));
  if (!bits.ok() && request.weights_dtype.has_value()) return bits.status();
  if (!bits.ok()) {
    plan->weight_source = fmt::format("not known: '{}' tells no bits, give --weights-dtype", own);
    return OkStatus();
  }
  plan->weight_source = "not known: nothing tells the number of parameters";
  if (!model.num_params.has_value()) return OkStatus();
  plan->weight_bytes =
      static_cast<uint64_t>(std::min(static_cast<double>(*model.num_params) * *bits / 8, 0x1p62));
  plan->weight_source = fmt::format("{:.2f} billion parameters x {} bits",
                                    static_cast<double>(*model.num_params) / 1e9, *bits);
  return OkStatus();
}

void SetBudget(const MemoryRequest& request, MemoryPlan* plan) {
  const uint64_t total = plan->total_bytes;
  const uint64_t taken = plan->known_weight_bytes();
  if (request.kv_bytes.has_value()) {
    plan->budget_bytes = *request.kv_bytes;
    plan->budget_source = "as given";
  } else if (request.cache_share.has_value()) {
    plan->budget_bytes = static_cast<uint64_t>(std::floor(
        static_cast<long double>(total) * static_cast<long double>(*request.cache_share)));
    plan->budget_source = fmt::format("{} of the memory", *request.cache_share);
  } else if (!request.total_bytes.has_value() && !request.gpus.has_value()) {
    plan->budget_bytes = DefaultKvBudget(total, taken);
    plan->budget_source = "the engine's default: half of what weights leave, or its least";
  } else {
    plan->work_bytes = std::max(kLeastWorkBytes, total / kWorkPart);
    const uint64_t used = taken + plan->work_bytes;
    plan->budget_bytes = total > used ? total - used : 0;
    plan->budget_source = "what weights and work memory leave";
  }
}

}  // namespace

StatusOr<double> BitsOfWeights(const std::string& dtype) {
  std::string name = dtype;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const WeightBits& known : kWeightBits)
    if (known.name == name) return known.bits;
  std::vector<std::string_view> names;
  for (const WeightBits& known : kWeightBits) names.push_back(known.name);
  return InvalidArgument("unknown type of weights '{}': use one of {}", Printable(dtype),
                         fmt::join(names, ", "));
}

StatusOr<MemoryPlan> MakeMemoryPlan(const KvModel& model, const MemoryRequest& request) {
  if (request.cache_share.has_value() && !(*request.cache_share > 0 && *request.cache_share <= 1))
    return InvalidArgument("a cache share of {}: need more than 0 and at most 1",
                           *request.cache_share);
  if (request.cache_share.has_value() && request.kv_bytes.has_value())
    return InvalidArgument("cache share and KV memory both say the KV budget: give one");
  MemoryPlan plan;
  QUIRE_RETURN_IF_ERROR(SetTotal(request, &plan));
  QUIRE_RETURN_IF_ERROR(SetWeights(model, request, &plan));
  SetBudget(request, &plan);
  return plan;
}

}  // namespace quire
