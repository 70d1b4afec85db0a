#include "server/api/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

ApiError InvalidJson(std::string message, std::string param = {}) {
  return {.code = "invalid_json", .message = std::move(message), .param = std::move(param)};
}

// Takes the parser's events and builds the value; each may refuse, which ends the parsing. The
// names are those of nlohmann's SAX interface.
class Builder {
 public:
  explicit Builder(std::string_view body) : body_(body) {}

  // NOLINTBEGIN(readability-identifier-naming)
  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string& /*text*/) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool start_object(size_t /*size*/) { return Open(Json::object()); }
  bool start_array(size_t /*size*/) { return Open(Json::array()); }
  bool end_array() { return Close(); }

  bool key(std::string& name) {
    auto& members = object();
    if (members.size() >= JsonLimits::kMaxKeys) {
      stack_.back().has_value = false;
      return Refuse(fmt::format("An object of more than {} keys: send fewer.", members.size()));
    }
    // The base's function: the map's own would look for the key each time.
    members.Container::emplace_back(std::move(name), Json());
    stack_.back().has_value = true;
    return true;
  }

  bool end_object() {
    if (const std::string* twice = KeyTwice()) {
      const std::string name = *twice;
      const std::string path = PathOf(stack_.size() - 1);
      return Refuse("A key stands twice in one object: send it once.",
                    path.empty() ? name : path + "." + name);
    }
    return Close();
  }

  bool parse_error(size_t place, const std::string& /*token*/,
                   const nlohmann::detail::exception& cause) {
    const std::string_view what = cause.what();
    if (cause.id == 406) {
      error_ = InvalidValue(Path(), "A number is too large for a double.");
    } else if (what.find("invalid string: surrogate") != std::string_view::npos) {
      const size_t escape = body_.rfind("\\u", place);
      error_ = InvalidJson(fmt::format("The body has an invalid unicode escape at byte {}: a "
                                       "surrogate stands alone.",
                                       escape == std::string_view::npos ? place : escape),
                           Path());
    } else if (what.find("ill-formed UTF-8") != std::string_view::npos) {
      error_ = InvalidJson(fmt::format("The body is not UTF-8 at byte {}.", place), Path());
    } else if (body_.size() < place) {
      error_ = InvalidJson("The body ends inside its JSON: was it cut?", Path());
    } else {
      error_ = InvalidJson(fmt::format("The body is not JSON at byte {}.", place), Path());
    }
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

  Json& root() { return root_; }
  ApiError& error() { return error_; }

 private:
  struct Level {
    Json* container = nullptr;
    bool has_value = false;  // of an object: its last key waits for a value or has one
  };

  Json::object_t& object() { return *stack_.back().container->get_ptr<Json::object_t*>(); }

  // Where the next value goes: the place of the last key, or a new item.
  Json* Place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& top = *stack_.back().container;
    if (top.is_object()) {
      Json& member = object().back().second;
      member = std::move(value);
      return &member;
    }
    auto& items = *top.get_ptr<Json::array_t*>();
    items.push_back(std::move(value));
    return &items.back();
  }

  bool Add(Json value) {
    if (stack_.empty()) return Refuse("The body must be one JSON object.");
    if (++num_values_ > JsonLimits::kMaxValues)
      return Refuse(fmt::format("More than {} values: send less.", JsonLimits::kMaxValues));
    Place(std::move(value));
    return true;
  }

  bool Open(Json value) {
    if (stack_.empty() && !value.is_object()) return Refuse("The body must be one JSON object.");
    if (stack_.size() >= JsonLimits::kMaxDepth)
      return Refuse(fmt::format("Nested deeper than {} levels.", JsonLimits::kMaxDepth));
    if (++num_containers_ > JsonLimits::kMaxContainers)
      return Refuse(
          fmt::format("More than {} lists and objects: send less.", JsonLimits::kMaxContainers));
    Json* place = Place(std::move(value));
    stack_.push_back({.container = place});
    return true;
  }

  bool Close() {
    stack_.pop_back();
    return true;
  }

  bool Refuse(std::string message) { return Refuse(std::move(message), Path()); }
  bool Refuse(std::string message, std::string param) {
    error_ = InvalidJson(std::move(message), std::move(param));
    return false;
  }

  const std::string* KeyTwice() {
    const auto& members = object();
    keys_.clear();
    for (const auto& member : members) keys_.push_back(&member.first);
    const auto is_less = [](const std::string* a, const std::string* b) { return *a < *b; };
    std::sort(keys_.begin(), keys_.end(), is_less);
    const auto twice =
        std::adjacent_find(keys_.begin(), keys_.end(),
                           [](const std::string* a, const std::string* b) { return *a == *b; });
    return twice == keys_.end() ? nullptr : *twice;
  }

  // The path of the value that comes next or was last, of the outer `depth` levels.
  std::string PathOf(size_t depth) const {
    std::string path;
    for (size_t i = 0; i < depth && path.size() < 256; ++i) {
      const Json& container = *stack_[i].container;
      if (container.is_array()) {
        // An outer list holds the open item already; the innermost one waits for the next.
        const size_t next = container.size() - (i + 1 < stack_.size() ? 1 : 0);
        path += fmt::format("[{}]", next);
      } else if (stack_[i].has_value) {
        const std::string& key = container.get_ptr<const Json::object_t*>()->back().first;
        if (!path.empty()) path += '.';
        path += key.substr(0, 64);
      }
    }
    return path;
  }
  std::string Path() const { return PathOf(stack_.size()); }

  std::string_view body_;
  Json root_;
  std::vector<Level> stack_;
  std::vector<const std::string*> keys_;  // scratch
  size_t num_values_ = 0;
  size_t num_containers_ = 0;
  ApiError error_ = InvalidJson("The body must be one JSON object.");
};

}  // namespace

ApiResult<Json> ReadJsonObject(std::string_view body) {
  Builder builder(body);
  if (!Json::sax_parse(body.begin(), body.end(), &builder)) return std::move(builder.error());
  return std::move(builder.root());
}

}  // namespace quire
