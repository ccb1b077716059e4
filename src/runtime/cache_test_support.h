// For the tests of the cache: a folder of its own, and contents that a key implies.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>
#include <string>

#include "runtime/cache.h"

namespace kiln::runtime {

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/kiln-cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // A folder that is not there yet.
  [[nodiscard]] std::string folder() const { return root_ + "/a/cache"; }
  [[nodiscard]] Cache cache(std::uint64_t bytes_max = 1 << 20) const {
    return Cache({.folder = folder(), .bytes_max = bytes_max});
  }
  [[nodiscard]] std::string path_of(const Digest& key) const {
    return folder() + "/" + key.hex() + ".kiln";
  }
  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder()))
      ++count;
    return count;
  }

  std::string root_;
};

inline Digest key_of(int number) { return digest(std::to_string(number)); }

// Any bytes of a length of its own: the same for the same number, others for others.
inline std::string bytes_of(int number) {
  std::mt19937 random(static_cast<unsigned>(number));
  std::string bytes(1000 + random() % 9000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace kiln::runtime
