// Whether the hardware may make a copy between global and shared memory that the program leaves to the block's threads.
// Part of specialise.
//
//   dma.copy x.subspan(64, 64).at(i, k) => x_s       x of [M, K], f16: where 8 divides K
#pragma once

#include <optional>
#include <vector>

#include "ir/module.h"
#include "passes/copies_ahead.h"

namespace kiln::passes {

// `elements` must divide the length of rows, which is only known at launch.
struct RowCondition {
  std::int64_t elements = 1;
  ir::Expr row;
};

// Adds to `conditions` what has to hold at launch, beside a buffer that begins at a multiple of 16 bytes. An obstacle
// where it is never possible (PTX ISA, "cp.async.bulk.tensor"; CUDA driver API, "cuTensorMapEncodeTiled").
[[nodiscard]] std::optional<Obstacle> bulk_instead(const ir::Function& function, ir::OpId copy,
                                                   std::vector<RowCondition>& conditions);

}  // namespace kiln::passes
