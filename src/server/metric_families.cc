#include "server/metric_families.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {

// Seconds since 1970 when this process began: the boot's time and field 22 of /proc/self/stat.
double StartSeconds() {
  std::ifstream stat("/proc/self/stat");
  const std::string line{std::istreambuf_iterator<char>(stat), {}};
  const size_t name_end = line.rfind(')');  // the name may have blanks
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const double ticks = std::strtod(field.c_str(), nullptr);
  std::ifstream all("/proc/stat");
  for (std::string name; all >> name; all.ignore(1 << 20, '\n')) {
    double boot = 0;
    if (name == "btime" && all >> boot)
      return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return 0;
}

double CpuSeconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

prometheus::ClientMetric& MetricFamilies::Add(std::string_view name, std::string_view help,
                                              prometheus::MetricType type, MetricLabels labels) {
  if (families_.empty() || families_.back().name != name)
    families_.push_back({std::string(name), std::string(help), type, {}});
  prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
  metric.label = std::move(labels);
  return metric;
}

void MetricFamilies::AddGauge(std::string_view name, std::string_view help, MetricLabels labels,
                              double value) {
  Add(name, help, prometheus::MetricType::Gauge, std::move(labels)).gauge.value = value;
}

void MetricFamilies::AddCounter(std::string_view name, std::string_view help, MetricLabels labels,
                                double value) {
  Add(name, help, prometheus::MetricType::Counter, std::move(labels)).counter.value = value;
}

void MetricFamilies::AddHistogram(std::string_view name, std::string_view help, MetricLabels labels,
                                  std::span<const double> bounds, std::span<const uint64_t> counts,
                                  double sum) {
  QUIRE_CHECK(counts.size() == bounds.size() + 1);
  auto& histogram = Add(name, help, prometheus::MetricType::Histogram, std::move(labels)).histogram;
  for (size_t i = 0; i < bounds.size(); ++i) {
    histogram.sample_count += counts[i];
    histogram.bucket.push_back({histogram.sample_count, bounds[i]});
  }
  histogram.sample_count += counts.back();
  histogram.sample_sum = sum;  // the bucket +Inf is the serialiser's
}

void AddProcessFamilies(MetricFamilies* to) {
  to->AddCounter("process_cpu_seconds_total", "User and system time of this process.", {},
                 CpuSeconds());
  if (const double start = StartSeconds(); start > 0)
    to->AddGauge("process_start_time_seconds", "When this process began, since 1970.", {}, start);
  uint64_t virtual_pages = 0, resident_pages = 0;
  if (std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages) {
    const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    to->AddGauge("process_virtual_memory_bytes", "Address space of this process.", {},
                 static_cast<double>(virtual_pages) * page_bytes);
    to->AddGauge("process_resident_memory_bytes", "Memory of the machine that it uses.", {},
                 static_cast<double>(resident_pages) * page_bytes);
  }
  std::error_code error;
  const auto files = std::filesystem::directory_iterator("/proc/self/fd", error);
  if (!error)
    to->AddGauge("process_open_fds", "Open file descriptors.", {},
                 static_cast<double>(std::distance(begin(files), end(files)) - 1));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    to->AddGauge("process_max_fds", "Most file descriptors that it may open.", {},
                 static_cast<double>(limit.rlim_cur));
}

}  // namespace quire
