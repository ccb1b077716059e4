// What the attributes of a kernel's loops and launches say, and what they could say instead: what `kiln tune` tries
// by itself.
//
//   tunable_attributes(program, 0)
//     [[pipeline(3)]] at line 9     [[pipeline(2)]], [[pipeline(2, producer)]], [[pipeline(3)]], ...
//     [[persistent]] at line 5      no [[order]], [[order(columns, 4)]], ..., [[order(hilbert)]]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/program.h"

namespace kiln::io {

// What is tried of `[[pipeline]]`.
inline constexpr std::int64_t kStagesTried[] = {2, 3, 4, 6, 8};

// "[[pipeline(4, producer)]]"
[[nodiscard]] std::string pipeline_text(std::int64_t stages, bool producer);

// A loop's or a launch's attribute, by its line: with other macros it belongs to another operation.
struct AttributeSetting {
  Place place = {};
  std::string text = {};     // "[[pipeline(4, producer)]]"
  std::int64_t stages = 0;   // of a loop; 0: it is a launch's order
  bool producer = false;     // of a loop
  std::int64_t columns = 0;  // of a launch: these are taken together,
  std::int64_t rows = 0;     // or these,
  bool hilbert = false;      // or along a curve; else in order
};
[[nodiscard]] std::string text(const AttributeSetting& setting);  // "[[pipeline(4)]] at line 9"

// The settings to try: for each loop with `[[pipeline]]` of a program's kernel, and for each launch over rows and columns
// of tiles that has `[[persistent]]`, `[[order]]` or such a loop.
[[nodiscard]] std::vector<std::vector<AttributeSetting>> tunable_attributes(const Program& program,
                                                                            std::size_t kernel);

// Decides the compiled program anew with other settings of attributes that it has. Reports what refuses them.
[[nodiscard]] Checked<bool> decide_with(const std::vector<AttributeSetting>& settings,
                                        Program& program, std::size_t kernel);

}  // namespace kiln::io
