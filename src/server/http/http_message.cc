#include "server/http/http_message.h"

namespace quire {
namespace {

std::optional<std::string_view> FirstOf(const HttpFields& fields, std::string_view name) {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return std::nullopt;
}

}  // namespace

std::string HttpRequest::Path() const {
  std::string path;
  for (const std::string& segment : segments) path += "/" + segment;
  return path.empty() ? "/" : path;
}

std::optional<std::string_view> HttpRequest::Field(std::string_view lower_case_name) const {
  return FirstOf(fields, lower_case_name);
}

std::optional<std::string_view> HttpRequest::Query(std::string_view name) const {
  return FirstOf(query, name);
}

}  // namespace quire
