// Pictures of ownership: which thread holds which element, in which of its values.
//
//   atom_picture(*find_mma("m16n8k16.f32.f16"), Operand::kC, {})     one grid, 16 x 8
//   atom_picture(*find_mma("m16n8k16.f32.f16"), std::nullopt, {})    A, B and C
//   matrix_load_picture(*find_copy("ldmatrix.x4"), {})               four grids, 8 x 8
//   tile_picture(*parse_layout("((4,8),2):((16,1),8)"), {8, 8}, {})  any (lane, value) layout
#pragma once

#include <optional>

#include "explain/draw/picture.h"
#include "target/copy.h"
#include "target/mma.h"

namespace kiln::explain {

struct OwnershipOptions {
  // B as k x n, so that A stands left of C and B above it, and rows and columns line up. Only
  // for pictures of all three operands.
  bool side_by_side = false;
  bool grids = true;    // the tile, each element with its owner
  bool tables = false;  // a row for each thread, a column for each value
};

// One operand, which has a map (KILN_CHECK); for none all that have one.
[[nodiscard]] Picture atom_picture(const target::Mma& mma, std::optional<target::Operand> operand,
                                   const OwnershipOptions& options);

// What an operand's rows and columns count: {"m", "k"} for A.
struct AxisNames {
  std::string_view row;
  std::string_view col;
};
[[nodiscard]] AxisNames axis_names(target::Operand operand);

// Where `ldmatrix` puts the elements of its matrices. `copy` has maps (KILN_CHECK).
[[nodiscard]] Picture matrix_load_picture(const target::Copy& copy,
                                          const OwnershipOptions& options);

// `tv`: (lane, value) -> row + rows * column, or lane alone. It stays inside the tile (KILN_CHECK).
// An element that several own shows the first and how many more: "T00+3".
[[nodiscard]] Picture tile_picture(const Layout& tv, target::TileExtents tile,
                                   const OwnershipOptions& options);

}  // namespace kiln::explain
