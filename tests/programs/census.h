// What a program is made of, by name: operations of the IR, rows of the instruction table, types.
#pragma once

#include <set>
#include <string>

#include "ir/module.h"

namespace kiln::programs {

// "op.copy", "row.m16n8k16.f32.f16", "type.f16", "copy.bulk", "function.exp".
[[nodiscard]] std::set<std::string> census(const ir::Module& tile, const ir::Module& decided);
// All that can appear of the first three kinds.
[[nodiscard]] std::set<std::string> everything();

}  // namespace kiln::programs
