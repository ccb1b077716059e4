// Blocks on an SM, against cases worked out by hand from the rules of CUDA's occupancy calculator.
#include "target/occupancy.h"

#include <gtest/gtest.h>

namespace kiln::target {

namespace {

const Arch& arch(std::string_view name) { return *find_arch(name); }

TEST(Occupancy, SharedMemoryIsTakenWithTheReservedBytes) {
  const Occupancy o = occupancy(arch("sm_80"), {256, 49152, 64});
  EXPECT_EQ(o.limit(Resource::kThreads), 8);       // 2048 / 256
  EXPECT_EQ(o.limit(Resource::kSharedMemory), 3);  // 167936 / (49152 + 1024) = 3.35
  EXPECT_EQ(o.limit(Resource::kRegisters), 4);     // 32 warps of 2048 registers, 8 a block
  EXPECT_EQ(o.limit(Resource::kBlocks), 32);
  EXPECT_EQ(o.blocks, 3);
  EXPECT_EQ(o.warps, 24);
  EXPECT_EQ(o.warps_max, 64);
  EXPECT_EQ(o.limited_by, std::vector{Resource::kSharedMemory});
  EXPECT_EQ(o.shared_bytes_max, 166912);
}

TEST(Occupancy, SharedMemoryIsGivenInUnitsOf128Bytes) {
  // 102400 / 4 = 25600 = 24576 + 1024: one byte more takes 128.
  EXPECT_EQ(occupancy(arch("sm_86"), {32, 24576, 16}).limit(Resource::kSharedMemory), 4);
  EXPECT_EQ(occupancy(arch("sm_86"), {32, 24577, 16}).limit(Resource::kSharedMemory), 3);
  // Without any, the reserved kilobyte still counts: 100 blocks.
  EXPECT_EQ(occupancy(arch("sm_86"), {32, 0, 16}).limit(Resource::kSharedMemory), 100);
}

TEST(Occupancy, RegistersAreGivenToWarpsInUnitsOf256) {
  const auto blocks = [](int registers, std::int64_t threads) {
    return occupancy(arch("sm_90a"), {threads, 0, registers}).limit(Resource::kRegisters);
  };
  EXPECT_EQ(blocks(32, 1024), 2);  // 1024 a warp: 64 warps
  EXPECT_EQ(blocks(33, 1024), 1);  // 1280 a warp: 12 in each quarter of 16384, 48 warps
  EXPECT_EQ(blocks(40, 1024), 1);
  EXPECT_EQ(blocks(168, 384), 1);  // 5376 a warp: 3 in each quarter, 12 warps
  EXPECT_EQ(blocks(168, 128), 3);
  EXPECT_EQ(blocks(169, 384), 0);  // 5632 a warp: 2 in each quarter, 8 warps
  EXPECT_EQ(blocks(255, 256), 1);
  EXPECT_EQ(blocks(256, 32), 0);  // no thread has so many
}

TEST(Occupancy, ThreadsCountAsWholeWarps) {
  EXPECT_EQ(occupancy(arch("sm_89"), {33, 0, 16}).limit(Resource::kThreads), 24);  // 48 / 2
  EXPECT_EQ(occupancy(arch("sm_89"), {1024, 0, 16}).limit(Resource::kThreads), 1);
}

TEST(Occupancy, NamesAllThatLimit) {
  const Occupancy small = occupancy(arch("sm_80"), {64, 0, 32});
  EXPECT_EQ(small.blocks, 32);
  EXPECT_EQ(small.limited_by,
            (std::vector{Resource::kThreads, Resource::kRegisters, Resource::kBlocks}));
  const Occupancy none = occupancy(arch("sm_80"), {64, 200000, 32});
  EXPECT_EQ(none.blocks, 0) << "more than a block may have";
  EXPECT_EQ(none.limited_by, std::vector{Resource::kSharedMemory});
}

// A block of every allowed size fits an SM by itself, as the tables promise.
TEST(Occupancy, TheLargestBlockFits) {
  for (const Arch& row : all_archs()) {
    EXPECT_EQ(occupancy(row, {row.threads_per_block_max, row.smem_per_block_max, 64}).blocks, 1)
        << row.name;
  }
}

}  // namespace

}  // namespace kiln::target
