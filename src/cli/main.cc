// The program `quire`: finds the command, runs it, prints its error and gives the exit code.
//
// Exit codes: 0 success; 2 the command line or an input is wrong; 3 a file, the model or this
// machine cannot be used; 130 cancelled with Ctrl-C; 1 anything else.

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace quire {
namespace {

constexpr char kVersion[] = "quire 0.1.0";

void PrintError(const std::string& message) {
  const bool colour = isatty(STDERR_FILENO) == 1;
  fmt::print(stderr, "{}error:{} {}\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "", message);
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
  for (const auto add : {AddRunCommand, AddServeCommand, AddInspectCommand, AddBenchCommand,
                         AddTokenizeCommand, AddVerifyCommand}) {
    CommandBody body = add(app);
    commands.push_back({app.get_subcommands({}).back(), std::move(body)});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;  // --help and --version are no errors
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
  return 2;
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
