// The IR as text, and back. print and parse round-trip: parse(print(m)) == m but for spans.
//
//   func @twice(%x: global view<f32, [N]>) {
//     parallel level=block vars=[b] ...
#pragma once

#include <string>

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::ir {

[[nodiscard]] std::string print(const Module& module);
[[nodiscard]] std::string print(const Function& function);

// Parses IR text. Spans of the result point into the text. Mistakes are diagnostics (ir-syntax).
[[nodiscard]] Checked<Module> parse(Sources& sources, FileId file, Diagnostics& diags);

}  // namespace kiln::ir
