// Whose text stands for `#include "name.co"`: whoever parses says so, for files or for texts that a
// program carries.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "support/result.h"

namespace kiln {

struct IncludedFile {
  std::string name;  // as diagnostics show it, and as `from` of what it includes itself
  std::string text;
};

// The file that `#include "name"` in the file called `from` means.
using ReadIncluded =
    std::function<Result<IncludedFile>(std::string_view from, std::string_view name)>;

}  // namespace kiln
