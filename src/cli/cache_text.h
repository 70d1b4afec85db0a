// What `quire cache` prints: text made of a server's JSON (server/admin.h) and metrics.
//
// Names and labels come from others: they are made safe for a terminal. Threading: pure functions.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "server/metric_text.h"

namespace quire {

// Of GET /quire/v1/cache, /prefixes and /requests. Fields that an older or newer server lacks are
// left empty.
std::string CacheInfoText(const nlohmann::ordered_json& cache, bool is_aligned);
std::string PrefixesText(const nlohmann::ordered_json& prefixes, bool is_aligned, std::time_t now);
std::string RequestsText(const nlohmann::ordered_json& requests, bool is_aligned);

// Lines of `quire cache stat`: what the server does, from one scrape to the next.
class StatLines {
 public:
  explicit StatLines(bool is_aligned) : is_aligned_(is_aligned) {}
  std::string Header() const;
  // Of the time since the last call; the first gives nothing. `seconds`: of any clock.
  std::optional<std::string> Next(const MetricText& metrics, double seconds);

 private:
  std::string Line(const std::vector<std::string>& cells) const;

  const bool is_aligned_;
  std::optional<MetricText> last_;
  double last_seconds_ = 0;
};

}  // namespace quire
