#include "support/check.h"

#include <cstdio>
#include <cstdlib>

namespace kiln::detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "kiln: internal error at %s:%d: %s (%s)\n", file, line, message.c_str(),
               condition);
  std::fprintf(stderr,
               "This is a bug in kiln, not in your program. Please report it with the input.\n");
  std::abort();
}

}  // namespace kiln::detail
