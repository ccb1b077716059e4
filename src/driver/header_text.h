// The files that make functions of C and C++ out of a `.co` file: a header with their declarations,
// and a source that carries the file's text, machine code and the functions of C. Both are valid as C11
// and as C++17, and hold nothing of the machine on which they were made.
//
//   __co__ void scale(global f32 [N] x, f32 factor, global f32 [N] y)
//
//   kiln_status launch_scale(void* stream, const float* x, float factor, float* y, int64_t N);
//   inline kiln::Failure scale(void* stream, kiln::DeviceTensor<const float, 1> x, float factor, ...);
//
// With the namespace `norm` they are launch_norm_scale and norm::scale.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::driver {

// Machine code of one kernel for one architecture.
struct CarriedCode {
  std::string kernel;
  std::string arch;
  std::string key;  // runtime::code_key
  std::string bytes;
};

struct CarriedFile {
  std::string name;  // of the `.co` file, without a folder
  std::string text;  // with all that it includes
  std::vector<std::string> archs;
  std::vector<std::string> defines;
  std::string name_space = {};                    // of its functions: "norm", "my::norm"; "": none
  std::vector<const ir::Function*> kernels = {};  // give the types
  std::vector<std::string> places = {};           // of the kernels: "norm.co:12"; may lack any
  std::vector<CarriedCode> codes = {};            // may lack any
};

[[nodiscard]] std::string header_text(const CarriedFile& file);

// `header` is the name by which it includes the header.
[[nodiscard]] std::string source_text(const CarriedFile& file, const std::string& header);

}  // namespace kiln::driver
