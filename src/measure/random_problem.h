// Problems of the library drawn at random, for `kiln bench random`, and their text.
//
//   RandomProblem problem = draw_problem(0, 17);       the 17th of seed 0, the same everywhere
//   text(problem)    "bf16*bf16->f32 m=17 n=24 k=129 lda=136 batch=3 alpha=-1.375 bias gelu seed=9"
//   parse_problem(text(problem)) == problem
//
// The distribution loves edges: 1 and 2, primes, powers of two and multiples of tiles with their
// neighbours. Epilogues and types come from some eighty pairs that the seed makes, all 64 epilogues
// and all types among them: so problems share kernels, of which a run compiles no more than it needs (bench_random.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gemm/problem.h"

namespace kiln::measure {

struct RandomProblem {
  gemm::Problem problem = {};
  double alpha = 1;
  double beta = 0;
  std::int64_t first_rows = 0;  // of a batch-invariant one: those of a product of so many, or 0
  std::uint64_t seed = 0;       // of the values

  friend bool operator==(const RandomProblem&, const RandomProblem&) = default;
};

inline constexpr std::int64_t kRandomExtentMax = 1536;

// A pure function. The problem is one that normalised() takes; whether a kernel serves it is not
// known.
[[nodiscard]] RandomProblem draw_problem(std::uint64_t seed, std::uint64_t number);

// A problem as text: m, n and k, and of everything else what differs from the usual.
[[nodiscard]] std::string text(const RandomProblem& problem);
// The problem that `text` wrote; nothing when it is no such text.
[[nodiscard]] std::optional<RandomProblem> parse_problem(std::string_view text);

// The types of A, B and C: "bf16*bf16->f32".
[[nodiscard]] std::string types_text(const gemm::Problem& problem);

// The problem cut to its first `first_rows` rows of A and C; matrices stay where they are.
[[nodiscard]] gemm::Problem with_first_rows(const RandomProblem& problem);

}  // namespace kiln::measure
