// Which elements of a register tile each thread holds, once its instruction or its layout is decided.
// Everybody who moves registers asks here.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "ir/module.h"
#include "target/fragment.h"

namespace kiln::ir {

struct TilePlace {
  int row = 0;
  int col = 0;
  friend bool operator==(const TilePlace&, const TilePlace&) = default;
};

// The map of an operand that the program wrote with its contraction running down its rows has the
// tile's columns for rows: `swapped`.
struct TileRegisters {
  target::Fragment map;  // perhaps padded
  bool swapped = false;

  [[nodiscard]] int lanes() const { return map.lanes; }
  [[nodiscard]] int values() const { return map.values; }
  // The tile's element that a lane has as its value number `value`.
  [[nodiscard]] TilePlace operator()(int lane, int value) const {
    const target::Element at = element_of(map, lane, value);
    return swapped ? TilePlace{at.col, at.row} : TilePlace{at.row, at.col};
  }
};

// `frag` must have an instruction or a layout, and be neither metadata nor read in place.
[[nodiscard]] TileRegisters tile_registers(const Function& function, ValueId frag);

// By which XORs of the lane's number lanes put together what each has of a row or column. None where
// the result has what each lane has by itself.
[[nodiscard]] std::vector<int> exchanges_of(const Function& function, const Reduce& reduce);

// How many lanes hold a fragment, and the elements that each of them holds. 0 and 0: not decided.
struct Share {
  std::int64_t lanes = 0;
  std::int64_t values = 0;
};
[[nodiscard]] Share share_of(const Function& function, ValueId frag);

// The edge that an operation minds in a tile's registers, because it does not treat what lies beyond it
// as elements (Beyond); nothing where it does, and for a tile that is not padded.
[[nodiscard]] std::optional<target::Element> minded_edge(const Function& function, const Op& op,
                                                         ValueId tile);

// Whether a product can begin its sum, c = a x b: an asynchronous one of sums that are registers each.
[[nodiscard]] bool can_begin_sums(const target::Mma* atom, DType sum);

// Whether an apply can go on beyond the edge of a padded tile as well, because nobody can tell: all it
// does is to compute elements that then lie beyond the edge, too, and it traps on no value.
[[nodiscard]] bool goes_beyond_unseen(const Function& function, const Apply& apply);

// Whether an apply can compute two neighbours of a tile's register at once, both of a 16-bit float or two of four
// of an 8-bit one, each rounded as an element alone would be. Its tiles have two elements where that register has them.
// Either all are of that type of 16 bits, and the body is what packed arithmetic does; or it rounds elements of f32, and
// that is all.
[[nodiscard]] bool goes_in_pairs(const Function& function, const Apply& apply);

// Of an apply that multiplies its tile's elements with those of another tile, and does nothing else, that tile; else none.
[[nodiscard]] ValueId factors_of(const Function& function, const Apply& apply);

// What of the registers a store writes; nothing when that is no run of every lane's values.
[[nodiscard]] std::optional<target::FragmentColumns> stored_registers(const Function& function,
                                                                      const Store& store);

// For each of the lane's values of `to`, the value of `from` that is the same element of the tile;
// empty when some lane does not hold it, or not under the number that it has in all other lanes.
[[nodiscard]] std::vector<int> moved_values(const TileRegisters& from, const TileRegisters& to);

// A conversion between the lanes of a quad, four that are neighbours: what accumulators become on their way to operands
// of elements of 8 bits, and elements of 16 bits on their way to memory. Each register of `from` goes to one lane whole.
//
// Of 8 bits a lane has two neighbours of a row in each of two registers, and wants four in one: a register's upper half,
// which is of another row, goes to the next register of `to`. `registers`: of each two of `to`, the numbers of the two of
// `from` that lanes 0 and 1, and lanes 2 and 3, take theirs from.
//
//   row 0, columns 0 to 15, in lanes 0 to 3:    0 1|8 9  2 3|10 11  4 5|12 13  6 7|14 15
//                                         =>    0 1 2 3  4 5 6 7    8 9 10 11  12 13 14 15
//
// Of 16 bits a lane has two neighbours in each of four registers, and wants eight in four (target::with_runs). `registers`: of
// each four of `to`, the numbers of those of `from` that lanes 0, 1, 2 and 3 take theirs from, one of each lane.
//
// Empty when the elements are of other widths, or lie otherwise.
struct QuadMoves {
  struct Source {
    int lane = 0;
    int value = 0;
    friend bool operator==(const Source&, const Source&) = default;
  };
  bool whole = false;  // of elements of 16 bits
  std::vector<int> registers;

  // Where a lane gets its value number `value` of `to`.
  [[nodiscard]] Source source_of(int lane, int value) const;
  // How many registers each lane sends to others, one at a time.
  [[nodiscard]] std::int64_t shuffles() const { return std::ssize(registers); }
};
[[nodiscard]] QuadMoves quad_moves(const Function& function, const Convert& convert);

// Whether the lanes of a conversion hold what they need already, or those of their quads do.
[[nodiscard]] bool needs_no_memory(const Function& function, const Convert& convert);

// The tiles of a recast: that with the wider elements, that with the narrower ones, and how many of
// these are one of the others.
struct RecastSides {
  ValueId wide;
  ValueId narrow;
  int count = 0;
};
[[nodiscard]] RecastSides sides_of(const Function& function, const Recast& recast);

// Where a lane has an element of a tile with several elements, side by side, for each one of another:
// which part it is of which value.
struct ValuePart {
  int value = 0;
  int part = 0;
};
// That of each of the lane's values of `narrow`, which has `count` elements for one of `wide`; empty
// when some lane does not hold it, or not under the number that it has in all other lanes.
[[nodiscard]] std::vector<ValuePart> parts_of_values(const TileRegisters& wide,
                                                     const TileRegisters& narrow, int count);

// Whether the matrices of one matrix load or store, (row, column) pairs as in Load::matrices, lie where
// the bits of their number put them: number 3 as far from 2 as 1 is from 0. A lane's address is then
// arithmetic on its number; otherwise it would take a table.
[[nodiscard]] bool lie_by_bits(std::span<const std::int64_t> pairs);

}  // namespace kiln::ir
