#include "target/arch.h"

#include <gtest/gtest.h>

#include "target/swizzle.h"

namespace kiln::target {
namespace {

TEST(Archs, AreFoundByTheirOwnName) {
  for (const Arch& row : all_archs()) EXPECT_EQ(find_arch(row.name), &row);
  EXPECT_EQ(find_arch("sm_90"), nullptr);
  EXPECT_EQ(find_arch(""), nullptr);
  EXPECT_EQ(arch_names(), "sm_80, sm_86, sm_89, sm_90a");
}

TEST(Archs, AreChosenInASentence) { EXPECT_EQ(arch_choice(), "sm_80, sm_86, sm_89 or sm_90a"); }

TEST(Archs, KeepWhatOlderOnesCan) {
  for (std::size_t i = 1; i < all_archs().size(); ++i) {
    EXPECT_TRUE(all_archs()[i].has(all_archs()[i - 1].features)) << all_archs()[i].name;
  }
}

TEST(Archs, AreFoundByWhatTheyCan) {
  EXPECT_EQ(oldest_arch({}), find_arch("sm_80"));
  EXPECT_EQ(oldest_arch({Feature::kMma, Feature::kCpAsync}), find_arch("sm_80"));
  EXPECT_EQ(oldest_arch({Feature::kMmaFp8}), find_arch("sm_89"));
  EXPECT_EQ(oldest_arch({Feature::kMmaFp8, Feature::kTma}), find_arch("sm_90a"));
  EXPECT_FALSE(find_arch("sm_89")->has(Feature::kStmatrix));
}

TEST(Archs, HaveTheDocumentedBlockLimits) {
  EXPECT_EQ(find_arch("sm_80")->smem_per_block_max, 163 * 1024);
  EXPECT_EQ(find_arch("sm_86")->smem_per_block_max, 99 * 1024);
  EXPECT_EQ(find_arch("sm_89")->smem_per_block_max, 99 * 1024);
  EXPECT_EQ(find_arch("sm_90a")->smem_per_block_max, 227 * 1024);
}

TEST(Archs, AreChosenByTheDevicesCapability) {
  EXPECT_EQ(find_arch_for_capability(80), find_arch("sm_80"));
  EXPECT_EQ(find_arch_for_capability(87), find_arch("sm_86"));
  EXPECT_EQ(find_arch_for_capability(90), find_arch("sm_90a"));
  EXPECT_EQ(find_arch_for_capability(75), nullptr);
  EXPECT_EQ(find_arch_for_capability(120), nullptr);
}

TEST(SmemSwizzles, AreFoundByWidth) {
  for (const SmemSwizzle& row : all_swizzles()) EXPECT_EQ(find_swizzle(row.bytes), &row);
  EXPECT_EQ(find_swizzle(48), nullptr);
  EXPECT_EQ(widest_swizzle(128).name, "128");
  EXPECT_EQ(widest_swizzle(256).name, "128");
  EXPECT_EQ(widest_swizzle(192).name, "64");
  EXPECT_EQ(widest_swizzle(32).name, "32");
  EXPECT_EQ(widest_swizzle(40).name, "none");
}

// What they are for: eight rows read at the same chunk (one ldmatrix) meet each bank once.
TEST(SmemSwizzles, SpreadOneColumnOfChunksOverTheBanks) {
  constexpr int kChunk = 16;
  constexpr int kAllBanks = 128;
  for (const SmemSwizzle& row : all_swizzles()) {
    if (row.bytes == 0) continue;
    const int chunks = row.bytes / kChunk;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      unsigned met = 0;
      for (int r = 0; r < 8; ++r) {
        const Index address = row.swizzle(Index{r} * row.bytes + chunk * kChunk);
        met |= 1U << (address % kAllBanks / kChunk);
      }
      EXPECT_EQ(met, 0xffU) << row.name << ", chunk " << chunk;
    }
  }
}

}  // namespace
}  // namespace kiln::target
