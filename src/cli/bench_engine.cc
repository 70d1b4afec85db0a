#include "cli/bench_engine.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/instruction_set.h"
#include "cli/workload.h"

namespace quire {

StatusOr<BenchEngine> BenchEngine::Load(const EngineFlags& flags) {
  BenchEngine bench;
  QUIRE_ASSIGN_OR_RETURN(bench.runner_, LoadRunner(flags));
  bench.path_ = flags.model_path;
  bench.model_ = bench.runner_->shared_model();
  bench.options_ = bench.runner_->options();
  return bench;
}

Status BenchEngine::Restart() {
  engine_.reset();
  if (runner_ == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(runner_, ModelRunner::Create(model_, options_));
  }
  QUIRE_ASSIGN_OR_RETURN(engine_, Engine::Create(std::exchange(runner_, nullptr)));
  // Wakes the threads, and touches the work memory that does not depend on the length.
  Request warm_up = ExactRequest(MakePrompt({{OwnPiece(0, 16)}}, 0, num_tokens()), 2);
  warm_up.uses_prefixes = false;
  QUIRE_ASSIGN_OR_RETURN(const auto answer, engine_->Submit(std::move(warm_up)));
  return answer->WaitForAll();
}

nlohmann::ordered_json BenchEngine::Report() const {
  return {{"model", std::filesystem::path(path_).filename().string()},
          {"threads", options_.num_threads},
          {"instruction_set", InstructionSetName(options_.instruction_set)},
          {"activations", options_.activations == ActivationForm::kInt8 ? "int8" : "f32"},
          {"kv", KvCodecName(options_.kv_codec)},
          {"kv_budget_bytes", options_.kv_memory_bytes},
          {"page_size", options_.page_size},
          {"prefix_cache", options_.keeps_prefixes},
          {"cascade", options_.cascade},
          {"eviction", EvictionPolicyName(options_.eviction)},
          {"token_budget", options_.token_budget},
          {"target_itl_ms", options_.target_itl_ms},
          {"max_seqs", options_.max_seqs}};
}

std::string BenchEngine::Line() const {
  return fmt::format(
      "{}, {}, {} threads, KV {} in pages of {}, {:.1f} MB of them at most; prefix cache {}, "
      "cascade {}, {} tokens a step",
      path_, InstructionSetName(options_.instruction_set), options_.num_threads,
      KvCodecName(options_.kv_codec), options_.page_size,
      static_cast<double>(options_.kv_memory_bytes) / 1e6, options_.keeps_prefixes ? "on" : "off",
      options_.cascade ? "on" : "off", options_.token_budget);
}

}  // namespace quire
