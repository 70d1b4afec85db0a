#include "cli/throughput_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "base/message_text.h"
#include "base/seconds.h"
#include "cli/batched_bench.h"
#include "cli/bench_engine.h"
#include "cli/latency.h"
#include "cli/long_prompt_bench.h"
#include "cli/progress_line.h"
#include "cli/slot_meter.h"
#include "cli/trace_file.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

StatusOr<std::vector<PlannedRequest>> Plan(const ThroughputFlags& flags) {
  if (flags.trace.empty()) return PlanRequests(flags.workload);
  QUIRE_ASSIGN_OR_RETURN(auto requests, ReadTraceFile(flags.trace, {.scale = flags.trace_scale,
                                                                    .speed = flags.trace_speed,
                                                                    .limit = flags.limit}));
  if (flags.workload.rate > 0) SpreadArrivals(requests, flags.workload.rate, flags.workload.seed);
  return requests;
}

// Takes out what the context can't hold: of a trace, whose lengths nobody chose for this model. In
// a workload of one's own that is an error.
StatusOr<size_t> RemoveTooLong(const ThroughputFlags& flags, uint32_t context_len,
                               std::vector<PlannedRequest>& requests) {
  const auto is_too_long = [&](const PlannedRequest& request) {
    return uint64_t{request.prompt_len()} + request.output_len - 1 > context_len;
  };
  const auto first = std::find_if(requests.begin(), requests.end(), is_too_long);
  if (first == requests.end()) return size_t{0};
  if (flags.trace.empty())
    return InvalidArgument(
        "a prompt of {} tokens and an answer of {} do not fit the context of {}: lower "
        "--prompt-len, --shared-prefix or --output-len",
        first->prompt_len(), first->output_len, context_len);
  const size_t removed = std::erase_if(requests, is_too_long);
  if (requests.empty())
    return InvalidArgument("no request of {} fits the context of {} tokens: lower --trace-scale",
                           flags.trace, context_len);
  return removed;
}

// What one run over all requests gave.
struct RunResult {
  Latencies latencies;
  size_t num_requests = 0, num_failed = 0;
  Status first_failure;
  EngineStats stats;  // the counts: of this run alone
  double share_used = 1, least_share_used = 1;
  Json slots;
};

class ThroughputRun {
 public:
  ThroughputRun(const ThroughputFlags& flags, BenchEngine& bench,
                std::span<const PlannedRequest> planned)
      : bench_(bench), planned_(planned) {
    for (const PlannedRequest& plan : planned)
      requests_.push_back(ExactRequest(
          MakePrompt(plan.prompt, flags.workload.seed, bench.num_tokens()), plan.output_len));
  }

  StatusOr<RunResult> Run() {
    Engine& engine = bench_.engine();
    const EngineStats before = engine.stats();
    SlotMeter meter(engine);
    start_ = Clock::now();
    const Status submitted = SubmitAll(engine);
    if (submitted.ok()) WaitForAll();
    meter.Stop();
    QUIRE_RETURN_IF_ERROR(submitted);
    RunResult result = Gather();
    result.stats = Difference(engine.stats(), before);
    result.share_used = meter.mean_share();
    result.least_share_used = meter.least_share();
    result.slots = meter.Report();
    return result;
  }

