#include "runtime/cache.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "support/format.h"
#include "support/unfinished.h"

namespace kiln::runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntrySuffix = ".kiln";
constexpr std::string_view kPartSuffix = ".kiln-part";  // being written, or left by the killed
constexpr std::size_t kKeyDigits = 32;
constexpr std::size_t kPartDigits = 16;
constexpr std::int64_t kPartSecondsMax = 3600;

Unexpected<Error> failed(std::string what, const std::string& path, int code) {
  return Unexpected{Error{std::move(what), path, std::strerror(code)}};
}

// A file descriptor, closed at the end of its life.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int operator*() const { return descriptor_; }
  // Errors of delayed writes are told here.
  [[nodiscard]] bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

std::string entry_name(const Digest& key) { return key.hex() + std::string(kEntrySuffix); }

// The line before the bytes. Its length is the same for all.
std::string head(const Digest& key, std::string_view bytes) {
  return format("kiln-cache 1 {} {} {:020}\n", key.hex(), digest(bytes).hex(), bytes.size());
}

// `bytes_wanted` bytes, or fewer when there are no more or they cannot be read.
std::string read_at_most(int file, std::size_t bytes_wanted) {
  std::string bytes(bytes_wanted, '\0');
  std::size_t count = 0;
  while (count < bytes_wanted) {
    const ssize_t got = read(file, bytes.data() + count, bytes_wanted - count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    count += static_cast<std::size_t>(got);
  }
  bytes.resize(count);
  return bytes;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// The bytes of a whole, undamaged entry of this key.
std::optional<std::string> read_entry(int file, const Digest& key, std::uint64_t bytes_max) {
  const std::size_t head_bytes = head(key, {}).size();
  struct stat info {};
  if (fstat(file, &info) != 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size < head_bytes || size > bytes_max) return std::nullopt;
  std::string bytes = read_at_most(file, size);
  if (bytes.size() != size) return std::nullopt;
  const std::string seen = bytes.substr(0, head_bytes);
  bytes.erase(0, head_bytes);
  if (seen != head(key, bytes)) return std::nullopt;
  return bytes;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_named(std::string_view name, std::size_t digits, std::string_view suffix) {
  return name.size() == digits + suffix.size() && name.ends_with(suffix) &&
         is_hex(name.substr(0, digits));
}

// A file of the cache's own.
struct Item {
  std::string path;
  bool part = false;  // no entry yet
  std::uint64_t bytes = 0;
  timespec used = {};
};

bool used_before(const Item& a, const Item& b) {
  if (a.used.tv_sec != b.used.tv_sec) return a.used.tv_sec < b.used.tv_sec;
  return a.used.tv_nsec < b.used.tv_nsec;
}

// Other files are not touched, whatever folder was given.
Result<std::vector<Item>> items_of(const std::string& folder) {
  std::vector<Item> items;
  std::error_code code;
  fs::directory_iterator at(folder, code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    const std::string name = at->path().filename().string();
    const bool part = is_named(name, kPartDigits, kPartSuffix);
    if (!part && !is_named(name, kKeyDigits, kEntrySuffix)) continue;
    struct stat info {};
    const std::string path = at->path().string();
    if (lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) continue;  // others evict too
    items.push_back({.path = path,
                     .part = part,
                     .bytes = static_cast<std::uint64_t>(info.st_size),
                     .used = info.st_mtim});
  }
  if (!code || code == std::errc::no_such_file_or_directory) return items;
  return failed("cannot read the cache", folder, code.value());
}

CacheUsage sum(const std::vector<Item>& items) {
  CacheUsage usage;
  for (const Item& item : items) {
    usage.entries += item.part ? 0 : 1;
    usage.bytes += item.bytes;
  }
  return usage;
}

// Somebody else may have been faster.
Result<void> remove_item(const Item& item) {
  if (unlink(item.path.c_str()) == 0 || errno == ENOENT) return {};
  return failed("cannot remove from the cache", item.path, errno);
}

// Null when it is not set.
const char* variable(const char* name) { return std::getenv(name); }

std::string folder_from_environment() {
  if (const char* given = variable("KILN_CACHE_DIR"); given != nullptr) {
    return std::string_view(given) == "off" ? "" : given;
  }
  const char* caches = variable("XDG_CACHE_HOME");
  if (caches != nullptr && *caches == '/') return format("{}/kiln", caches);
  const char* home = variable("HOME");
  return home != nullptr && *home != '\0' ? format("{}/.cache/kiln", home) : "";
}

}  // namespace

Result<CacheSettings> cache_settings() {
  CacheSettings settings{.folder = folder_from_environment()};
  const char* limit = variable("KILN_CACHE_BYTES_MAX");
  if (limit == nullptr || *limit == '\0') return settings;
  const char* end = limit + std::strlen(limit);
  const auto read = std::from_chars(limit, end, settings.bytes_max);
  if (read.ec == std::errc() && read.ptr == end) return settings;
  return Unexpected{Error{"cannot use KILN_CACHE_BYTES_MAX", limit, "it is no number of bytes"}};
}

std::string Cache::path_of(std::string_view name) const {
  return format("{}/{}", settings_.folder, name);
}

std::optional<std::string> Cache::find(const Digest& key) const {
  if (!on()) return std::nullopt;
  const std::string path = path_of(entry_name(key));
  // Without O_NONBLOCK a pipe of that name would be waited for.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (*file < 0) return std::nullopt;
  std::optional<std::string> bytes = read_entry(*file, key, settings_.bytes_max);
  if (bytes) {
    futimens(*file, nullptr);  // in a folder of others, which they evict from, this may fail
  } else {
    unlink(path.c_str());
  }
  return bytes;
}

Result<void> Cache::write_entry(const std::string& name, std::string_view entry) const {
  constexpr const char* kWhat = "cannot write to the cache";
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return failed(kWhat, settings_.folder, errno);
  }
  const std::string part = path_of(format("{:016x}{}", number, kPartSuffix));
  const UnfinishedFile mark(part);
  File file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (*file < 0) return failed(kWhat, settings_.folder, errno);
  const bool written = write_all(*file, entry) && fsync(*file) == 0 && file.close();
  if (written && rename(part.c_str(), path_of(name).c_str()) == 0) return {};
  if (written && errno == ENOENT) return {};  // evicted or cleared already, as any entry may be
  const int code = errno;
  unlink(part.c_str());
  return failed(kWhat, settings_.folder, code);
}

Result<void> Cache::store(const Digest& key, std::string_view bytes) const {
  if (!on()) return {};
  const std::string entry = head(key, bytes) + std::string(bytes);
  if (entry.size() > settings_.bytes_max) {
    return Unexpected{
        Error{"cannot write to the cache", settings_.folder,
              format("{} bytes, its limit is {}", entry.size(), settings_.bytes_max)}};
  }
  std::error_code code;
  fs::create_directories(settings_.folder, code);
  if (code) return failed("cannot make the cache", settings_.folder, code.value());
  if (auto written = write_entry(entry_name(key), entry); !written) return written;
  return evict();
}

Result<void> Cache::evict() const {
  Result<std::vector<Item>> items = items_of(settings_.folder);
  if (!items) return Unexpected{items.error()};
  std::ranges::sort(*items, used_before);
  std::uint64_t bytes = sum(*items).bytes;
  const std::time_t now = std::time(nullptr);
  for (const Item& item : *items) {
    const bool left_behind = item.part && now - item.used.tv_sec > kPartSecondsMax;
    if (bytes <= settings_.bytes_max && !left_behind) continue;
    if (remove_item(item)) bytes -= item.bytes;  // else somebody's who does not let us: the next
  }
  return {};
}

Result<CacheUsage> Cache::usage() const {
  if (!on()) return CacheUsage{};
  const Result<std::vector<Item>> items = items_of(settings_.folder);
  if (!items) return Unexpected{items.error()};
  return sum(*items);
}

Result<CacheUsage> Cache::clear() const {
  if (!on()) return CacheUsage{};
  const Result<std::vector<Item>> items = items_of(settings_.folder);
  if (!items) return Unexpected{items.error()};
  for (const Item& item : *items) {
    if (auto removed = remove_item(item); !removed) return Unexpected{removed.error()};
  }
  return sum(*items);
}

}  // namespace kiln::runtime
