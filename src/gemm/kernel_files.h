// The files of kernels/ as text, so that the library needs none: kernels and tuned tables.
//
//   kernel_file("gemm_sm90.co")->text        "// c = a * b^T on Hopper: ..."
//   kernel_file("tuned/sm_90a.json")->text   "{..."
#pragma once

#include <span>
#include <string_view>

namespace kiln::gemm {

struct KernelFile {
  const char* name;  // under kernels/
  const char* text;
};

// All of them.
[[nodiscard]] std::span<const KernelFile> kernel_files();

// The one of this name, or null.
[[nodiscard]] const KernelFile* kernel_file(std::string_view name);

}  // namespace kiln::gemm
