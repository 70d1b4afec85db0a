#include "text/jinja/json_export.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "text/jinja/printing.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

std::string JsonFloat(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return FloatText(value);
}

void AppendUnicodeEscape(uint32_t c, std::string* out) {
  if (c >= 0x10000) {
    c -= 0x10000;
    out->append(fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (c >> 10), 0xDC00 + (c & 0x3FF)));
  } else {
    out->append(fmt::format("\\u{:04x}", c));
  }
}

void AppendJsonText(std::string_view text, bool ascii_only, std::string* out) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
  constexpr std::string_view kLetters = "\"\\nrtbf";
  out->push_back('"');
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = Decode(text, at);
    const size_t escape =
        c.value < 0x80 ? kEscaped.find(static_cast<char>(c.value)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      out->push_back('\\');
      out->push_back(kLetters[escape]);
    } else if (c.value < 0x20 || (ascii_only && c.value >= 0x7F && c.value < kInvalidByte)) {
      AppendUnicodeEscape(c.value, out);
    } else {
      out->append(text.substr(at, c.length));
    }
    at += c.length;
  }
  out->push_back('"');
}

class JsonWriter {
 public:
  JsonWriter(Runtime* runtime, const JsonStyle& style) : runtime_(*runtime), style_(style) {}

  Status Write(const Value& value, int depth) {
    if (depth > kMaxValueDepth) {
      return ResourceExhausted("a value for tojson is nested more than {} deep", kMaxValueDepth);
    }
    const size_t before = out_.size();
    QUIRE_RETURN_IF_ERROR(WriteOne(value, depth));
    QUIRE_RETURN_IF_ERROR(runtime_.SpendCharacters(out_.size() - before));
    return runtime_.CheckTextSize(out_.size());
  }

  MarkedText Take() { return MarkedText::Whole(std::move(out_), plain_); }

 private:
  using Entry = std::pair<std::string, const Value*>;

  Status WriteOne(const Value& value, int depth) {
    if (value.is_none()) {
      out_.append("null");
    } else if (const bool* boolean = value.boolean()) {
      out_.append(*boolean ? "true" : "false");
    } else if (const int64_t* integer = value.integer()) {
      out_.append(std::to_string(*integer));
    } else if (const double* real = value.real()) {
      out_.append(JsonFloat(*real));
    } else if (const MarkedText* text = value.text()) {
      WriteText(*text);
    } else if (const List* list = value.list()) {
      return WriteList(*list, depth);
    } else if (const Dict* dict = value.dict()) {
      return WriteDict(*dict, depth);
    } else {
      return InvalidArgument("tojson needs a value of JSON, there is {} ({})", KindName(value),
                             value.is_undefined() ? "a name or key that is not there" : "no data");
    }
    return OkStatus();
  }

  void WriteText(const MarkedText& text) {
    plain_ = plain_ || text.any_plain();
    AppendJsonText(text.bytes(), style_.ascii_only, &out_);
  }

  void WriteNewline(int depth) {
    if (!style_.indent.has_value()) return;
    out_.push_back('\n');
    for (int i = 0; i < depth; ++i) out_.append(*style_.indent);
  }

  Status WriteList(const List& list, int depth) {
    out_.push_back('[');
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      WriteNewline(depth + 1);
      QUIRE_RETURN_IF_ERROR(Write(list.items[i], depth + 1));
    }
    if (!list.items.empty()) WriteNewline(depth);
    out_.push_back(']');
    return OkStatus();
  }

  // Keys as json.dumps makes them texts.
  StatusOr<std::string> KeyText(const Value& key) {
    if (const MarkedText* text = key.text()) {
      plain_ = plain_ || text->any_plain();
      return text->bytes();
    }
    if (key.is_none()) return std::string("null");
    if (const bool* boolean = key.boolean()) return std::string(*boolean ? "true" : "false");
    if (const int64_t* integer = key.integer()) return std::to_string(*integer);
    if (const double* real = key.real()) return JsonFloat(*real);
    return InvalidArgument("tojson needs keys that are texts or numbers, there is a {}",
                           KindName(key));
  }

  Status WriteDict(const Dict& dict, int depth) {
    std::vector<Entry> entries;
    entries.reserve(dict.size());
    for (const auto& [key, value] : dict.entries()) {
      QUIRE_ASSIGN_OR_RETURN(std::string text, KeyText(key));
      entries.emplace_back(std::move(text), &value);
    }
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Entry& a, const Entry& b) { return a.first < b.first; });
    }
    out_.push_back('{');
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      WriteNewline(depth + 1);
      AppendJsonText(entries[i].first, style_.ascii_only, &out_);
      out_.append(style_.key_separator);
      QUIRE_RETURN_IF_ERROR(Write(*entries[i].second, depth + 1));
    }
    if (!entries.empty()) WriteNewline(depth);
    out_.push_back('}');
    return OkStatus();
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  bool plain_ = false;
};

}  // namespace

StatusOr<Value> ExportJson(Runtime* runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  QUIRE_RETURN_IF_ERROR(writer.Write(value, 0));
  return Value(writer.Take());
}

}  // namespace quire::jinja
