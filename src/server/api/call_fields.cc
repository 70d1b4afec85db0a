#include "server/api/call_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/message_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using Refusal = std::optional<ApiError>;

Refusal WrongValue(const ApiField& field, std::string param, const Json& value) {
  return InvalidValue(std::move(param), fmt::format("{} is {}: need {}.", field.name, Shown(value),
                                                    ValuesInWords(field)));
}

Refusal CheckStrings(const ApiField& field, const Json& value) {
  const auto is_fine = [](const Json& item) {
    if (!item.is_string()) return false;
    const size_t size = item.get_ref<const std::string&>().size();
    return size >= 1 && size <= SamplingParams::kMaxStopStringBytes;
  };
  const std::string name(field.name);
  if (!value.is_array()) return is_fine(value) ? Refusal() : WrongValue(field, name, value);
  if (static_cast<double>(value.size()) > field.most) return WrongValue(field, name, value);
  for (size_t i = 0; i < value.size(); ++i)
    if (!is_fine(value[i])) return WrongValue(field, fmt::format("{}[{}]", name, i), value[i]);
  return {};
}

Refusal CheckIds(const ApiField& field, const Json& value, uint32_t vocab_size) {
  const std::string name(field.name);
  if (!value.is_array() || static_cast<double>(value.size()) > field.most)
    return WrongValue(field, name, value);
  for (size_t i = 0; i < value.size(); ++i)
    if (!TokenIdOf(value[i], vocab_size))
      return InvalidValue(fmt::format("{}[{}]", name, i),
                          fmt::format("{}[{}] is {}: need a token id from 0 to {}.", name, i,
                                      Shown(value[i]), vocab_size - 1));
  return {};
}

Refusal CheckTokenBias(const ApiField& field, const Json& value, uint32_t vocab_size) {
  const std::string name(field.name);
  if (!value.is_object() || static_cast<double>(value.size()) > field.most)
    return WrongValue(field, name, value);
  for (const auto& [key, bias] : value.items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = error == std::errc() && end == key.data() + key.size() && id >= 0 &&
                       id < vocab_size && key == std::to_string(id);
    const std::string param = fmt::format("{}.{}", name, key.substr(0, 64));
    if (!is_id)
      return InvalidValue(param, fmt::format("{} names the token {}: need an id from 0 to {}.",
                                             name, Printable(key, 32), vocab_size - 1));
    if (!bias.is_number() || std::abs(bias.get<double>()) > 100)
      return InvalidValue(
          param, fmt::format("{} of token {} is {}: need a number from -100 to 100.", name, id,
                             Shown(bias)));
  }
  return {};
}

bool IsInRange(const ApiField& field, double value) {
  return value >= field.least && value <= field.most;
}

bool IsChoice(std::string_view values, const std::string& value) {
  for (size_t begin = 0; begin <= values.size();) {
    const size_t end = std::min(values.find(' ', begin), values.size());
    if (values.substr(begin, end - begin) == value) return true;
    begin = end + 1;
  }
  return false;
}

bool HasShape(const ApiField& field, const Json& value) {
  switch (field.kind) {
    case FieldKind::kBool:
      return value.is_boolean();
    case FieldKind::kInteger: {
      const std::optional<int64_t> number = IntegerOf(value);
      return number.has_value() && IsInRange(field, static_cast<double>(*number));
    }
    case FieldKind::kNumber:
      return value.is_number() && IsInRange(field, value.get<double>());
    case FieldKind::kString:
      return value.is_string() &&
             IsInRange(field, static_cast<double>(value.get_ref<const std::string&>().size()));
    case FieldKind::kChoice:
      return value.is_string() && IsChoice(field.values, value.get_ref<const std::string&>());
    case FieldKind::kObject:
      return value.is_object();
    case FieldKind::kList:
      return value.is_array();
    case FieldKind::kPrompt:
      return value.is_string() || (value.is_array() && !value.empty());
    case FieldKind::kMessages:
      return value.is_array() && IsInRange(field, static_cast<double>(value.size()));
    default:
      return true;
  }
}

Refusal CheckValue(const ApiField& field, const Json& value, const ServedModel& model) {
  const std::string name(field.name);
  if (field.effect == FieldEffect::kRefused) {
    const Json neutral = Json::parse(field.values, nullptr, false);
    QUIRE_CHECK(neutral.is_array());
    if (std::find(neutral.begin(), neutral.end(), value) != neutral.end()) return {};
    if (!HasShape(field, value)) return WrongValue(field, name, value);
    return UnsupportedParameter(name, fmt::format("{} is not supported: {} It takes {}.", name,
                                                  field.help, ValuesInWords(field)));
  }
  switch (field.kind) {
    case FieldKind::kStrings:
      return CheckStrings(field, value);
    case FieldKind::kIds:
      return CheckIds(field, value, model.vocab_size);
    case FieldKind::kTokenBias:
      return CheckTokenBias(field, value, model.vocab_size);
    default:
      return HasShape(field, value) ? Refusal() : WrongValue(field, name, value);
  }
}

