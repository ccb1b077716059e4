// Whether a CUDA text compiles, asked of NVRTC in this process: for tests that hold kiln to "what
// `check` accepts compiles". Several threads and processes may ask at the same time.
//
//   if (const auto missing = compiles::unavailable()) return skip(*missing);
//   EXPECT_EQ(compiles::errors(emit::emit(module, sources, options), *module.arch), std::nullopt);
//
// NVRTC compiles what is for the device: the launchers of an emitted file are host code, which
// stands under `#ifndef __CUDACC_RTC__`; tests/nvcc compiles those.
#pragma once

#include <optional>
#include <string>

#include "target/arch.h"

namespace kiln::compiles {

// How far a text is compiled. Measured with one core on a GEMM of 100 lines: 23, 130 and 200 ms.
enum class Depth {
  kFrontEnd,     // C++ only: names, types, templates, static_assert
  kPtx,          // and made PTX of; the text of `asm` is not looked at
  kMachineCode,  // and assembled for the architecture
};

// Why nothing can be compiled here (there is no NVRTC); nothing when it can. A library from the
// PyPI package `nvidia-cuda-nvrtc` is found in $VIRTUAL_ENV, or by LD_LIBRARY_PATH, which `CI=true
// ./dev test` sets to one that it has installed.
[[nodiscard]] std::optional<std::string> unavailable();

// The compiler's messages when `text` does not compile for `arch`; nothing when it does.
[[nodiscard]] std::optional<std::string> errors(const std::string& text, const target::Arch& arch,
                                                Depth depth = Depth::kFrontEnd);

}  // namespace kiln::compiles
