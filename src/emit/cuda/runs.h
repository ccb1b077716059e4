// A fragment's values between registers and a window: which registers there are, where in a tile each value is, and loops
// that move them in runs of neighbours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emit/cuda/instruction.h"
#include "emit/cuda/kernel.h"
#include "emit/cuda/lane_map.h"
#include "ir/registers.h"
#include "target/fragment.h"

namespace kiln::emit {

// The registers of one fragment value.
struct Registers {
  target::Fragment fragment;
  bool swapped = false;  // the tile's columns are the map's rows
  DType dtype;
  RegisterType type;

  [[nodiscard]] int per(int values) const {
    return (values * info(dtype).bits + type.bits - 1) / type.bits;
  }
  [[nodiscard]] bool packed() const { return info(dtype).bits < type.bits; }
  [[nodiscard]] int count() const { return per(fragment.values); }
};
[[nodiscard]] Registers registers_of(const ir::Function& function, ir::ValueId frag);

// The place in the tile of a lane's value.
[[nodiscard]] PlaceExpr place_of_value(Kernel& kernel, const target::Fragment& fragment,
                                       const ir::Expr& value);

// "col < 1023": what is at that row (dimension 0) or column lies within the edge that the operation minds
// in a tile; "" when it minds none, or all of it does.
[[nodiscard]] std::string within_edge(Kernel& kernel, const ir::Op& op, ir::ValueId tile,
                                      int dimension, const ir::Expr& at);
// "row < 3 && col < 1023"
[[nodiscard]] std::string within_edge(Kernel& kernel, const ir::Op& op, ir::ValueId tile,
                                      const PlaceExpr& place);

// A fragment's values between registers and a window, run by run: one run is `length` consecutive
// elements of the window's rows, or `wide` where the rows begin at multiples of so many at run time.
struct Runs {
  const ir::Op& op;
  const char* function;  // of fragment.cuh
  ir::ValueId frag;
  ir::ValueId view;
  bool transposed;  // the window's rows are the fragment's columns
  std::int64_t length;
  std::int64_t wide;  // 0: there is no such case
  const std::vector<std::int64_t>& guarded;
  const std::vector<std::int64_t>& before;
  target::FragmentColumns part;  // what of the fragment is moved
  bool in_aligned_rows = false;  // they begin at multiples of `length`
};
void emit_runs(Kernel& kernel, const Runs& runs);

}  // namespace kiln::emit
