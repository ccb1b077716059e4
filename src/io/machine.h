// What this machine lets a run have.
#pragma once

#include <cstdint>

namespace kiln::io {

// Bytes that a run may hold: those of `--max-memory`, or when they are 0, seven eighths of what this
// process can have, by the machine's memory, its control group and `ulimit -v`; 0 when the system does
// not say.
[[nodiscard]] std::uint64_t memory_allowed(std::uint64_t max_memory = 0);

}  // namespace kiln::io
