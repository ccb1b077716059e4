// Checks for mistakes of ours. A user's mistake is a diagnostic, the world's is a Result; a broken
// invariant inside kiln stops here, always on, with the values that show what broke.
#pragma once

#include "support/format.h"

namespace kiln::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               fmt::string_view text, fmt::format_args args);

// What a check calls: its message is formatted in check.cpp, so that the many checks in templates
// and inline functions stay small wherever they are compiled.
template <class... Args>
[[noreturn]] void fail(const char* file, int line, const char* condition,
                       fmt::format_string<Args...> text, Args&&... args) {
  check_failed(file, line, condition, text, fmt::make_format_args(args...));
}
}  // namespace kiln::detail

// KILN_CHECK(count == 4, "a fragment of {} has {} registers", name, count);
#define KILN_CHECK(condition, ...)                                       \
  do {                                                                   \
    if (!(condition)) {                                                  \
      ::kiln::detail::fail(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    }                                                                    \
  } while (false)

#define KILN_UNREACHABLE(...) ::kiln::detail::fail(__FILE__, __LINE__, "unreachable", __VA_ARGS__)
