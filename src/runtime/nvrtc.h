// Compiling CUDA text in memory, with NVRTC opened at run time.
//
//   Result<Cubin> cubin = compile(text, *target::find_arch("sm_90a"), "matmul.cu");
#pragma once

#include <string>

#include "support/result.h"
#include "target/arch.h"

namespace kiln::runtime {

struct Cubin {
  std::string bytes;    // machine code for exactly the architecture asked for
  std::string log;      // the compiler's warnings; usually empty
  std::string version;  // of NVRTC: "13.0"
};

// Compiles `text`, called `file_name` in messages, with kiln's device headers from memory. Errors:
// no NVRTC on this machine; the text does not compile (the reason is the compiler's log).
[[nodiscard]] Result<Cubin> compile(const std::string& text, const target::Arch& arch,
                                    const std::string& file_name);

// Whether NVRTC can be opened; its error says why not.
[[nodiscard]] Result<void> find_nvrtc();

}  // namespace kiln::runtime
