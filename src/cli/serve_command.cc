// `quire serve`: the OpenAI API over one model, until a signal ends it.
//
// Exit codes: 0 everything that was under way at SIGTERM or SIGINT has ended by itself; 143 or 130
// if something was cut, by the time limit of --drain or by a second signal; others as main.cc.

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "cli/serve_flags.h"
#include "server/api_server.h"

namespace quire {
namespace {

// What the main thread waits for: signals from outside, and SIGUSR1 from its own threads.
sigset_t WaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

int WaitForSignal(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) continue;
  return signal;
}

// A thread that tells the main thread when it is through.
template <class Work>
std::jthread StartWork(Work work) {
  return std::jthread([work = std::move(work)] {
    work();
    kill(getpid(), SIGUSR1);
  });
}

// Until the first signal that ends it; returns that.
int ServeUntilSignal(ApiServer& server, const sigset_t& signals) {
  for (;;) {
    const int signal = WaitForSignal(signals);
    if (signal == SIGTERM || signal == SIGINT) return signal;
    if (signal == SIGHUP) server.ReloadKeys();
  }
}

int DrainAndEnd(ApiServer& server, const sigset_t& signals, int first_signal) {
  bool was_whole = true;
  const std::jthread drain = StartWork([&] { was_whole = server.Drain(); });
  for (;;) {
    const int signal = WaitForSignal(signals);
    if (signal == SIGUSR1) break;
    if (signal == SIGTERM || signal == SIGINT) server.CutNow();
  }
  return was_whole ? 0 : 128 + first_signal;
}

// Where clients reach it.
std::string AddressOf(const HttpOptions& http, const ApiServer& server, uint16_t asked_port) {
  if (!http.unix_path.empty()) return http.unix_path;
  const char* scheme = http.certificate_file.empty() ? "http" : "https";
  const std::string bound = server.http().address();
  const int port = asked_port == 0 ? server.http().port() : asked_port;
  return fmt::format("{}://{}:{}", scheme, bound.substr(0, bound.rfind(':')), port);
}

StatusOr<int> Serve(CLI::App& command, ServeFlags& flags) {
  std::vector<std::string> problems;
  ServeOptions options = ReadServeOptions(command, flags, /*needs_model=*/true, &problems);
  if (!problems.empty()) {
    std::string text = problems.front();
    for (size_t i = 1; i < problems.size(); ++i) text += "\nerror: " + problems[i];
    return InvalidArgument("{}", text);
  }
  // Before any thread: they all inherit it, so that signals come to sigwait alone.
  const sigset_t signals = WaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  // A look at the configuration must work beside a server that runs with it.
  const uint16_t asked_port = options.http.port;
  if (flags.check) options.http.port = 0;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ApiServer> server, ApiServer::Create(options));
  Status loaded;
  bool was_told_to_reload = false;
  {
    ProgressBar bar("loading");
    const std::jthread load = StartWork([&] {
      try {  // the standard library's, when memory runs out
        loaded = server->Load([&](uint64_t done, uint64_t total) { bar.Show(done, total); });
      } catch (const std::bad_alloc&) {
        loaded = ResourceExhausted("out of memory: lower --kv-memory or take a smaller model");
      }
    });
    // Loading can't be stopped half way, so a signal ends the process as it is.
    int signal = WaitForSignal(signals);
    for (; signal == SIGHUP; signal = WaitForSignal(signals)) was_told_to_reload = true;
    if (signal != SIGUSR1) {
      if (!options.http.unix_path.empty()) unlink(options.http.unix_path.c_str());
      std::_Exit(128 + signal);
    }
  }
  QUIRE_RETURN_IF_ERROR(loaded);
  if (was_told_to_reload) server->ReloadKeys();  // not before: Load reads the keys' tenants
  fmt::print(stderr, "{}", server->Banner(AddressOf(options.http, *server, asked_port)));
  if (flags.check) return 0;
  return DrainAndEnd(*server, signals, ServeUntilSignal(*server, signals));
}

}  // namespace

CommandBody AddServeCommand(CLI::App& app) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App& command = *app.add_subcommand(
      "serve", "Serve a model by the OpenAI API: chat, completions, and the cache's own routes.");
  command.footer(
      "Environment: QUIRE_NAME stands for --name, such as QUIRE_KV_MEMORY=8GiB;\n"
      "QUIRE_CPU=portable|avx2|avx512 forces the instruction set of the kernels.\n"
      "Example: quire serve MODEL.gguf --kv-memory 8GiB --port 8080");
  AddServeFlags(command, *flags, /*with_check=*/true);
  return [flags, &command] { return Serve(command, *flags); };
}

}  // namespace quire
