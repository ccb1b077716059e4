// Machine code that programs carry, made when they were built: found in the place of a compilation.
//
//   carry(code_key(request).hex(), cubin)      once, by whoever has it
//   find_carried(request)                      those bytes, or nothing
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/nvrtc.h"
#include "support/hash.h"

namespace kiln::runtime {

// Names what a compilation makes, whichever compiler it is that makes it.
[[nodiscard]] Digest code_key(const CompileRequest& request);

// The bytes are copied and kept while the process lives. What is there already stays.
void carry(const std::string& key, std::string_view bytes);

[[nodiscard]] std::optional<std::string> find_carried(const CompileRequest& request);

}  // namespace kiln::runtime
