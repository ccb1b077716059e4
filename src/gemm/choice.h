// Which kernel, with which defines, computes a problem.
//
//   choose({.m = 4096, .n = 4096, .k = 4096}, *find_arch("sm_90a"), 132)
//     =>  gemm_sm90, {BLOCKS 132, DTYPE bf16, GROUP 16, TILE_N 256, ...}
//
// First the table of what was measured (tuned.h), then the best by a model of all that may be tried
// (space.h). In a batch-invariant problem nothing depends on m.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gemm/problem.h"
#include "target/arch.h"

namespace kiln::gemm {

// Names and values of macros.
using Defines = std::vector<std::pair<std::string, std::string>>;

struct Choice {
  std::string kernel;    // a file of kernels/, without `.co`
  Defines defines = {};  // sorted by name
  friend bool operator==(const Choice&, const Choice&) = default;
};

// "gemm_sm90 -D BLOCKS=132 -D TILE_N=256", as the command line takes it.
[[nodiscard]] std::string text(const Choice& choice);

// The best choice known. A pure function. Errors: a problem that is none (see normalised); no
// kernel serves it on this architecture: the reason lists what each kernel lacks.
[[nodiscard]] Result<Choice> choose(const Problem& problem, const target::Arch& arch,
                                    int multiprocessors);

}  // namespace kiln::gemm
