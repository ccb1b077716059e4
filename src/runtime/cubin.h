// What a compiled kernel takes, as the machine code says it.
//
//   registers_of(cubin.bytes)    {"matmul": 132}: of a thread, by kernel
//
// A cubin is an ELF file. Its section `.nv.info` has a record for each kernel that names the kernel's symbol and how many
// registers a thread of it has; the driver reads the same one.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "support/result.h"

namespace kiln::runtime {

// Errors: no ELF file, or one that is cut off.
[[nodiscard]] Result<std::map<std::string, int>> registers_of(std::string_view cubin);

}  // namespace kiln::runtime
