// How many registers a thread of a launch will need, estimated from the decided IR.
//
//   examples/matmul_wmma.co:   accumulator                                        4
//                              operands                                           4 + 4
//                              copies in a loop, 4 steps of a thread each         7 + 7 * 4
//                              every kernel                                       10
//                                                                           =>    57   (ptxas: 67)
//
// Fragments are counted where they live. The rest is an allowance fitted to what ptxas makes of the
// CUDA that kiln emits: which addresses are kept and which are computed again only the assembler
// knows. tests/e2e/explain_test.py holds the estimate against ptxas.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::explain {

// A register tile where most registers are in use.
struct LiveTile {
  std::string name;
  int registers = 0;  // of a thread
};

struct RegisterEstimate {
  int fragments = 0;                 // operand and accumulator registers alive at the fullest place
  int locals = 0;                    // local arrays and mutable scalars
  int addresses = 0;                 // of memory accesses, and what every kernel needs
  int must_stay = 0;                 // of the addresses: what ptxas would not compute again
  int wanted = 0;                    // the sum
  Span fullest;                      // an operation where so many fragment registers are alive
  std::vector<LiveTile> alive = {};  // there, the largest first
  int total = 0;                     // `wanted`, but no more than a thread of such a block may have
  bool compiled = false;             // `total` is what the compiled kernel takes
};

// `threads`: of a block.
[[nodiscard]] RegisterEstimate estimate_registers(const target::Arch& arch,
                                                  const ir::Function& function, ir::OpId launch,
                                                  std::int64_t threads);

}  // namespace kiln::explain
