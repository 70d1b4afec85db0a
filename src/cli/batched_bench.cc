#include "cli/batched_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"
#include "base/seconds.h"
#include "cli/bench_engine.h"
#include "cli/latency.h"
#include "cli/progress_line.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct BatchedSpeed {
  uint64_t prompt_tokens = 0, decoded_tokens = 0;  // computed in the first and the second part
  double prompt_seconds = 0, decode_seconds = 0;
  uint64_t decode_steps = 0;

  double prompt_rate() const { return static_cast<double>(prompt_tokens) / prompt_seconds; }
  double decode_rate() const { return static_cast<double>(decoded_tokens) / decode_seconds; }
};

class BatchedBench {
 public:
  BatchedBench(const BatchedFlags& flags, BenchEngine& bench) : flags_(flags), bench_(bench) {}

  // What can be told before anything is computed.
  Status Check(uint32_t count) const {
    const EngineOptions& options = bench_.options();
    if (!options.keeps_prefixes)
      return InvalidArgument(
          "--batched needs --prefix-cache on: decoding starts from prompts that are computed "
          "before");
    if (count > options.max_seqs)
      return InvalidArgument("--batched {}: raise --max-seqs, now {}", count, options.max_seqs);
    for (const PlannedRequest& plan : Plan(count))
      if (const uint64_t length = uint64_t{plan.prompt_len()} + plan.output_len;
          length > options.context_len)
        return InvalidArgument(
            "{} tokens do not fit the context of {}: lower --prompt-len, --shared-prefix or "
            "--output-len",
            length, options.context_len);
    return OkStatus();
  }

  StatusOr<BatchedSpeed> Measure(uint32_t count) {
    Engine& engine = bench_.engine();
    engine.Ask([](StepLoop& loop) { loop.cache().DropAll(); });
    std::vector<PlannedRequest> planned = Plan(count);
    const uint32_t output_len = planned.front().output_len;
    // Equal prompts are computed once.
    const bool are_equal = flags_.workload.prompt_len.most == 0;
    const size_t num_prompts = are_equal ? std::min(count, flags_.workload.num_groups) : count;

    BatchedSpeed speed;
    const EngineStats before = engine.stats();
    QUIRE_ASSIGN_OR_RETURN(speed.prompt_seconds, Run(std::span(planned).first(num_prompts), 0));
    const EngineStats between = engine.stats();
    speed.prompt_tokens = between.computed_prompt_tokens - before.computed_prompt_tokens;
    for (uint32_t i = 0; i < count; ++i)
      planned[i].prompt.push_back(OwnPiece((uint64_t{1} << 32) + i, 1));
    QUIRE_ASSIGN_OR_RETURN(speed.decode_seconds, Run(planned, output_len));
    const EngineStats after = engine.stats();
    speed.decoded_tokens = after.generated_tokens - between.generated_tokens;
    speed.decode_steps = after.num_steps - between.num_steps;
    if (after.num_preemptions > before.num_preemptions ||
        after.computed_prompt_tokens - between.computed_prompt_tokens > count)
      return ResourceExhausted(
          "{} sequences of {} tokens do not stay in the KV memory: raise --kv-memory or use "
          "fewer",
          count, planned.front().prompt_len() + output_len);
    return speed;
  }

 private:
  std::vector<PlannedRequest> Plan(uint32_t count) const {
    WorkloadOptions workload = flags_.workload;
    workload.num_requests = count;
    workload.output_len.least = workload.output_len.most;
    return PlanRequests(workload);
  }

  // Seconds until all have ended.
  StatusOr<double> Run(std::span<const PlannedRequest> planned, uint32_t output_len) {
    std::vector<Request> requests;
    for (const PlannedRequest& plan : planned)
      requests.push_back(ExactRequest(
          MakePrompt(plan.prompt, flags_.workload.seed, bench_.num_tokens()), output_len));
    const auto start = Clock::now();
    QUIRE_ASSIGN_OR_RETURN(const auto answers, SubmitAtOnce(bench_.engine(), std::move(requests)));
    for (const auto& answer : answers) {
      while (!answer->ended(0)) {
        answer->Wait(0, UINT32_MAX, std::chrono::milliseconds(200));
        progress_.Show(fmt::format("{} sequences, {:.0f} s", planned.size(), SecondsSince(start)));
      }
      QUIRE_RETURN_IF_ERROR(answer->status(0));
    }
    return SecondsSince(start);
  }

  const BatchedFlags& flags_;
  BenchEngine& bench_;
  ProgressLine progress_;
};

}  // namespace

StatusOr<int> RunBatchedBench(const BatchedFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(BenchEngine bench, BenchEngine::Load(flags.engine));
  QUIRE_RETURN_IF_ERROR(bench.Restart());
  BatchedBench batched(flags, bench);
  for (const uint32_t count : flags.counts) QUIRE_RETURN_IF_ERROR(batched.Check(count));
  Json report = {{"schema", 1}};
  report.update(bench.Report());
  report["shared_prefix"] = flags.workload.shared_prefix;
  report["prompt_len"] = flags.workload.prompt_len.most;
  report["output_len"] = flags.workload.output_len.most;
  report["rows"] = Json::array();
  if (!flags.json)
    fmt::print(
        "{}\nprompts of {} shared + {} own tokens, answers of {}; medians of {}\n\n"
        "{:>10}{:>16}{:>18}{:>18}{:>14}\n",
        bench.Line(), flags.workload.shared_prefix, flags.workload.prompt_len.most,
        flags.workload.output_len.most, flags.repetitions, "sequences", "prompt tokens",
        "prompts, tok/s", "decode, tok/s", "ms a step");
  for (const uint32_t count : flags.counts) {
    std::vector<double> prompt_rates, decode_rates;
    BatchedSpeed speed;
    for (uint32_t i = 0; i < flags.repetitions; ++i) {
      QUIRE_ASSIGN_OR_RETURN(speed, batched.Measure(count));
      prompt_rates.push_back(speed.prompt_rate());
      decode_rates.push_back(speed.decode_rate());
    }
    const double prompt_rate = SummaryOf(prompt_rates).median;
    const double decode_rate = SummaryOf(decode_rates).median;
    if (!flags.json) {
      fmt::print("{:>10}{:>16}{:>18.1f}{:>18.1f}{:>14.2f}\n", count, speed.prompt_tokens,
                 prompt_rate, decode_rate,
                 1e3 * speed.decode_seconds / static_cast<double>(speed.decode_steps));
      std::fflush(stdout);
    }
    report["rows"].push_back({{"sequences", count},
                              {"computed_prompt_tokens", speed.prompt_tokens},
                              {"decode_steps", speed.decode_steps},
                              {"prompt_throughput", prompt_rate},
                              {"decode_throughput", decode_rate},
                              {"prompt_throughputs", prompt_rates},
                              {"decode_throughputs", decode_rates}});
  }
  if (flags.json) fmt::print("{}\n", report.dump(2));
  return 0;
}

}  // namespace quire
