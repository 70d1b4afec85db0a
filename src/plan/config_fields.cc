#include "plan/config_fields.h"

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {

using Json = nlohmann::json;

const Json* ConfigFields::Find(std::string_view name) const {
  const auto found = object_.find(NameOf(name));
  return found == object_.end() ? nullptr : &*found;
}

std::string_view ConfigFields::NameOf(std::string_view name) const {
  for (const auto& [common, own] : aliases_)
    if (common == name && (object_.contains(own) || !object_.contains(common))) return own;
  return name;
}

// Nothing if it is absent or null.
StatusOr<std::optional<uint32_t>> ConfigFields::Number(std::string_view name, uint32_t high) const {
  const Json* value = Find(name);
  if (value == nullptr || value->is_null()) return std::optional<uint32_t>();
  if (value->is_number_unsigned() && value->get<uint64_t>() <= high)
    return std::optional<uint32_t>(value->get<uint32_t>());
  return InvalidFile("field {} is {}: need a whole number up to {}", NameOf(name),
                     ShownJson(*value), GroupDigits(high));
}

StatusOr<uint32_t> ConfigFields::Required(std::string_view name, uint32_t high) const {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<uint32_t> value, Number(name, high));
  if (!value.has_value())
    return InvalidFile(
        "field {} is missing: it gives the model's shape, and another model's number will not do",
        NameOf(name));
  if (*value == 0)
    return InvalidFile("field {} is 0: need a whole number from 1 to {}", NameOf(name),
                       GroupDigits(high));
  return *value;
}

StatusOr<uint32_t> ConfigFields::Count(std::string_view name, uint32_t fallback,
                                       uint32_t high) const {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<uint32_t> value, Number(name, high));
  return value.value_or(fallback);
}

StatusOr<uint32_t> ConfigFields::Optional(std::string_view name, uint32_t fallback,
                                          uint32_t high) const {
  QUIRE_ASSIGN_OR_RETURN(const uint32_t value, Count(name, 0, high));
  return value == 0 ? fallback : value;
}

StatusOr<uint32_t> ConfigFields::ShapeField(std::string_view name, uint32_t fallback,
                                            uint32_t high) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<uint32_t> value, Number(name, high));
  if (value.value_or(0) != 0) return *value;
  assumed_ += fmt::format("{}{} {}", assumed_.empty() ? "" : ", ", NameOf(name), fallback);
  return fallback;
}

StatusOr<bool> ConfigFields::Bool(std::string_view name, bool fallback) const {
  const Json* value = Find(name);
  if (value == nullptr || value->is_null()) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  return InvalidFile("field {} is {}: need true or false", NameOf(name), ShownJson(*value));
}

StatusOr<std::string> ConfigFields::Text(std::string_view name, std::string_view fallback) const {
  const Json* value = Find(name);
  if (value == nullptr || value->is_null()) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  return InvalidFile("field {} is {}: need a text", NameOf(name), ShownJson(*value));
}

std::string ShownJson(const Json& value) {
  return Printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace quire
