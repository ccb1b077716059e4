#include "target/atoms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "target/mma.h"

namespace kiln::target {
namespace {

TEST(Atoms, AreListedForEveryArchitecture) {
  for (const Arch& arch : all_archs()) {
    const std::string text = atoms_text(&arch);
    const nlohmann::json json = nlohmann::json::parse(atoms_json(&arch));
    for (const Mma& mma : all_mmas()) {
      const bool has = mma.min_arch <= arch.capability;
      EXPECT_EQ(text.find(mma.name) != std::string::npos, has);
      const auto named = [&](const nlohmann::json& row) { return row["name"] == mma.name; };
      EXPECT_EQ(std::any_of(json.begin(), json.end(), named), has);
    }
  }
  EXPECT_NE(atoms_text(nullptr).find("16x16x16, 32x8x16, 16x8x16"), std::string::npos);
}

}  // namespace
}  // namespace kiln::target