 private:
  Status SubmitAll(Engine& engine) {
    submitted_.assign(requests_.size(), 0);
    if (planned_.back().arrival_seconds == 0) {
      QUIRE_ASSIGN_OR_RETURN(answers_, SubmitAtOnce(engine, std::move(requests_)));
      return OkStatus();
    }
    for (size_t i = 0; i < requests_.size(); ++i) {
      const auto arrival = start_ + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(planned_[i].arrival_seconds));
      while (Clock::now() + std::chrono::milliseconds(200) < arrival) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        ShowProgress();
      }
      std::this_thread::sleep_until(arrival);
      submitted_[i] = SecondsSince(start_);
      auto answer = engine.Submit(std::move(requests_[i]));
      if (!answer.ok()) {
        for (const auto& earlier : answers_) earlier->Abort();
        return answer.status();
      }
      answers_.push_back(std::move(answer).value());
    }
    return OkStatus();
  }

  void WaitForAll() {
    for (const auto& answer : answers_)
      while (!answer->ended(0)) {
        answer->Wait(0, UINT32_MAX, std::chrono::milliseconds(200));
        ShowProgress();
      }
  }

  void ShowProgress() {
    size_t num_ended = 0, num_tokens = 0;
    for (const auto& answer : answers_) {
      num_ended += answer->ended(0) ? 1 : 0;
      num_tokens += answer->tokens(0).size();
    }
    const double seconds = SecondsSince(start_);
    progress_.Show(fmt::format("{} of {} answers after {:.0f} s, {:.1f} tokens/s", num_ended,
                               planned_.size(), seconds,
                               static_cast<double>(num_tokens) / seconds));
  }

  RunResult Gather() const {
    RunResult result;
    result.num_requests = answers_.size();
    std::vector<AnswerTimes> times;
    for (size_t i = 0; i < answers_.size(); ++i) {
      const Answer& answer = *answers_[i];
      if (const Status& status = answer.status(0); !status.ok()) {
        if (result.num_failed++ == 0) result.first_failure = status;
        continue;
      }
      AnswerTimes& own = times.emplace_back();
      own.submitted = submitted_[i];
      for (uint32_t token = 0; token < answer.tokens(0).size(); ++token)
        own.tokens.push_back(own.submitted + answer.token_seconds(0, token));
    }
    result.latencies = LatenciesOf(times);
    return result;
  }

  static EngineStats Difference(EngineStats after, const EngineStats& before) {
    after.num_steps -= before.num_steps;
    after.num_preemptions -= before.num_preemptions;
    after.prompt_tokens -= before.prompt_tokens;
    after.cached_prompt_tokens -= before.cached_prompt_tokens;
    after.computed_prompt_tokens -= before.computed_prompt_tokens;
    after.generated_tokens -= before.generated_tokens;
    after.schedule_seconds -= before.schedule_seconds;
    after.forward_seconds -= before.forward_seconds;
    return after;
  }

  BenchEngine& bench_;
  const std::span<const PlannedRequest> planned_;
  std::vector<Request> requests_;
  std::vector<std::shared_ptr<Answer>> answers_;
  std::vector<double> submitted_;  // seconds since start_
  Clock::time_point start_;
  ProgressLine progress_;
};

