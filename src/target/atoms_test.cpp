#include "target/atoms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "target/mma.h"

namespace kiln::target {
namespace {

// Rows that differ in N alone are one line of the text.
std::string listed_name(const Mma& mma) {
  const std::size_t k = mma.name.find('k');
  return mma.reads_shared ? "m64nN" + std::string(mma.name.substr(k)) : std::string(mma.name);
}

TEST(Atoms, AreListedForEveryArchitecture) {
  for (const Arch& arch : all_archs()) {
    const std::string text = atoms_text(&arch);
    const nlohmann::json json = nlohmann::json::parse(atoms_json(&arch));
    for (const Mma& mma : all_mmas()) {
      const bool has = arch.has(mma.needs);
      EXPECT_EQ(text.find(listed_name(mma)) != std::string::npos, has) << mma.name;
      const auto named = [&](const nlohmann::json& row) { return row["name"] == mma.name; };
      EXPECT_EQ(std::any_of(json.begin(), json.end(), named), has);
    }
  }
  EXPECT_NE(atoms_text(nullptr).find("16x16x16, 32x8x16, 16x8x16"), std::string::npos);
}

TEST(Atoms, RowsThatDifferInNAreOneLine) {
  const std::string text = atoms_text(find_arch("sm_90a"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 34 + 20 + 2 * 16);
  EXPECT_EQ(text.find("m64n8k"), std::string::npos);
  EXPECT_NE(text.find("64xNx16 and multiples of K, N = 8 to 256 by 8\n"), std::string::npos);
  EXPECT_NE(text.find("64xNx32 and multiples of K, N = 8 to 32 by 8, 48 to 256 by 16\n"),
            std::string::npos);
}

TEST(Atoms, JsonSaysWhatReadsSharedMemory) {
  const nlohmann::json json = nlohmann::json::parse(atoms_json(find_arch("sm_90a")));
  std::size_t rows = 0;
  for (const nlohmann::json& row : json) {
    if (row["name"] == "m64n24k16.f32.bf16") {
      ++rows;
      EXPECT_TRUE(row["reads_shared"] && row["transposes"] && row["splits_k"]);
      EXPECT_EQ(row["operands"]["B"]["layout"], "");
      EXPECT_EQ(row["operands"]["B"]["values"], 0);
      EXPECT_EQ(row["operands"]["C"]["registers"], 12);
      EXPECT_EQ(row["tiles"], nlohmann::json({"64x24x16"}));
    }
    if (row["name"] == "m16n8k16.f32.f16") {
      ++rows;
      EXPECT_FALSE(row["reads_shared"] || row["transposes"] || row["splits_k"] || row["sparse"]);
    }
  }
  EXPECT_EQ(rows, 2U);
}

}  // namespace
}  // namespace kiln::target