// A field of the other body: fine while it says nothing.
bool SaysNothing(const ApiField& field, const Json& value) {
  if (field.effect == FieldEffect::kIgnored) return true;
  if (value.empty()) return true;
  if (value.is_boolean() && !value.get<bool>()) return true;
  if (value.is_number() && value.get<double>() == 0) return true;
  const std::string_view neutral =
      field.effect == FieldEffect::kRefused ? field.values : field.fallback;
  const Json known = Json::parse(neutral, nullptr, false);
  if (known.is_discarded()) return false;
  if (field.effect != FieldEffect::kRefused) return known == value;
  return std::find(known.begin(), known.end(), value) != known.end();
}

}  // namespace

ApiResult<CallFields> CallFields::Read(const Json& object, ApiForm form, const ServedModel& model) {
  QUIRE_CHECK(object.is_object());
  CallFields fields(&object, form);
  const bool is_chat = form == ApiForm::kChat;
  for (const auto& [name, value] : object.items()) {
    if (const ApiField* field = FindApiField(name, form)) {
      if (value.is_null()) continue;
      if (Refusal refusal = CheckValue(*field, value, model)) return std::move(*refusal);
      continue;
    }
    const ApiField* other = FindApiField(name, is_chat ? ApiForm::kCompletions : ApiForm::kChat);
    if (other != nullptr) {
      if (value.is_null() || SaysNothing(*other, value)) continue;
      return UnsupportedParameter(name, fmt::format("{} belongs to /v1/{} only.", name,
                                                    is_chat ? "completions" : "chat/completions"));
    }
    if (model.refuses_unknown_fields)
      return ApiError{.code = "unknown_parameter",
                      .message = fmt::format("Nobody knows the field {}.", Printable(name, 64)),
                      .param = name};
    fields.ignored_.push_back(name);
  }
  return fields;
}

const Json* CallFields::Find(std::string_view name) const {
  QUIRE_CHECK(FindApiField(name, form_) != nullptr);
  return Member(*object_, name);
}

bool CallFields::Bool(std::string_view name, bool fallback) const {
  const Json* value = Find(name);
  return value == nullptr ? fallback : value->get<bool>();
}

std::optional<int64_t> CallFields::Integer(std::string_view name) const {
  const Json* value = Find(name);
  return value == nullptr ? std::nullopt : IntegerOf(*value);
}

std::optional<double> CallFields::Number(std::string_view name) const {
  const Json* value = Find(name);
  return value == nullptr ? std::nullopt : std::optional<double>(value->get<double>());
}

const std::string* CallFields::String(std::string_view name) const {
  const Json* value = Find(name);
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

std::vector<TokenId> CallFields::Ids(std::string_view name) const {
  std::vector<TokenId> ids;
  const Json* value = Find(name);
  if (value == nullptr) return ids;
  ids.reserve(value->size());
  for (const Json& item : *value) ids.push_back(static_cast<TokenId>(*IntegerOf(item)));
  return ids;
}

std::optional<int64_t> IntegerOf(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (number != std::trunc(number) || std::abs(number) >= 9223372036854775808.0)
    return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<TokenId> TokenIdOf(const Json& value, uint32_t vocab_size) {
  const std::optional<int64_t> id = IntegerOf(value);
  if (!id || *id < 0 || *id >= vocab_size) return std::nullopt;
  return static_cast<TokenId>(*id);
}

const Json* Member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  for (const auto& member : *object.get_ptr<const Json::object_t*>())
    if (member.first == name) return member.second.is_null() ? nullptr : &member.second;
  return nullptr;
}

std::optional<ApiError> CheckModelName(const Json* name, const ServedModel& model) {
  if (name == nullptr) return {};
  if (!name->is_string())
    return InvalidValue("model", fmt::format("model is {}: need a string.", Shown(*name)));
  const auto& text = name->get_ref<const std::string&>();
  if (model.IsServed(text)) return {};
  return ModelNotFound(Printable(text, 96));
}

ApiResult<std::string> ReadSalt(const Json& object) {
  const Json* value = Member(object, "cache_salt");
  if (value == nullptr) return std::string();
  const auto* salt = value->get_ptr<const std::string*>();
  const std::string_view refused("@/\\\0", 4);
  if (salt != nullptr && !salt->empty() && salt->size() <= 128 &&
      salt->find_first_of(refused) == std::string::npos)
    return *salt;
  return InvalidValue(
      "cache_salt", fmt::format("cache_salt is {}: need a string of 1 to 128 bytes without @ / \\ "
                                "and NUL.",
                                Shown(*value)));
}

std::string Shown(const Json& value) {
  if (value.is_string()) return '"' + Printable(value.get_ref<const std::string&>(), 32) + '"';
  if (value.is_object()) return fmt::format("an object of {} keys", value.size());
  if (value.is_array()) return fmt::format("a list of {} items", value.size());
  return value.dump();
}

}  // namespace quire
