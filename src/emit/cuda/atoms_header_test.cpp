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

TEST(AtomsHeader, HasEveryMatrixInstruction) {
  const std::string text = atoms_header();
  for (const target::Mma& row : target::all_mmas()) {
    EXPECT_NE(text.find(row.ptx), std::string::npos) << row.name;
  }
}

}  // namespace
}  // namespace kiln::emit
