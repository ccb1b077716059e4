// From a call of kiln/kiln.h to a kernel and what it is called with.
//
//   {"scale", arrays x [64, 1024] and y, N not given}   =>   kernel 0, M = 64, N = 1024, tensors
#pragma once

#include <cstdint>
#include <string>

#include "api/program.h"
#include "io/bind.h"
#include "ir/arguments.h"

namespace kiln::api {

struct Bound {
  std::size_t kernel = 0;
  ir::Arguments arguments;
};

// Why there is no call.
struct Refusal {
  std::string text;  // the call itself is none; "": the diagnostics tell what does not fit
};

// For Use::kCall arrays have contents, for Use::kLaunch a type and a shape alone. `memory_max` is of
// bytes that the tensors take; 0: no limit. Conditions of the kernel are checked.
[[nodiscard]] Result<Bound, Refusal> bind_call(const kiln_program& program, const kiln_call& call,
                                               io::Use use, std::uint64_t memory_max,
                                               Diagnostics& diags);

// The call's scalars as `--shape` would say them.
[[nodiscard]] Result<std::vector<io::Assignment>, Refusal> numbers_of(const kiln_call& call);

}  // namespace kiln::api
