// Types of tile IR values.
//
//   f32                                a scalar
//   cell<s32>                          a mutable scalar (one per thread)
//   view<f16, shared, [16, K]>         a region of memory, extents possibly symbolic
//   frag<A, f16, 16x16>                a register tile of one unit, an operand of its `mma`
//   frag<tile, f32, 64x1>              one that no `mma` names: any value of tile expressions
//   event<4>                           4 events of a block, counted by generation
//   future                             a copy on its way, under the name it has at the moment
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "support/dtype.h"

namespace kiln::ir {

enum class Space : std::uint8_t { kGlobal, kShared, kLocal };
// What a register tile is to the `mma` that names it; kTile: none does.
enum class Role : std::uint8_t { kA, kB, kC, kMetadata, kTile };

struct NoType {
  friend bool operator==(NoType, NoType) = default;
};
struct ScalarType {
  DType dtype = DType::kF32;
  friend bool operator==(const ScalarType&, const ScalarType&) = default;
};
struct CellType {
  DType dtype = DType::kF32;
  friend bool operator==(const CellType&, const CellType&) = default;
};
struct ViewType {
  DType dtype = DType::kF32;
  Space space = Space::kGlobal;
  std::vector<Expr> shape;
  friend bool operator==(const ViewType&, const ViewType&) = default;
};
// A and B are stored as the program wrote them: `rows` x `cols` of the view, whatever the majors.
struct FragType {
  Role role = Role::kC;
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  friend bool operator==(const FragType&, const FragType&) = default;
};

// An array of events flattens into one row of slots; a single event has one.
// Of shared memory, for each slot of an event (PTX ISA, mbarrier object).
inline constexpr std::int64_t kEventBytes = 8;
struct EventType {
  std::int64_t slots = 1;
  friend bool operator==(EventType, EventType) = default;
};
struct FutureType {
  friend bool operator==(FutureType, FutureType) = default;
};

using Type = std::variant<NoType, ScalarType, CellType, ViewType, FragType, EventType, FutureType>;

}  // namespace kiln::ir
