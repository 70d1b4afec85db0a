// What every operation of one rendering needs: the heap, the budget and the clock.
//
// Templates come from files and are not trusted, and message texts come from clients: each loop
// turn, each value and each 8 to 64 bytes of text that an operation reads or writes cost a step, so
// that time and memory are bounded whatever the template does (case TPL-08).
//
// Threading: one thread, one rendering.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/errors.h"
#include "base/status.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace quire::jinja {

struct RenderLimits {
  // A turn of a loop with a few expressions is about 20 steps.
  int64_t max_steps = 2'000'000;
  // Of the prompt and of every text on the way to it.
  size_t max_text_bytes = size_t{32} << 20;
  // Nested expressions, statements and macro calls; each costs up to 2 KiB of the thread's stack.
  int max_depth = 1000;
};

// Nesting of values that are compared, printed or read from JSON.
constexpr int kMaxValueDepth = 128;

class Runtime {
 public:
  Runtime(const RenderLimits& limits, const std::tm& now)
      : limits_(limits), now_(now), steps_left_(limits.max_steps) {}

  Heap& heap() { return heap_; }
  const RenderLimits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }

  // Whether raise_exception made the error: its message goes out as it is, without a line.
  bool raised() const { return raised_; }
  void set_raised() { raised_ = true; }

  Status Spend(size_t steps) {
    if (steps > static_cast<size_t>(steps_left_)) {
      steps_left_ = 0;
      return ResourceExhausted(
          "the chat template needs more than {} steps for this input: it loops without end, or "
          "the messages are too long",
          limits_.max_steps);
    }
    steps_left_ -= static_cast<int64_t>(steps);
    return OkStatus();
  }
  // Before that many bytes of text are copied or compared.
  Status SpendBytes(size_t bytes) { return Spend(1 + bytes / 64); }
  // Before that many bytes are looked at character by character.
  Status SpendCharacters(size_t bytes) { return Spend(1 + bytes / 8); }
  // Before a search of `part_bytes` in `text_bytes`; the search for a long part is slower.
  Status SpendSearch(size_t text_bytes, size_t part_bytes) {
    return Spend(1 + text_bytes / (part_bytes < 16 ? 64 : 8) + part_bytes / 8);
  }

  Status CheckTextSize(size_t bytes) const {
    if (bytes <= limits_.max_text_bytes) return OkStatus();
    return ResourceExhausted("the chat template makes a text of {} bytes, at most {} are allowed",
                             bytes, limits_.max_text_bytes);
  }
  // Pays for a text that an operation has made.
  StatusOr<Value> MakeText(MarkedText text) {
    QUIRE_RETURN_IF_ERROR(SpendBytes(text.cost()));
    QUIRE_RETURN_IF_ERROR(CheckTextSize(text.size()));
    return Value(std::move(text));
  }
  StatusOr<Value> MakeList(ListKind kind, std::vector<Value> items) {
    QUIRE_RETURN_IF_ERROR(Spend(1 + items.size()));
    return Value(heap_.NewList(kind, std::move(items)));
  }

 private:
  RenderLimits limits_;
  std::tm now_;
  int64_t steps_left_;
  bool raised_ = false;
  Heap heap_;
};

}  // namespace quire::jinja
