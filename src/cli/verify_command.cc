// `quire verify`: shows with a user's model, on the user's machine, that the cache changes no bit
// and that its bytes are accounted for.

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/instruction_set.h"
#include "cli/check_list.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/purity_checks.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// Of all checks at the speed measured at the start; a minute was promised.
constexpr double kSecondsAimedAt = 30;

struct VerifyFlags {
  EngineFlags engine;
  std::vector<std::string> codecs = {"f16", "kivi4"};
  bool keeps_page_size = false;
  bool json = false;
};

void Print(const CheckResult& result) {
  fmt::print("{:<7}{:<44}{:<8}{:>7.2f} s  {}\n", result.group, result.name,
             result.ok ? "ok" : "FAILED", result.seconds, result.detail);
  std::fflush(stdout);
}

Json ReportOf(const CheckResult& result) {
  return {{"kv", result.group},
          {"name", result.name},
          {"ok", result.ok},
          {"detail", result.detail},
          {"seconds", result.seconds}};
}

StatusOr<int> RunVerify(const VerifyFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<KvCodec> codecs;
  for (const std::string& name : flags.codecs) {
    QUIRE_ASSIGN_OR_RETURN(const KvCodec codec, ParseKvCodec(name));
    codecs.push_back(codec);
  }
  std::shared_ptr<const Model> model;
  EngineOptions options;
  {
    EngineFlags loading = flags.engine;
    loading.kv_memory = "256MiB";  // of this runner only: each check has its own budget
    QUIRE_ASSIGN_OR_RETURN(const auto runner, LoadRunner(loading));
    model = runner->shared_model();
    options = runner->options();
  }
  QUIRE_ASSIGN_OR_RETURN(
      const PurityLengths lengths,
      ChooseLengths(model, options, flags.keeps_page_size, codecs.size(), kSecondsAimedAt));
  Json report = {{"schema", 1},
                 {"model", std::filesystem::path(flags.engine.model_path).filename().string()},
                 {"instruction_set", InstructionSetName(options.instruction_set)},
                 {"threads", options.num_threads},
                 {"page_size", lengths.page_size},
                 {"checks", Json::array()}};
  if (!flags.json)
    fmt::print("{}, {}, {} threads, pages of {} tokens\n\n", flags.engine.model_path,
               InstructionSetName(options.instruction_set), options.num_threads, lengths.page_size);
  CheckList list([&](const CheckResult& result) {
    report["checks"].push_back(ReportOf(result));
    if (!flags.json) Print(result);
  });
  for (size_t i = 0; i < codecs.size(); ++i) {
    options.kv_codec = codecs[i];
    list.SetGroup(flags.codecs[i]);
    const Status status = RunPurityChecks(model, options, lengths, list);
    if (!status.ok()) return status.WithContext("--kv " + flags.codecs[i]);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report["failed"] = list.num_failed();
  report["ok"] = list.num_failed() == 0;
  report["seconds"] = seconds.count();
  if (flags.json)
    fmt::print("{}\n", report.dump(2));
  else
    fmt::print("\n{} of {} checks ok, {:.1f} s\n", list.num_checks() - list.num_failed(),
               list.num_checks(), seconds.count());
  return list.num_failed() == 0 ? 0 : 1;
}

}  // namespace

CommandBody AddVerifyCommand(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand(
      "verify", "Show with this model that the cache changes no bit and accounts for its bytes");
  AddModelArgument(*command, flags->engine);
  command->add_option("-t,--threads", flags->engine.num_threads,
                      "Most worker threads; 0: the cores this process may use (default 0)");
  command->add_option("--kv", flags->codecs, "KV codecs (default f16,kivi4)")->delimiter(',');
  command->add_option("--page-size", flags->engine.page_size,
                      "Tokens in a page (default: 64, less with a slow model)");
  command->add_option("--activations", flags->engine.activations, "int8 or f32 (default int8)");
  command->add_option("--kv-sink-pages", flags->engine.sink_pages,
                      "First pages that stay in 16 bits, 0 or 1 (default: 1 with kivi4)");
  command->add_option("--kv-recent-pages", flags->engine.recent_pages,
                      "Pages before the newest that stay in 16 bits too (default 0)");
  command->add_flag("--json", flags->json, "Print one JSON object");
  return [flags, command]() -> StatusOr<int> {
    flags->keeps_page_size = command->count("--page-size") > 0;
    return RunVerify(*flags);
  };
}

}  // namespace quire
