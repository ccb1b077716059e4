// Every target reads every file of its folder in tests/fuzz/corpus, cut short at several places
// too. That none of them stops the process is what is tested; sanitizers watch in the `dev` preset.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/file.h"
#include "targets.h"

namespace kiln::fuzz {
namespace {

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, ComesBackFromWhatWasFound) {
  int files = 0;
  const std::filesystem::path folder = std::filesystem::path(KILN_FUZZ_CORPUS) / GetParam().name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto bytes = read_file(entry.path().string());
    ASSERT_TRUE(bytes.has_value()) << entry.path();
    for (std::size_t parts = 1; parts <= 8; ++parts) {
      GetParam().read(std::string_view(*bytes).substr(0, bytes->size() / parts));
    }
    ++files;
  }
  EXPECT_GT(files, 0) << folder;
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, testing::ValuesIn(kTargets),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace kiln::fuzz
