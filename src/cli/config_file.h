// The file of --config: options of `quire serve`, one a line.
//
//   # a comment
//   port = 9000
//   kv-memory = "8GiB"            # quotes are needed only for '#', ',' and outer blanks
//   served-model-name = [a, b]    # options that may be given again
//   no-auth = true                # flags: true or false
//
// A subset of TOML (bare values are also taken). Not CLI11's reader: that one knows no line
// numbers, splits bare values at commas, cuts quoted ones at '#', and lets a file win over the
// environment.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

struct ConfigEntry {
  std::string name;                 // without dashes in front
  std::vector<std::string> values;  // one, or those of a list
  int line = 0;                     // from 1
};

// What the text says; each line that is wrong becomes one text in `problems`, "PATH:LINE: WHAT".
std::vector<ConfigEntry> ParseConfig(std::string_view text, const std::string& path,
                                     std::vector<std::string>* problems);
// The same for a file; one that can't be read is a problem too.
std::vector<ConfigEntry> ReadConfig(const std::string& path, std::vector<std::string>* problems);

}  // namespace quire
