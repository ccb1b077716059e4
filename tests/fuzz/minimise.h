// The smallest program that still fails in the same way, by taking pieces away.
//
//   minimise(program, draw, "stop at sema/view.cpp:12", crew, 400)
#pragma once

#include "crew.h"

namespace kiln::fuzz {

// Tries at most `tries` programs. The crew has nothing else to do, and one worker.
[[nodiscard]] Program minimise(Program program, std::uint64_t draw, const std::string& failure,
                               Crew& crew, int tries);

// How `program` ends when it is tried alone: its failure, "" for none.
[[nodiscard]] std::string failure_of(const Program& program, std::uint64_t draw, Crew& crew);

}  // namespace kiln::fuzz
