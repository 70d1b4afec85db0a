// PlanAnswers: POST /quire/v1/plan: what fits, for the served model or another one, as the document
// of `quire plan --json` (plan/plan_json.h). It asks no engine and reads no file.
//
// Body, all optional: `shape` (words, plan/shape_text.h) or `config` (the object of a config.json)
// for another model; users, ctx, shared_prefix, window, kv, page_size, kv_sink_pages,
// kv_recent_pages, memory_bytes, gpus, cache_share, kv_memory_bytes, weights_dtype,
// bandwidth_bytes_per_second, flops, ttft_seconds, tpot_seconds. Of the served model what is not
// said is as the server runs it.
//
// Threading: const functions by any thread. Cost: below a millisecond and O(body).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "plan/plan.h"
#include "server/api/api_error.h"

namespace quire {

class PlanAnswers {
 public:
  // `served`: nothing if its header tells too little.
  PlanAnswers(std::optional<KvModel> served, const EngineOptions& options, uint64_t budget_bytes);

  // The document, or 400 with the field: unknown ones are refused too.
  ApiResult<std::string> Answer(std::string_view body) const;

 private:
  ApiResult<PlanRequest> Read(std::string_view body) const;

  const std::optional<KvModel> served_;
  PlanRequest defaults_;  // of the served model
};

}  // namespace quire
