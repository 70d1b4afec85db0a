// `quire cache`: looks at the KV cache of a running server, and changes what it keeps.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <thread>

#include "base/errors.h"
#include "base/seconds.h"
#include "cli/cache_text.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/server_link.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

struct CacheFlags {
  std::string url = "http://127.0.0.1:8000";
  bool json = false;
  double interval_s = 1;
  uint32_t count = 0;  // of lines or screens; 0: until Ctrl-C
  std::string sort = "bytes";
  uint32_t limit = 20;
  std::string id, prompt, file, tenant, label;
  uint32_t ttl_s = 0;
  bool off = false, all = false;
};

bool IsTerminal() { return isatty(STDOUT_FILENO) == 1; }

StatusOr<ServerLink> Link(const CacheFlags& flags) {
  const char* key = std::getenv("QUIRE_API_KEY");
  return ServerLink::Create(flags.url, key == nullptr ? "" : key);
}

void PrintJson(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

StatusOr<int> Info(const CacheFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(ServerLink link, Link(flags));
  QUIRE_ASSIGN_OR_RETURN(const Json cache, link.AskJson("GET", "/quire/v1/cache"));
  if (flags.json)
    PrintJson(cache);
  else
    fmt::print("{}", CacheInfoText(cache, IsTerminal()));
  return 0;
}

std::string PrefixesPath(const CacheFlags& flags) {
  return fmt::format("/quire/v1/prefixes?sort={}&limit={}", flags.sort, flags.limit);
}

StatusOr<int> Prefixes(const CacheFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(ServerLink link, Link(flags));
  QUIRE_ASSIGN_OR_RETURN(const Json prefixes, link.AskJson("GET", PrefixesPath(flags)));
  if (flags.json)
    PrintJson(prefixes);
  else
    fmt::print("{}", PrefixesText(prefixes, IsTerminal(), std::time(nullptr)));
  return 0;
}

// Calls `show` every interval until it has run `count` times, fails, or Ctrl-C comes.
template <class Show>
StatusOr<int> Repeat(const CacheFlags& flags, const Show& show) {
  const Interrupt interrupt;
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; !interrupt.is_set() && (flags.count == 0 || i < flags.count); ++i) {
    QUIRE_RETURN_IF_ERROR(show(SecondsSince(begin)));
    if (std::fflush(stdout) != 0) return 0;  // the reader has left
    const auto next = begin + std::chrono::duration<double>(flags.interval_s * (i + 1));
    while (!interrupt.is_set() && i + 1 != flags.count && std::chrono::steady_clock::now() < next)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return 0;
}

StatusOr<int> Stat(CacheFlags flags) {
  QUIRE_ASSIGN_OR_RETURN(ServerLink link, Link(flags));
  StatLines lines(IsTerminal());
  uint32_t num_lines = 0;
  if (flags.count > 0) ++flags.count;  // the first look gives no line
  return Repeat(flags, [&](double seconds) -> Status {
    QUIRE_ASSIGN_OR_RETURN(const std::string text, link.Ask("GET", "/metrics"));
    QUIRE_ASSIGN_OR_RETURN(const MetricText metrics, MetricText::Parse(text));
    const auto line = lines.Next(metrics, seconds);
    if (!line.has_value()) return OkStatus();
    if (num_lines == 0 || (IsTerminal() && num_lines % 20 == 0)) fmt::print("{}", lines.Header());
    ++num_lines;
    fmt::print("{}", *line);
    return OkStatus();
  });
}

StatusOr<int> Top(const CacheFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(ServerLink link, Link(flags));
  return Repeat(flags, [&](double) -> Status {
    QUIRE_ASSIGN_OR_RETURN(const Json requests, link.AskJson("GET", "/quire/v1/requests"));
    QUIRE_ASSIGN_OR_RETURN(const Json prefixes, link.AskJson("GET", PrefixesPath(flags)));
    if (IsTerminal()) fmt::print("\033[H\033[2J");
    fmt::print("{}\n{}\n", RequestsText(requests, IsTerminal()),
               PrefixesText(prefixes, IsTerminal(), std::time(nullptr)));
    return OkStatus();
  });
}

// The text that -p or -f gives; none with an id.
StatusOr<std::string> PromptOf(const CacheFlags& flags) {
  if (!flags.id.empty() + !flags.prompt.empty() + !flags.file.empty() != 1)
    return InvalidArgument(
        "give one of: the ID of a prefix (see `quire cache prefixes`), -p TEXT, -f FILE");
  if (flags.file.empty()) return flags.prompt;
  return ReadFile(flags.file);
}

StatusOr<int> Pin(const CacheFlags& flags) {
  QUIRE_ASSIGN_OR_RETURN(const std::string prompt, PromptOf(flags));
  if (flags.off && flags.ttl_s > 0) return InvalidArgument("--off and --ttl: give one of them");
  if (flags.off && flags.id.empty()) return InvalidArgument("--off needs the ID of a prefix");
  QUIRE_ASSIGN_OR_RETURN(ServerLink link, Link(flags));
  Json body = {{"pin", !flags.off && flags.ttl_s == 0}};
  if (flags.off || flags.ttl_s > 0) body["ttl_s"] = flags.ttl_s;
  if (!flags.label.empty()) body["label"] = flags.label;
  if (flags.id.empty()) body["prompt"] = prompt;
  QUIRE_ASSIGN_OR_RETURN(
      const Json prefix,
      flags.id.empty()
          ? link.AskJson("POST", "/quire/v1/prefixes", body)
          : link.AskJson("PATCH", "/quire/v1/prefixes/" + PathSegment(flags.id), body));
  if (flags.json)
    PrintJson(prefix);
  else
    fmt::print("{}", PrefixesText({{"prefixes", Json::array({prefix})}}, IsTerminal(),
                                  std::time(nullptr)));
  return 0;
}

StatusOr<Json> DropWhat(const CacheFlags& flags, ServerLink& link) {
  if (flags.all) return link.AskJson("POST", "/reset_prefix_cache");
  if (!flags.tenant.empty())
    return link.AskJson("DELETE", "/quire/v1/tenants/" + PathSegment(flags.tenant) + "/cache");
  QUIRE_ASSIGN_OR_RETURN(const std::string prompt, PromptOf(flags));
  std::string id = flags.id;
  if (id.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const Json match,
                           link.AskJson("POST", "/quire/v1/match", {{"prompt", prompt}}));
    if (!match.contains("id") || !match["id"].is_string())
      return InvalidArgument("the cache does not have the whole of this text");
    id = match["id"];
  }
  return link.AskJson("DELETE", "/quire/v1/prefixes/" + PathSegment(id));
}