double RateOf(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// Of the prompt tokens, those that were not computed. Preempted ones may be computed twice.
double HitRate(const EngineStats& stats) {
  if (stats.prompt_tokens == 0) return 0;
  return std::max(0.0, 1 - static_cast<double>(stats.computed_prompt_tokens) /
                               static_cast<double>(stats.prompt_tokens));
}

double ScheduleShare(const EngineStats& stats) {
  return RateOf(stats.schedule_seconds, stats.schedule_seconds + stats.forward_seconds);
}

Json ReportOf(const RunResult& run) {
  const Latencies& l = run.latencies;
  const auto num_tokens = static_cast<double>(l.num_tokens);
  const auto prompt_tokens = static_cast<double>(run.stats.prompt_tokens);
  Json report = {{"duration", l.duration},
                 {"completed", run.num_requests - run.num_failed},
                 {"failed", run.num_failed},
                 {"total_input_tokens", run.stats.prompt_tokens},
                 {"total_output_tokens", l.num_tokens},
                 {"request_throughput",
                  RateOf(static_cast<double>(run.num_requests - run.num_failed), l.duration)},
                 {"output_throughput", RateOf(num_tokens, l.duration)},
                 {"total_token_throughput", RateOf(num_tokens + prompt_tokens, l.duration)}};
  report["decode_throughput"] = l.decode_rate.has_value() ? Json(*l.decode_rate) : Json();
  AddMilliseconds(l.ttft, "ttft", report);
  AddMilliseconds(l.tpot, "tpot", report);
  AddMilliseconds(l.itl, "itl", report);
  AddMilliseconds(l.e2el, "e2el", report);
  report["computed_prompt_tokens"] = run.stats.computed_prompt_tokens;
  report["cached_prompt_tokens"] = run.stats.cached_prompt_tokens;
  report["hit_rate"] = HitRate(run.stats);
  report["preemptions"] = run.stats.num_preemptions;
  report["steps"] = run.stats.num_steps;
  report["schedule_seconds"] = run.stats.schedule_seconds;
  report["forward_seconds"] = run.stats.forward_seconds;
  report["schedule_share"] = ScheduleShare(run.stats);
  report["slots"] = run.slots;
  return report;
}

void PrintRun(const RunResult& run) {
  const Latencies& l = run.latencies;
  fmt::print("{}{}{}{}{}", SummaryHeads(), SummaryLine("time to first token", l.ttft),
             SummaryLine("time per output token", l.tpot), SummaryLine("gap between tokens", l.itl),
             SummaryLine("whole answer", l.e2el));
  const auto num_tokens = static_cast<double>(l.num_tokens);
  fmt::print("{:<26}{:.1f} out, {:.1f} with prompts", "tokens/s", RateOf(num_tokens, l.duration),
             RateOf(num_tokens + static_cast<double>(run.stats.prompt_tokens), l.duration));
  if (l.decode_rate.has_value()) fmt::print(", {:.1f} while all decode", *l.decode_rate);
  fmt::print("\n{:<26}{} answers, {} tokens in {:.2f} s, {} steps\n", "done",
             run.num_requests - run.num_failed, GroupDigits(l.num_tokens), l.duration,
             run.stats.num_steps);
  fmt::print("{:<26}{}, {} computed: hit rate {:.1f} %\n", "prompt tokens",
             GroupDigits(run.stats.prompt_tokens), GroupDigits(run.stats.computed_prompt_tokens),
             100 * HitRate(run.stats));
  fmt::print("{:<26}{:.3f} on average, {:.3f} at least; {:.1f} MB held at most\n",
             "KV slots used / held", run.share_used, run.least_share_used,
             run.slots["most_held_bytes"].get<double>() / 1e6);
  fmt::print("{:<26}{} preemptions; {:.2f} % of the time in schedule and cache\n", "schedule",
             run.stats.num_preemptions, 100 * ScheduleShare(run.stats));
  if (run.num_failed > 0)
    fmt::print("{:<26}{}, the first: {}\n", "failed", run.num_failed, run.first_failure.message());
}

StatusOr<int> RunWorkload(const ThroughputFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<PlannedRequest> planned, Plan(flags));
  if (flags.distinct) MakeDistinct(planned);
  QUIRE_ASSIGN_OR_RETURN(BenchEngine bench, BenchEngine::Load(flags.engine));
  QUIRE_ASSIGN_OR_RETURN(const size_t num_skipped,
                         RemoveTooLong(flags, bench.options().context_len, planned));
  Json report = {{"schema", 1}};
  report.update(bench.Report());
  report["requests"] = planned.size();
  report["skipped"] = num_skipped;
  report["runs"] = Json::array();
  if (!flags.json) {
    fmt::print("{}\n{} requests", bench.Line(), planned.size());
    if (num_skipped > 0) fmt::print(" ({} more are too long for the context)", num_skipped);
    const double last = planned.back().arrival_seconds;
    fmt::print("{}\n", last > 0 ? fmt::format(", the last after {:.1f} s", last) : ", all at once");
  }
  bool has_failed = false;
  for (uint32_t i = 0; i < flags.repetitions; ++i) {
    if (i == 0 || !flags.keeps_cache) QUIRE_RETURN_IF_ERROR(bench.Restart());
    QUIRE_ASSIGN_OR_RETURN(const RunResult run, ThroughputRun(flags, bench, planned).Run());
    has_failed = has_failed || run.num_failed > 0;
    if (!flags.json) {
      fmt::print("\n");
      PrintRun(run);
      std::fflush(stdout);
    }
    report["runs"].push_back(ReportOf(run));
  }
  if (flags.json) fmt::print("{}\n", report.dump(2));
  return has_failed ? 1 : 0;
}

