// The maps of sparse metadata against the tables of PTX ISA, and what is built from them.
#include "target/sparse.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace kiln::target {
namespace {

int lanes_of(const SparseMetadata& row) { return row.scope == Scope::kWarp ? 32 : 128; }

const SparseMetadata& row_named(std::string_view name) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << name;
  return all_sparse_metadata()[0];
}

// Legal nibbles of `rows` rows of A.
std::vector<std::uint8_t> random_metadata(sparse::Pattern pattern, std::size_t count) {
  constexpr unsigned k2of4[] = {0x4, 0x8, 0x9, 0xc, 0xd, 0xe};
  constexpr unsigned k1of2[] = {0x4, 0xe};
  std::mt19937 random(7);
  const auto nibble = [&] {
    return pattern == sparse::Pattern::k2of4 ? k2of4[random() % 6] : k1of2[random() % 2];
  };
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(nibble() | nibble() << 4);
  return bytes;
}

TEST(SparseMetadata, WorkedExampleOfTheHeader) {
  const SparseMetadata& row = row_named("mma.sp.m16n8k32.b16");
  EXPECT_EQ(metadata_group(row, 0, 5, 6), (MetadataGroup{9, 6}));
  EXPECT_EQ(metadata_group(row, 1, 7, 6), (MetadataGroup{9, 6}));
  EXPECT_EQ(metadata_place(row, 0, 5, 12), (StoredElement{9, 12}));
  EXPECT_EQ(metadata_place(row, 0, 5, 13), (StoredElement{9, 13}));
  EXPECT_EQ(metadata_source(row, 1, {9, 6}), (MetadataSource{7, 6}));
}

// "Sparse matrix storage": which threads of a group of four contribute, by selector.
TEST(SparseMetadata, SelectorsPickTheLanes) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    for (int selector = 0; selector < selectors(row); ++selector) {
      for (int lane = 0; lane < lanes_of(row); ++lane) {
        const int in_four = lane % 4;
        const bool given = selectors(row) == 4   ? in_four == selector
                           : selectors(row) == 2 ? in_four / 2 == selector
                                                 : true;
        ASSERT_EQ(metadata_group(row, selector, lane, 0).has_value(), given) << row.name;
        ASSERT_EQ(metadata_word(row, selector, lane, 0).has_value(), given) << row.name;
      }
    }
  }
  EXPECT_EQ(selectors(row_named("mma.sp.m16n8k16.b16")), 4);
  EXPECT_EQ(selectors(row_named("mma.sp.m16n8k8.b32")), 4);
  EXPECT_EQ(selectors(row_named("mma.sp.m16n8k32.b16")), 2);
  EXPECT_EQ(selectors(row_named("mma.sp.m16n8k16.b32")), 2);
  EXPECT_EQ(selectors(row_named("mma.sp.m16n8k32.b8")), 2);
  EXPECT_EQ(selectors(row_named("wgmma.sp.m64nNk32.b16")), 2);
  EXPECT_EQ(selectors(row_named("mma.sp.m16n8k64.b8")), 1);
  EXPECT_EQ(selectors(row_named("wgmma.sp.m64nNk64.b8")), 1);
}

// Every stored element of A gets its position exactly once (at 1:2, both halves of it).
TEST(SparseMetadata, EveryStoredElementHasItsBits) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    const int each = pattern_of(row) == sparse::Pattern::k2of4 ? 1 : 2;
    for (int selector = 0; selector < selectors(row); ++selector) {
      std::multiset<std::pair<int, int>> seen;
      for (int lane = 0; lane < lanes_of(row); ++lane) {
        for (int pair = 0; pair < kPairsOfRegister; ++pair) {
          const auto at = metadata_place(row, selector, lane, pair);
          if (at) seen.emplace(at->row, at->stored);
        }
      }
      for (int r = 0; r < row.m; ++r) {
        for (int stored = 0; stored < row.k / 2; ++stored) {
          ASSERT_EQ(seen.count({r, stored}), static_cast<std::size_t>(each)) << row.name;
        }
      }
      ASSERT_EQ(seen.size(), static_cast<std::size_t>(row.m * row.k / 2 * each)) << row.name;
    }
  }
}

