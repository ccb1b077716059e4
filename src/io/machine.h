// What this machine lets a run have.
#pragma once

#include <cstdint>

namespace kiln::io {

// Bytes that a run may hold unless somebody says otherwise: seven eighths of what this process can
// have, by the machine's memory, its control group and `ulimit -v`; 0 when the system does not say.
[[nodiscard]] std::uint64_t memory_allowed();

}  // namespace kiln::io
