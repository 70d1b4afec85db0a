// An ordered dict: entries in the order of their insertion, found by key.
//
// Keys are compared as Python does: 1, 1.0 and True are one key; marks do not count. Lists and
// dicts cannot be keys. Entries are never removed.
//
// Threading: as Value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace quire::jinja {

class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

  // Null if there is no such key, or if it can be no key. Valid until the next Set.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;

  // Adds the entry or changes its value. False if `key` can be no key.
  bool Set(const Value& key, Value value);
  void Set(std::string_view key, Value value);

 private:
  std::optional<size_t> Locate(const std::string& code) const;
  void Put(std::string code, const Value& key, Value value);

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;  // by KeyCode()
};

// What namespace() makes: attributes that a template may set.
struct Namespace {
  Dict attributes;
};

}  // namespace quire::jinja
