// MetricText: reads Prometheus' text format 0.0.4, as far as servers of language models write it:
// for `quire cache stat`, which watches a server, and for tests.
//
// Not here: writing it (metrics.h).
//
// Threading: plain values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

class MetricText {
 public:
  // kInvalidArgument, with the line, for text that is not of this format.
  static StatusOr<MetricText> Parse(std::string_view text);

  // In the order of the text.
  const std::vector<MetricSample>& samples() const { return samples_; }
  // "gauge", "counter", "histogram", by family.
  const std::map<std::string, std::string>& types() const { return types_; }

  // The sum of all samples of this name whose labels contain `labels`; nothing if there is none.
  std::optional<double> Sum(std::string_view name,
                            const std::map<std::string, std::string>& labels = {}) const;

 private:
  std::vector<MetricSample> samples_;
  std::map<std::string, std::string> types_;
};

}  // namespace quire
