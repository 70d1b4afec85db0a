#include "server/routes.h"

#include <optional>
#include <string_view>

namespace quire {
namespace {

constexpr Route kRoutes[] = {
    //                            method    pattern                       body  engine work
    {RouteId::kHealth, "GET", "/health", false, false, false},
    {RouteId::kHealth, "GET", "/ping", false, false, false},
    {RouteId::kHealthLive, "GET", "/health/live", false, false, false},
    {RouteId::kHealthReady, "GET", "/health/ready", false, false, false},
    {RouteId::kHealthProgress, "GET", "/health/progress", false, false, false},
    {RouteId::kVersion, "GET", "/version", false, false, false},
    {RouteId::kMetrics, "GET", "/metrics", false, true, false},
    {RouteId::kLoad, "GET", "/load", false, true, false},
    {RouteId::kModels, "GET", "/v1/models", false, true, false},
    {RouteId::kModel, "GET", "/v1/models/{*}", false, true, false},
    {RouteId::kChat, "POST", "/v1/chat/completions", true, true, true},
    {RouteId::kCompletions, "POST", "/v1/completions", true, true, true},
    {RouteId::kEmbeddings, "POST", "/v1/embeddings", true, true, false},
    {RouteId::kRenderChat, "POST", "/v1/chat/completions/render", true, true, false},
    {RouteId::kRenderCompletions, "POST", "/v1/completions/render", true, true, false},
    {RouteId::kTokenize, "POST", "/tokenize", true, true, false},
    {RouteId::kDetokenize, "POST", "/detokenize", true, true, false},
    {RouteId::kTokenizerInfo, "GET", "/tokenizer_info", false, true, false},
    {RouteId::kApplyTemplate, "POST", "/apply-template", true, true, false},
    {RouteId::kResetPrefixCache, "POST", "/reset_prefix_cache", false, true, false},
    {RouteId::kOpenApi, "GET", "/openapi.json", false, true, false},
    {RouteId::kCache, "GET", "/quire/v1/cache", false, true, false},
    {RouteId::kPrefixes, "GET", "/quire/v1/prefixes", false, true, false},
    {RouteId::kAddPrefix, "POST", "/quire/v1/prefixes", true, true, true},
    {RouteId::kChangePrefix, "PATCH", "/quire/v1/prefixes/{}", true, true, false},
    {RouteId::kDropPrefix, "DELETE", "/quire/v1/prefixes/{}", false, true, false},
    {RouteId::kDropTenantCache, "DELETE", "/quire/v1/tenants/{}/cache", false, true, false},
    {RouteId::kMatch, "POST", "/quire/v1/match", true, true, false},
    {RouteId::kRequests, "GET", "/quire/v1/requests", false, true, false},
    {RouteId::kAbortRequest, "DELETE", "/quire/v1/requests/{}", false, true, false},
    {RouteId::kEvents, "GET", "/quire/v1/events", false, true, false},
    {RouteId::kPlan, "POST", "/quire/v1/plan", true, true, false},
};

// What "{}" stands for, if the path fits the pattern.
std::optional<std::string> Match(std::string_view pattern, std::span<const std::string> segments) {
  std::string argument;
  size_t next = 0;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);  // the slash
    const std::string_view part = pattern.substr(0, pattern.find('/'));
    pattern.remove_prefix(part.size());
    if (next == segments.size()) return std::nullopt;
    const std::string& segment = segments[next++];
    if (part == "{*}") {
      argument = segment;
      while (next < segments.size()) argument += "/" + segments[next++];
    } else if (part == "{}") {
      argument = segment;
    } else if (part != segment) {
      return std::nullopt;
    }
  }
  if (next != segments.size()) return std::nullopt;
  return argument;
}

}  // namespace

std::span<const Route> AllRoutes() { return kRoutes; }

ApiResult<RouteMatch> FindRoute(const HttpRequest& request) {
  std::string allow;
  const std::string_view method =
      request.method == "HEAD" ? std::string_view("GET") : std::string_view(request.method);
  for (const Route& route : kRoutes) {
    std::optional<std::string> argument = Match(route.pattern, request.segments);
    if (!argument.has_value()) continue;
    if (method == route.method) return RouteMatch{&route, std::move(*argument)};
    allow += (allow.empty() ? "" : ", ") + std::string(route.method);
    if (route.method == std::string_view("GET")) allow += ", HEAD";
  }
  if (!allow.empty()) return MethodNotAllowed(request.method, request.Path(), allow);
  return UnknownUrl(request.method, request.Path());
}

}  // namespace quire
