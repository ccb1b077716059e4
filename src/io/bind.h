// From the command line's shapes, files and fill to the arguments of one call.
//
//   kernel (global f16 [M, K] lhs, ...)
//   --shape M=64,N=48 --in lhs=a.npy, an array of [64, 80]
//     =>  M = 64, N = 48, K = 80; lhs from the file, the other inputs filled
#pragma once

#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "io/assignments.h"
#include "io/fill.h"
#include "io/npy.h"
#include "io/use.h"
#include "ir/arguments.h"

namespace kiln::io {

struct InputFile {
  std::string param;
  std::string path;
  NpyArray array;
};

struct BindOptions {
  std::vector<Assignment> shapes = {};
  std::vector<InputFile> inputs = {};
  Fill fill = Fill::kNormal;
  std::uint64_t seed = 0;
  // What a run may hold at once; 0: no limit.
  std::uint64_t memory_bytes_max = 0;
  Use use = Use::kRun;
};

// Every dimension and scalar gets a value, every tensor its contents: from the file, filled, or (a
// tensor that is only written) bytes of 0xFF, NaN for floats: an element nobody writes is seen. In a
// call (Use::kCall, kLaunch) nothing is filled, and a tensor without an input is reported.
// Reports every missing value, a dimension with two values, values and sizes out of range, unknown
// names, and files of the wrong type or shape.
[[nodiscard]] Checked<ir::Arguments> bind(const ir::Function& function, BindOptions options,
                                          Diagnostics& diags);

// Bytes that the tensors of a call take: each once; where it is compared a copy, every element as
// fp64 in the reference interpreter, and value, bound and result of what is written.
[[nodiscard]] double tensor_bytes(const ir::Function& function, const ir::Arguments& arguments,
                                  Use use);

// Reports a name that no tensor parameter has.
[[nodiscard]] Checked<void> check_input_name(const ir::Function& function, const std::string& name,
                                             Diagnostics& diags);

// The function's entry checks with these values; every one that fails is reported.
[[nodiscard]] Checked<void> check_entry(const ir::Function& function,
                                        const ir::Arguments& arguments, Diagnostics& diags);

}  // namespace kiln::io
