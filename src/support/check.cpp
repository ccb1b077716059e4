#include "support/check.h"

#include <cstdio>
#include <cstdlib>

#include "support/ids.h"
#include "support/result.h"

namespace kiln::detail {

void check_failed(const char* file, int line, const char* condition, fmt::string_view text,
                  fmt::format_args args) {
  const std::string message = detail::vformat(text, args);
  std::fprintf(stderr, "kiln: internal error at %s:%d: %s (%s)\n", file, line, message.c_str(),
               condition);
  std::fprintf(stderr,
               "This is a bug in kiln, not in your program. Please report it with the input.\n");
  std::abort();
}

void no_such_id(std::size_t index, std::size_t size) {
  fail(__FILE__, __LINE__, "id < size", "id {} of {}", index, size);
}

void no_value() {
  fail(__FILE__, __LINE__, "has_value()", "value() of a Result that holds an error");
}

void no_error() {
  fail(__FILE__, __LINE__, "!has_value()", "error() of a Result that holds a value");
}

}  // namespace kiln::detail
