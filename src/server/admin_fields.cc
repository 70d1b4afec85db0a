#include "server/admin_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/message_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

const Json* Find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

ApiResult<std::optional<bool>> ReadBool(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return InvalidValue(name, fmt::format("{}: need true or false", name));
  return std::optional<bool>(value->get<bool>());
}

ApiResult<std::optional<uint32_t>> ReadCount(const Json& object, const char* name, uint32_t least,
                                             uint32_t most) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::optional<uint32_t>();
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most) || number != std::floor(number))
    return InvalidValue(name, fmt::format("{}: need an integer from {} to {}", name, least, most));
  return std::optional<uint32_t>(static_cast<uint32_t>(number));
}

std::optional<ApiError> RefuseUnknown(const Json& object,
                                      const std::function<bool(std::string_view)>& is_known) {
  for (const auto& [name, value] : object.items())
    if (!is_known(name))
      return ApiError{
          .code = "unknown_parameter",
          .message = fmt::format("Nobody knows the field {} here.", Printable(name, 64)),
          .param = name};
  return {};
}

ApiResult<std::optional<std::string>> ReadText(const Json& object, const char* name, size_t most) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::optional<std::string>();
  const auto* text = value->get_ptr<const std::string*>();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (text == nullptr || text->size() > most || std::ranges::any_of(*text, is_control))
    return InvalidValue(
        name,
        fmt::format("{}: need a text of at most {} bytes without control characters", name, most));
  return std::optional<std::string>(*text);
}

}  // namespace quire
