// Text that remembers which of its bytes came from a caller.
//
// A rendered prompt mixes the template's own words, in which "<|im_end|>" is a control token, with
// message texts, in which it is ten plain characters. MarkedText carries that difference through
// every operation of a template, so that the tokenizer can tell the two apart at the end.
//
// Bytes are UTF-8; ranges are half-open byte ranges and may start or end anywhere the operations
// put them. This class knows no characters: text/jinja/unicode.h does.
//
// Threading: a value; const access from any thread.
//
// Invariants (marked_text_test.cc):
//   [text.mark.1] plain() is sorted; its ranges are not empty, do not touch and lie in bytes().
//   [text.mark.2] A byte that came from a plain byte is in a range of plain(), whatever was done.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

// Half-open: [begin, end).
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const ByteRange&) const = default;
};

namespace jinja {

class MarkedText {
 public:
  MarkedText() = default;
  // The template's own text: nothing is plain.
  explicit MarkedText(std::string bytes) : bytes_(std::move(bytes)) {}

  // A caller's text: all of it is plain.
  static MarkedText Plain(std::string bytes);
  // `bytes` made from other text in a way that loses places: all plain or nothing.
  static MarkedText Whole(std::string bytes, bool plain);

  const std::string& bytes() const { return bytes_; }
  const std::vector<ByteRange>& plain() const { return plain_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool any_plain() const { return !plain_.empty(); }

  void Append(const MarkedText& other);
  // Appends bytes [begin, end) of `other`. Requires: begin <= end <= other.size(); other is not
  // this text.
  void Append(const MarkedText& other, size_t begin, size_t end);
  void Append(std::string_view bytes, bool plain);

  // Bytes [begin, end), with their marks.
  MarkedText Slice(size_t begin, size_t end) const;

  // What an append of `other` costs, in bytes: its text and its ranges.
  size_t cost() const { return bytes_.size() + plain_.size() * sizeof(ByteRange); }

 private:
  void AddPlain(size_t begin, size_t end);

  std::string bytes_;
  std::vector<ByteRange> plain_;
};

}  // namespace jinja
}  // namespace quire
