#include "engine/sampler_state.h"

#include "base/check.h"

namespace quire {

SamplerState::SamplerState(const SamplingParams& params, uint32_t num_tokens) {
  if (!params.has_penalties()) return;
  counts_ = LazyArray<uint32_t>(num_tokens);
  distinct_ = LazyArray<TokenId>(num_tokens);
}

void SamplerState::Commit(TokenId id) {
  ++num_generated_;
  if (!counts_tokens()) return;
  QUIRE_CHECK(id >= 0 && static_cast<size_t>(id) < counts_.size());
  if (counts_[static_cast<size_t>(id)]++ == 0) distinct_[num_distinct_++] = id;
}

}  // namespace quire
