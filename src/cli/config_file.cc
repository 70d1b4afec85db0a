#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/errors.h"

namespace quire {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

// One value from the front of `text`, up to one of `ends` or a comment.
StatusOr<std::string> TakeValue(std::string_view* text, std::string_view ends) {
  *text = Trim(*text);
  std::string value;
  if (text->starts_with('"') || text->starts_with('\'')) {
    const char quote = text->front();
    const bool has_escapes = quote == '"';
    size_t at = 1;
    for (; at < text->size() && (*text)[at] != quote; ++at) {
      if (has_escapes && (*text)[at] == '\\' && at + 1 < text->size()) ++at;
      value += (*text)[at];
    }
    if (at >= text->size()) return InvalidArgument("a quote is not closed");
    text->remove_prefix(at + 1);
    *text = Trim(*text);
    if (!text->empty() && text->front() != '#' && ends.find(text->front()) == ends.npos)
      return InvalidArgument("'{}' stands behind a quoted value", *text);
    return value;
  }
  const size_t end = std::min(text->find_first_of(std::string(ends) + "#"), text->size());
  value = Trim(text->substr(0, end));
  text->remove_prefix(end);
  if (value.empty()) return InvalidArgument("there is no value: write \"\" for an empty one");
  return value;
}

StatusOr<std::vector<std::string>> ParseValues(std::string_view text) {
  std::vector<std::string> values;
  text = Trim(text);
  if (!text.starts_with('[')) {
    QUIRE_ASSIGN_OR_RETURN(std::string value, TakeValue(&text, ""));
    values.push_back(std::move(value));
    return values;
  }
  text.remove_prefix(1);
  while (true) {
    text = Trim(text);
    if (text.starts_with(']')) break;
    QUIRE_ASSIGN_OR_RETURN(std::string value, TakeValue(&text, ",]"));
    values.push_back(std::move(value));
    if (text.empty() || text.front() == '#')
      return InvalidArgument("a list is not closed: write it in one line, [a, b]");
    if (text.front() == ',') text.remove_prefix(1);
  }
  text = Trim(text.substr(1));
  if (!text.empty() && text.front() != '#')
    return InvalidArgument("'{}' stands behind a list", text);
  return values;
}

}  // namespace

std::vector<ConfigEntry> ParseConfig(std::string_view text, const std::string& path,
                                     std::vector<std::string>* problems) {
  std::vector<ConfigEntry> entries;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const auto add_problem = [&](std::string_view what) {
      problems->push_back(fmt::format("{}:{}: {}", path, number, what));
    };
    const size_t equals = line.find('=');
    if (line.front() == '[' || equals == std::string_view::npos ||
        Trim(line.substr(0, equals)).empty()) {
      add_problem(fmt::format("'{}': need NAME = VALUE (there are no sections)", line));
      continue;
    }
    std::string name(Trim(line.substr(0, equals)));
    auto values = ParseValues(line.substr(equals + 1));
    const auto before = std::find_if(entries.begin(), entries.end(),
                                     [&](const ConfigEntry& entry) { return entry.name == name; });
    if (!values.ok())
      add_problem(name + ": " + values.status().message());
    else if (before != entries.end())
      add_problem(fmt::format("{} stands in line {} already", name, before->line));
    else
      entries.push_back({std::move(name), std::move(values.value()), number});
  }
  return entries;
}

std::vector<ConfigEntry> ReadConfig(const std::string& path, std::vector<std::string>* problems) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.bad()) {
    problems->push_back(fmt::format("--config {}: {}", path, std::strerror(errno)));
    return {};
  }
  return ParseConfig(text.str(), path, problems);
}

}  // namespace quire
