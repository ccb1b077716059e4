#include "support/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kiln {

namespace {

Unexpected<Error> os_error(std::string what, const std::string& path) {
  return Unexpected{Error{std::move(what), path, std::strerror(errno)}};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return os_error("cannot read", path);
  struct stat info {};
  if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
    std::fclose(file);
    return Unexpected{Error{"cannot read", path, "it is a folder"}};
  }
  std::string bytes;
  char block[1 << 16];
  std::size_t count = 0;
  while ((count = std::fread(block, 1, sizeof block, file)) > 0) {
    bytes.append(block, count);
    if (bytes.size() > bytes_max) {
      std::fclose(file);
      return Unexpected{Error{"cannot read", path, format("larger than {} bytes", bytes_max)}};
    }
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return os_error("cannot read", path);
  return bytes;
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  struct stat info {};
  // A device or a pipe (`-o /dev/stdout`) has nothing to keep whole: write straight to it.
  const bool special = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  if (special && S_ISDIR(info.st_mode)) {
    return Unexpected{Error{"cannot write", path, "it is a folder"}};
  }
  const std::string target = special ? path : format("{}.{}.part", path, getpid());
  std::FILE* file = std::fopen(target.c_str(), "wb");
  if (file == nullptr) return os_error("cannot write", path);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && (special || std::rename(target.c_str(), path.c_str()) == 0)) return {};
  auto failure = os_error("cannot write", path);
  if (!special) std::remove(target.c_str());
  return failure;
}

}  // namespace kiln
