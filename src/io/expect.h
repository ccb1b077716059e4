// What `--expect` is held against: the kernel's tensors by their names, what it gives back, and how
// it adds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/fill.h"
#include "ir/arguments.h"
#include "reference/formula.h"
#include "target/mma.h"

namespace kiln::io {

// What the kernel gives back.
[[nodiscard]] std::vector<std::string> output_names(const ir::Function& function);

// How to name an output instead of `name`, which is none.
[[nodiscard]] std::string output_help(const ir::Function& function, const std::string& name);

[[nodiscard]] reference::Accumulation accumulation_of(const target::Mma& atom);

// Of the kernel's weakest instruction; plain f32 arithmetic when it has none.
[[nodiscard]] reference::EinsumNumerics weakest(const ir::Function& decided);

// A rounding to an 8-bit float that the kernel has no use for: nothing computes in those, and none of
// the function's memories and matrix operands has the type. What it loses is no machine's need.
struct NeedlessRounding {
  DType dtype = DType::kF32;
  Span span;
};
// The first that the formula does not state.
[[nodiscard]] std::optional<NeedlessRounding> needless_rounding(
    const ir::Function& decided, const reference::BoundFormula& formula);

// Of all instructions, for products of inputs. Nothing is known of a kernel that multiplies what it
// has computed, or that takes functions of its sums: large integers would leave their range.
[[nodiscard]] Products products_of(const ir::Function& decided);

// The tensors that a statement may name. The function's returned buffer, where it has one that is
// no parameter, becomes `returned`, without contents. Both must outlive the list.
[[nodiscard]] std::vector<reference::Named> named_tensors(const ir::Function& function,
                                                          const ir::Arguments& arguments,
                                                          Tensor& returned);

// What a formula may name: those tensors, scalar parameters and dimensions.
[[nodiscard]] reference::Given given_of(const ir::Function& function,
                                        const ir::Arguments& arguments, Tensor& returned);

// Reports a statement about a tensor that the kernel has and does not give back.
[[nodiscard]] Checked<void> check_output(const ir::Function& function,
                                         const reference::EinsumTerm& left,
                                         const std::vector<reference::Named>& tensors,
                                         Diagnostics& diags);

}  // namespace kiln::io