StatusOr<int> Drop(const CacheFlags& flags) {
  if (flags.all + !flags.tenant.empty() > 1)
    return InvalidArgument("--all and --tenant: give one of them");
  QUIRE_ASSIGN_OR_RETURN(ServerLink link, Link(flags));
  QUIRE_ASSIGN_OR_RETURN(const Json result, DropWhat(flags, link));
  if (flags.json) PrintJson(result);
  if (result.value("success", true)) {
    if (!flags.json && result.contains("dropped_pages"))
      fmt::print("dropped {} pages of tokens\n", result["dropped_pages"].dump());
    return 0;
  }
  return Unavailable("nothing was dropped: requests hold pages; wait until they have ended");
}

void AddPromptFlags(CLI::App& command, CacheFlags& flags) {
  command.add_option("ID", flags.id, "A prefix, as `quire cache prefixes` names it");
  command.add_option("-p,--prompt", flags.prompt, "Its text in place of an ID");
  command.add_option("-f,--file", flags.file, "A file with its text");
}

}  // namespace

CommandBody AddCacheCommand(CLI::App& app) {
  const auto flags = std::make_shared<CacheFlags>();
  CLI::App& cache = *app.add_subcommand("cache", "The KV cache of a running server");
  cache.require_subcommand(1);
  cache.footer("Environment: QUIRE_API_KEY is the key to send, if the server wants one.");
  cache.add_option("--url", flags->url, "Where the server is")
      ->envname("QUIRE_URL")
      ->capture_default_str();
  using Function = StatusOr<int> (*)(const CacheFlags&);
  std::vector<std::pair<CLI::App*, Function>> commands;
  const auto add = [&](const char* name, const char* help, Function function) -> CLI::App& {
    CLI::App& command = *cache.add_subcommand(name, help);
    command.fallthrough();  // --url may stand after it
    commands.emplace_back(&command, function);
    return command;
  };
  const auto add_json = [&](CLI::App& command) {
    command.add_flag("--json", flags->json, "Print the server's JSON");
  };
  const auto add_repeat = [&](CLI::App& command) {
    command.add_option("--interval", flags->interval_s, "Seconds between two looks")
        ->check(CLI::Range(0.05, 3600.0))
        ->capture_default_str();
    command.add_option("--count", flags->count, "Looks; 0: until Ctrl-C")->capture_default_str();
  };
  const auto add_list = [&](CLI::App& command) {
    command.add_option("--sort", flags->sort, "What comes first: most bytes, most hits, oldest")
        ->check(CLI::IsMember({"bytes", "hits", "age"}))
        ->capture_default_str();
    command.add_option("--limit", flags->limit, "Most prefixes to list")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
  };
  add_json(add("info", "Bytes and pages: free, held, cached, pinned", Info));
  add_repeat(add("stat", "A line a second: requests, tokens/s, KV use, hits",
                 [](const CacheFlags& f) { return Stat(f); }));
  CLI::App& top = add("top", "Live requests and prefixes, again and again", Top);
  add_repeat(top);
  add_list(top);
  CLI::App& prefixes = add("prefixes", "What the cache has", Prefixes);
  add_json(prefixes);
  add_list(prefixes);
  CLI::App& pin = add("pin", "Keep a prefix; compute what is missing of a text", Pin);
  AddPromptFlags(pin, *flags);
  add_json(pin);
  pin.add_option("--ttl", flags->ttl_s, "Keep it so many seconds, not for ever");
  pin.add_option("--label", flags->label, "A name for lists");
  pin.add_flag("--off", flags->off, "Keep it no more");
  CLI::App& drop = add("drop", "Forget a prefix and what goes on from it", Drop);
  AddPromptFlags(drop, *flags);
  add_json(drop);
  drop.add_option("--tenant", flags->tenant, "All prefixes of a tenant");
  drop.add_flag("--all", flags->all, "All prefixes, if no request runs");
  return [flags, commands]() -> StatusOr<int> {
    for (const auto& [command, function] : commands)
      if (command->parsed()) return function(*flags);
    return InvalidArgument("name one of info, stat, top, prefixes, pin, drop");
  };
}

}  // namespace quire
