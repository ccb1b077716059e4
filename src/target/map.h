// Who owns what, as text and JSON: what `kiln map` and `kiln atoms` print.
//
//   kiln map m16n8k16.f32.f16 --operand C
//
//   m16n8k16.f32.f16, operand C: 16 x 8 of f32, 4 values a lane
//           n=0  n=1  n=2  n=3  n=4 ...
//   m=0     T00  T00  T01  T01  T02
//   m=1     T04  T04  T05  T05  T06
//   ...
//   (lane, value) -> m + 16 * n: ((4,8),(2,2)):((32,1),(16,8))
#pragma once

#include <string>
#include <string_view>

#include "target/arch.h"
#include "target/fragment.h"
#include "target/mma.h"

namespace kiln::target {

// How the grid of one operand is labelled.
struct GridNames {
  std::string_view row;  // "m"
  std::string_view col;  // "k"
};

// The grid alone: one line for each row with the owner thread of each element. With `show_values`
// each cell also names the value: "T05.1".
[[nodiscard]] std::string grid_text(const Layout& tv, int rows, int cols, const GridNames& names,
                                    bool show_values);

// The whole page for one operand of one row: heading, grid of threads, grid of values, layout.
[[nodiscard]] std::string map_text(const Mma& mma, Operand operand);
// {"atom", "operand", "dtype", "rows", "cols", "values", "registers", "layout", "lanes",
//  "elements": [[{"row", "col", "lane", "value", "register"}, ...], ...]}; `register` is the 32-bit
//  one.
[[nodiscard]] std::string map_json(const Mma& mma, Operand operand);

// Every matrix instruction of an architecture (null: of all), as a table and as a JSON array.
[[nodiscard]] std::string atoms_text(const Arch* arch);
[[nodiscard]] std::string atoms_json(const Arch* arch);

}  // namespace kiln::target
