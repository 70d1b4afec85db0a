#include "text/jinja/access.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "text/jinja/methods.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

Value Missing(std::string_view name) {
  return Value(Undefined{std::make_shared<const MarkedText>(std::string(name))});
}

Status UndefinedObject(const Value& object, std::string_view wanted) {
  const Undefined& undefined = *object.undefined();
  return InvalidArgument("'{}' is undefined: it has no '{}'",
                         undefined.name == nullptr ? "the value" : undefined.name->bytes(), wanted);
}

Value LoopField(const Loop& loop, std::string_view name) {
  const int64_t length = static_cast<int64_t>(loop.items.size());
  const int64_t index = loop.index0;
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  if (name == "depth") return Value(loop.depth);
  if (name == "depth0") return Value(loop.depth - 1);
  if (name == "previtem" && index > 0) return loop.items[index - 1];
  if (name == "nextitem" && index + 1 < length) return loop.items[index + 1];
  return Missing(name);
}

// The attribute of that name, or nothing.
std::optional<Value> FindAttribute(Runtime* runtime, const Value& object, std::string_view name) {
  if (const Namespace* space = object.space()) {
    const Value* value = space->attributes.Find(name);
    return value == nullptr ? std::nullopt : std::optional<Value>(*value);
  }
  const std::string_view method = FindMethod(object, name);
  if (!method.empty()) {
    Function* function = runtime->heap().NewFunction();
    function->kind = Function::Kind::kMethod;
    function->name = method;
    function->receiver = object;
    return Value(function);
  }
  if (object.loop() != nullptr) return LoopField(*object.loop(), name);
  return std::nullopt;
}

// The character at `index`, or undefined. Walks there from the nearer named end.
StatusOr<Value> CharacterAt(Runtime* runtime, const MarkedText& text, int64_t index) {
  const uint64_t steps = index < 0 ? -static_cast<uint64_t>(index) : static_cast<uint64_t>(index);
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(std::min<uint64_t>(steps, text.size())));
  const std::string_view bytes = text.bytes();
  if (index < 0) {
    size_t at = bytes.size();
    for (; index < 0 && at > 0; ++index) at = PreviousStart(bytes, at);
    if (index < 0) return Missing("index");
    return runtime->MakeText(text.Slice(at, at + Decode(bytes, at).length));
  }
  for (size_t at = 0; at < bytes.size(); --index) {
    const size_t length = Decode(bytes, at).length;
    if (index == 0) return runtime->MakeText(text.Slice(at, at + length));
    at += length;
  }
  return Missing("index");
}

StatusOr<std::optional<int64_t>> Bound(const Value* value) {
  if (value == nullptr || value->is_none()) return std::optional<int64_t>();
  if (const int64_t* integer = value->integer()) return std::optional<int64_t>(*integer);
  return InvalidArgument("a slice needs whole numbers, there is a {}", KindName(*value));
}

struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Python's slice.indices().
StatusOr<SliceRange> ResolveSlice(int64_t length, const Value* start, const Value* stop,
                                  const Value* step) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<int64_t> from, Bound(start));
  QUIRE_ASSIGN_OR_RETURN(const std::optional<int64_t> to, Bound(stop));
  QUIRE_ASSIGN_OR_RETURN(const std::optional<int64_t> by, Bound(step));
  // A step longer than the text takes one item, as does length + 1; this keeps the sums small.
  const int64_t stride = std::clamp(by.value_or(1), -length - 1, length + 1);
  if (stride == 0) return InvalidArgument("a slice's step must not be 0");
  const int64_t lowest = stride < 0 ? -1 : 0;
  const int64_t highest = stride < 0 ? length - 1 : length;
  const auto clamp = [&](int64_t bound) {
    return std::clamp(bound < 0 ? std::max(bound, -length - 1) + length : bound, lowest, highest);
  };
  SliceRange range;
  range.step = stride;
  range.start = from.has_value() ? clamp(*from) : stride < 0 ? highest : lowest;
  const int64_t end = to.has_value() ? clamp(*to) : stride < 0 ? lowest : highest;
  if (stride > 0 && end > range.start) range.count = (end - range.start - 1) / stride + 1;
  if (stride < 0 && end < range.start) range.count = (range.start - end - 1) / -stride + 1;
  return range;
}

StatusOr<Value> SliceText(Runtime* runtime, const MarkedText& text, const Value* start,
                          const Value* stop, const Value* step) {
  QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(text.size()));
  const int64_t length = static_cast<int64_t>(CountCharacters(text.bytes()));
  QUIRE_ASSIGN_OR_RETURN(const SliceRange range, ResolveSlice(length, start, stop, step));
  std::vector<size_t> starts;  // of each character, and the end
  QUIRE_RETURN_IF_ERROR(runtime->Spend(static_cast<size_t>(length) / 8));
  starts.reserve(static_cast<size_t>(length) + 1);
  for (size_t at = 0; at < text.size(); at += Decode(text.bytes(), at).length) starts.push_back(at);
  starts.push_back(text.size());
  if (range.count == 0) return runtime->MakeText(MarkedText());
  if (range.step == 1) {
    return runtime->MakeText(text.Slice(starts[range.start], starts[range.start + range.count]));
  }
  MarkedText result;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t at = range.start + i * range.step;
    result.Append(text, starts[at], starts[at + 1]);
  }
  return runtime->MakeText(std::move(result));
}

}  // namespace

