#include "target/fragment.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "layout/indices.h"
#include "layout/print.h"
#include "support/check.h"

namespace kiln::target {

void Fragment::deal(const Layout& layout) {
  tv = layout;
  of_lanes = indices_of(mode(tv, 0));
  of_values = indices_of(mode(tv, 1));
}

Fragment fragment_layout(const Mma& mma, Operand operand, int tile_rows, int tile_cols) {
  const TileExtents atom = extents(mma, operand);
  KILN_CHECK(
      tile_rows > 0 && tile_cols > 0 && tile_rows % atom.rows == 0 && tile_cols % atom.cols == 0,
      "operand {} of {} on a {}x{} tile, which is no multiple of {}x{}", name(operand), mma.name,
      tile_rows, tile_cols, atom.rows, atom.cols);
  Fragment out;
  out.rows = tile_rows;
  out.cols = tile_cols;
  out.edge = {tile_rows, tile_cols};
  out.lanes = mma.lanes;
  out.reps_rows = tile_rows / atom.rows;
  out.reps_cols = tile_cols / atom.cols;
  out.values = values_of(mma, operand) * out.reps_rows * out.reps_cols;

  // Where the atom's elements lie in the tile: its columns are tile_rows apart there.
  const Layout place = make_layout(make_layout(atom.rows, 1), make_layout(atom.cols, tile_rows));
  const Layout atom_tv = composition(place, map_of(mma, operand));
  const Layout atom_values = mode(atom_tv, 1);
  detail::LayoutBuilder values;
  for (int i = 0; i < atom_values.leaves; ++i) {
    values.leaf(atom_values.extents[i], atom_values.strides[i]);
  }
  if (out.reps_rows > 1) values.leaf(out.reps_rows, atom.rows);
  if (out.reps_cols > 1) values.leaf(out.reps_cols, Index{tile_rows} * atom.cols);
  out.deal(make_layout(mode(atom_tv, 0), values.done_flat()));
  const Index elements = Index{tile_rows} * tile_cols;
  if (size(out.tv) > elements)
    return out;  // several lanes hold each element, which has no one owner
  out.vt = right_inverse(out.tv);
  KILN_CHECK(is_bijective(out.tv) && size(out.vt) == elements,
             "operand {} of {} on a {}x{} tile: {} is no bijection", name(operand), mma.name,
             tile_rows, tile_cols, to_text(out.tv));
  return out;
}

std::optional<FragmentColumns> columns_of(const Fragment& whole, int first, int cols) {
  if (first == 0 && cols == whole.edge.col) return FragmentColumns{whole, 0};
  if (whole.is_padded()) return std::nullopt;
  if (first < 0 || cols < 1 || first + cols > whole.cols || cols * whole.values % whole.cols != 0 ||
      first * whole.values % whole.cols != 0) {
    return std::nullopt;
  }
  const int values = cols * whole.values / whole.cols;
  const int first_value = first * whole.values / whole.cols;
  Fragment part = whole;
  part.cols = cols;
  part.edge.col = cols;
  part.values = values;
  part.reps_cols = 1;
  const Index widest = std::ranges::max(whole.of_lanes);
  for (int value = 0; value < values; ++value) {
    const Index here = whole.of_values[static_cast<std::size_t>(value)];
    const Index there = whole.of_values[static_cast<std::size_t>(first_value + value)];
    if (there - here != Index{first} * whole.rows) return std::nullopt;
    if ((widest + here) / whole.rows >= cols) return std::nullopt;
  }
  part.deal(make_layout(mode(whole.tv, 0), composition(mode(whole.tv, 1), make_layout(values, 1))));
  part.vt = right_inverse(part.tv);
  return FragmentColumns{part, first_value};
}

Fragment fragment_of(const Layout& tv, int rows, int cols) {
  return fragment_of(tv, rows, cols, {rows, cols});
}

Fragment fragment_of(const Layout& tv, int rows, int cols, Element edge) {
  Fragment out;
  out.deal(tv);
  out.rows = rows;
  out.cols = cols;
  out.edge = edge;
  out.lanes = static_cast<int>(size(mode(tv, 0)));
  out.values = static_cast<int>(size(mode(tv, 1)));
  std::vector<bool> held(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  for (const Index of_value : out.of_values) {
    for (const Index of_lane : out.of_lanes) {
      const auto at = static_cast<std::size_t>(of_lane + of_value);
      KILN_CHECK(at < held.size(), "{} on a {}x{} tile", to_text(tv), rows, cols);
      held[at] = true;
    }
  }
  KILN_CHECK(std::ranges::all_of(held, [](bool one) { return one; }),
             "{} leaves elements of a {}x{} tile out", to_text(tv), rows, cols);
  return out;
}

namespace {

// One leaf of a fragment's layout: it runs down the rows or along the columns, or says nothing.
struct Leaf {
  Index extent = 1;
  Index down = 0;   // rows from one to the next
  Index right = 0;  // columns
};

// The leaves of one mode (0: lanes, 1: values); those that run down a column and on into the next
// ones are cut in two.
std::vector<Leaf> leaves_of(const Fragment& fragment, int which) {
  const Layout layout = mode(fragment.tv, which);
  std::vector<Leaf> out;
  for (int i = 0; i < layout.leaves; ++i) {
    const Index extent = layout.extents[i];
    const Index stride = layout.strides[i];
    if (extent == 1) continue;
    if (stride == 0 || stride % fragment.rows == 0) {
      out.push_back({extent, 0, stride / fragment.rows});
    } else if (stride * extent <= fragment.rows) {
      out.push_back({extent, stride, 0});
    } else {
      KILN_CHECK(fragment.rows % stride == 0, "{} on {} rows", to_text(fragment.tv), fragment.rows);
      const Index down = fragment.rows / stride;
      out.push_back({down, stride, 0});
      out.push_back({extent / down, 0, 1});
    }
  }
  return out;
}

Index step_along(const Leaf& leaf, int dimension) {
  return dimension == 0 ? leaf.down : leaf.right;
}

Layout layout_of(const std::vector<Leaf>& leaves, int rows) {
  detail::LayoutBuilder out;
  for (const Leaf& leaf : leaves) {
    out.leaf(leaf.extent, leaf.down + leaf.right * rows);
  }
  if (leaves.empty()) out.leaf(1, 0);
  return out.done_flat();
}

constexpr Index kWarp = 32;

}  // namespace

namespace {

// How a tile is dealt out: runs of `length` columns to lanes side by side, and rows to lanes and warps
// below each other.
struct Shares {
  Index length = 1;
  Index lanes_right = 1;
  Index lanes_down = 1;
  Index warps_right = 1;
  Index warps_down = 1;

  // The columns and rows that all lanes take together before the first takes more.
  [[nodiscard]] Index step_right() const { return length * lanes_right * warps_right; }
  [[nodiscard]] Index step_down() const { return lanes_down * warps_down; }
  [[nodiscard]] Index turns_right(Element tile) const {
    return (tile.col + step_right() - 1) / step_right();
  }
  [[nodiscard]] Index turns_down(Element tile) const {
    return (tile.row + step_down() - 1) / step_down();
  }
  // Of one lane.
  [[nodiscard]] Index values(Element tile) const {
    return length * turns_right(tile) * turns_down(tile);
  }
};

// The lanes of a unit: its warps, and the lanes of each.
struct Team {
  explicit Team(int lanes)
      : in_warp(std::min<Index>(lanes, kWarp)), warps(std::max<Index>(1, lanes / kWarp)) {}
  Index in_warp;
  Index warps;
};

Fragment dealt_out(const Shares& shares, Element tile, int lanes) {
  const Team unit(lanes);
  Fragment out;
  out.rows = static_cast<int>(shares.step_down() * shares.turns_down(tile));
  out.cols = static_cast<int>(shares.step_right() * shares.turns_right(tile));
  out.edge = tile;
  out.lanes = lanes;
  out.values = static_cast<int>(shares.values(tile));
  std::vector<Leaf> lane;
  std::vector<Leaf> value;
  lane.push_back({shares.lanes_right, 0, shares.length});
  lane.push_back({shares.lanes_down, 1, 0});
  lane.push_back({unit.in_warp / (shares.lanes_right * shares.lanes_down), 0, 0});
  lane.push_back({shares.warps_right, 0, shares.length * shares.lanes_right});
  lane.push_back({shares.warps_down, shares.lanes_down, 0});
  lane.push_back({unit.warps / (shares.warps_right * shares.warps_down), 0, 0});
  value.push_back({shares.length, 0, 1});
  value.push_back({shares.turns_right(tile), 0, shares.step_right()});
  value.push_back({shares.turns_down(tile), shares.step_down(), 0});
  const auto drop_single = [](std::vector<Leaf>& leaves) {
    std::erase_if(leaves, [](const Leaf& leaf) { return leaf.extent == 1; });
  };
  drop_single(lane);
  drop_single(value);
  out.deal(make_layout(layout_of(lane, out.rows), layout_of(value, out.rows)));
  return out;
}

// Nothing is left over, at the price of lanes that hold the same.
Shares even_shares(Element tile, const Team& unit, int run, std::optional<int> within) {
  const auto fits = [](Index extent, Index part) { return part >= 1 && extent % part == 0; };
  // As many lanes as a row has room for, then runs as long as those lanes leave them.
  const auto power_in = [&](Index extent, Index most) {
    Index power = 1;
    while (power * 2 <= most && fits(extent, power * 2)) power *= 2;
    return power;
  };
  // Whole warps for whole rows where there are enough of them: then no row is in two warps.
  const auto share = [&](int dimension, Index extent, Index rest) {
    return within == dimension ? Index{1} : std::gcd<Index>(extent, rest);
  };
  Shares out;
  out.warps_down = share(0, tile.row, unit.warps);
  out.warps_right = share(1, tile.col, std::max<Index>(1, unit.warps / out.warps_down));
  out.lanes_right = power_in(tile.col / out.warps_right, unit.in_warp);
  out.length = power_in(tile.col / (out.warps_right * out.lanes_right), run);
  out.lanes_down = power_in(tile.row / out.warps_down, unit.in_warp / out.lanes_right);
  return out;
}

// Roughly what moving and computing a lane's values takes: an instruction each, one for each vector, and
// those that put rows in several warps together.
Index effort(const Shares& shares, Element tile) {
  constexpr Index kMeeting = 8;
  const Index values = shares.values(tile);
  return values + values / shares.length + (shares.warps_right > 1 ? kMeeting : 0);
}

// Calls `visit` with each divisor up to the first that is no less than `things`: more have no use.
template <class Visit>
void for_each_share(Index number, Index things, Visit&& visit) {
  for (Index part = 1; part <= number; ++part) {
    if (number % part != 0) continue;
    visit(part);
    if (part >= things) return;
  }
}

// Calls `visit` with each way to share a tile whose lines along `within` stay in one warp.
template <class Visit>
void for_each_sharing(Element tile, const Team& unit, int run, std::optional<int> within,
                      Visit&& visit) {
  const Index warps_below = within == 0 ? 1 : tile.row;
  const Index warps_beside = within == 1 ? 1 : tile.col;
  for_each_share(std::gcd<Index>(tile.col, run), tile.col, [&](Index length) {
    for_each_share(unit.in_warp, tile.col / length, [&](Index lanes_right) {
      for_each_share(unit.in_warp / lanes_right, tile.row, [&](Index lanes_down) {
        for_each_share(unit.warps, warps_below, [&](Index warps_down) {
          for_each_share(unit.warps / warps_down, warps_beside, [&](Index warps_right) {
            visit(Shares{length, lanes_right, lanes_down, warps_right, warps_down});
          });
        });
      });
    });
  });
}

}  // namespace

Layout spread(int rows, int cols, int lanes, int run, std::optional<int> within) {
  const Element tile{rows, cols};
  return dealt_out(even_shares(tile, Team(lanes), run, within), tile, lanes).tv;
}

Fragment spread_padded(int rows, int cols, int lanes, int run, std::optional<int> within) {
  const Element tile{rows, cols};
  const Team unit(lanes);
  const Shares even = even_shares(tile, unit, run, within);
  const auto rank = [&](const Shares& shares) {
    return std::tuple(effort(shares, tile), shares.warps_right, -shares.length, -shares.lanes_right,
                      shares.lanes_down, shares.warps_down);
  };
  std::optional<Shares> best;
  for_each_sharing(tile, unit, run, within, [&](const Shares& shares) {
    if (!best || rank(shares) < rank(*best)) best = shares;
  });
  const bool pays = best && best->values(tile) < even.values(tile);
  return dealt_out(pays ? *best : even, tile, lanes);
}

Layout reduced(const Fragment& whole, int dimension, int parts) {
  const int rows = dimension == 0 ? parts : whole.rows;
  Index before = 1;  // lanes
  Index part = 1;
  std::vector<Leaf> lanes;
  for (Leaf leaf : leaves_of(whole, 0)) {
    if (step_along(leaf, dimension) != 0) {
      leaf.down = leaf.right = 0;
      if (parts > 1 && before >= kWarp) {
        (dimension == 0 ? leaf.down : leaf.right) = part;
        part *= leaf.extent;
      }
    }
    before *= leaf.extent;
    lanes.push_back(leaf);
  }
  KILN_CHECK(part == parts, "{} groups of warps, {} parts", part, parts);
  std::vector<Leaf> values;
  for (const Leaf& leaf : leaves_of(whole, 1)) {
    if (step_along(leaf, dimension) == 0) values.push_back(leaf);
  }
  return make_layout(layout_of(lanes, rows), layout_of(values, rows));
}

Fragment reduced_by_lane(const Fragment& whole, int dimension) {
  KILN_CHECK(parts_along(whole, dimension) == 1 && !whole.is_padded(), "lines of {}",
             to_text(whole.tv));
  Index parts = 1;
  std::vector<Leaf> lanes = leaves_of(whole, 0);
  for (Leaf& leaf : lanes) {
    if (step_along(leaf, dimension) == 0) continue;
    leaf.down = dimension == 0 ? parts : 0;
    leaf.right = dimension == 0 ? 0 : parts;
    parts *= leaf.extent;
  }
  std::vector<Leaf> values = leaves_of(whole, 1);
  std::erase_if(values, [&](const Leaf& leaf) { return step_along(leaf, dimension) != 0; });
  const int rows = dimension == 0 ? static_cast<int>(parts) : whole.rows;
  const int cols = dimension == 0 ? whole.cols : static_cast<int>(parts);
  return fragment_of(make_layout(layout_of(lanes, rows), layout_of(values, rows)), rows, cols);
}

Layout repeated(const Fragment& one, int dimension, int count) {
  const int rows = dimension == 0 ? count : one.rows;
  std::vector<Leaf> values = leaves_of(one, 1);
  values.push_back({count, dimension == 0 ? 1 : 0, dimension == 0 ? 0 : 1});
  return make_layout(layout_of(leaves_of(one, 0), rows), layout_of(values, rows));
}

Layout transposed(const Fragment& fragment) {
  const auto turned = [](std::vector<Leaf> leaves) {
    for (Leaf& leaf : leaves) std::swap(leaf.down, leaf.right);
    return leaves;
  };
  return make_layout(layout_of(turned(leaves_of(fragment, 0)), fragment.cols),
                     layout_of(turned(leaves_of(fragment, 1)), fragment.cols));
}

Fragment split_columns(const Fragment& wide, int count) {
  const auto split = [&](std::vector<Leaf> leaves) {
    for (Leaf& leaf : leaves) leaf.right *= count;
    return leaves;
  };
  std::vector<Leaf> values = split(leaves_of(wide, 1));
  values.insert(values.begin(), {count, 0, 1});
  return fragment_of(
      make_layout(layout_of(split(leaves_of(wide, 0)), wide.rows), layout_of(values, wide.rows)),
      wide.rows, wide.cols * count, {wide.edge.row, wide.edge.col * count});
}

std::optional<Fragment> joined_columns(const Fragment& narrow, int count) {
  std::vector<Leaf> values = leaves_of(narrow, 1);
  const bool is_run = !values.empty() && values[0].right == 1 && values[0].extent % count == 0;
  if (!is_run || narrow.cols % count != 0 || narrow.edge.col % count != 0) return std::nullopt;
  values[0] = {values[0].extent / count, 0, count};
  if (values[0].extent == 1) values.erase(values.begin());
  std::vector<Leaf> lanes = leaves_of(narrow, 0);
  for (std::vector<Leaf>* leaves : {&lanes, &values}) {
    for (Leaf& leaf : *leaves) {
      if (leaf.right % count != 0) return std::nullopt;
      leaf.right /= count;
    }
  }
  return fragment_of(make_layout(layout_of(lanes, narrow.rows), layout_of(values, narrow.rows)),
                     narrow.rows, narrow.cols / count, {narrow.edge.row, narrow.edge.col / count});
}

std::optional<Fragment> with_runs(const Fragment& pairs) {
  constexpr Index kQuad = 4;
  constexpr Index kPair = 2;
  constexpr Index kRun = kQuad * kPair;
  std::vector<Leaf> lanes = leaves_of(pairs, 0);
  std::vector<Leaf> values = leaves_of(pairs, 1);
  const auto is = [](const std::vector<Leaf>& leaves, Index extent, Index right) {
    return !leaves.empty() && leaves[0].extent == extent && leaves[0].down == 0 &&
           leaves[0].right == right;
  };
  if (pairs.is_padded() || !is(lanes, kQuad, kPair) || !is(values, kPair, 1)) return std::nullopt;
  const auto blocks = std::ranges::find_if(values, [](const Leaf& leaf) {
    return leaf.down == 0 && leaf.right == kRun && leaf.extent % kQuad == 0;
  });
  if (blocks == values.end()) return std::nullopt;
  lanes[0].right = kRun;
  values[0].extent = kRun;
  *blocks = {blocks->extent / kQuad, 0, kQuad * kRun};
  if (blocks->extent == 1) values.erase(blocks);
  return fragment_of(make_layout(layout_of(lanes, pairs.rows), layout_of(values, pairs.rows)),
                     pairs.rows, pairs.cols);
}

int parts_along(const Fragment& whole, int dimension) {
  Index before = 1;
  Index parts = 1;
  for (const Leaf& leaf : leaves_of(whole, 0)) {
    if (before >= kWarp && step_along(leaf, dimension) != 0) parts *= leaf.extent;
    before *= leaf.extent;
  }
  return static_cast<int>(parts);
}

std::vector<int> lanes_along(const Fragment& whole, int dimension) {
  std::vector<int> out;
  Index before = 1;
  for (const Leaf& leaf : leaves_of(whole, 0)) {
    const bool along = before < kWarp && step_along(leaf, dimension) != 0;
    for (Index bit = 1; along && bit < leaf.extent; bit *= 2) {
      out.push_back(static_cast<int>(before * bit));
    }
    before *= leaf.extent;
  }
  return out;
}

namespace {

// The lanes of a warp that a line lies in, by their bits, and how far along it each bit leads.
struct LaneBit {
  Index step = 0;
  int lane = 0;
};
std::vector<LaneBit> lane_bits(const Fragment& whole, int dimension) {
  std::vector<LaneBit> out;
  Index before = 1;
  for (const Leaf& leaf : leaves_of(whole, 0)) {
    const Index step = step_along(leaf, dimension);
    for (Index bit = 1; before < kWarp && step != 0 && bit < leaf.extent; bit *= 2) {
      out.push_back({step * bit, static_cast<int>(before * bit)});
    }
    before *= leaf.extent;
  }
  std::ranges::sort(out, {}, &LaneBit::step);
  return out;
}

}  // namespace

std::optional<Lines> lines_along(const Fragment& whole, int dimension) {
  if (parts_along(whole, dimension) > 1) return std::nullopt;
  const Index length = dimension == 0 ? whole.rows : whole.cols;
  const std::vector<LaneBit> bits = lane_bits(whole, dimension);
  Lines out;
  const Index run = bits.empty() ? length : bits[0].step;
  Index block = run;
  for (const LaneBit& bit : bits) {
    if (bit.step != block) return std::nullopt;
    block *= 2;
    out.lanes.push_back(bit.lane);
  }
  if (length % block != 0) return std::nullopt;
  out.run = static_cast<int>(run);
  out.blocks = static_cast<int>(length / block);
  // (line, place on it) of the first lane's values
  const auto place = [&](int value) {
    const Element at = element_of(whole, 0, value);
    return dimension == 0 ? std::pair{at.col, at.row} : std::pair{at.row, at.col};
  };
  out.values.resize(static_cast<std::size_t>(whole.values));
  std::iota(out.values.begin(), out.values.end(), 0);
  std::ranges::sort(out.values, {}, place);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const Index of_line = static_cast<Index>(i) % (run * out.blocks);
    if (place(out.values[i]).second != of_line / run * block + of_line % run) return std::nullopt;
  }
  return out;
}

std::vector<int> values_beside(const Fragment& other, const Fragment& anchor) {
  if (other.lanes != anchor.lanes) return {};
  const auto wanted = [&](int lane, int value) {
    const Element at = element_of(anchor, lane, value);
    return Element{other.rows == 1 ? 0 : at.row, other.cols == 1 ? 0 : at.col};
  };
  std::vector<int> out;
  for (int value = 0; value < anchor.values; ++value) {
    const Element first = wanted(0, value);
    int found = 0;
    while (found < other.values && !(element_of(other, 0, found) == first)) ++found;
    if (found == other.values) return {};
    for (int lane = 1; lane < anchor.lanes; ++lane) {
      if (!(element_of(other, lane, found) == wanted(lane, value))) return {};
    }
    out.push_back(found);
  }
  return out;
}

std::vector<int> reduced_values(const Fragment& target, const Fragment& source, int dimension) {
  std::vector<int> out;
  for (int value = 0; value < source.values; ++value) {
    const Element at = element_of(source, 0, value);
    const auto belongs = [&](int candidate) {
      const Element kept = element_of(target, 0, candidate);
      return dimension == 0 ? kept.col == at.col : kept.row == at.row;
    };
    int found = 0;
    while (found < target.values && !belongs(found)) ++found;
    KILN_CHECK(found < target.values, "no value of {} for value {} of {}", to_text(target.tv),
               value, to_text(source.tv));
    out.push_back(found);
  }
  return out;
}

std::vector<LaneDigit> repeating_digits(const Fragment& fragment) {
  std::vector<LaneDigit> out;
  Index below = 1;
  for (const Leaf& leaf : leaves_of(fragment, 0)) {
    if (leaf.down == 0 && leaf.right == 0 && leaf.extent > 1) {
      const bool goes_on = !out.empty() && out.back().below * out.back().extent == below;
      if (goes_on) {
        out.back().extent *= leaf.extent;
      } else {
        out.push_back({below, leaf.extent});
      }
    }
    below *= leaf.extent;
  }
  return out;
}

bool is_first_holder(const Fragment& fragment, int lane) {
  return std::ranges::all_of(repeating_digits(fragment), [lane](const LaneDigit& digit) {
    return lane / digit.below % digit.extent == 0;
  });
}

Element element_of(const Fragment& fragment, int lane, int value) {
  KILN_CHECK(lane >= 0 && lane < fragment.lanes && value >= 0 && value < fragment.values,
             "lane {} of {}, value {} of {}", lane, fragment.lanes, value, fragment.values);
  const auto index = static_cast<int>(fragment.of_lanes[static_cast<std::size_t>(lane)] +
                                      fragment.of_values[static_cast<std::size_t>(value)]);
  return {index % fragment.rows, index / fragment.rows};
}

Owner owner_of(const Fragment& fragment, int row, int col) {
  KILN_CHECK(row >= 0 && row < fragment.rows && col >= 0 && col < fragment.cols,
             "element ({}, {}) of a {}x{} tile", row, col, fragment.rows, fragment.cols);
  const auto place = static_cast<int>(fragment.vt(row + Index{fragment.rows} * col));
  return {place % fragment.lanes, place / fragment.lanes};
}

}  // namespace kiln::target
