#include "emit/cuda/device_headers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/file.h"
#include "target/copy.h"

namespace kiln::emit {
namespace {

const std::string kFolder = KILN_INCLUDE;

TEST(DeviceHeadersTest, EmbeddedTextIsTheFiles) {
  ASSERT_FALSE(device_headers().empty());
  for (const DeviceHeader& header : device_headers()) {
    const auto file = read_file(kFolder + "/" + header.name);
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ(header.text, *file) << header.name;
  }
}

TEST(DeviceHeadersTest, NoHeaderIsMissing) {
  std::size_t files = 1;  // kiln/layout.h
  for (const char* folder : {"/kiln/device", "/kiln/layout"}) {
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(kFolder + folder)) {
      ++files;
    }
  }
  EXPECT_EQ(files, device_headers().size());
}

// The table of copy instructions and memory.cuh spell cp.async alike.
TEST(DeviceHeadersTest, AsynchronousCopiesAreSpelledAsInTheTable) {
  const auto memory = std::ranges::find_if(device_headers(), [](const DeviceHeader& header) {
    return std::string_view(header.name) == "kiln/device/memory.cuh";
  });
  ASSERT_NE(memory, device_headers().end());
  int rows = 0;
  for (const target::Copy& copy : target::all_copies()) {
    if (copy.kind != target::CopyKind::kAsync) continue;
    ++rows;
    EXPECT_NE(std::string_view(memory->text).find(copy.ptx), std::string_view::npos) << copy.name;
  }
  EXPECT_EQ(rows, 3);
}

}  // namespace
}  // namespace kiln::emit
