// CallFields: the fields of a body after the table's rules (api/field_table.h): each one that is
// there is known, has its type and lies in its range, or was refused with its name in `param`.
//
// It views the object, which must outlive it. `null` counts as absent.
//
// Threading: a value.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/field_table.h"
#include "server/api/served_model.h"

namespace quire {

class CallFields {
 public:
  static ApiResult<CallFields> Read(const nlohmann::ordered_json& object, ApiForm form,
                                    const ServedModel& model);

  // Requires: the table has `name` in this body. The typed ones require its kind too.
  const nlohmann::ordered_json* Find(std::string_view name) const;  // null: absent
  bool Bool(std::string_view name, bool fallback) const;
  std::optional<int64_t> Integer(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;
  const std::string* String(std::string_view name) const;
  std::vector<TokenId> Ids(std::string_view name) const;

  ApiForm form() const { return form_; }
  const nlohmann::ordered_json& object() const { return *object_; }
  // Fields that nobody knows, in the order of the body.
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  CallFields(const nlohmann::ordered_json* object, ApiForm form) : object_(object), form_(form) {}

  const nlohmann::ordered_json* object_;
  ApiForm form_;
  std::vector<std::string> ignored_;
};

// An integer, also one written 16.0; nothing for other types, fractions and beyond 64 bits.
std::optional<int64_t> IntegerOf(const nlohmann::ordered_json& value);
// A token id below vocab_size, or nothing.
std::optional<TokenId> TokenIdOf(const nlohmann::ordered_json& value, uint32_t vocab_size);
// The member, or null if it is absent, null, or `object` is no object.
const nlohmann::ordered_json* Member(const nlohmann::ordered_json& object, std::string_view name);
// Of a body's `model`, which may be null for absent: 404 for a name that is not served.
std::optional<ApiError> CheckModelName(const nlohmann::ordered_json* name,
                                       const ServedModel& model);
// `cache_salt` of any body, which may be absent: a string of 1 to 128 bytes without @ / \ or NUL.
// Empty: absent.
ApiResult<std::string> ReadSalt(const nlohmann::ordered_json& object);
// A short form of a value for messages, at most some 40 bytes.
std::string Shown(const nlohmann::ordered_json& value);

}  // namespace quire
