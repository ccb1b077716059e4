#include "runtime/cache.h"

#include <fcntl.h>

#include <cstdlib>

#include "runtime/cache_test_support.h"
#include "support/file.h"

namespace kiln::runtime {
namespace {

namespace fs = std::filesystem;

// As if last used so many seconds before now.
void set_used(const std::string& path, std::int64_t seconds_ago) {
  timespec times[2] = {};
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds_ago;
  times[1] = times[0];
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

void overwrite(const std::string& path, std::string_view bytes) {
  const auto written = write_file(path, bytes);
  ASSERT_TRUE(written) << written.error().text();
}

TEST_F(CacheTest, WhatWasStoredIsFound) {
  EXPECT_EQ(cache().find(key_of(1)), std::nullopt);
  for (const std::string& bytes : {bytes_of(1), std::string(), std::string(3, '\0')}) {
    ASSERT_TRUE(cache().store(key_of(1), bytes));
    EXPECT_EQ(cache().find(key_of(1)), bytes);
  }
  EXPECT_EQ(cache().find(key_of(2)), std::nullopt);
  EXPECT_EQ(files(), 1U);
}

TEST_F(CacheTest, NoPartOfAnEntryIsTakenForIt) {
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  const std::string whole = read_file(path_of(key_of(1))).value();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    overwrite(path_of(key_of(1)), whole.substr(0, bytes));
    EXPECT_EQ(cache().find(key_of(1)), std::nullopt) << bytes;
    EXPECT_EQ(files(), 0U) << bytes;
  }
  overwrite(path_of(key_of(1)), whole + "x");
  EXPECT_EQ(cache().find(key_of(1)), std::nullopt);
}

TEST_F(CacheTest, EveryFlippedBitIsSeen) {
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  const std::string whole = read_file(path_of(key_of(1))).value();
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    overwrite(path_of(key_of(1)), damaged);
    EXPECT_EQ(cache().find(key_of(1)), std::nullopt) << bit;
    EXPECT_EQ(files(), 0U) << bit;
  }
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  EXPECT_EQ(cache().find(key_of(1)), "kernel");
}

TEST_F(CacheTest, AnotherKeysEntryIsNotTaken) {
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  fs::rename(path_of(key_of(1)), path_of(key_of(2)));
  EXPECT_EQ(cache().find(key_of(2)), std::nullopt);
}

// A folder, a pipe or a link to nowhere may stand where an entry should.
TEST_F(CacheTest, StrangeFilesAreNoEntries) {
  fs::create_directories(folder());
  fs::create_directory(path_of(key_of(1)));
  ASSERT_EQ(mkfifo(path_of(key_of(2)).c_str(), 0600), 0);
  fs::create_symlink(root_ + "/nothing", path_of(key_of(3)));
  for (const int number : {1, 2, 3}) EXPECT_EQ(cache().find(key_of(number)), std::nullopt);
  EXPECT_FALSE(cache().store(key_of(1), "kernel"));
  for (const int number : {2, 3}) {
    EXPECT_TRUE(cache().store(key_of(number), "kernel"));
    EXPECT_EQ(cache().find(key_of(number)), "kernel");
  }
  EXPECT_EQ(files(), 3U);  // nothing is left of the failed one
}

TEST_F(CacheTest, LeastRecentlyUsedGoesFirst) {
  const std::string bytes(900, 'x');  // 4 fit
  for (const int number : {1, 2, 3, 4}) {
    ASSERT_TRUE(cache(4096).store(key_of(number), bytes));
    set_used(path_of(key_of(number)), 100 - 10 * number);
  }
  ASSERT_TRUE(cache(4096).find(key_of(1)));  // now 2 is the oldest
  ASSERT_TRUE(cache(4096).store(key_of(5), bytes));
  EXPECT_EQ(cache(4096).find(key_of(2)), std::nullopt);
  for (const int number : {1, 3, 4, 5}) EXPECT_TRUE(cache(4096).find(key_of(number))) << number;
  EXPECT_LE(cache().usage().value().bytes, 4096U);
}

TEST_F(CacheTest, AnEntryAboveTheLimitIsRefused) {
  ASSERT_TRUE(cache(4096).store(key_of(1), "kernel"));
  const auto stored = cache(4096).store(key_of(2), std::string(4096, 'x'));
  ASSERT_FALSE(stored);
  EXPECT_NE(stored.error().reason.find("its limit is 4096"), std::string::npos);
  EXPECT_EQ(cache(4096).find(key_of(1)), "kernel");
  EXPECT_EQ(files(), 1U);
}

TEST_F(CacheTest, WhatAKilledProcessLeftGoesAfterAnHour) {
  fs::create_directories(folder());
  const std::string old_part = folder() + "/0123456789abcdef.kiln-part";
  const std::string new_part = folder() + "/fedcba9876543210.kiln-part";
  for (const std::string& part : {old_part, new_part}) overwrite(part, "half of a ker");
  set_used(old_part, 3700);
  set_used(new_part, 3500);
  ASSERT_TRUE(cache().store(key_of(1), "kernel"));
  EXPECT_FALSE(fs::exists(old_part));
  EXPECT_TRUE(fs::exists(new_part));
  EXPECT_EQ(cache().usage().value().entries, 1);
}

TEST_F(CacheTest, FilesOfOthersAreLeftAlone) {
  fs::create_directories(folder() + "/0123456789abcdef0123456789abcdef.kiln");
  const std::string names[] = {"thesis.tex", "x.kiln", "0123456789abcdef0123456789ABCDEF.kiln",
                               "0123456789abcdef.kiln"};
  for (const std::string& name : names) {
    overwrite(folder() + "/" + name, std::string(5000, 'x'));
    set_used(folder() + "/" + name, 1000000);
  }
  ASSERT_TRUE(cache(4096).store(key_of(1), std::string(3000, 'x')));
  ASSERT_TRUE(cache(4096).store(key_of(2), std::string(3000, 'x')));
  EXPECT_EQ(cache(4096).usage().value().entries, 1);
  EXPECT_EQ(cache(4096).clear().value().entries, 1);
  EXPECT_EQ(files(), std::size(names) + 1);
}

TEST_F(CacheTest, ClearingGivesWhatItRemoved) {
  EXPECT_EQ(cache().clear().value().entries, 0);
  for (const int number : {1, 2, 3}) ASSERT_TRUE(cache().store(key_of(number), bytes_of(number)));
  const CacheUsage usage = cache().usage().value();
  EXPECT_EQ(usage.entries, 3);
  EXPECT_GT(usage.bytes, bytes_of(1).size() + bytes_of(2).size() + bytes_of(3).size());
  EXPECT_EQ(cache().clear().value().bytes, usage.bytes);
  EXPECT_EQ(cache().usage().value().bytes, 0U);
  EXPECT_EQ(files(), 0U);
}

TEST_F(CacheTest, AFolderThatCannotBeMadeIsAnError) {
  overwrite(root_ + "/a", "no folder");
  EXPECT_EQ(cache().find(key_of(1)), std::nullopt);
  const auto stored = cache().store(key_of(1), "kernel");
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().subject, folder());
  EXPECT_FALSE(cache().usage());
}

