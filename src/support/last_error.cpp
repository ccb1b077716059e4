#include "support/last_error.h"

namespace kiln {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

}  // namespace kiln
