// Checks for mistakes of ours. A user's mistake is a diagnostic, the world's is a Result; a broken
// invariant inside kiln stops here, always on, with the values that show what broke.
#pragma once

#include "support/format.h"

namespace kiln::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);
}  // namespace kiln::detail

// KILN_CHECK(count == 4, "a fragment of {} has {} registers", name, count);
#define KILN_CHECK(condition, ...)                                                               \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      ::kiln::detail::check_failed(__FILE__, __LINE__, #condition, ::kiln::format(__VA_ARGS__)); \
    }                                                                                            \
  } while (false)

#define KILN_UNREACHABLE(...) \
  ::kiln::detail::check_failed(__FILE__, __LINE__, "unreachable", ::kiln::format(__VA_ARGS__))
