// Routes: which method and path is what. The one table of all there is; docs/server.md and the
// OpenAPI document have the same.
//
// Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/api/api_error.h"
#include "server/http/http_message.h"

namespace quire {

enum class RouteId {
  kHealth,
  kHealthLive,
  kHealthReady,
  kHealthProgress,
  kVersion,
  kMetrics,
  kLoad,
  kModels,
  kModel,
  kChat,
  kCompletions,
  kEmbeddings,
  kRenderChat,
  kRenderCompletions,
  kTokenize,
  kDetokenize,
  kTokenizerInfo,
  kApplyTemplate,
  kResetPrefixCache,
  kOpenApi,
  kCache,
  kPrefixes,
  kAddPrefix,
  kChangePrefix,
  kDropPrefix,
  kDropTenantCache,
  kMatch,
  kRequests,
  kAbortRequest,
  kEvents,
  kPlan,
};

struct Route {
  RouteId id;
  const char* method;
  const char* pattern;  // "{}" stands for one segment, "{*}" at the end for one or more
  bool has_body;        // JSON
  bool needs_engine;    // 503 until the model is loaded
  bool is_new_work;     // 503 while draining

  bool is_generation() const { return id == RouteId::kChat || id == RouteId::kCompletions; }
  // Others come every few seconds and tell nothing as long as they work.
  bool is_logged() const { return is_new_work || method != std::string_view("GET"); }
};

std::span<const Route> AllRoutes();

struct RouteMatch {
  const Route* route;
  std::string argument;  // what "{}" or "{*}" stands for
};

// HEAD is GET, of which the transport sends no body. 404 unknown_url or 405 with what the path
// takes.
ApiResult<RouteMatch> FindRoute(const HttpRequest& request);

}  // namespace quire
