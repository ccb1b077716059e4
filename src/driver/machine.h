// What this machine offers: the only place in the driver that looks.
#pragma once

#include <cstdint>

#include "target/arch.h"

namespace kiln::driver {

// The architecture of the machine's first GPU, or null.
[[nodiscard]] const target::Arch* machine_arch();

// Bytes of physical memory; 0 when the system does not say.
[[nodiscard]] std::uint64_t memory_bytes();

}  // namespace kiln::driver
