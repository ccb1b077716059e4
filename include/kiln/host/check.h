// Conditions that host code states; one that does not hold ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace choreo {

namespace detail {

[[noreturn]] inline void fail(const std::string& message, const char* file, int line) {
  std::cout.flush();
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace detail

// The place is the caller's; the compiler fills it in.
inline void choreo_assert(bool holds, const char* message, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  if (!holds) detail::fail(std::string("assertion failed: ") + message, file, line);
}
inline void choreo_assert(bool holds, const std::string& message,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  choreo_assert(holds, message.c_str(), file, line);
}
inline void croq_assert(bool holds, const std::string& message, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  choreo_assert(holds, message.c_str(), file, line);
}

inline void runtime_check(bool holds, const std::string& message,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!holds) detail::fail(message, file, line);
}

// For calls that answer 0 when they did what was asked, as those of CUDA do.
inline void abend_true(int error, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  if (error != 0) detail::fail("a call failed with error " + std::to_string(error), file, line);
}
// For calls that answer true.
inline void abend_false(bool done, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  if (!done) detail::fail("a call failed", file, line);
}

}  // namespace choreo
