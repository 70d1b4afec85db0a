#include "server/metric_text.h"

#include <algorithm>
#include <cstdlib>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

// Takes what stands before `end` in `rest`, and `end` itself; nothing if `end` is not there.
std::optional<std::string_view> TakeUntil(std::string_view* rest, char end) {
  const size_t place = rest->find(end);
  if (place == std::string_view::npos) return {};
  const std::string_view taken = rest->substr(0, place);
  rest->remove_prefix(place + 1);
  return taken;
}

// name="value",...} with \\, \" and \n in values. False if it is not so.
bool ReadLabels(std::string_view* rest, std::map<std::string, std::string>* labels) {
  while (!rest->starts_with('}')) {
    const auto name = TakeUntil(rest, '=');
    if (!name.has_value() || !rest->starts_with('"')) return false;
    rest->remove_prefix(1);
    std::string value;
    while (!rest->empty() && !rest->starts_with('"')) {
      if (rest->front() == '\\' && rest->size() > 1) {
        rest->remove_prefix(1);
        value += rest->front() == 'n' ? '\n' : rest->front();
      } else {
        value += rest->front();
      }
      rest->remove_prefix(1);
    }
    if (rest->empty()) return false;
    rest->remove_prefix(1);
    labels->emplace(*name, std::move(value));
    if (rest->starts_with(',')) rest->remove_prefix(1);
  }
  rest->remove_prefix(1);
  return true;
}

bool ReadSample(std::string_view line, MetricSample* sample) {
  const size_t name_end = line.find_first_of("{ ");
  if (name_end == 0 || name_end == std::string_view::npos) return false;
  sample->name = line.substr(0, name_end);
  line.remove_prefix(name_end);
  if (line.starts_with('{')) {
    line.remove_prefix(1);
    if (!ReadLabels(&line, &sample->labels)) return false;
  }
  if (!line.starts_with(' ')) return false;
  const std::string number(line.substr(1, line.find(' ', 1) - 1));  // a time may follow
  char* end = nullptr;
  sample->value = std::strtod(number.c_str(), &end);
  return end != number.c_str() && *end == 0;
}

}  // namespace

StatusOr<MetricText> MetricText::Parse(std::string_view text) {
  MetricText result;
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    constexpr std::string_view kType = "# TYPE ";
    if (line.starts_with(kType)) {
      std::string_view type = line.substr(kType.size());
      if (const auto name = TakeUntil(&type, ' '); name.has_value())
        result.types_.emplace(*name, type);
    }
    if (line.empty() || line.starts_with('#')) continue;
    MetricSample sample;
    if (!ReadSample(line, &sample))
      return InvalidArgument("'{}' is no line of Prometheus' text format", Printable(line));
    result.samples_.push_back(std::move(sample));
  }
  return result;
}

std::optional<double> MetricText::Sum(std::string_view name,
                                      const std::map<std::string, std::string>& labels) const {
  std::optional<double> sum;
  for (const MetricSample& sample : samples_) {
    const auto has = [&](const auto& label) {
      const auto found = sample.labels.find(label.first);
      return found != sample.labels.end() && found->second == label.second;
    };
    if (sample.name == name && std::ranges::all_of(labels, has))
      sum = sum.value_or(0) + sample.value;
  }
  return sum;
}

}  // namespace quire
