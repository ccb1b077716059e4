// The table of matrix instructions, as text and JSON: what `kiln atoms` prints.
//
//   atom              scope  A    B    acc  from   values A B C  cycles  tiles M x N x K
//   m16n8k16.f32.f16  group  f16  f16  f32  sm_80  8 4 4         8       16x16x16, 32x8x16, 16x8x16
#pragma once

#include <string>

#include "target/arch.h"

namespace kiln::target {

// Every matrix instruction of an architecture (null: of all), as a table and as a JSON array.
[[nodiscard]] std::string atoms_text(const Arch* arch);
[[nodiscard]] std::string atoms_json(const Arch* arch);

}  // namespace kiln::target
