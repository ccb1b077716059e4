// The laws of parts: what a slice, a tile or a thread's share reaches is what the whole reaches
// there.
#include <gtest/gtest.h>

#include "layout/family.h"

namespace kiln {
namespace {

// offset + part(free coordinates) == layout(all coordinates), whatever subset of the numbers is
// fixed; and the diced half is the rest.
void expect_sliced(const Layout& layout, int count) {
  for (Index c = 0; c < size(layout); ++c) {
    Coord at = idx2crd(c, layout);
    if (count == rank(layout)) {
      at = Coord{};
      for (Index rest = c; at.count < count; ++at.count) {
        at.at[at.count] = rest % size(layout, at.count);
        rest /= size(layout, at.count);
      }
    }
    for (int kept = 0; kept < 1 << count; ++kept) {
      Coord fixed = at;
      Coord free;
      for (int i = 0; i < count; ++i) {
        if ((kept >> i & 1) == 0) continue;
        fixed.at[i] = kAll;
        free.at[free.count++] = at.at[i];
      }
      const Slice part = slice(fixed, layout);
      ASSERT_EQ(rank(part.layout), std::max(free.count, 1));
      const Index inside = free.count == 0 ? 0 : crd2idx(free, part.layout);
      ASSERT_EQ(part.offset + inside, layout(c)) << to_text(layout) << " at " << c;
      ASSERT_TRUE(c > 0 || size(dice(fixed, layout)) * size(part.layout) == size(layout));
    }
  }
}

TEST(Slice, IsTheLayoutWithSomeNumbersFixed) {
  for_each_shape(kSizeMax, kLeavesInFamily, [](const Layout& flat) {
    for (const Layout& layout : groupings(flat)) {
      expect_sliced(layout, rank(layout));
      if (layout.leaves != rank(layout)) expect_sliced(layout, layout.leaves);
    }
  });
  for_each_layout(kSizeMax / 2, kLeavesInFamily,
                  [](const Layout& layout) { expect_sliced(layout, rank(layout)); });
}

TEST(Slice, Examples) {
  const Layout layout = read("(8,(2,4)):(8,(1,2))");
  const Slice row = slice(make_coord(2, kAll), layout);
  EXPECT_EQ(to_text(row.layout), "((2,4)):((1,2))");
  EXPECT_EQ(row.offset, 16);
  const Slice column = slice(make_coord(kAll, 3), layout);
  EXPECT_EQ(to_text(column.layout), "(8):(8)");
  EXPECT_EQ(column.offset, 3);
  const Slice leaves = slice(make_coord(kAll, 1, kAll), layout);
  EXPECT_EQ(to_text(leaves.layout), "(8,4):(8,2)");
  EXPECT_EQ(leaves.offset, 1);
  EXPECT_EQ(to_text(slice(make_coord(1, 1), layout).layout), "1:0");
  EXPECT_FALSE(slice(make_coord(1, 1, 1, 1), layout).layout.valid());
  EXPECT_FALSE(slice(make_coord(1), layout).layout.valid());
}

TEST(Dice, KeepsWhatTheSliceFixes) {
  EXPECT_EQ(to_text(dice(make_coord(2, kAll), read("(8,(2,4)):(8,(1,2))"))), "(8):(8)");
  EXPECT_EQ(to_text(dice(make_coord(kAll, kAll), read("(8,4)"))), "1:0");
  EXPECT_EQ(dice(make_coord(1, kAll, 1), make_tiler(128, 64, 32)), make_tiler(128, 32));
  EXPECT_FALSE(dice(make_coord(1, kAll), make_tiler(128, 64, 32)).valid());
  EXPECT_FALSE(dice(make_coord(kAll), make_tiler(128)).valid());
  EXPECT_EQ(dice(make_coord(1, kAll, 1), make_coord(5, 6, kAll)), make_coord(5, kAll));
}

// Tile (i, j) at (r, c) is element (i * rows + r, j * columns + c); with kAll for j there is one
// more mode.
void expect_tiles(const Layout& layout, Index rows, Index columns) {
  const Tiler tiler = make_tiler(rows, columns);
  const Index across = size(layout, 1) / columns;
  for (Index i = 0; i < size(layout, 0) / rows; ++i) {
    const Slice band = local_tile(layout, tiler, make_coord(i, kAll));
    ASSERT_EQ(band, local_tile(layout, tiler, make_coord(i)));
    ASSERT_EQ(size(band.layout, 2), across);
    for (Index j = 0; j < across; ++j) {
      const Slice tile = local_tile(layout, tiler, make_coord(i, j));
      ASSERT_EQ(tile, local_tile(layout, tiler, i + size(layout, 0) / rows * j));
      for (Index k = 0; k < rows * columns; ++k) {
        const Index r = k % rows;
        const Index c = k / rows;
        const Index expected = layout(i * rows + r, j * columns + c);
        ASSERT_EQ(tile.offset + tile.layout(r, c), expected) << to_text(layout);
        ASSERT_EQ(band.offset + band.layout(r, c, j), expected) << to_text(layout);
      }
    }
  }
}

TEST(LocalTile, IsTheTileWithThatNumber) {
  for_each_layout(kSizeMax / 2, 2, [](const Layout& layout) {
    for (Index rows = 1; rank(layout) == 2 && rows <= size(layout, 0); ++rows) {
      for (Index columns = 1; columns <= size(layout, 1); ++columns) {
        const bool whole = size(layout, 0) % rows == 0 && size(layout, 1) % columns == 0;
        if (whole) expect_tiles(layout, rows, columns);
      }
    }
  });
}

TEST(LocalTile, StepsAndLayoutTilers) {
  const Layout a = read("(128,64):(64,1)");
  const Slice tile =
      local_tile(a, make_tiler(32, 99, 16), make_coord(1, 7, kAll), make_coord(1, kAll, 1));
  EXPECT_EQ(to_text(tile.layout), "(32,16,4):(64,1,16)");
  EXPECT_EQ(tile.offset, 2048);
  const Slice linear = local_tile(read("24:1"), "4:2"_layout, 3);
  EXPECT_EQ(to_text(linear.layout), "(4):(2)");
  EXPECT_EQ(linear.offset, 9);
  EXPECT_FALSE(local_tile(a, make_tiler(32, 16), make_coord(1, 2, 3)).layout.valid());
  EXPECT_FALSE(local_tile(a, make_tiler(32, 16, 4), Index{1}).layout.valid());
}

// Thread (i, j) has the elements (i + rows * r, j + columns * c), and the threads' shares together
// are the layout.
void expect_partition(const Layout& layout, const Layout& threads) {
  std::vector<Index> reached;
  const Index rows = size(threads, 0);
  const Index columns = size(threads, 1);
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) {
      const Slice part = local_partition(layout, threads, threads(i, j));
      ASSERT_EQ(rank(part.layout), 2);
      for (Index c = 0; c < size(part.layout, 1); ++c) {
        for (Index r = 0; r < size(part.layout, 0); ++r) {
          reached.push_back(part.offset + part.layout(r, c));
          ASSERT_EQ(reached.back(), layout(i + rows * r, j + columns * c)) << to_text(layout);
        }
      }
    }
  }
  std::sort(reached.begin(), reached.end());
  ASSERT_EQ(reached, sorted_image(layout));
}

