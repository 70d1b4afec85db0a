#include "text/jinja/text_operations.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "text/jinja/operators.h"
#include "text/jinja/printing.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

// The characters that Strip takes away.
class StripSet {
 public:
  explicit StripSet(const MarkedText* characters) : is_space_(characters == nullptr) {
    for (size_t at = 0; !is_space_ && at < characters->size();) {
      const CodePoint c = Decode(characters->bytes(), at);
      characters_.push_back(c.value);
      at += c.length;
    }
    std::sort(characters_.begin(), characters_.end());
  }
  bool Has(uint32_t c) const {
    return is_space_ ? IsSpace(c) : std::binary_search(characters_.begin(), characters_.end(), c);
  }

 private:
  bool is_space_;
  std::vector<uint32_t> characters_;
};

bool IsLineEnd(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

class Pieces {
 public:
  Pieces(Runtime* runtime, const MarkedText& text) : runtime_(*runtime), text_(text) {}

  Status Add(size_t begin, size_t end) {
    QUIRE_RETURN_IF_ERROR(runtime_.Spend(2));
    QUIRE_ASSIGN_OR_RETURN(Value piece, runtime_.MakeText(text_.Slice(begin, end)));
    items_.push_back(std::move(piece));
    return OkStatus();
  }
  StatusOr<Value> Finish(bool reversed = false) {
    if (reversed) std::reverse(items_.begin(), items_.end());
    return runtime_.MakeList(ListKind::kList, std::move(items_));
  }

 private:
  Runtime& runtime_;
  const MarkedText& text_;
  std::vector<Value> items_;
};

StatusOr<Value> SplitAtSpace(Runtime* runtime, const MarkedText& text, int64_t most) {
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(text.size()));
  Pieces pieces(runtime, text);
  const std::string_view bytes = text.bytes();
  for (size_t at = SkipSpace(bytes, 0); at < bytes.size(); --most) {
    size_t end = at;
    while (end < bytes.size()) {
      const CodePoint c = Decode(bytes, end);
      if (most != 0 && IsSpace(c.value)) break;  // the last piece keeps all that is behind
      end += c.length;
    }
    QUIRE_RETURN_IF_ERROR(pieces.Add(at, end));
    if (most == 0) break;
    at = SkipSpace(bytes, end);
  }
  return pieces.Finish();
}

StatusOr<Value> SplitFromRight(Runtime* runtime, const MarkedText& text,
                               const MarkedText& separator, int64_t most) {
  // All places first: a search from the right need not be linear.
  std::vector<size_t> places;
  for (size_t at = FindText(text.bytes(), separator.bytes()); at != std::string::npos;
       at = FindText(text.bytes(), separator.bytes(), at + 1)) {
    places.push_back(at);
    QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(separator.size()));  // each search reads it
  }
  Pieces pieces(runtime, text);
  size_t end = text.size();
  while (!places.empty() && most != 0) {
    const size_t place = places.back();
    places.pop_back();
    if (place + separator.size() > end) continue;  // overlaps the one taken before
    QUIRE_RETURN_IF_ERROR(pieces.Add(place + separator.size(), end));
    end = place;
    --most;
  }
  QUIRE_RETURN_IF_ERROR(pieces.Add(0, end));
  return pieces.Finish(true);
}

}  // namespace

StatusOr<Value> Strip(Runtime* runtime, const MarkedText& text, const MarkedText* characters,
                      Side side) {
  const StripSet set(characters);
  const std::string_view bytes = text.bytes();
  size_t begin = 0, end = bytes.size();
  while (side != Side::kRight && begin < end) {
    const CodePoint c = Decode(bytes, begin);
    if (!set.Has(c.value)) break;
    begin += c.length;
  }
  while (side != Side::kLeft && end > begin) {
    const size_t start = PreviousStart(bytes, end);
    if (!set.Has(Decode(bytes, start).value)) break;
    end = start;
  }
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(begin + bytes.size() - end));
  return runtime->MakeText(text.Slice(begin, end));
}

