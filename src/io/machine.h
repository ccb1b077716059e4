// What this machine offers: the only place of this folder that looks.
#pragma once

#include <cstdint>

#include "target/arch.h"

namespace kiln::io {

// The architecture of the machine's first GPU, or null.
[[nodiscard]] const target::Arch* machine_arch();

// Bytes that a run may hold unless somebody says otherwise: seven eighths of what this process can
// have, by the machine's memory, its control group and `ulimit -v`; 0 when the system does not say.
[[nodiscard]] std::uint64_t memory_allowed();

}  // namespace kiln::io
