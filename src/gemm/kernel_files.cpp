#include "gemm/kernel_files.h"

namespace kiln::gemm {

const KernelFile* kernel_file(std::string_view name) {
  for (const KernelFile& file : kernel_files()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace kiln::gemm
