#include "driver/machine.h"

#include <unistd.h>

#include "runtime/gpu.h"

namespace kiln::driver {

const target::Arch* machine_arch() {
  const Result<runtime::Gpu> gpu = runtime::Gpu::open();
  return gpu ? &gpu->arch() : nullptr;
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

}  // namespace kiln::driver
