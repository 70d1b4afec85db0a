// The program `quire`: finds the command, runs it, prints its error and gives the exit code.
//
// Exit codes: 0 done, or yes; 1 no (a check failed), or a failure that is nobody's input; 2 what is
// asked for is well formed and not supported: an unknown architecture, most often; 3 the command
// line, an input or a file cannot be used; 130 and 143 ended by a signal.

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/flag_aliases.h"
#include "cli/nearest_name.h"
#include "cli/option_sources.h"

namespace quire {
namespace {

constexpr char kVersion[] = "quire 0.1.0";

void PrintError(const std::string& message) {
  const bool colour = isatty(STDERR_FILENO) == 1;
  fmt::print(stderr, "{}error:{} {}\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "", message);
}

constexpr int kExitBadInput = 3;

// What CLI11 did not like, with the nearest name where a flag or command is not known.
void PrintParseError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;  // the innermost that was given
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string name;  // as in `quire bench serve`
  for (const CLI::App* part = command; part != &app; part = part->get_parent())
    name = " " + part->get_name() + name;
  const std::vector<std::string> unknown = command->remaining();
  // A word too much may be the one that is missing: an unknown command, a flag in MODEL's place.
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code == CLI::ExitCodes::ConversionError) {
    constexpr std::string_view kBegin = "Could not convert: ";
    std::string what = error.what();
    if (what.starts_with(kBegin)) what = what.substr(kBegin.size()) + " is no value for it";
    return PrintError(fmt::format("{}; see quire{} --help", what, name));
  }
  if (unknown.empty() ||
      (code != CLI::ExitCodes::ExtrasError && code != CLI::ExitCodes::RequiredError))
    return PrintError(error.what());
  const bool is_flag = unknown.front().starts_with('-');
  std::vector<std::string> names = FlagNames(*command);
  if (!is_flag) {
    names.clear();
    for (const CLI::App* sub : command->get_subcommands({})) names.push_back(sub->get_name());
  }
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  const auto nearest = NearestName(word, names);
  PrintError(fmt::format("{} {}{}; see quire{} --help", is_flag ? "unknown flag" : "unexpected",
                         word, nearest ? fmt::format(", did you mean {}?", *nearest) : "", name));
}

// What is behind the program's name, with `run` in front of a bare model file and our names of
// flags that `serve` knows from other servers.
StatusOr<std::vector<std::string>> ReadArguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return arguments;
  if (arguments.front().ends_with(".gguf")) arguments.insert(arguments.begin(), "run");
  if (arguments.front() == "serve" || arguments.front() == "config")
    return TranslateFlags(arguments);
  return arguments;
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `quire ... | head` ends by a failed write, not by a signal
  // A file that we open must not become standard input or output because those were closed.
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd) return 1;
  auto logger = spdlog::stderr_color_mt("quire");
  logger->set_pattern("%^%l:%$ %v");
  spdlog::set_default_logger(std::move(logger));

  CLI::App app("Runs language models from a paged KV cache.", "quire");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.footer(
      "Environment: QUIRE_CPU=portable|avx2|avx512 forces the instruction set of the kernels.\n"
      "Example: quire run MODEL.gguf -p \"What is the sea?\"");
  struct Command {
    CLI::App* app;
    CommandBody body;
  };
  std::vector<Command> commands;
  for (const auto add :
       {AddRunCommand, AddServeCommand, AddInspectCommand, AddPlanCommand, AddBenchCommand,
        AddTokenizeCommand, AddVerifyCommand, AddConfigCommand, AddCacheCommand}) {
    CommandBody body = add(app);
    commands.push_back({app.get_subcommands({}).back(), std::move(body)});
  }
  auto arguments = ReadArguments(argc, argv);
  if (!arguments.ok()) {
    PrintError(arguments.status().message());
    return kExitBadInput;
  }
  std::reverse(arguments->begin(), arguments->end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments).value());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    PrintParseError(app, error);
    return kExitBadInput;
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const StatusOr<int> result = command.body();
    if (result.ok() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return result.value();
    if (result.ok()) {
      PrintError("standard output cannot be written");
      return 1;
    }
    PrintError(result.status().message());
    return ExitCode(result.status().code());
  }
  return kExitBadInput;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  try {  // the standard library's, when memory runs out; our own code throws nothing
    return quire::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