TEST(LocalPartition, IsTheShareOfAThread) {
  for_each_layout(kSizeMax / 2, 2, [](const Layout& layout) {
    for (Index rows = 1; rank(layout) == 2 && rows <= size(layout, 0); ++rows) {
      for (Index columns = 1; columns <= size(layout, 1); ++columns) {
        if (size(layout, 0) % rows != 0 || size(layout, 1) % columns != 0) continue;
        expect_partition(layout, make_layout(make_layout(rows, 1), make_layout(columns, rows)));
        expect_partition(layout, make_layout(make_layout(rows, columns), make_layout(columns, 1)));
      }
    }
  });
  expect_partition(read("(8,12):(12,1)"), read("((2,2),(3,2)):((1,12),(2,6))"));
}

TEST(LocalPartition, ByStep) {
  const Layout a = read("(32,16):(16,1)");
  const Layout threads = read("(8,4,2):(1,8,32)");
  const Slice part = local_partition(a, threads, 37, make_coord(1, 1, kAll));
  EXPECT_EQ(part, local_partition(a, read("(8,4):(1,8)"), 37 % 32));
  EXPECT_EQ(to_text(part.layout), "(4,4):(128,4)");
  EXPECT_EQ(part.offset, 5 * 16 + 0);
}

}  // namespace
}  // namespace kiln
