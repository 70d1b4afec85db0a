#include "text/jinja/dict.h"

#include <cmath>

namespace quire::jinja {
namespace {

std::string TextCode(std::string_view text) {
  std::string code = "t";
  code.append(text);
  return code;
}

// Equal for equal keys and only for them; nothing for a value that can be no key.
std::optional<std::string> KeyCode(const Value& key) {
  if (const MarkedText* text = key.text()) return TextCode(text->bytes());
  if (key.is_none()) return "n";
  if (const bool* boolean = key.boolean()) return *boolean ? "i1" : "i0";
  if (const int64_t* integer = key.integer()) return "i" + std::to_string(*integer);
  if (const double* real = key.real()) {
    if (*real == std::floor(*real) && std::fabs(*real) < 9e15) {
      return "i" + std::to_string(static_cast<int64_t>(*real));
    }
    return "f" + std::string(reinterpret_cast<const char*>(real), sizeof(double));
  }
  if (const List* list = key.list(); list != nullptr && list->kind == ListKind::kTuple) {
    std::string code = "(";
    for (const Value& item : list->items) {
      if (item.list() != nullptr) return std::nullopt;  // no tuples in tuples
      const std::optional<std::string> part = KeyCode(item);
      if (!part.has_value()) return std::nullopt;
      code += std::to_string(part->size()) + ":" + *part;
    }
    return code;
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> Dict::Locate(const std::string& code) const {
  const auto found = index_.find(code);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

void Dict::Put(std::string code, const Value& key, Value value) {
  const auto [place, added] = index_.try_emplace(std::move(code), entries_.size());
  if (added) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
}

const Value* Dict::Find(const Value& key) const {
  const std::optional<std::string> code = KeyCode(key);
  if (!code.has_value()) return nullptr;
  const std::optional<size_t> at = Locate(*code);
  return at.has_value() ? &entries_[*at].second : nullptr;
}

const Value* Dict::Find(std::string_view key) const {
  const std::optional<size_t> at = Locate(TextCode(key));
  return at.has_value() ? &entries_[*at].second : nullptr;
}

bool Dict::Set(const Value& key, Value value) {
  std::optional<std::string> code = KeyCode(key);
  if (!code.has_value()) return false;
  Put(*std::move(code), key, std::move(value));
  return true;
}

void Dict::Set(std::string_view key, Value value) {
  Put(TextCode(key), Value(MarkedText(std::string(key))), std::move(value));
}

}  // namespace quire::jinja