TEST(SparseMetadata, SourceIsTheInverse) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    for (int selector = 0; selector < selectors(row); ++selector) {
      for (int r = 0; r < row.m; ++r) {
        for (int group = 0; group < groups_of_row(row); ++group) {
          const MetadataSource from = metadata_source(row, selector, {r, group});
          ASSERT_EQ(metadata_group(row, selector, from.lane, from.nibble),
                    (MetadataGroup{r, group}))
              << row.name;
        }
      }
    }
  }
}

// A warpgroup's warp w is a warp of mma.sp, 16 * w rows down.
TEST(SparseMetadata, WarpgroupsAreFourWarps) {
  const std::pair<std::string_view, std::string_view> same[] = {
      {"wgmma.sp.m64nNk32.b16", "mma.sp.m16n8k32.b16"},
      {"wgmma.sp.m64nNk16.b32", "mma.sp.m16n8k16.b32"},
      {"wgmma.sp.m64nNk64.b8", "mma.sp.m16n8k64.b8"}};
  for (const auto& [group_name, warp_name] : same) {
    const SparseMetadata& group = row_named(group_name);
    const SparseMetadata& warp = row_named(warp_name);
    for (int selector = 0; selector < selectors(group); ++selector) {
      for (int lane = 0; lane < 128; ++lane) {
        for (int nibble = 0; nibble < kNibblesOfRegister; ++nibble) {
          auto expected = metadata_group(warp, selector, lane % 32, nibble);
          if (expected) expected->row += lane / 32 * 16;
          ASSERT_EQ(metadata_group(group, selector, lane, nibble), expected);
        }
      }
    }
  }
}

// What a simulator reads from the lanes' registers is what was in the bytes.
TEST(SparseMetadata, RegistersCarryTheBytes) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    const int groups = groups_of_row(row);
    const auto bytes =
        random_metadata(pattern_of(row), static_cast<std::size_t>(row.m * groups / 2));
    for (int selector = 0; selector < selectors(row); ++selector) {
      for (int r = 0; r < row.m; ++r) {
        for (int group = 0; group < groups; ++group) {
          const MetadataSource from = metadata_source(row, selector, {r, group});
          const std::uint32_t word = metadata_register(row, selector, from.lane, bytes);
          const auto index = static_cast<std::size_t>(r * groups + group);
          ASSERT_EQ(word >> (4 * from.nibble) & 15U, bytes[index / 2] >> (4 * (index % 2)) & 15U)
              << row.name;
        }
      }
    }
  }
}

// Language 14.8: prepacked words are the registers. Three K steps of a matrix of two tiles of rows.
TEST(SparseMetadata, PrepackedWordsAreTheRegisters) {
  constexpr int kSteps = 4;
  for (const SparseMetadata& row : all_sparse_metadata()) {
    const int rows = 2 * row.m;
    const int tile_cols = groups_of_row(row) / 2;
    const int cols = kSteps * tile_cols;
    const auto bytes = random_metadata(pattern_of(row), static_cast<std::size_t>(rows * cols));
    std::vector<std::uint32_t> words(static_cast<std::size_t>(rows * cols / 4));
    const auto form = row.element_bits == 8 ? sparse::Words::kRows : sparse::Words::kRowPairs;
    ASSERT_FALSE(pack_words(sparse::Matrix{bytes.data(), rows, cols}, form, words.data()));
    for (int step = 0; step < kSteps; ++step) {
      std::vector<std::uint8_t> tile;  // the lower one
      for (int r = row.m; r < rows; ++r) {
        const auto from = bytes.begin() + r * cols + step * tile_cols;
        tile.insert(tile.end(), from, from + tile_cols);
      }
      for (int selector = 0; selector < selectors(row); ++selector) {
        for (int lane = 0; lane < lanes_of(row); ++lane) {
          const auto at = metadata_word(row, selector, lane, step);
          if (!at) continue;
          const auto index = static_cast<std::size_t>((row.m + at->row) * (cols / 4) + at->col);
          ASSERT_EQ(words[index], metadata_register(row, selector, lane, tile))
              << row.name << " lane " << lane << " step " << step;
        }
      }
    }
  }
}

