#include "text/jinja/sorting.h"

#include <algorithm>

#include "text/jinja/operators.h"
#include "text/jinja/text_operations.h"

namespace quire::jinja {

Status SortByKey(Runtime* runtime, bool ignore_case, bool reversed,
                 std::vector<KeyedValue>* values) {
  for (KeyedValue& value : *values) {
    if (!ignore_case || !value.first.is_text()) continue;
    QUIRE_ASSIGN_OR_RETURN(value.first,
                           ChangeCase(runtime, *value.first.text(), CaseChange::kLower));
  }
  // A merge sort by hand: std::stable_sort cannot stop at a failed comparison.
  std::vector<KeyedValue> merged;
  for (size_t width = 1; width < values->size(); width *= 2) {
    merged.clear();
    for (size_t begin = 0; begin < values->size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, values->size());
      const size_t end = std::min(begin + 2 * width, values->size());
      size_t left = begin, right = middle;
      while (left < middle && right < end) {
        const Value& a = (*values)[left].first;
        const Value& b = (*values)[right].first;
        QUIRE_ASSIGN_OR_RETURN(const bool take_right,
                               reversed ? Less(runtime, a, b) : Less(runtime, b, a));
        merged.push_back(std::move((*values)[take_right ? right++ : left++]));
      }
      while (left < middle) merged.push_back(std::move((*values)[left++]));
      while (right < end) merged.push_back(std::move((*values)[right++]));
    }
    values->swap(merged);
  }
  return OkStatus();
}

}  // namespace quire::jinja
