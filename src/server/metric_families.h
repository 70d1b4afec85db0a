// MetricFamilies: families of samples as one scrape gives them, in the order they were added.
//
// For numbers that others count and that are read at a scrape; what is observed as it happens
// lives in a prometheus::Registry (metrics.cc).
//
// Threading: a plain value.
#pragma once

#include <prometheus/metric_family.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

class MetricFamilies {
 public:
  // A sample of a gauge or counter. One that follows another of its name joins its family.
  void AddGauge(std::string_view name, std::string_view help, MetricLabels labels, double value);
  void AddCounter(std::string_view name, std::string_view help, MetricLabels labels, double value);
  // counts[i]: of values at most bounds[i] and above the bound before; the last one, without a
  // bound, of all above. Requires: counts.size() == bounds.size() + 1.
  void AddHistogram(std::string_view name, std::string_view help, MetricLabels labels,
                    std::span<const double> bounds, std::span<const uint64_t> counts, double sum);

  std::vector<prometheus::MetricFamily>& families() { return families_; }

 private:
  prometheus::ClientMetric& Add(std::string_view name, std::string_view help,
                                prometheus::MetricType type, MetricLabels labels);

  std::vector<prometheus::MetricFamily> families_;
};

// process_*: of this process, from /proc. Those that can't be read are left out.
void AddProcessFamilies(MetricFamilies* to);

}  // namespace quire
