// Machine code that is known to be wrong, of whatever program a compiler made it.
//
// For sm_90a ptxas before CUDA 13.5 (seen with 12.8, 12.9 and 13.0 to 13.3; 13.5 does not) makes
// one instruction of a clamp and a test for its upper end,
//
//   v = max(min(x, 8), 0); if (v != 8) ...      VIMNMX.RELU R5, P0, P0, R0, 0x8, PT
//
// whose two predicates, one for the minimum and one for the maximum, are the same register. The
// test then has the answer of the other, and what it guards happens where it must not. With `v < 8`
// or `v >= 8` ptxas makes the test an instruction of its own.
//
// Another cannot be seen in machine code: of two maxima, max(max(a, -b), c), one instruction without
// the sign of b. kiln/device/math.cuh keeps __max and __min from it, not a program's own `?:`.
#pragma once

#include <string_view>

namespace kiln::target {

// What is known to be wrong in the machine code of `cubin` (an ELF file), as the end of a sentence,
// and what to write instead; empty: nothing. Anything but a cubin for sm_90a has nothing wrong.
[[nodiscard]] std::string_view known_miscompilation(std::string_view cubin);

}  // namespace kiln::target
