#include "text/jinja/printing.h"

#include <charconv>
#include <cmath>

#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

void AppendReprOfText(std::string_view text, std::string* out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out->push_back(quote);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = Decode(text, at);
    if (c.value == '\\' || c.value == static_cast<uint32_t>(quote)) {
      out->push_back('\\');
      out->push_back(static_cast<char>(c.value));
    } else if (c.value == '\n') {
      out->append("\\n");
    } else if (c.value == '\r') {
      out->append("\\r");
    } else if (c.value == '\t') {
      out->append("\\t");
    } else if (c.value >= kInvalidByte) {
      out->append(fmt::format("\\x{:02x}", c.value - kInvalidByte));
    } else if (IsPrintable(c.value)) {
      out->append(text.substr(at, c.length));
    } else if (c.value < 0x100) {
      out->append(fmt::format("\\x{:02x}", c.value));
    } else if (c.value < 0x10000) {
      out->append(fmt::format("\\u{:04x}", c.value));
    } else {
      out->append(fmt::format("\\U{:08x}", c.value));
    }
    at += c.length;
  }
  out->push_back(quote);
}

// Collects the repr of nested values.
class ReprWriter {
 public:
  explicit ReprWriter(Runtime* runtime) : runtime_(*runtime) {}

  Status Write(const Value& value, int depth) {
    if (depth > kMaxValueDepth) {
      return ResourceExhausted("a value to print is nested more than {} deep", kMaxValueDepth);
    }
    const size_t before = out_.size();
    QUIRE_RETURN_IF_ERROR(WriteOne(value, depth));
    QUIRE_RETURN_IF_ERROR(runtime_.SpendCharacters(out_.size() - before));
    return runtime_.CheckTextSize(out_.size());
  }

  MarkedText Take() { return MarkedText::Whole(std::move(out_), plain_); }

 private:
  Status WriteOne(const Value& value, int depth) {
    if (const MarkedText* text = value.text()) {
      plain_ = plain_ || text->any_plain();
      AppendReprOfText(text->bytes(), &out_);
    } else if (value.is_none()) {
      out_.append("None");
    } else if (value.is_undefined()) {
      out_.append(depth == 0 ? "" : "Undefined");
    } else if (const bool* boolean = value.boolean()) {
      out_.append(*boolean ? "True" : "False");
    } else if (const int64_t* integer = value.integer()) {
      out_.append(std::to_string(*integer));
    } else if (const double* real = value.real()) {
      out_.append(FloatText(*real));
    } else if (value.list() != nullptr && value.list()->kind != ListKind::kLazy) {
      return WriteList(*value.list(), depth);
    } else if (value.dict() != nullptr) {
      return WriteDict(*value.dict(), depth);
    } else {
      return Unsupported("a {} cannot be printed; a lazy sequence can with |list", KindName(value));
    }
    return OkStatus();
  }

  Status WriteList(const List& list, int depth) {
    const bool tuple = list.kind == ListKind::kTuple;
    out_.push_back(tuple ? '(' : '[');
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.append(", ");
      QUIRE_RETURN_IF_ERROR(Write(list.items[i], depth + 1));
    }
    if (tuple && list.items.size() == 1) out_.push_back(',');
    out_.push_back(tuple ? ')' : ']');
    return OkStatus();
  }

  Status WriteDict(const Dict& dict, int depth) {
    out_.push_back('{');
    for (size_t i = 0; i < dict.size(); ++i) {
      if (i > 0) out_.append(", ");
      QUIRE_RETURN_IF_ERROR(Write(dict.entries()[i].first, depth + 1));
      out_.append(": ");
      QUIRE_RETURN_IF_ERROR(Write(dict.entries()[i].second, depth + 1));
    }
    out_.push_back('}');
    return OkStatus();
  }

  Runtime& runtime_;
  std::string out_;
  bool plain_ = false;
};

}  // namespace

StatusOr<TextRef> ToText(Runtime* runtime, const Value& value) {
  if (value.is_text()) return value.text_ref();
  ReprWriter writer(runtime);
  QUIRE_RETURN_IF_ERROR(writer.Write(value, 0));
  return std::make_shared<const MarkedText>(writer.Take());
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = shortest.find('e');
  int exponent = 0;
  const char* exponent_begin = buffer + e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, end.ptr, exponent);
  std::string digits;
  for (char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string result = value < 0 ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    result += digits.substr(0, 1);
    if (count > 1) result += "." + digits.substr(1);
    return result + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return result + "0." + std::string(-exponent - 1, '0') + digits;
  if (count <= exponent + 1) return result + digits + std::string(exponent + 1 - count, '0') + ".0";
  return result + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

}  // namespace quire::jinja
