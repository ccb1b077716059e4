#include "support/format.h"

#include <fmt/format.h>

namespace kiln::detail {

std::string vformat(fmt::string_view text, fmt::format_args args) {
  return fmt::vformat(text, args);
}

}  // namespace kiln::detail
