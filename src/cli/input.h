// Small readers of what a user gives: files, standard input, lists of ids.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace quire {

StatusOr<std::string> ReadFile(const std::string& path);
std::string ReadAll(std::FILE* file);

// A line of the terminal without its newline; nothing at its end or after Ctrl-C.
std::optional<std::string> ReadLine();

// "1 403, 407" to ids. kInvalidArgument names what is no id.
StatusOr<std::vector<TokenId>> ParseTokenIds(std::string_view text);

}  // namespace quire
