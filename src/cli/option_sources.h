// Where an option's value comes from: a flag, else QUIRE_NAME, else the file of --config, else its
// default.
//
// The table of options is the command's own flags: `--kv-memory` is QUIRE_KV_MEMORY in the
// environment and `kv-memory = ...` in the file. Flags that CLI11 knows as not configurable
// (--config aside, which is QUIRE_CONFIG too) stand in neither.
//
// Threading: the main thread's, before others start.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace quire {

// By option; those that are absent have their default. "flag", "environment", "FILE:LINE".
using OptionOrigins = std::map<const CLI::Option*, std::string>;

// After the command was parsed: gives options that no flag set the value of the environment or the
// file. Each thing that is wrong becomes one text in `problems`. Secrets in the file (api-key) are
// refused: files are copied and shown.
OptionOrigins ReadOtherSources(CLI::App& command, const std::string& config_flag,
                               std::vector<std::string>* problems);

// Variables that look like misspelt options, each with the one it is near to.
std::vector<std::string> MisspeltVariables(const CLI::App& command);

// "QUIRE_KV_MEMORY" for the option "kv-memory".
std::string EnvironmentName(const std::string& option_name);
// The first long name, without dashes; empty for --help and the like.
std::string OptionName(const CLI::Option& option);
// All names with their dashes, for NearestName.
std::vector<std::string> FlagNames(const CLI::App& command);
bool IsSecret(const CLI::Option& option);

}  // namespace quire
