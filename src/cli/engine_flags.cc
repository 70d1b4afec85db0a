#include "cli/engine_flags.h"

#include <chrono>
#include <cstdlib>
#include <random>
#include <utility>

#include "base/errors.h"
#include "base/instruction_set.h"
#include "base/units.h"
#include "cli/progress_bar.h"

namespace quire {
namespace {

StatusOr<ActivationForm> ParseActivations(const std::string& name) {
  if (name == "int8") return ActivationForm::kInt8;
  if (name == "f32") return ActivationForm::kF32;
  return InvalidArgument("--activations {}: use int8 (fast) or f32 (exact)", name);
}

StatusOr<bool> ParseSwitch(std::string_view flag, std::string_view word) {
  if (word == "on") return true;
  if (word == "off") return false;
  return InvalidArgument("{} {}: use on or off", flag, word);
}

StatusOr<uint32_t> ParseStepTime(const std::string& text) {
  QUIRE_ASSIGN_OR_RETURN(const std::chrono::milliseconds time, ParseDuration(text));
  if (time.count() >= 1 && time.count() <= 60'000) return static_cast<uint32_t>(time.count());
  return InvalidArgument("'{}' is no time from 1ms to 60s: write for example 80ms", text);
}

}  // namespace

void AddModelArgument(CLI::App& command, EngineFlags& flags) {
  command.add_option("MODEL", flags.model_path, "A model file (GGUF)")->required();
}

void AddEngineFlags(CLI::App& command, EngineFlags& flags, bool with_threads) {
  AddModelArgument(command, flags);
  AddEngineChoices(command, flags, with_threads);
}

void AddEngineChoices(CLI::App& command, EngineFlags& flags, bool with_threads) {
  if (with_threads)
    command.add_option("-t,--threads", flags.num_threads,
                       "Worker threads; 0: the cores this process may use (default 0)");
  command.add_option("--kv", flags.kv, "KV codec: f16, f32 or kivi4 (default f16)");
  command.add_option("--kv-memory", flags.kv_memory,
                     "Budget of the KV pages, such as 2GiB (default: half of the free memory)");
  command.add_option("--page-size", flags.page_size,
                     "Tokens in a page, a multiple of 16 (default 64)");
  command.add_option("--activations", flags.activations,
                     "Inputs of products with quantised weights: int8 (fast) or f32 (exact) "
                     "(default int8)");
  command.add_option(
      "-c,--max-model-len,--context", flags.context_len,
      "Most tokens of a conversation; 0: what the model was trained for (default 0)");
  command.add_option("--token-budget,--chunk", flags.token_budget,
                     "Most tokens computed in one step, 1 to 4096 (default 512)");
  command.add_option("--target-itl", flags.target_itl,
                     "Make prompt chunks so small that a step takes no longer, such as 80ms");
  command.add_option("--max-seqs", flags.max_seqs,
                     "Most sequences that hold KV pages at once (default 256)");
  command.add_option("--kv-sink-pages", flags.sink_pages,
                     "First pages that stay in 16 bits, 0 or 1 (default: 1 with kivi4)");
  command.add_option("--kv-recent-pages", flags.recent_pages,
                     "Pages before the newest that stay in 16 bits too (default 0)");
  command.add_option("--prefix-cache", flags.prefix_cache,
                     "Share and keep pages of equal beginnings: on or off (default on)");
  command.add_option("--cascade", flags.cascade,
                     "Read shared pages once for all their readers: on or off (default on)");
  command.add_option("--eviction", flags.eviction,
                     "Which cached page goes first: reuse or lru (default reuse)");
}

void AddSamplingFlags(CLI::App& command, SamplingFlags& flags) {
  command.add_option("--temp", flags.params.temperature,
                     "Temperature, 0 to 2; 0: always the likeliest token (default 0.8)");
  command.add_option("--top-k", flags.params.top_k,
                     "Keep the k likeliest tokens; 0: all (default 40)");
  command.add_option("--top-p", flags.params.top_p,
                     "Keep the likeliest tokens that together reach this, 0 to 1 (default 0.95)");
  command.add_option("--min-p", flags.params.min_p,
                     "Keep tokens with at least this share of the best one's probability, 0 to 1 "
                     "(default 0.05)");
  command.add_option(
      "--presence-penalty", flags.params.presence_penalty,
      "Taken from the logit of each token of the answer so far, -2 to 2 (default 0)");
  command.add_option("--frequency-penalty", flags.params.frequency_penalty,
                     "The same, once for each time that it came, -2 to 2 (default 0)");
  command.add_option("--repeat-penalty", flags.params.repetition_penalty,
                     "Divides their positive logits and multiplies the negative ones, above 0 "
                     "(default 1: off)");
  // One value each time: the model may follow it.
  command
      .add_option("--stop", flags.params.stop_strings,
                  "End the answer before this text; may be given up to 16 times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--min-tokens", flags.params.min_tokens,
                     "No end of the answer before so many tokens (default 0)");
  command.add_option("--seed", flags.seed,
                     "Seed of the random numbers; -1: another one each time (default -1)");
}

EngineOptions ReadEngineOptions(const EngineFlags& flags, std::vector<Status>* problems) {
  EngineOptions options;
  options.num_threads = flags.num_threads;
  options.page_size = flags.page_size;
  options.context_len = flags.context_len;
  options.token_budget = flags.token_budget;
  options.max_seqs = flags.max_seqs;
  options.sink_pages = flags.sink_pages;
  options.recent_pages = flags.recent_pages;
  const auto take = [problems](auto* to, auto value, const std::string& flag = {}) {
    if (value.ok())
      *to = std::move(value).value();
    else
      problems->push_back(flag.empty() ? value.status() : value.status().WithContext(flag));
  };
  const char* forced = std::getenv("QUIRE_CPU");
  take(&options.instruction_set,
       ChooseInstructionSet(forced == nullptr ? std::nullopt
                                              : std::optional<std::string_view>(forced)));
  take(&options.keeps_prefixes, ParseSwitch("--prefix-cache", flags.prefix_cache));
  take(&options.cascade, ParseSwitch("--cascade", flags.cascade));
  if (!flags.eviction.empty()) take(&options.eviction, ParseEvictionPolicy(flags.eviction));
  if (!flags.target_itl.empty())
    take(&options.target_itl_ms, ParseStepTime(flags.target_itl), "--target-itl");
  take(&options.kv_codec, ParseKvCodec(flags.kv));
  take(&options.activations, ParseActivations(flags.activations));
  if (!flags.kv_memory.empty())
    take(&options.kv_memory_bytes, ParseBytes(flags.kv_memory), "--kv-memory");
  return options;
}

StatusOr<EngineOptions> ToEngineOptions(const EngineFlags& flags) {
  std::vector<Status> problems;
  EngineOptions options = ReadEngineOptions(flags, &problems);
  if (!problems.empty()) return problems.front();
  return options;
}

StatusOr<SamplingParams> ToSamplingParams(const SamplingFlags& flags) {
  SamplingParams params = flags.params;
  if (flags.seed >= 0) {
    params.seed = static_cast<uint64_t>(flags.seed);
  } else if (flags.seed == -1) {
    params.seed = std::random_device()();  // 32 bits, so that it can be given again
  } else {
    return InvalidArgument("--seed {}: need 0 or more, or -1 for another one each time",
                           flags.seed);
  }
  QUIRE_RETURN_IF_ERROR(params.Validate());
  return params;
}

StatusOr<std::unique_ptr<ModelRunner>> LoadRunner(const EngineFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(const EngineOptions options, ToEngineOptions(flags));
  ProgressBar bar("loading");
  return ModelRunner::Load(flags.model_path, options,
                           [&](uint64_t done, uint64_t total) { bar.Show(done, total); });
}

StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(auto runner, LoadRunner(flags));
  return Engine::Create(std::move(runner));
}

}  // namespace quire
