// What every command of the program is: flags on a CLI11 subcommand, and a function to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/status.h"

namespace quire {

// Set by a command's Add... function; main.cc runs the one whose subcommand was given. Returns the
// process's exit code, or an error that main.cc prints.
using CommandBody = std::function<StatusOr<int>()>;

// Each adds its subcommand to `app`; the flags live in the body.
CommandBody AddRunCommand(CLI::App& app);
CommandBody AddServeCommand(CLI::App& app);
CommandBody AddInspectCommand(CLI::App& app);
CommandBody AddBenchCommand(CLI::App& app);
CommandBody AddTokenizeCommand(CLI::App& app);
CommandBody AddPlanCommand(CLI::App& app);
CommandBody AddVerifyCommand(CLI::App& app);
CommandBody AddConfigCommand(CLI::App& app);
CommandBody AddCacheCommand(CLI::App& app);

}  // namespace quire
