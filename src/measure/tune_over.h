// `--over`: which macros or template parameters of a file `kiln tune` varies, and between which
// values.
//
//   --over STAGES=2:6 --over TILE_N=64:256:64 --over GROUP=4,16
//     STAGES 2 to 6, TILE_N 64, 128, 192, 256, GROUP 4 and 16: 5 * 4 * 2 candidates
#pragma once

#include <string>
#include <vector>

#include "io/assignments.h"

namespace kiln::measure {

struct Over {
  std::string text;  // as given
  std::string name;
  std::vector<std::string> values;
};

inline constexpr std::int64_t kCandidatesMax = 10000;

// Reads each `--over`. Reports what is of another form, a macro that is given twice, and a range
// without values.
[[nodiscard]] Checked<std::vector<Over>> parse_over(const std::vector<std::string>& texts,
                                                    Diagnostics& diags);

// Looks for the macros in a file. Reports a macro that the file's text does not mention, and one
// that -D fixes.
[[nodiscard]] Checked<void> check_macros(const std::vector<Over>& overs,
                                         const std::vector<std::string>& defines,
                                         const std::string& file, const std::string& text,
                                         Diagnostics& diags);

// Every combination, the last macro's values changing fastest. Reports more than kCandidatesMax.
[[nodiscard]] Checked<std::vector<std::vector<io::Assignment>>> combinations(
    const std::vector<Over>& overs, Diagnostics& diags);

// Values of macros as text: "STAGES=2 TILE_N=64"; "the file's own" without any.
[[nodiscard]] std::string values_text(const std::vector<io::Assignment>& values);

}  // namespace kiln::measure