StatusOr<Value> Split(Runtime* runtime, const MarkedText& text, const MarkedText* separator,
                      int64_t most, Side from) {
  if (separator == nullptr) {
    if (from == Side::kLeft || most < 0) return SplitAtSpace(runtime, text, most);
    return Unsupported("rsplit needs a separator when it has a limit");
  }
  if (separator->empty()) return InvalidArgument("split needs a separator that is not empty");
  QUIRE_RETURN_IF_ERROR(runtime->SpendSearch(text.size(), separator->size()));
  if (from == Side::kRight) return SplitFromRight(runtime, text, *separator, most);
  Pieces pieces(runtime, text);
  size_t begin = 0;
  for (; most != 0; --most) {
    const size_t end = FindText(text.bytes(), separator->bytes(), begin);
    if (end == std::string::npos) break;
    QUIRE_RETURN_IF_ERROR(pieces.Add(begin, end));
    begin = end + separator->size();
  }
  QUIRE_RETURN_IF_ERROR(pieces.Add(begin, text.size()));
  return pieces.Finish();
}

StatusOr<Value> SplitLines(Runtime* runtime, const MarkedText& text) {
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(text.size()));
  Pieces pieces(runtime, text);
  const std::string_view bytes = text.bytes();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = Decode(bytes, at);
    if (!IsLineEnd(c.value)) {
      at += c.length;
      continue;
    }
    QUIRE_RETURN_IF_ERROR(pieces.Add(begin, at));
    at += bytes.substr(at).starts_with("\r\n") ? 2 : c.length;
    begin = at;
  }
  if (begin < bytes.size()) QUIRE_RETURN_IF_ERROR(pieces.Add(begin, bytes.size()));
  return pieces.Finish();
}

StatusOr<Value> Replace(Runtime* runtime, const MarkedText& text, const MarkedText& old_part,
                        const MarkedText& new_part, int64_t most) {
  QUIRE_RETURN_IF_ERROR(runtime->SpendSearch(text.size(), old_part.size()));
  MarkedText result;
  size_t begin = 0;
  size_t search = 0;
  for (; most != 0; --most) {
    const size_t end = FindText(text.bytes(), old_part.bytes(), search);
    if (end == std::string::npos) break;
    result.Append(text, begin, end);
    result.Append(new_part);
    QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(new_part.cost()));
    QUIRE_RETURN_IF_ERROR(runtime->CheckTextSize(result.size()));
    begin = end + old_part.size();
    search = begin;
    if (old_part.empty()) {  // between all characters, and at both ends
      if (end == text.size()) break;
      search = end + Decode(text.bytes(), end).length;
    }
  }
  result.Append(text, begin, text.size());
  return runtime->MakeText(std::move(result));
}

StatusOr<Value> Join(Runtime* runtime, const std::vector<Value>& items,
                     const MarkedText& separator) {
  MarkedText result;
  for (size_t i = 0; i < items.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const TextRef item, ToText(runtime, items[i]));
    if (i > 0) result.Append(separator);
    result.Append(*item);
    QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(separator.cost() + item->cost()));
    QUIRE_RETURN_IF_ERROR(runtime->CheckTextSize(result.size()));
  }
  return runtime->MakeText(std::move(result));
}

StatusOr<Value> ChangeCase(Runtime* runtime, const MarkedText& text, CaseChange change) {
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(text.size()));
  constexpr std::string_view kWordStarts = "-([{<";
  MarkedText result;
  std::string run;  // characters with the same mark
  bool run_plain = false;
  bool word_start = true;
  auto range = text.plain().begin();
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = Decode(text.bytes(), at);
    while (range != text.plain().end() && range->end <= at) ++range;
    const bool plain = range != text.plain().end() && range->begin < at + c.length;
    if (plain != run_plain) {
      result.Append(run, run_plain);
      run.clear();
      run_plain = plain;
    }
    const bool upper = change == CaseChange::kUpper || (change != CaseChange::kLower && word_start);
    if (upper) {
      AppendUpper(c.value, &run);
    } else {
      AppendLower(c.value, &run);
    }
    if (change == CaseChange::kTitle) {
      const bool starts =
          c.value < 0x80 && kWordStarts.find(static_cast<char>(c.value)) != std::string_view::npos;
      word_start = IsSpace(c.value) || starts;
    } else {
      word_start = change == CaseChange::kTitleMethod && !IsCased(c.value);
    }
    at += c.length;
  }
  result.Append(run, run_plain);
  return runtime->MakeText(std::move(result));
}

}  // namespace quire::jinja
