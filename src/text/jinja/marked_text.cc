#include "text/jinja/marked_text.h"

#include <algorithm>
#include <utility>

namespace quire::jinja {

MarkedText MarkedText::Plain(std::string bytes) { return Whole(std::move(bytes), true); }

MarkedText MarkedText::Whole(std::string bytes, bool plain) {
  MarkedText text(std::move(bytes));
  if (plain) text.AddPlain(0, text.size());
  return text;
}

void MarkedText::AddPlain(size_t begin, size_t end) {
  if (begin == end) return;
  if (!plain_.empty() && plain_.back().end == begin) {
    plain_.back().end = end;
  } else {
    plain_.push_back({begin, end});
  }
}

void MarkedText::Append(const MarkedText& other) { Append(other, 0, other.size()); }

void MarkedText::Append(const MarkedText& other, size_t begin, size_t end) {
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  // The first range that ends behind `begin`: a split of a long text must not walk all of them.
  auto range = std::partition_point(other.plain_.begin(), other.plain_.end(),
                                    [&](const ByteRange& r) { return r.end <= begin; });
  for (; range != other.plain_.end() && range->begin < end; ++range) {
    AddPlain(base + std::max(range->begin, begin) - begin,
             base + std::min(range->end, end) - begin);
  }
}

void MarkedText::Append(std::string_view bytes, bool plain) {
  const size_t base = bytes_.size();
  bytes_.append(bytes);
  if (plain) AddPlain(base, bytes_.size());
}

MarkedText MarkedText::Slice(size_t begin, size_t end) const {
  MarkedText result;
  result.Append(*this, begin, end);
  return result;
}

}  // namespace quire::jinja
