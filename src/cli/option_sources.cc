#include "cli/option_sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/config_file.h"
#include "cli/nearest_name.h"

namespace quire {
namespace {

// Gives an option its value; what CLI11 finds wrong with it is a problem.
bool Give(CLI::Option& option, const std::vector<std::string>& values, const std::string& where,
          std::vector<std::string>* problems) {
  const std::string name = OptionName(option);
  if (values.size() != 1 && option.get_items_expected_max() <= 1 &&
      option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
    problems->push_back(
        fmt::format("{}: {} takes one value, here are {}", where, name, values.size()));
    return false;
  }
  try {  // CLI11's errors are exceptions
    for (const std::string& value : values)
      option.add_result(option.get_expected_min() == 0 ? option.get_flag_value(name, value)
                                                       : value);
    if (!values.empty()) option.run_callback();
    return true;
  } catch (const CLI::Error&) {
    option.clear();
    problems->push_back(IsSecret(option) ? fmt::format("{}: {}: the value is wrong", where, name)
                                         : fmt::format("{}: {}: '{}' is no value for it", where,
                                                       name, fmt::join(values, ", ")));
    return false;
  }
}

}  // namespace

std::vector<std::string> MisspeltVariables(const CLI::App& command) {
  std::vector<std::string> known, misspelt;
  for (const CLI::Option* option : command.get_options())
    if (const std::string name = OptionName(*option); !name.empty())
      known.push_back(EnvironmentName(name));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string name(text.substr(0, text.find('=')));
    // The instruction set has no flag; it stands in the footer of --help.
    if (!name.starts_with("QUIRE_") || name == "QUIRE_CPU" ||
        std::find(known.begin(), known.end(), name) != known.end())
      continue;
    if (const auto nearest = NearestName(name, known); nearest.has_value())
      misspelt.push_back(fmt::format("{}: did you mean {}?", name, *nearest));
  }
  return misspelt;
}

std::string EnvironmentName(const std::string& option_name) {
  std::string name = "QUIRE_";
  for (const char c : option_name)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string OptionName(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() || names[0] == "help" ? std::string() : names[0];
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

bool IsSecret(const CLI::Option& option) { return OptionName(option) == "api-key"; }

OptionOrigins ReadOtherSources(CLI::App& command, const std::string& config_flag,
                               std::vector<std::string>* problems) {
  OptionOrigins origins;
  std::vector<std::string> names;
  for (CLI::Option* option : command.get_options()) {
    const std::string name = OptionName(*option);
    if (option->count() > 0) {
      origins[option] = "flag";
    } else if (!name.empty() && (option->get_configurable() || name == config_flag)) {
      const std::string variable = EnvironmentName(name);
      const char* value = std::getenv(variable.c_str());
      if (value != nullptr && *value != '\0' && Give(*option, {value}, variable, problems))
        origins[option] = "environment";
    }
    if (!name.empty() && option->get_configurable()) names.push_back(name);
  }

  const CLI::Option* config = command.get_option_no_throw("--" + config_flag);
  if (config == nullptr || config->count() == 0) return origins;
  const auto path = config->as<std::string>();
  for (const ConfigEntry& entry : ReadConfig(path, problems)) {
    const std::string where = fmt::format("{}:{}", path, entry.line);
    CLI::Option* option = command.get_option_no_throw("--" + entry.name);
    if (option == nullptr || !option->get_configurable() || OptionName(*option).empty()) {
      const auto nearest = NearestName(entry.name, names);
      problems->push_back(fmt::format("{}: there is no option {}{}", where, entry.name,
                                      nearest ? ": did you mean " + *nearest + "?" : ""));
    } else if (IsSecret(*option)) {
      problems->push_back(fmt::format("{}: {} is a secret: use api-key-file, or {}", where,
                                      entry.name, EnvironmentName(OptionName(*option))));
    } else if (!origins.contains(option) && Give(*option, entry.values, where, problems)) {
      origins[option] = where;
    }
  }
  return origins;
}

}  // namespace quire
