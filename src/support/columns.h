// Tables for a terminal.
//
//   align_columns({{"", "n=0", "n=10"}, {"m=0", "T00", "T01"}})
//       "     n=0  n=10\n"
//       "m=0  T00  T01\n"
#pragma once

#include <string>
#include <vector>

namespace kiln {

// Columns as wide as their widest cell, two spaces apart, no spaces at line ends. Lines may differ
// in length.
[[nodiscard]] std::string align_columns(const std::vector<std::vector<std::string>>& lines);

}  // namespace kiln