// Each lane that is read loads its own bytes or word; the others load what one of these does.
void expect_own_parts(const Mma& mma, DType dtype) {
  constexpr int kStep = 3;
  const SparseMetadata& row = metadata_of(mma);
  const MetadataLoad load = metadata_load(mma, dtype);
  EXPECT_EQ(size(load.map), lanes_of(row) * load.parts) << mma.name;
  EXPECT_EQ(metadata_registers(mma, dtype, kStep * load.columns), kStep) << mma.name;
  std::set<Index> first_parts;
  for (int lane = 0; lane < lanes_of(row); ++lane) {
    first_parts.insert(load.map(lane, 0));
    for (int part = 0; part < load.parts; ++part) {
      const auto group = metadata_group(row, 0, lane, 2 * part);
      if (!group) continue;
      const WordPlace byte = {group->row, (group->group + kStep * groups_of_row(row)) / 2};
      const auto at = static_cast<int>(load.map(lane, part));
      const WordPlace place = {at % load.rows, at / load.rows + kStep * load.columns};
      ASSERT_EQ(place, load.parts == 1 ? metadata_word(row, 0, lane, kStep).value() : byte)
          << mma.name << " lane " << lane << " part " << part;
    }
  }
  EXPECT_EQ(static_cast<Index>(first_parts.size()), size(row.map, 0)) << mma.name;
}

TEST(SparseMetadata, LanesLoadTheirRegisters) {
  int loads = 0;
  for (const Mma& mma : all_mmas()) {
    if (!mma.sparse) continue;
    expect_own_parts(mma, DType::kU8);
    ++loads;
    if (groups_of_row(metadata_of(mma)) < kNibblesOfRegister) continue;  // a word is two steps
    expect_own_parts(mma, DType::kU32);
    ++loads;
  }
  EXPECT_GT(loads, 0);
}

TEST(SparseMetadata, DenseColumnsAreThoseThatExpandFills) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    const sparse::Pattern pattern = pattern_of(row);
    const int groups = groups_of_row(row);
    const auto bytes = random_metadata(pattern, static_cast<std::size_t>(groups / 2));
    std::vector<int> packed(static_cast<std::size_t>(row.k / 2));
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<int>(i) + 1;
    std::vector<int> dense(static_cast<std::size_t>(row.k));
    ASSERT_FALSE(
        expand(sparse::Matrix{dense.data(), 1, row.k}, packed.data(), bytes.data(), pattern));
    for (int stored = 0; stored < row.k / 2; ++stored) {
      const int group = stored / sparse::kept_of_group(pattern);
      const unsigned nibble = bytes[static_cast<std::size_t>(group / 2)] >> (4 * (group % 2)) & 15U;
      const int col = dense_column(row, stored, nibble);
      ASSERT_EQ(dense[static_cast<std::size_t>(col)], stored + 1) << row.name;
    }
  }
}

TEST(SparseMetadata, AreFoundByScopeDepthAndWidth) {
  for (const SparseMetadata& row : all_sparse_metadata()) {
    EXPECT_EQ(find_sparse_metadata(row.scope, row.k, row.element_bits), &row);
  }
  EXPECT_EQ(find_sparse_metadata(Scope::kWarpgroup, 16, 16), nullptr);
  EXPECT_EQ(find_sparse_metadata(Scope::kThread, 32, 16), nullptr);
}

}  // namespace
}  // namespace kiln::target
