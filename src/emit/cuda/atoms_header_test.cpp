#include "emit/cuda/atoms_header.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "target/mma.h"

namespace kiln::emit {
namespace {

TEST(AtomsHeader, TheCommittedFileIsUpToDate) {
  std::ifstream file(KILN_INCLUDE "/kiln/device/atoms.cuh");
  ASSERT_TRUE(file) << "include/kiln/device/atoms.cuh is missing";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), atoms_header()) << "please run ./dev docs";
}

// Those of warpgroups take descriptors, sparse ones metadata: the library makes neither.
TEST(AtomsHeader, HasEveryDenseMatrixInstructionOfAWarp) {
  const std::string text = atoms_header();
  for (const target::Mma& row : target::all_mmas()) {
    const bool wanted = !row.reads_shared && !row.sparse;
    EXPECT_EQ(text.find(row.ptx) != std::string::npos, wanted) << row.name;
  }
}

}  // namespace
}  // namespace kiln::emit
