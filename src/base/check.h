// QUIRE_CHECK: for our own bugs only. No input, file or machine state may reach one; those are
// Status values (base/status.h).
#pragma once

namespace quire {

// Prints the expression and its place to stderr and aborts.
[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);

}  // namespace quire

#define QUIRE_CHECK(condition)                              \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::quire::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)
