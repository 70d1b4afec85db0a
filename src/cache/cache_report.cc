#include "cache/cache_report.h"

#include "cache/kv_cache.h"

namespace quire {
namespace {

void Add(const PageStates& more, uint64_t times, PageStates* sum) {
  sum->held += more.held * times;
  sum->cached += more.cached * times;
  sum->pinned += more.pinned * times;
}

GroupReport ReportGroup(const KvCache& cache, uint32_t group) {
  const PagePool& pool = cache.pool();
  const KvGroupShape& shape = cache.shape().groups[group];
  GroupReport report;
  report.window = shape.window;
  for (const PageClass c : {OpenClass(group), SealedClass(group)}) {
    if (!pool.has_class(c)) continue;
    Add(pool.class_pages(c), 1, &report.pages);
    Add(pool.class_pages(c), pool.stride(c), &report.bytes);
    for (uint32_t reason = 0; reason < kNumEvictReasons; ++reason)
      report.evicted_pages[reason] += cache.tree().eviction_counts(c).num_evicted[reason];
  }
  report.open_page_bytes = pool.stride(OpenClass(group));
  if (shape.has_sealed()) report.sealed_page_bytes = pool.stride(SealedClass(group));
  const size_t old = shape.has_sealed() ? report.sealed_page_bytes : report.open_page_bytes;
  report.free_pages = pool.free_bytes() / old;
  return report;
}

}  // namespace

CacheReport MakeCacheReport(const KvCache& cache) {
  const PagePool& pool = cache.pool();
  CacheReport report;
  report.budget_bytes = pool.budget_bytes();
  report.free_bytes = pool.free_bytes();
  report.committed_slack_bytes = pool.slack_bytes();
  report.committed_page_bytes = pool.committed_bytes() - report.committed_slack_bytes;
  for (uint32_t g = 0; g < cache.shape().num_groups(); ++g) {
    report.groups.push_back(ReportGroup(cache, g));
    Add(report.groups.back().pages, 1, &report.pages);
    Add(report.groups.back().bytes, 1, &report.bytes);
  }
  for (TenantId id = 0; id < cache.num_tenants(); ++id)
    report.tenants.push_back({.tenant = cache.tenant_name(id),
                              .bytes = pool.account_bytes(id),
                              .retained_bytes = pool.retained_bytes(id)});
  report.num_namespaces = static_cast<uint32_t>(cache.num_namespaces());
  report.num_pins = static_cast<uint32_t>(cache.pins().size());
  report.num_nodes = cache.tree().nodes().num_nodes();
  report.residency = cache.tree().residency();
  return report;
}

}  // namespace quire
