#include "measure/bench_machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "measure/commit.h"
#include "support/file.h"
#include "support/format.h"

namespace kiln::measure {

namespace {

// The kernel driver's version as the system tells it, else what CUDA the driver serves.
std::string driver_version(const runtime::Gpu& gpu) {
  auto text = read_file("/sys/module/nvidia/version");
  if (!text || text->empty()) return format("CUDA {}", gpu.driver_cuda());
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

Unexpected<Error> cannot_write(const std::string& path) {
  return Unexpected{Error{"cannot write", path, std::strerror(errno)}};
}

}  // namespace

BenchMachine machine_of(const runtime::Gpu& gpu, std::string arch, std::string toolkit) {
  return {.arch = std::move(arch),
          .device = gpu.name(),
          .clock_mhz = gpu.clock_mhz(),
          .driver = driver_version(gpu),
          .toolkit = std::move(toolkit),
          .version = KILN_VERSION,
          .commit = KILN_COMMIT};
}

Result<void> append_to_file(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return cannot_write(path);
  struct stat before {};
  const bool known = fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  const ssize_t written = text.empty() ? 0 : write(file, text.data(), text.size());
  const bool whole = written == static_cast<ssize_t>(text.size());
  if (!whole && written >= 0) errno = ENOSPC;
  const int code = errno;
  // Half a line would spoil the file; what others have appended meanwhile goes with it.
  if (!whole && written > 0 && known && ftruncate(file, before.st_size) != 0) errno = code;
  errno = code;
  auto failure = whole ? Result<void>() : Result<void>(cannot_write(path));
  if (close(file) != 0 && failure) failure = cannot_write(path);
  return failure;
}

}  // namespace kiln::measure
