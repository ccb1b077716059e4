#include "runtime/library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kiln::runtime {
namespace {

namespace fs = std::filesystem;

// A Python of its own on the PATH, and a library that no system has.
class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/kiln-library-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "bin");
    std::ofstream(root_ / "bin" / "python3") << "#!/bin/sh\n";
    fs::permissions(root_ / "bin" / "python3", fs::perms::owner_all);
    path_ = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
    setenv("PATH", ("/nowhere/bin:" + (root_ / "bin").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(root_);
  }

  fs::path root_;
  std::string path_;
  const CudaLibrary wanted_{.name = "kiln_of_a_test", .versions = {"0"}};
};

TEST_F(LibraryTest, PackagesOfThePythonOnThePathAreLookedThrough) {
  const auto before = Library::open("it", file_names(wanted_));
  EXPECT_FALSE(before);
  const std::string state = search_state(file_names(wanted_));
  const fs::path folder = root_ / "lib/python3.12/site-packages/nvidia/of_a_test/lib";
  fs::create_directories(folder);
  const auto math = Library::open("it", {"libm.so.6"});
  ASSERT_TRUE(math);
  fs::create_symlink(math->path(), folder / "libkiln_of_a_test.so.0");
  EXPECT_NE(search_state(file_names(wanted_)), state);
  const auto found = Library::open("it", file_names(wanted_));
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->name(), (folder / "libkiln_of_a_test.so.0").string());
}

}  // namespace
}  // namespace kiln::runtime
