#include "text/jinja/json_import.h"

#include <algorithm>
#include <limits>
#include <string>

namespace quire::jinja {
namespace {

using Json = nlohmann::ordered_json;

bool LooksLikeRole(const std::string& role) {
  return std::all_of(role.begin(), role.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

Value ImportText(const std::string& text, Trust trust) {
  return Value(MarkedText::Whole(text, trust == Trust::kCaller));
}

StatusOr<Value> Import(Runtime* runtime, const Json& json, Trust trust, int depth) {
  if (depth > kMaxValueDepth) {
    return InvalidArgument("the JSON is nested more than {} deep", kMaxValueDepth);
  }
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const uint64_t number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Value(static_cast<double>(number));
      }
      return Value(static_cast<int64_t>(number));
    }
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return ImportText(json.get_ref<const std::string&>(), trust);
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) {
        QUIRE_ASSIGN_OR_RETURN(Value value, Import(runtime, item, trust, depth + 1));
        items.push_back(std::move(value));
      }
      return Value(runtime->heap().NewList(ListKind::kList, std::move(items)));
    }
    case Json::value_t::object: {
      Dict* dict = runtime->heap().NewDict();
      for (const auto& [key, item] : json.items()) {
        QUIRE_ASSIGN_OR_RETURN(Value value, Import(runtime, item, trust, depth + 1));
        dict->Set(ImportText(key, trust), std::move(value));
      }
      return Value(dict);
    }
    default:
      return Value(None{});
  }
}

}  // namespace

StatusOr<Value> ImportJson(Runtime* runtime, const Json& json, Trust trust) {
  return Import(runtime, json, trust, 0);
}

StatusOr<Value> ImportMessages(Runtime* runtime, const Json& messages) {
  if (!messages.is_array()) return InvalidArgument("messages must be a list");
  std::vector<Value> items;
  items.reserve(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (!message.is_object()) return InvalidArgument("messages[{}] must be an object", i);
    Dict* dict = runtime->heap().NewDict();
    for (const auto& [key, item] : message.items()) {
      const bool role =
          key == "role" && item.is_string() && LooksLikeRole(item.get_ref<const std::string&>());
      QUIRE_ASSIGN_OR_RETURN(Value value,
                             Import(runtime, item, role ? Trust::kTemplate : Trust::kCaller, 1));
      dict->Set(ImportText(key, Trust::kCaller), std::move(value));
    }
    items.push_back(Value(dict));
  }
  return Value(runtime->heap().NewList(ListKind::kList, std::move(items)));
}

}  // namespace quire::jinja
