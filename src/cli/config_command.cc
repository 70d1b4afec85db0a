// `quire config check` and `quire config show`: what `quire serve` would make of flags, environment
// and file, without a start.
//
// Exit codes: 0 it would do; 3 something is wrong (check prints each problem in a line on stdout).

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/option_sources.h"
#include "cli/serve_flags.h"
#include "server/access.h"
#include "server/http/tls_context.h"

namespace quire {
namespace {

constexpr int kExitBadInput = 3;

struct ConfigFlags {
  ServeFlags serve;
  bool with_origins = false, json = false;
};

// Files that the options name, and keys: what else would stop a start. Whatever the other values
// are: none of this depends on those that have a form of their own.
void CheckFiles(const ServeOptions& options, std::vector<std::string>* problems) {
  const auto access = Access::Create(options.access, options.http);
  if (!access.ok()) problems->push_back(access.status().message());
  const size_t num_before = problems->size();
  for (const auto& [flag, path] : {std::pair("MODEL", options.model_path),
                                   std::pair("--chat-template", options.chat_template_path),
                                   std::pair("--ssl-certfile", options.http.certificate_file),
                                   std::pair("--ssl-keyfile", options.http.key_file)})
    if (!path.empty() && ::access(path.c_str(), R_OK) != 0)
      problems->push_back(fmt::format("{} {}: no such file, or it cannot be read", flag, path));
  const HttpOptions& http = options.http;
  if (problems->size() > num_before || http.certificate_file.empty() || http.key_file.empty())
    return;
  const auto tls = MakeTlsContext(http.certificate_file, http.key_file);
  if (!tls.ok()) problems->push_back(tls.status().message());
}

int Check(CLI::App& command, ConfigFlags& flags) {
  std::vector<std::string> problems;
  const ServeOptions options =
      ReadServeOptions(command, flags.serve, /*needs_model=*/false, &problems);
  CheckFiles(options, &problems);
  for (std::string& problem : MisspeltVariables(command)) problems.push_back(std::move(problem));
  for (const std::string& problem : problems) fmt::print("{}\n", problem);
  return problems.empty() ? 0 : kExitBadInput;
}

// The default as the help text has it: "(default 8000)", "(default: none)".
std::string DefaultOf(const CLI::Option& option) {
  const std::string& help = option.get_description();
  const size_t begin = help.rfind("(default");
  if (begin == std::string::npos) return option.get_expected_min() == 0 ? "false" : "";
  const size_t value = help.find_first_not_of(": ", begin + 8);
  return help.substr(value, help.find(')', value) - value);
}

int Show(CLI::App& command, ConfigFlags& flags) {
  std::vector<std::string> problems;
  const OptionOrigins origins = ReadOtherSources(command, "config", &problems);
  for (const std::string& problem : problems) fmt::print(stderr, "error: {}\n", problem);
  if (!problems.empty()) return kExitBadInput;
  struct Row {
    std::string name, value, origin;
  };
  std::vector<Row> rows;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = OptionName(*option);
    if (name.empty() || name == "origin" || name == "json") continue;
    const auto origin = origins.find(option);
    if (origin == origins.end())
      rows.push_back({name, DefaultOf(*option), "default"});
    else if (IsSecret(*option))
      rows.push_back({name, "(set, not shown)", origin->second});
    else
      rows.push_back({name, fmt::format("{}", fmt::join(option->results(), ",")), origin->second});
  }
  if (flags.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Row& row : rows)
      list.push_back({{"name", row.name}, {"value", row.value}, {"origin", row.origin}});
    const nlohmann::ordered_json report = {{"schema", 1}, {"options", std::move(list)}};
    fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  const bool is_table = isatty(STDOUT_FILENO) == 1;
  for (const Row& row : rows) {
    const std::string text =
        is_table ? fmt::format("{:<32}{}", row.name, row.value) : row.name + "\t" + row.value;
    if (flags.with_origins)
      fmt::print("{}\n",
                 is_table ? fmt::format("{:<64}{}", text, row.origin) : text + "\t" + row.origin);
    else
      fmt::print("{}\n", text);
  }
  return 0;
}

}  // namespace

CommandBody AddConfigCommand(CLI::App& app) {
  CLI::App* config = app.add_subcommand("config", "What quire serve would make of its options");
  config->require_subcommand(1);
  config->footer(
      "Takes the options of quire serve, from flags, QUIRE_NAME in the environment and --config.\n"
      "Example: quire config show --origin --config quire.conf");
  const auto check_flags = std::make_shared<ConfigFlags>();
  CLI::App* check = config->add_subcommand(
      "check", "Flags, environment and file of quire serve: each problem in a line, or nothing");
  AddServeFlags(*check, check_flags->serve, /*with_check=*/false);
  const auto show_flags = std::make_shared<ConfigFlags>();
  CLI::App* show =
      config->add_subcommand("show", "The options of quire serve with their values; no secrets");
  AddServeFlags(*show, show_flags->serve, /*with_check=*/false);
  show->add_flag("--origin", show_flags->with_origins,
                 "Tell where each value comes from: flag, environment, FILE:LINE or default")
      ->configurable(false);
  show->add_flag("--json", show_flags->json, "Print one JSON object, with the origins")
      ->configurable(false);
  return [check, check_flags, show, show_flags]() -> StatusOr<int> {
    return check->parsed() ? Check(*check, *check_flags) : Show(*show, *show_flags);
  };
}

}  // namespace quire
