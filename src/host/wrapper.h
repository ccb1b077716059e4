// The C++ function that stands for a tile function.
#pragma once

#include <cstddef>
#include <string>

#include "host/program_text.h"

namespace kiln::host {

// One line of text. `index` is that of `kiln_function_<index>`.
[[nodiscard]] std::string wrapper(const TileFunction& tile, const ast::Ast& tree,
                                  const ast::TileFunction& written, std::size_t index);

}  // namespace kiln::host