Status Resolve(ThroughputFlags& flags) {
  WorkloadOptions& workload = flags.workload;
  QUIRE_ASSIGN_OR_RETURN(workload.prompt_len, ParseLengthRange("--prompt-len", flags.prompt_len));
  QUIRE_ASSIGN_OR_RETURN(workload.output_len, ParseLengthRange("--output-len", flags.output_len));
  if (workload.prompt_len.least + uint64_t{workload.shared_prefix} == 0)
    return InvalidArgument("--prompt-len {}: need at least one token, or a --shared-prefix",
                           flags.prompt_len);
  if (workload.output_len.least == 0)
    return InvalidArgument("--output-len {}: need at least 1", flags.output_len);
  if (!std::isfinite(workload.rate) || !std::isfinite(flags.trace_speed))
    return InvalidArgument("--rate and --trace-speed: need finite numbers");
  return OkStatus();
}

}  // namespace

CLI::App* AddThroughputBench(CLI::App& bench, ThroughputFlags& flags) {
  CLI::App* command = bench.add_subcommand(
      "throughput", "Many requests at once: tokens/s, times to tokens, hits, use of KV memory");
  AddEngineFlags(*command, flags.engine, /*with_threads=*/true);
  WorkloadOptions& workload = flags.workload;
  command->add_option("--requests", workload.num_requests, "How many requests (default 32)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--prompt-len", flags.prompt_len,
                      "Tokens of a prompt after the shared ones: 256, or 100-300 at random "
                      "(default 256)");
  command->add_option("--output-len", flags.output_len,
                      "Tokens of an answer, also a range (default 64)");
  command->add_option("--shared-prefix", workload.shared_prefix,
                      "Tokens that the prompts of a group begin with (default 0)");
  command
      ->add_option("--groups", workload.num_groups,
                   "How many different shared prefixes (default 1)")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--rate", workload.rate,
                   "Requests a second, at random times; 0: all at once, or as a trace says "
                   "(default 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", workload.seed, "Of lengths, ids and times (default 1)");
  command->add_option("--trace", flags.trace,
                      "Recorded requests instead: Mooncake's JSON lines or Azure's CSV");
  command
      ->add_option("--trace-scale", flags.trace_scale,
                   "Multiplies all lengths of the trace (default 1)")
      ->check(CLI::Range(1e-6, 1e3));
  command
      ->add_option("--trace-speed", flags.trace_speed,
                   "How many times as fast as recorded; 0: all at once (default 1)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--limit", flags.limit, "Only the first so many requests of the trace");
  command->add_flag("--distinct", flags.distinct,
                    "The same lengths, but no two prompts begin alike: what sharing saves");
  command
      ->add_option("-r,--repetitions", flags.repetitions,
                   "Runs, each with an empty cache (default 1)")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--keep-cache", flags.keeps_cache,
                    "Runs after the first find what it left in the cache");
  command
      ->add_option("--batched", flags.batched,
                   "Instead: speed of prompts and of decoding with so many sequences, such as "
                   "1,8,16; lengths as above")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command->add_option("--long-prompt", flags.long_prompt,
                      "Instead: a prompt of so many tokens comes while others decode: their gaps, "
                      "and its time to the first token");
  command
      ->add_option("--decoding", flags.decoding, "With --long-prompt: how many others (default 8)")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--json", flags.json, "Print one JSON object");
  return command;
}

StatusOr<int> RunThroughputBench(ThroughputFlags flags) {
  QUIRE_RETURN_IF_ERROR(Resolve(flags));
  if (!flags.batched.empty() && flags.long_prompt > 0)
    return InvalidArgument("--batched and --long-prompt are two measurements: give one of them");
  if (!flags.batched.empty())
    return RunBatchedBench({.engine = flags.engine,
                            .workload = flags.workload,
                            .counts = flags.batched,
                            .repetitions = flags.repetitions,
                            .json = flags.json});
  if (flags.long_prompt > 0)
    return RunLongPromptBench({.engine = flags.engine,
                               .long_prompt = flags.long_prompt,
                               .num_decoding = flags.decoding,
                               .prompt_len = flags.workload.prompt_len.most,
                               .seed = flags.workload.seed,
                               .repetitions = flags.repetitions,
                               .json = flags.json});
  return RunWorkload(flags);
}

}  // namespace quire
