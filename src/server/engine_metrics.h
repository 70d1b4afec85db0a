// The metrics whose numbers the engine and the cache count, as families of one scrape.
//
// Threading: a pure function.
#pragma once

#include "server/kv_report.h"
#include "server/metric_families.h"
#include "server/metrics.h"

namespace quire {

// `stats` and `report` are of one moment.
void AddEngineFamilies(const MetricsOptions& options, const EngineStats& stats,
                       const KvReport& report, MetricFamilies* to);

}  // namespace quire
