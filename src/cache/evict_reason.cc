#include "cache/evict_reason.h"

namespace quire {

std::string_view EvictReasonName(EvictReason reason) {
  switch (reason) {
    case EvictReason::kPoolFull:
      return "pool_full";
    case EvictReason::kTenantShare:
      return "tenant_share";
    case EvictReason::kTtl:
      return "ttl";
    case EvictReason::kDropped:
      return "dropped";
    case EvictReason::kWindow:
      return "window";
  }
  return "?";
}

}  // namespace quire
