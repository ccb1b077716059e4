// Pictures of shared memory: where each element of a tile lies, in which bank, and what an access
// of one warp costs.
//
//   Memory tile{.layout = *parse_layout("(8,8):(8,1)"), .swizzle = {3, 4, 3}, .element_bytes = 16};
//   memory_picture("(8,8):(8,1)", tile, nullptr)    cell (1, 0): element 9, bank 4
//
// Rows are the layout's first mode, columns count through the others. The swizzle permutes byte
// addresses, as in target/swizzle.h. Memory has 32 banks of 4 bytes.
#pragma once

#include "explain/draw/access.h"
#include "explain/draw/picture.h"

namespace kiln::explain {

// A table of a layout's indices.
[[nodiscard]] Picture index_picture(const std::string& title, const Layout& layout);

// A table of a tile in shared memory, with the bank of each element; `access` marks what one warp
// asks for, and may be null. No address may be negative (KILN_CHECK).
[[nodiscard]] Picture memory_picture(const std::string& title, const Memory& memory,
                                     const Access* access);

}  // namespace kiln::explain
