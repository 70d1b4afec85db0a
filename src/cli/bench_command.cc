// `quire bench`: speed of prefill and decode at chosen lengths, depths and threads.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/instruction_set.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/eviction_bench.h"
#include "cli/kernel_bench.h"
#include "cli/serve_bench/serve_bench.h"
#include "cli/throughput_bench.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

struct BenchFlags {
  EngineFlags engine;
  std::vector<uint32_t> prompt_lens = {512};
  std::vector<uint32_t> gen_lens = {64};
  std::vector<uint32_t> depths = {0};
  std::vector<int> threads = {0};
  uint32_t repetitions = 3;
  bool no_kv_cache = false;
  bool kernels = false;
  bool all_shapes = false;
  bool json = false;
};

// One test: n_prompt tokens in one go or n_gen one by one, after n_depth that are there already.
struct Test {
  uint32_t n_prompt = 0, n_gen = 0, n_depth = 0;
  bool kv_cache = true;
};

struct Speed {
  double mean = 0, deviation = 0;  // tokens per second
};

Speed SpeedOf(const std::vector<double>& rates) {
  const double count = static_cast<double>(rates.size());
  Speed speed;
  speed.mean = std::accumulate(rates.begin(), rates.end(), 0.0) / count;
  double squares = 0;
  for (const double rate : rates) squares += (rate - speed.mean) * (rate - speed.mean);
  speed.deviation = rates.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return speed;
}

class Bench {
 public:
  Bench(const BenchFlags& flags, ModelRunner& engine) : flags_(flags), engine_(engine) {}

  StatusOr<Speed> Measure(const Test& test) {
    const uint64_t length = uint64_t{test.n_depth} + test.n_prompt + test.n_gen;
    if (length > engine_.options().context_len)
      return InvalidArgument("{} tokens do not fit the context of {}: lower -p, -n or -d", length,
                             engine_.options().context_len);
    Sequence sequence = engine_.NewSequence();
    const std::vector<TokenId> tokens = Tokens(static_cast<uint32_t>(length));
    const std::span<const TokenId> all(tokens);
    if (test.n_depth > 0 && test.kv_cache) {
      QUIRE_RETURN_IF_ERROR(engine_.Compute(sequence, all.first(test.n_depth)).status());
    }
    std::vector<double> rates;
    for (uint32_t i = 0; i <= flags_.repetitions; ++i) {  // the first one warms up
      Sequence fork = sequence.Fork();
      const auto start = std::chrono::steady_clock::now();
      QUIRE_RETURN_IF_ERROR(RunOnce(fork, all, test));
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (i > 0) rates.push_back((test.n_prompt + test.n_gen) / seconds.count());
    }
    return SpeedOf(rates);
  }

 private:
  Status RunOnce(Sequence& sequence, std::span<const TokenId> all, const Test& test) {
    if (test.n_prompt > 0)
      return engine_.Compute(sequence, all.subspan(test.n_depth, test.n_prompt)).status();
    for (uint32_t i = 0; i < test.n_gen; ++i) {
      const uint32_t position = test.n_depth + i;
      if (!test.kv_cache) sequence.Truncate(0);
      const auto tokens = test.kv_cache ? all.subspan(position, 1) : all.first(position + 1);
      QUIRE_RETURN_IF_ERROR(engine_.Compute(sequence, tokens).status());
    }
    return OkStatus();
  }

  // Any ids do: speed does not depend on them. A fixed rule, so that runs are alike.
  std::vector<TokenId> Tokens(uint32_t count) const {
    const auto num_tokens = static_cast<uint32_t>(engine_.model().shape().num_tokens);
    std::vector<TokenId> tokens(count);
    uint32_t state = 12345;
    for (TokenId& token : tokens) {
      state = state * 1103515245u + 12345u;
      token = static_cast<TokenId>((state >> 16) % num_tokens);
    }
    return tokens;
  }

  const BenchFlags& flags_;
  ModelRunner& engine_;
};

std::vector<Test> TestsOf(const BenchFlags& flags) {
  std::vector<Test> tests;
  for (const uint32_t depth : flags.depths) {
    if (flags.no_kv_cache) {  // the next token at this depth, with the cache and without
      tests.push_back({.n_gen = 1, .n_depth = depth, .kv_cache = true});
      tests.push_back({.n_gen = 1, .n_depth = depth, .kv_cache = false});
      continue;
    }
    for (const uint32_t len : flags.prompt_lens)
      if (len > 0) tests.push_back({.n_prompt = len, .n_depth = depth});
    for (const uint32_t len : flags.gen_lens)
      if (len > 0) tests.push_back({.n_gen = len, .n_depth = depth});
  }
  return tests;
}

std::string NameOf(const Test& test) {
  std::string name = test.n_prompt > 0 ? fmt::format("prefill {}", test.n_prompt)
                                       : fmt::format("decode {}", test.n_gen);
  if (!test.kv_cache) name += ", no cache";
  return name;
}

