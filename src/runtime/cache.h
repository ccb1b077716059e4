// A folder of bytes by key, which survives whatever happens to it: the compile cache's store. It
// knows nothing of kernels.
//
//   const Cache cache({.folder = "/tmp/kiln"});
//   cache.store(key, cubin);          a file named by the key: temporary name, fsync, rename
//   cache.find(key)                   those bytes, or nothing
//
// An entry is a line and the bytes. The line holds the key and the bytes' length and digest, so
// that an entry that was cut off, damaged or renamed is known, removed, and as good as never
// stored:
//
//   kiln-cache 1 06b05ab6733a618578af5f94892f3950 99aa06d3014798d86001c324468d497f
//   00000000000000000000
//
// There are no locks, so any number of processes on any number of machines may share a folder, and
// any of them may be killed at any moment. Entries never change; they come by rename(2) and go by
// unlink(2), after which whoever had one open still reads it. What a killed process left behind
// goes with the next store that finds it an hour old.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/hash.h"
#include "support/result.h"

namespace kiln::runtime {

struct CacheSettings {
  std::string folder;  // empty: there is no cache
  std::uint64_t bytes_max = std::uint64_t{512} << 20;
};

// What the environment asks for. The folder: KILN_CACHE_DIR, where "" and "off" mean none; else
// kiln in XDG_CACHE_HOME; else .cache/kiln in HOME; else none. The limit: KILN_CACHE_BYTES_MAX.
// Errors: a limit that is no number.
[[nodiscard]] Result<CacheSettings> cache_settings();

struct CacheUsage {
  std::int64_t entries = 0;
  std::uint64_t bytes = 0;  // of files, unfinished ones too
};

class Cache {
 public:
  explicit Cache(CacheSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] bool on() const { return !settings_.folder.empty(); }
  [[nodiscard]] const CacheSettings& settings() const { return settings_; }

  // The bytes stored under the key, exactly; nothing when there are none, when they are damaged
  // (they are removed) or when the cache is off. What is found counts as used now.
  [[nodiscard]] std::optional<std::string> find(const Digest& key) const;

  // Makes the folder, stores the bytes, then removes what was used least recently until all of it
  // is within bytes_max. Does nothing when the cache is off. Errors: a folder that cannot be made
  // or written; an entry larger than bytes_max. Nothing is left behind by them.
  [[nodiscard]] Result<void> store(const Digest& key, std::string_view bytes) const;

  // Errors: a folder that cannot be read. One that is not there is empty.
  [[nodiscard]] Result<CacheUsage> usage() const;

  // Removes all of the cache's files, and no others; gives what it removed. Errors: as usage(); a
  // file that cannot be removed.
  [[nodiscard]] Result<CacheUsage> clear() const;

 private:
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] Result<void> write_entry(const std::string& name, std::string_view entry) const;
  [[nodiscard]] Result<void> evict() const;

  CacheSettings settings_;
};

}  // namespace kiln::runtime
