// `kiln run --dump TILE@LINE`: what a tile holds behind a line of the program, and who holds it.
//
//   $ kiln run attention.co ... --dump row_max@31
//   row_max behind line 31: f32 [64, 1] in registers of threads 0 to 127
//              0
//       0   1.25
//       1  -0.5
//   held by thread.element
//              0
//       0    0.0
//       1    4.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "diag/diagnostics.h"
#include "io/program.h"

namespace kiln::driver {

// From row to row_end and column to column_end; of a tile without them the first ones.
struct DumpPart {
  std::int64_t row = 0;
  std::int64_t row_end = 16;
  std::int64_t column = 0;
  std::int64_t column_end = 8;
};

struct DumpRequest {
  std::string text;  // as the user wrote it: "acc@31[0:16,8:16]"
  std::string tile;
  std::int64_t line = 0;
  DumpPart part;
};

[[nodiscard]] Checked<std::vector<DumpRequest>> parse_dumps(const std::vector<std::string>& texts,
                                                            Diagnostics& diags);

// Where each stands in the decided function; one that stands nowhere is reported, as is a back end
// that shows nothing.
[[nodiscard]] Checked<std::vector<sim::DumpPoint>> dump_points(
    const std::vector<DumpRequest>& requests, const io::Program& program,
    const ir::Function& function, const backends::Backend& backend, Diagnostics& diags);

// Those that were reached, as tables.
[[nodiscard]] std::string dumps_text(const std::vector<DumpRequest>& requests,
                                     const std::vector<sim::Dumped>& dumped);
// Warns of the others.
void warn_of_unreached(const std::vector<DumpRequest>& requests,
                       const std::vector<sim::Dumped>& dumped, Diagnostics& diags);
// "1.5"; "-": nobody gave it a value; "...": one is on its way.
[[nodiscard]] std::string value_text(const sim::Dumped& dumped,
                                     const sim::Dumped::Element& element);

}  // namespace kiln::driver
