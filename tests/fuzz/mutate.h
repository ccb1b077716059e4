// Mutant k of a seed: a program of the collection with one to six small changes.
//
//   const Mutant mutant = make_mutant(seeds, /*seed=*/1, /*index=*/4711);
//   mutant.program.text       // the same on every machine with the same collection
//   mutant.how                // "examples/stencil.co: number, dtype"
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "program.h"

namespace kiln::fuzz {

struct Mutant {
  Program program;
  std::string how;
};

[[nodiscard]] Mutant make_mutant(std::span<const Program> seeds, std::uint64_t seed,
                                 std::uint64_t index);

}  // namespace kiln::fuzz
