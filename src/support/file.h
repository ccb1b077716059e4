// Reading and writing whole files.
#pragma once

#include <string>
#include <string_view>

#include "support/result.h"

namespace kiln {

// The whole file as bytes. Errors: unreadable, larger than `bytes_max`, or no file at all: folders,
// pipes and devices are refused, without waiting for them. `/dev/stdin` may be any of the latter.
Result<std::string> read_file(const std::string& path,
                              std::size_t bytes_max = std::size_t{1} << 32);

// Writes to a temporary name beside `path`, then renames: a reader sees the old file or the whole
// new one, never half of it, and nothing is left behind on failure (see unfinished.h). A pipe or a
// device is written to as it stands.
Result<void> write_file(const std::string& path, std::string_view bytes);

}  // namespace kiln
