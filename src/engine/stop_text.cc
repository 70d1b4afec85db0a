#include "engine/stop_text.h"

#include <algorithm>

#include "base/check.h"

namespace quire {
namespace {

std::vector<uint16_t> Fallbacks(std::string_view bytes) {
  std::vector<uint16_t> fallback(bytes.size(), 0);
  uint16_t length = 0;
  for (size_t i = 1; i < bytes.size(); ++i) {
    while (length > 0 && bytes[i] != bytes[length]) length = fallback[length - 1];
    if (bytes[i] == bytes[length]) ++length;
    fallback[i] = length;
  }
  return fallback;
}

}  // namespace

StopText::StopText(const SamplingParams& params)
    : min_tokens_(params.min_tokens), include_stop_string_(params.include_stop_string) {
  size_t longest = 0;
  for (const std::string& bytes : params.stop_strings) {
    QUIRE_CHECK(!bytes.empty());
    patterns_.push_back({.bytes = bytes, .fallback = Fallbacks(bytes)});
    longest = std::max(longest, bytes.size());
  }
  text_.reserve(2 * (longest + 64));
  held_.reserve(longest + 64);
}

void StopText::Append(std::string_view text) {
  const bool may_stop = num_pushed_ >= min_tokens_;
  uint64_t end = appended();
  for (const char byte : text) {
    ++end;
    size_t best_len = 0;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      Pattern& pattern = patterns_[i];
      uint16_t& matched = pattern.matched;
      while (matched > 0 && pattern.bytes[matched] != byte) matched = pattern.fallback[matched - 1];
      if (pattern.bytes[matched] == byte) ++matched;
      if (matched < pattern.bytes.size()) continue;
      matched = pattern.fallback[matched - 1];
      if (!may_stop || pattern.bytes.size() <= best_len) continue;
      best_len = pattern.bytes.size();
      stop_index_ = static_cast<uint32_t>(i);
    }
    text_ += byte;
    if (!stopped()) continue;
    cut_ = include_stop_string_ ? end : end - best_len;
    return;
  }
}

std::string_view StopText::Release(uint64_t end) {
  const auto count = static_cast<size_t>(end - released_);
  QUIRE_CHECK(count <= text_.size());
  num_shown_ = count;
  released_ = end;
  return std::string_view(text_).substr(0, count);
}

void StopText::ReleaseTokens(uint64_t text_end, bool is_cut) {
  size_t count = 0;
  for (; count < held_.size(); ++count) {
    const HeldToken& token = held_[count];
    if (token.end > text_end && !(is_cut && token.begin < text_end)) break;
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
  num_released_ += count;
}

std::string_view StopText::Push(std::string_view text, bool inside_character) {
  QUIRE_CHECK(!stopped());
  text_.erase(0, num_shown_);
  num_shown_ = 0;
  const uint64_t begin = appended();
  // Its next byte comes with a later piece.
  held_.push_back({.begin = begin, .end = begin + text.size() + (inside_character ? 1 : 0)});
  ++num_pushed_;
  Append(text);
  size_t num_held = 0;  // the longest tail that begins a stop string
  for (const Pattern& pattern : patterns_) num_held = std::max<size_t>(num_held, pattern.matched);
  const uint64_t end = stopped() ? cut_ : appended() - num_held;
  const std::string_view shown = Release(end);
  ReleaseTokens(end, stopped());
  return shown;
}

std::string_view StopText::Finish(std::string_view text) {
  QUIRE_CHECK(!stopped());
  text_.erase(0, num_shown_);
  num_shown_ = 0;
  Append(text);
  const uint64_t end = stopped() ? cut_ : appended();
  const std::string_view shown = Release(end);
  if (stopped()) {
    ReleaseTokens(end, /*is_cut=*/true);
  } else {  // also one that waited for bytes that never came
    num_released_ = num_pushed_;
    held_.clear();
  }
  return shown;
}

}  // namespace quire
