#include "cli/long_prompt_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/seconds.h"
#include "cli/bench_engine.h"
#include "cli/latency.h"
#include "cli/workload.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr uint32_t kTokensBefore = 32;  // of each that decodes, before the long prompt comes

// Seconds.
struct LongPromptResult {
  double ttft_alone = 0, ttft_beside = 0;
  Summary before;       // gaps of the others before the long prompt came
  Summary meanwhile;    // until its first token
  double late_gap = 0;  // the median of the last quarter of those: decodes and a chunk at its depth
};

class LongPromptBench {
 public:
  LongPromptBench(const LongPromptFlags& flags, BenchEngine& bench)
      : flags_(flags), bench_(bench) {}

  StatusOr<LongPromptResult> Measure() {
    QUIRE_RETURN_IF_ERROR(bench_.Restart());
    LongPromptResult result;
    {
      QUIRE_ASSIGN_OR_RETURN(const auto alone, bench_.engine().Submit(LongRequest()));
      QUIRE_RETURN_IF_ERROR(alone->WaitForAll());
      result.ttft_alone = alone->token_seconds(0, 0);
    }
    bench_.engine().Ask([](StepLoop& loop) { loop.cache().DropAll(); });
    const auto start = Clock::now();
    QUIRE_ASSIGN_OR_RETURN(const auto others, SubmitAtOnce(bench_.engine(), OtherRequests()));
    for (const auto& other : others) other->Wait(0, kTokensBefore);
    const double came = SecondsSince(start);
    QUIRE_ASSIGN_OR_RETURN(const auto late, bench_.engine().Submit(LongRequest()));
    QUIRE_RETURN_IF_ERROR(late->WaitForAll());
    for (const auto& other : others) bench_.engine().Abort(other);
    for (const auto& other : others) other->Wait(0, UINT32_MAX);
    result.ttft_beside = late->token_seconds(0, 0);
    QUIRE_RETURN_IF_ERROR(AddGaps(others, came, came + result.ttft_beside, result));
    return result;
  }

 private:
  Request LongRequest() const {
    return ExactRequest(MakePrompt({{OwnPiece(uint64_t{1} << 32, flags_.long_prompt)}}, flags_.seed,
                                   bench_.num_tokens()),
                        1);
  }

  // They go on until they are aborted.
  std::vector<Request> OtherRequests() const {
    std::vector<Request> requests;
    for (uint32_t i = 0; i < flags_.num_decoding; ++i) {
      requests.push_back(ExactRequest(
          MakePrompt({{OwnPiece(i, flags_.prompt_len)}}, flags_.seed, bench_.num_tokens()), 1));
      requests.back().max_tokens.reset();
    }
    return requests;
  }

  // `came`, `first_token`: of the long prompt, since the others were submitted.
  static Status AddGaps(std::span<const std::shared_ptr<Answer>> others, double came,
                        double first_token, LongPromptResult& result) {
    std::vector<double> before, meanwhile, late;
    double all_decode = 0;
    for (const auto& other : others) {
      QUIRE_RETURN_IF_ERROR(other->status(0));
      const size_t count = other->tokens(0).size();
      if (count == 0 || other->finish_reason(0) != FinishReason::kCancelled)
        return ResourceExhausted(
            "those that decode ended ({}) before the first token of the long prompt: lower "
            "--long-prompt or --decoding, or raise --kv-memory or --token-budget",
            FinishReasonName(other->finish_reason(0)));
      all_decode = std::max(all_decode, other->token_seconds(0, 0));
    }
    for (const auto& other : others) {
      const auto count = static_cast<uint32_t>(other->tokens(0).size());
      std::vector<double> own;
      for (uint32_t i = 1; i < count; ++i) {
        const double from = other->token_seconds(0, i - 1), to = other->token_seconds(0, i);
        if (from >= all_decode && to <= came) before.push_back(to - from);
        if (to > came && from < first_token) own.push_back(to - from);
      }
      meanwhile.insert(meanwhile.end(), own.begin(), own.end());
      late.insert(late.end(), own.begin() + static_cast<ptrdiff_t>(own.size() * 3 / 4), own.end());
    }
    result.before = SummaryOf(std::move(before));
    result.meanwhile = SummaryOf(std::move(meanwhile));
    result.late_gap = SummaryOf(std::move(late)).median;
    return OkStatus();
  }

  const LongPromptFlags& flags_;
  BenchEngine& bench_;
};

void Print(const LongPromptResult& result) {
  fmt::print("\n{}{}{}", SummaryHeads(), SummaryLine("gaps before", result.before),
             SummaryLine("gaps meanwhile", result.meanwhile));
  fmt::print("{:<26}{:.2f} ms, {:.2f} of the median of the last quarter ({:.2f} ms)\n",
             "longest gap", 1e3 * result.meanwhile.max, result.meanwhile.max / result.late_gap,
             1e3 * result.late_gap);
  fmt::print("{:<26}{:.1f} ms, alone {:.1f}: {:.2f} times\n", "first token of the prompt",
             1e3 * result.ttft_beside, 1e3 * result.ttft_alone,
             result.ttft_beside / result.ttft_alone);
}

}  // namespace

StatusOr<int> RunLongPromptBench(const LongPromptFlags& flags) {
  if (flags.prompt_len == 0) return InvalidArgument("--prompt-len 0: need at least 1");
  QUIRE_ASSIGN_OR_RETURN(BenchEngine bench, BenchEngine::Load(flags.engine));
  if (flags.long_prompt > bench.options().context_len)
    return InvalidArgument("--long-prompt {} does not fit the context of {}", flags.long_prompt,
                           bench.options().context_len);
  Json report = {{"schema", 1}};
  report.update(bench.Report());
  report["long_prompt"] = flags.long_prompt;
  report["decoding"] = flags.num_decoding;
  report["prompt_len"] = flags.prompt_len;
  report["runs"] = Json::array();
  if (!flags.json)
    fmt::print("{}\na prompt of {} tokens comes while {} others decode, after prompts of {}\n",
               bench.Line(), flags.long_prompt, flags.num_decoding, flags.prompt_len);
  for (uint32_t i = 0; i < flags.repetitions; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const LongPromptResult result, LongPromptBench(flags, bench).Measure());
    if (!flags.json) Print(result);
    Json row = {{"ttft_alone_ms", 1e3 * result.ttft_alone},
                {"ttft_beside_ms", 1e3 * result.ttft_beside},
                {"late_gap_ms", 1e3 * result.late_gap},
                {"longest_over_late_gap", result.meanwhile.max / result.late_gap}};
    AddMilliseconds(result.before, "gap_before", row);
    AddMilliseconds(result.meanwhile, "gap_meanwhile", row);
    report["runs"].push_back(std::move(row));
  }
  if (flags.json) fmt::print("{}\n", report.dump(2));
  return 0;
}

}  // namespace quire
