#include "cache/eviction_policy.h"

#include "base/errors.h"
#include "cache/lru_policy.h"
#include "cache/reuse_policy.h"

namespace quire {

StatusOr<EvictionPolicyKind> ParseEvictionPolicy(std::string_view name) {
  for (const auto kind : {EvictionPolicyKind::kLru, EvictionPolicyKind::kReuse})
    if (name == EvictionPolicyName(kind)) return kind;
  return InvalidArgument("unknown eviction policy '{}': use lru or reuse", name);
}

std::string_view EvictionPolicyName(EvictionPolicyKind kind) {
  return kind == EvictionPolicyKind::kLru ? "lru" : "reuse";
}

std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionPolicyKind kind, uint32_t max_nodes,
                                                   uint32_t page_size) {
  if (kind == EvictionPolicyKind::kLru) return std::make_unique<LruPolicy>(max_nodes);
  return std::make_unique<ReusePolicy>(max_nodes, page_size);
}

}  // namespace quire
