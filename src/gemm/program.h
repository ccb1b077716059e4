// A chosen kernel, compiled as far as no GPU is needed: text to decided IR.
//
//   Result<std::unique_ptr<Program>> program = compile({"gemm_sm90", {{"TILE_N", "256"}}}, arch);
//   (*program)->function().name == "gemm"
#pragma once

#include <memory>
#include <span>

#include "gemm/choice.h"
#include "ir/module.h"
#include "support/source.h"

namespace kiln::gemm {

struct Program {
  Sources sources;
  ir::Module module;  // decided
  std::size_t index = 0;

  [[nodiscard]] const ir::Function& function() const { return module.functions[index]; }
};

// The function of the kernel's file that its name begins with: `gemm` of gemm_sm90, `attention` of
// attention_sm90. Errors: no such kernel in the library; the text with these defines does not compile
// (the reason holds the diagnostics); the file has no such function.
[[nodiscard]] Result<std::unique_ptr<Program>> compile(const Choice& choice,
                                                       const target::Arch& arch);

// The function `gemm` of a text that is given, called `file` in messages.
[[nodiscard]] Result<std::unique_ptr<Program>> compile(const Choice& choice,
                                                       const target::Arch& arch,
                                                       const std::string& file,
                                                       const std::string& text);

// The values that the kernel's template says may be tried for a parameter, in `[[tune(...)]]`; empty
// when it says none.
[[nodiscard]] std::span<const int> tuned_values(std::string_view kernel,
                                                std::string_view parameter);

}  // namespace kiln::gemm
