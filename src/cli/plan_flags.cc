#include "cli/plan_flags.h"

#include <chrono>
#include <utility>

#include "base/errors.h"
#include "base/machine.h"
#include "base/units.h"
#include "plan/read_kv_model.h"
#include "plan/shape_text.h"

namespace quire {
namespace {

StatusOr<uint32_t> ReadCount(const char* flag, const std::string& text, uint32_t least,
                             uint32_t most) {
  const auto count = ParseCount(text);
  if (!count.ok()) return count.status().WithContext(flag);
  if (*count < least || *count > most)
    return InvalidArgument("{} {}: need {} to {}", flag, text, least, most);
  return static_cast<uint32_t>(*count);
}

StatusOr<std::optional<uint64_t>> ReadBytes(const char* flag, const std::string& text) {
  if (text.empty()) return std::optional<uint64_t>();
  const auto bytes = ParseBytes(text);
  if (!bytes.ok()) return bytes.status().WithContext(flag);
  return std::optional<uint64_t>(*bytes);
}

StatusOr<std::optional<double>> ReadSeconds(const char* flag, const std::string& text) {
  if (text.empty()) return std::optional<double>();
  const auto time = ParseDuration(text);
  if (!time.ok()) return time.status().WithContext(flag);
  if (time->count() == 0) return InvalidArgument("{} {}: need at least 1ms", flag, text);
  return std::optional<double>(std::chrono::duration<double>(*time).count());
}

StatusOr<KvModel> ReadModel(const PlanFlags& flags) {
  if (flags.model_path.empty() == flags.shape.empty())
    return InvalidArgument(
        "give one: a MODEL (a GGUF file, a config.json or its folder), or --shape, such as --shape "
        "layers=32,kv_heads=8,head_dim=128");
  if (!flags.model_path.empty()) return ReadKvModel(flags.model_path);
  auto model = ReadShapeText(flags.shape);
  if (!model.ok()) return model.status().WithContext("--shape");
  return model;
}

Status ReadMemory(const PlanFlags& flags, MemoryRequest* memory) {
  QUIRE_ASSIGN_OR_RETURN(memory->total_bytes, ReadBytes("--memory", flags.memory));
  QUIRE_ASSIGN_OR_RETURN(memory->kv_bytes, ReadBytes("--kv-memory", flags.kv_memory));
  if (!flags.gpus.empty()) {
    const auto gpus = ParseAccelerators(flags.gpus);
    if (!gpus.ok()) return gpus.status().WithContext("--gpus");
    memory->gpus = *gpus;
  }
  memory->cache_share = flags.cache_share;
  memory->weights_dtype = flags.weights_dtype;
  FreeMemory free = ReadFreeMemory();
  memory->machine_bytes = free.bytes;
  memory->machine_source = std::move(free.source);
  return OkStatus();
}

Status ReadRates(const PlanFlags& flags, MachineRates* rates) {
  QUIRE_ASSIGN_OR_RETURN(const auto bandwidth, ReadBytes("--bandwidth", flags.bandwidth));
  rates->bytes_per_second = static_cast<double>(bandwidth.value_or(0));
  if (!flags.flops.empty()) {
    const auto flops = ParseCount(flags.flops);
    if (!flops.ok()) return flops.status().WithContext("--flops");
    rates->flops = static_cast<double>(*flops);
  }
  if (bandwidth.has_value() && !flags.flops.empty()) rates->source = "--bandwidth and --flops";
  return OkStatus();
}

}  // namespace

void AddPlanFlags(CLI::App& command, PlanFlags& flags) {
  command.add_option("MODEL", flags.model_path,
                     "A GGUF file (its header is enough), a config.json, or a folder with one");
  const std::string group_before = command.option_defaults()->get_group();
  command.option_defaults()->group("What is served");
  command.add_option("--shape", flags.shape,
                     "A model in words instead: layers=80,kv_heads=8,head_dim=128, and q_heads, "
                     "window, window_layers, kv_lora_rank, rope_dim, v_head_dim, params, "
                     "active_params, context");
  command.add_option("--kv", flags.kv,
                     "KV codec, or k=CODEC,v=CODEC; also those that do not run yet (default f16)");
  command.add_option("--page-size", flags.page_size,
                     "Tokens in a page, a multiple of 16 (default 64)");
  command.add_option("--kv-sink-pages", flags.sink_pages,
                     "First pages that stay in 16 bits, 0 or 1 (default: as the codec wants)");
  command.add_option("--kv-recent-pages", flags.recent_pages,
                     "Pages before the newest that stay in 16 bits too (default 0)");
  command.add_option("--window", flags.window,
                     "Keys that a layer with a window sees, instead of the model's; 0: all");
  command.add_option("--weights-dtype", flags.weights_dtype,
                     "Type of the weights where no file tells their bytes, such as bf16, q4_k");
  command.option_defaults()->group("To whom");
  command.add_option("-u,--users", flags.users, "Conversations at once (default 1)");
  command.add_option(
      "-c,--ctx,--context", flags.context_len,
      "Tokens of each, such as 16k (16,000) (default: what the model was trained for)");
  command.add_option("--shared-prefix", flags.shared_prefix,
                     "Tokens that all begin with, as of a system prompt (default 0)");
  command.add_option("--ttft", flags.ttft, "A first token is wanted after at most, such as 2s");
  command.add_option("--tpot", flags.tpot, "Each later one after at most, such as 50ms");
  command.option_defaults()->group("On what");
  command.add_option(
      "--memory", flags.memory,
      "Memory, with its unit: 640GB (10^9) or 64GiB (2^30) (default: what is free here)");
  command.add_option("--gpus", flags.gpus,
                     "Accelerators instead, such as 8xH100: their data sheets");
  command.add_option("--cache-share", flags.cache_share,
                     "Part of the memory for KV pages, such as 0.5 (default: what weights leave)");
  command.add_option("--kv-memory", flags.kv_memory, "Memory of the KV pages itself, as of serve");
  command.add_option("--bandwidth", flags.bandwidth, "Bytes a second from memory, such as 100GB");
  command.add_option("--flops", flags.flops, "Operations a second, such as 2T");
  command.add_flag("--measure", flags.measures, "Measure both on this machine (a second)");
  command.option_defaults()->group("Output");
  command.add_flag("--explain", flags.explains, "Show each formula with its numbers");
  command.add_flag("--json", flags.json, "Print one JSON object");
  command.add_option("--chart", flags.chart_path, "Draw memory against context into this SVG file");
  command.add_flag("--verify", flags.verifies,
                   "Load MODEL, fill the cache, and compare planned with real bytes");
  command.option_defaults()->group(group_before);
}

StatusOr<PlanRequest> ReadPlanRequest(const PlanFlags& flags) {
  PlanRequest request;
  QUIRE_ASSIGN_OR_RETURN(request.model, ReadModel(flags));
  if (!flags.kv.empty()) {
    const Status kv = ParseKvChoice(flags.kv, &request.kv);
    if (!kv.ok()) return kv.WithContext("--kv");
  }
  request.kv.page_size = flags.page_size;
  request.kv.sink_pages = flags.sink_pages;
  request.kv.recent_pages = flags.recent_pages;
  QUIRE_ASSIGN_OR_RETURN(request.num_users,
                         ReadCount("--users", flags.users, 1, kMostPlannedUsers));
  if (!flags.context_len.empty()) {
    QUIRE_ASSIGN_OR_RETURN(request.context_len,
                           ReadCount("--ctx", flags.context_len, 1, kMostPlannedTokens));
  }
  QUIRE_ASSIGN_OR_RETURN(request.shared_prefix,
                         ReadCount("--shared-prefix", flags.shared_prefix, 0, kMostPlannedTokens));
  if (flags.window.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(request.window,
                           ReadCount("--window", *flags.window, 0, kMostPlannedTokens));
  }
  QUIRE_ASSIGN_OR_RETURN(request.ttft_seconds, ReadSeconds("--ttft", flags.ttft));
  QUIRE_ASSIGN_OR_RETURN(request.tpot_seconds, ReadSeconds("--tpot", flags.tpot));
  QUIRE_RETURN_IF_ERROR(ReadMemory(flags, &request.memory));
  QUIRE_RETURN_IF_ERROR(ReadRates(flags, &request.rates));
  return request;
}

}  // namespace quire