StatusOr<Value> GetAttribute(Runtime* runtime, const Value& object, std::string_view name) {
  if (object.is_undefined()) return UndefinedObject(object, name);
  QUIRE_RETURN_IF_ERROR(runtime->Spend(1));
  if (std::optional<Value> attribute = FindAttribute(runtime, object, name)) {
    return *std::move(attribute);
  }
  if (const Dict* dict = object.dict()) {
    if (const Value* value = dict->Find(name)) return *value;
  }
  return Missing(name);
}

StatusOr<Value> GetItem(Runtime* runtime, const Value& object, const Value& index) {
  const MarkedText* key = index.text();
  if (object.is_undefined()) return UndefinedObject(object, key == nullptr ? "item" : key->bytes());
  QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(key == nullptr ? 0 : key->size()));
  if (const Dict* dict = object.dict()) {
    if (const Value* value = dict->Find(index)) return *value;
  }
  if (const int64_t* at = index.integer()) {
    if (const MarkedText* text = object.text()) return CharacterAt(runtime, *text, *at);
    if (const List* list = object.list()) {
      const int64_t length = static_cast<int64_t>(list->items.size());
      const int64_t place = *at < 0 ? *at + length : *at;
      if (place >= 0 && place < length) return list->items[place];
    }
    return Missing(std::to_string(*at));
  }
  if (key == nullptr) return Missing(KindName(index));
  if (std::optional<Value> attribute = FindAttribute(runtime, object, key->bytes())) {
    return *std::move(attribute);
  }
  return Missing(key->bytes());
}

StatusOr<Value> GetSlice(Runtime* runtime, const Value& object, const Value* start,
                         const Value* stop, const Value* step) {
  if (object.is_undefined()) return UndefinedObject(object, "slice");
  if (const MarkedText* text = object.text()) return SliceText(runtime, *text, start, stop, step);
  const List* list = object.list();
  if (list == nullptr) return InvalidArgument("a {} has no slices", KindName(object));
  const int64_t length = static_cast<int64_t>(list->items.size());
  QUIRE_ASSIGN_OR_RETURN(const SliceRange range, ResolveSlice(length, start, stop, step));
  QUIRE_RETURN_IF_ERROR(runtime->Spend(static_cast<size_t>(range.count)));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(range.count));
  for (int64_t i = 0; i < range.count; ++i) {
    items.push_back(list->items[range.start + i * range.step]);
  }
  return runtime->MakeList(list->kind, std::move(items));
}

StatusOr<Value> GetPath(Runtime* runtime, const Value& object, const Value& path) {
  if (!path.is_text()) return GetItem(runtime, object, path);
  Value value = object;
  std::string_view rest = path.text()->bytes();
  while (true) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    int64_t number = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = read.ec == std::errc() && read.ptr == part.data() + part.size();
    const Value index = is_number ? Value(number) : Value(MarkedText(std::string(part)));
    QUIRE_ASSIGN_OR_RETURN(value, GetItem(runtime, value, index));
    if (dot == rest.size()) return value;
    rest.remove_prefix(dot + 1);
  }
}

StatusOr<std::vector<Value>> Iterate(Runtime* runtime, const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (const List* list = value.list()) {
    QUIRE_RETURN_IF_ERROR(runtime->Spend(list->items.size()));
    return list->items;
  }
  if (const Dict* dict = value.dict()) {
    QUIRE_RETURN_IF_ERROR(runtime->Spend(dict->size()));
    for (const auto& [key, item] : dict->entries()) items.push_back(key);
    return items;
  }
  const MarkedText* text = value.text();
  if (text == nullptr) return InvalidArgument("a {} cannot be looped over", KindName(value));
  QUIRE_RETURN_IF_ERROR(runtime->Spend(2 * CountCharacters(text->bytes())));
  for (size_t at = 0; at < text->size();) {
    const size_t length = Decode(text->bytes(), at).length;
    items.push_back(Value(text->Slice(at, at + length)));
    at += length;
  }
  return items;
}

StatusOr<int64_t> Length(Runtime* runtime, const Value& value) {
  if (value.is_undefined()) return int64_t{0};
  if (const List* list = value.list()) return static_cast<int64_t>(list->items.size());
  if (const Dict* dict = value.dict()) return static_cast<int64_t>(dict->size());
  if (const Loop* loop = value.loop()) return static_cast<int64_t>(loop->items.size());
  const MarkedText* text = value.text();
  if (text == nullptr) return InvalidArgument("a {} has no length", KindName(value));
  QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(text->size()));
  return static_cast<int64_t>(CountCharacters(text->bytes()));
}

}  // namespace quire::jinja
