// What one warp asks of shared memory at once, and how many wavefronts serve it.
//
//   Memory tile{.layout = *parse_layout("(8,8):(8,1)"), .element_bytes = 16};
//   access = access_from_layout(tile, *parse_layout("8:1"), "8:1", diags)
//                           8 lanes, each 16 bytes of one column
//   phases(*access)         one phase of 8 lanes: 8 wavefronts, bank 0 asked for 8 words
//
// Memory serves 128 bytes a wavefront: 32 lanes of up to 4 bytes in one phase, 16 lanes of 8, 8
// lanes of 16. A phase takes as many wavefronts as the busiest bank has distinct words to give; one
// word goes to any number of lanes. The simulator counts with the same function (sim/tally.h).
#pragma once

#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "kiln/layout.h"
#include "sim/tally.h"
#include "target/copy.h"

namespace kiln::explain {

using sim::kBankBytes;
using sim::kBanks;

// A tile in shared memory. `layout` sends (row, column...) to an element's number.
struct Memory {
  Layout layout;
  Swizzle swizzle = {0, 4, 3};  // on byte addresses
  int element_bytes = 2;
  std::string row_name = "i";
  std::string col_name = "j";
};

[[nodiscard]] int memory_rows(const Memory& memory);
[[nodiscard]] int memory_cols(const Memory& memory);

// The byte address of the element with this linear coordinate (row + rows * column).
[[nodiscard]] Index address_of(const Memory& memory, Index coordinate);
[[nodiscard]] inline int bank_of(Index address) {
  return static_cast<int>(address / kBankBytes % kBanks);
}

struct LaneAccess {
  int lane;
  Index address;                   // of its first byte
  std::vector<Index> coordinates;  // of the elements it touches, in order
};

struct Access {
  std::string name;  // as it was asked for
  int bytes;         // each lane moves
  std::vector<LaneAccess> lanes;
};

// `layout`: lane -> linear coordinate, or (lane, element of the vector) -> linear coordinate. A
// mistake is reported: too many lanes, elements outside the tile, a vector that is no run of
// aligned bytes or of no width that an instruction has.
[[nodiscard]] Checked<Access> access_from_layout(const Memory& memory, const Layout& layout,
                                                 const std::string& name, Diagnostics& diags);

// The row addresses of an `ldmatrix`: its matrices start at the tile's corner and go two down where
// the tile has the rows, then right, which is the order of the registers of an operand.
[[nodiscard]] Checked<Access> access_from_matrix_load(const Memory& memory,
                                                      const target::Copy& copy, Diagnostics& diags);

struct Phase {
  std::size_t first = 0;  // of Access::lanes
  std::size_t count = 0;
  Index wavefronts = 1;
  std::vector<Index> words_of_bank = {};  // distinct words asked of each bank
};
[[nodiscard]] std::vector<Phase> phases(const Access& access);

}  // namespace kiln::explain
