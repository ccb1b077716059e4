// Diagnostics as text with carets, and as JSON.
#pragma once

#include <string>

#include "diag/diagnostics.h"

namespace kiln {

struct RenderOptions {
  bool colour = false;
};

//   error[mma-no-instruction]: no `sm_80` instruction multiplies 64x64x15 tiles of f16
//     --> gemm.co:12:8
//      |
//    9 |   ma = mma.load a_s;
//      |                 --- `a_s` has K = 15
//   12 |   mma.row.row mc, ma, mb;
//      |   ^^^^^^^^^^^ `sm_80` offers K = 8, 16 for f16
//      |
//      = help: pad K to 16
[[nodiscard]] std::string render(const Diagnostic& diagnostic, const Sources& sources,
                                 const RenderOptions& options = {});

// Every diagnostic, then a count ("2 errors, 1 warning"); "" when there is none.
[[nodiscard]] std::string render_all(const Diagnostics& diagnostics, const Sources& sources,
                                     const RenderOptions& options = {});

// [{id, severity, file, line, column, message, help}], one array.
[[nodiscard]] std::string render_json(const Diagnostics& diagnostics, const Sources& sources);

}  // namespace kiln