StatusOr<int> RunBench(const BenchFlags& flags) {
  Json results = Json::array();
  bool header_printed = false;
  if (flags.repetitions == 0 || flags.repetitions > 1000)
    return InvalidArgument("-r {}: need 1 to 1000 repetitions", flags.repetitions);
  for (const int threads : flags.threads) {
    EngineFlags engine_flags = flags.engine;
    engine_flags.num_threads = threads;
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> engine, LoadRunner(engine_flags));
    if (!flags.json && !header_printed) {
      fmt::print("{}, {}, activations {}, KV {}, weights {:.1f} MB\n\n", flags.engine.model_path,
                 InstructionSetName(engine->options().instruction_set), flags.engine.activations,
                 flags.engine.kv, static_cast<double>(engine->weight_bytes()) / 1e6);
      fmt::print("{:<22}{:>8}{:>9}{:>22}\n", "test", "depth", "threads", "tokens/s");
      header_printed = true;
    }
    Bench bench(flags, *engine);
    for (const Test& test : TestsOf(flags)) {
      QUIRE_ASSIGN_OR_RETURN(const Speed speed, bench.Measure(test));
      if (!flags.json) {
        fmt::print("{:<22}{:>8}{:>9}{:>13.2f} +- {:>5.2f}\n", NameOf(test), test.n_depth,
                   engine->options().num_threads, speed.mean, speed.deviation);
        std::fflush(stdout);
      }
      results.push_back(
          {{"n_prompt", test.n_prompt},
           {"n_gen", test.n_gen},
           {"n_depth", test.n_depth},
           {"threads", engine->options().num_threads},
           {"tokens_per_second", speed.mean},
           {"deviation", speed.deviation},
           {"kv_cache", test.kv_cache},
           {"instruction_set", InstructionSetName(engine->options().instruction_set)}});
    }
  }
  if (flags.json) fmt::print("{}\n", results.dump(2));
  return 0;
}

CLI::App* AddEviction(CLI::App& bench, EvictionBenchFlags& flags) {
  CLI::App* command = bench.add_subcommand(
      "eviction", "What a cache would hit on recorded requests; needs no MODEL");
  command->add_option("--trace", flags.traces, "JSON lines with \"hash_ids\", as Mooncake's")
      ->required();
  command->add_option("--memory-tokens", flags.memory_tokens, "Cache sizes, such as 0.5M,2.6M")
      ->delimiter(',');
  command->add_option("--policy", flags.policies, "Policies; plain_lru and best evict any page")
      ->delimiter(',')
      ->check(CLI::IsMember({"plain_lru", "lru", "reuse", "best"}));
  command->add_option("--page-size", flags.page_size, "Tokens that an id stands for")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--flood", flags.flood,
                   "Pages of a second tenant, never asked for again, for each page of the trace")
      ->check(CLI::Range(0, 1000));
  command->add_flag("--json", flags.json, "Print a JSON list");
  return command;
}

}  // namespace

CommandBody AddBenchCommand(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Speed of prefill, decode and kernels");
  AddEngineFlags(*command, flags->engine, /*with_threads=*/false);
  command
      ->add_option("-p,--n-prompt", flags->prompt_lens, "Prompt tokens, such as 128,512; 0: none")
      ->delimiter(',');
  command->add_option("-n,--n-gen", flags->gen_lens, "Tokens to decode one by one; 0: none")
      ->delimiter(',');
  command->add_option("-d,--n-depth", flags->depths, "Tokens in the cache before the test starts")
      ->delimiter(',');
  command->add_option("-t,--threads", flags->threads, "Worker threads; 0: all usable cores")
      ->delimiter(',');
  command->add_option("-r,--repetitions", flags->repetitions, "Repetitions after a warm-up");
  command->add_flag("--no-kv-cache", flags->no_kv_cache,
                    "One token at each depth of -d, with the cache and by computing all again");
  command->add_flag(
      "--kernels", flags->kernels,
      "Each kernel on its own, as a share of what memory or arithmetic allows; needs no MODEL");
  command->add_flag("--all-shapes", flags->all_shapes,
                    "With --kernels: every weight type, more head sizes, depths and page sizes");
  command->add_flag("--json", flags->json, "Print a JSON list");
  command->get_option("MODEL")->required(false);  // by us: not with --kernels
  auto eviction_flags = std::make_shared<EvictionBenchFlags>();
  const CLI::App* eviction = AddEviction(*command, *eviction_flags);
  auto throughput_flags = std::make_shared<ThroughputFlags>();
  const CLI::App* throughput = AddThroughputBench(*command, *throughput_flags);
  auto serve_flags = std::make_shared<ServeBenchFlags>();
  const CLI::App* serve = AddServeBench(*command, *serve_flags);
  return [flags, command, eviction_flags, eviction, throughput_flags, throughput, serve_flags,
          serve]() -> StatusOr<int> {
    if (serve->parsed()) return RunServeBench(*serve_flags);
    if (eviction->parsed()) return RunEvictionBench(*eviction_flags);
    if (throughput->parsed()) return RunThroughputBench(*throughput_flags);
    if (flags->no_kv_cache && command->count("-d") == 0) flags->depths = {64, 128, 256, 512};
    if (flags->kernels)
      return RunKernelBench(flags->engine, flags->threads.front(), flags->all_shapes, flags->json);
    if (flags->engine.model_path.empty())
      return InvalidArgument("MODEL is required; only --kernels runs without one");
    return RunBench(*flags);
  };
}

}  // namespace quire
