// Makers of error statuses with fmt's formatting: InvalidFile("tensor {}: {} dims", name, n).
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/status.h"

namespace quire {

template <class... Args>
Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kNotFound, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status InvalidFile(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInvalidFile, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status Unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status ResourceExhausted(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kResourceExhausted, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status NonFinite(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kNonFinite, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status Unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kUnavailable, fmt::format(format, std::forward<Args>(args)...)};
}
template <class... Args>
Status Internal(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInternal, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace quire
