#include "io/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "support/file.h"

namespace kiln::io {

namespace {

// The limit of the process's control group; without one more than any machine has.
std::uint64_t control_group_bytes() {
  std::uint64_t bytes = UINT64_MAX;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    constexpr std::size_t kBytesMax = 64;
    const auto text = read_file(path, kBytesMax);
    if (!text) continue;
    std::uint64_t value = 0;
    const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
    if (read.ec == std::errc() && value != 0) bytes = std::min(bytes, value);
  }
  return bytes;
}

}  // namespace

std::uint64_t memory_allowed(std::uint64_t max_memory) {
  if (max_memory != 0) return max_memory;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 0;
  std::uint64_t bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  bytes = std::min(bytes, control_group_bytes());
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur);
  }
  return bytes / 8 * 7;
}

}  // namespace kiln::io
