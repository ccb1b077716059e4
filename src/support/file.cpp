#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "support/unfinished.h"

namespace kiln {

namespace {

constexpr std::string_view kStandardInput = "/dev/stdin";

Unexpected<Error> os_error(std::string what, const std::string& path) {
  return Unexpected{Error{std::move(what), path, std::strerror(errno)}};
}

// A file descriptor, closed at the end of its life.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int operator*() const { return number_; }
  // Errors of delayed writes are told here.
  [[nodiscard]] bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

// What a file is that is not read; "" for one that is.
std::string_view unreadable_kind(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "it is a folder";
  if (S_ISFIFO(mode)) return "it is a pipe, not a file";
  if (S_ISSOCK(mode)) return "it is a socket, not a file";
  return "it is a device, not a file";
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// A device or a pipe (`-o /dev/stdout`) has nothing to keep whole: it is written to as it stands.
Result<void> write_special(const std::string& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (*file < 0 || !write_all(*file, bytes) || !file.close()) return os_error("cannot write", path);
  return {};
}

// Where a name leads through links: the file that is replaced, and not the link to it.
std::string behind_links(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) == nullptr ? path : std::string(resolved);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  // Without O_NONBLOCK a pipe that nobody writes to would be waited for.
  const bool standard = path == kStandardInput;
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (standard ? 0 : O_NONBLOCK)));
  if (*file < 0) return os_error("cannot read", path);
  struct stat info {};
  if (fstat(*file, &info) != 0) return os_error("cannot read", path);
  const std::string_view kind = unreadable_kind(info.st_mode);
  if (!kind.empty() && (!standard || S_ISDIR(info.st_mode))) {
    return Unexpected{Error{"cannot read", path, std::string(kind)}};
  }
  const auto too_large = [&] {
    return Unexpected{Error{"cannot read", path, format("larger than {} bytes", bytes_max)}};
  };
  if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > bytes_max) {
    return too_large();
  }
  std::string bytes;
  char block[1 << 16];
  while (true) {
    const ssize_t count = ::read(*file, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error("cannot read", path);
    if (count == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(count));
    if (bytes.size() > bytes_max) return too_large();
  }
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return Unexpected{Error{"cannot write", path, "it is a folder"}};
  }
  if (exists && !S_ISREG(info.st_mode)) return write_special(path, bytes);
  const std::string target = behind_links(path);
  const std::string part = format("{}.{}.part", target, getpid());
  const UnfinishedFile mark(part);
  Descriptor file(
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (*file < 0) return os_error("cannot write", path);
  bool written = write_all(*file, bytes);
  constexpr mode_t kPermissions = 07777;
  if (written && exists && fchmod(*file, info.st_mode & kPermissions) != 0) errno = 0;  // another's
  written = written && file.close();
  if (written && ::rename(part.c_str(), target.c_str()) == 0) return {};
  auto failure = os_error("cannot write", path);
  ::unlink(part.c_str());
  return failure;
}

}  // namespace kiln