TEST_F(CacheTest, WithoutAFolderThereIsNoCache) {
  const Cache none({.folder = ""});
  EXPECT_FALSE(none.on());
  EXPECT_TRUE(none.store(key_of(1), "kernel"));
  EXPECT_EQ(none.find(key_of(1)), std::nullopt);
  EXPECT_EQ(none.usage().value().entries, 0);
  EXPECT_EQ(none.clear().value().entries, 0);
}

// The environment for one test; as it was afterwards.
class CacheSettingsTest : public testing::Test {
 protected:
  static constexpr const char* kNames[] = {"KILN_CACHE_DIR", "KILN_CACHE_BYTES_MAX",
                                           "XDG_CACHE_HOME", "HOME"};
  void SetUp() override {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.emplace_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      unsetenv(kNames[i]);
      if (before_[i]) setenv(kNames[i], before_[i]->c_str(), 1);
    }
  }

  std::vector<std::optional<std::string>> before_;
};

TEST_F(CacheSettingsTest, TheMostSpecificVariableWins) {
  const auto folder = [] { return cache_settings().value().folder; };
  EXPECT_EQ(folder(), "");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(folder(), "/h/.cache/kiln");
  setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored, says its specification
  EXPECT_EQ(folder(), "/h/.cache/kiln");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(folder(), "/x/kiln");
  setenv("KILN_CACHE_DIR", "/k", 1);
  EXPECT_EQ(folder(), "/k");
  for (const char* none : {"", "off"}) {
    setenv("KILN_CACHE_DIR", none, 1);
    EXPECT_EQ(folder(), "");
  }
}

TEST_F(CacheSettingsTest, TheLimitIsANumberOfBytes) {
  const std::uint64_t normal = CacheSettings{}.bytes_max;
  EXPECT_EQ(cache_settings().value().bytes_max, normal);
  setenv("KILN_CACHE_BYTES_MAX", "", 1);
  EXPECT_EQ(cache_settings().value().bytes_max, normal);
  setenv("KILN_CACHE_BYTES_MAX", "4096", 1);
  EXPECT_EQ(cache_settings().value().bytes_max, 4096U);
  for (const char* wrong : {"1G", "-1", " 5", "99999999999999999999"}) {
    setenv("KILN_CACHE_BYTES_MAX", wrong, 1);
    const auto settings = cache_settings();
    ASSERT_FALSE(settings) << wrong;
    EXPECT_EQ(settings.error().subject, wrong);
  }
}

}  // namespace
}  // namespace kiln::runtime
