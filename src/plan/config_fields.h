// ConfigFields: the fields of one config.json object, checked as they are read.
//
// A field that is absent or null has its class's default. A family may call a field by another name
// (GPT-2 has n_layer for num_hidden_layers); errors use the name that stands in the file.
//
// Threads: not thread-safe; the JSON must outlive it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace quire {

class ConfigFields {
 public:
  // The common name of a field, and what a family calls it.
  using Alias = std::pair<std::string_view, std::string_view>;

  ConfigFields(const nlohmann::json& object, std::span<const Alias> aliases)
      : object_(object), aliases_(aliases) {}

  bool Has(std::string_view name) const { return Find(name) != nullptr; }  // null counts
  bool IsNull(std::string_view name) const { return Has(name) && Find(name)->is_null(); }
  // nullptr if it is absent.
  const nlohmann::json* Find(std::string_view name) const;
  // As the file has it, or would have it.
  std::string_view NameOf(std::string_view name) const;

  // A whole number from 1 to `high`; kInvalidFile if it is another thing, or absent or null.
  StatusOr<uint32_t> Required(std::string_view name, uint32_t high) const;
  // Absent and null: `fallback`.
  StatusOr<uint32_t> Count(std::string_view name, uint32_t fallback, uint32_t high) const;
  // The same, and 0 too: `fallback`, which may be 0 for "none".
  StatusOr<uint32_t> Optional(std::string_view name, uint32_t fallback, uint32_t high) const;
  // The same for a number that the shape of the KV rests on: that the file left it out is told.
  StatusOr<uint32_t> ShapeField(std::string_view name, uint32_t fallback, uint32_t high);
  StatusOr<bool> Bool(std::string_view name, bool fallback) const;
  StatusOr<std::string> Text(std::string_view name, std::string_view fallback) const;

  // "num_attention_heads 8, head_dim 256": what ShapeField took from the class; empty: nothing.
  const std::string& assumed() const { return assumed_; }

 private:
  StatusOr<std::optional<uint32_t>> Number(std::string_view name, uint32_t high) const;

  const nlohmann::json& object_;
  std::span<const Alias> aliases_;
  std::string assumed_;
};

// The value on one line, cut, for messages.
std::string ShownJson(const nlohmann::json& value);

}  // namespace quire
