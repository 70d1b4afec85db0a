// `quire plan`: what a model needs and a machine can hold, before either is bought or started.
//
// Exit codes: 0 it fits; 1 it does not (with --verify: plan and engine differ); 2 the architecture
// is not known; 3 bad input.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/errors.h"
#include "cli/command.h"
#include "cli/machine_rates.h"
#include "cli/plan_flags.h"
#include "cli/plan_text.h"
#include "cli/plan_verify.h"
#include "plan/plan_chart.h"
#include "plan/plan_json.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Status WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return NotFound("{} cannot be written", path);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && is_written) return OkStatus();
  return Internal("{} could not be written to its end", path);
}

StatusOr<int> RunPlan(const PlanFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(PlanRequest request, ReadPlanRequest(flags));
  if (flags.verifies) {
    if (flags.model_path.empty()) return InvalidArgument("--verify needs a MODEL to load");
    return VerifyPlan(flags, request);
  }
  if (flags.measures) {
    if (!flags.gpus.empty() || !flags.bandwidth.empty() || !flags.flops.empty())
      return InvalidArgument(
          "--measure is of this machine: leave out --gpus, --bandwidth, --flops");
    QUIRE_ASSIGN_OR_RETURN(request.rates, MeasureRates());
  }
  QUIRE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(std::move(request)));
  if (!flags.chart_path.empty())
    QUIRE_RETURN_IF_ERROR(WriteFile(flags.chart_path, PlanChart(plan)));
  if (flags.json)
    fmt::print("{}\n", PlanJson(plan).dump(2, ' ', false, Json::error_handler_t::replace));
  else
    fmt::print("{}", PlanText(plan, {.explains = flags.explains,
                                     .has_colour = isatty(STDOUT_FILENO) == 1}));
  return plan.fits ? 0 : 1;
}

}  // namespace

CommandBody AddPlanCommand(CLI::App& app) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App& command = *app.add_subcommand(
      "plan", "How many users, how long, how fast: what fits into a machine's memory");
  command.footer(
      "Exit codes: 0 it fits, 1 it does not, 2 unknown architecture, 3 bad input.\n"
      "Examples:\n"
      "  I have 64 GiB and this file: can 20 people chat with 16k tokens each?\n"
      "    quire plan MODEL.gguf --memory 64GiB --users 20 --ctx 16k\n"
      "  A model that is not here, from its config.json, on eight accelerators:\n"
      "    quire plan config.json --gpus 8xH100 --users 100 --ctx 32k --tpot 50ms\n"
      "  The same with all beginning alike, and why:\n"
      "    quire plan config.json --gpus 8xH100 --users 100 --ctx 32k --shared-prefix 4k "
      "--explain");
  AddPlanFlags(command, *flags);
  return [flags] { return RunPlan(*flags); };
}

}  // namespace quire
