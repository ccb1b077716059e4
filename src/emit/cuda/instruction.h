// The small device functions that wrap one PTX instruction each, made from the target's rows.
//
//   __device__ inline void mma_m16n8k16_f16_f16(unsigned* c, const unsigned* a, const unsigned* b) {
//     asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, ..."
//
// Operand lists and constraints follow from the number and the type of an operand's registers.
#pragma once

#include <string>

#include "target/copy.h"
#include "target/mma.h"

namespace kiln::emit {

// An operand's registers as C++ holds them: 16-bit elements go two to an `unsigned`.
struct RegisterType {
  const char* type;        // "unsigned", "float"
  const char* constraint;  // of inline assembly: "r", "f"
  int bits;
};
[[nodiscard]] RegisterType register_type(DType dtype);

// The name of the wrapper: "mma_m16n8k16_f16_f16", "ldmatrix_x4".
[[nodiscard]] std::string wrapper_name(const target::Mma& mma);
[[nodiscard]] std::string wrapper_name(const target::Copy& copy);

// The name of the wrapper of a row that reads_shared, for A in registers.
[[nodiscard]] std::string wrapper_name_with_registers(const target::Mma& mma);

// Its definition, with a comment. A row that reads_shared takes descriptors. Only matrix loads and
// stores have one among the copies.
[[nodiscard]] std::string wrapper(const target::Mma& mma);
[[nodiscard]] std::string wrapper_with_registers(const target::Mma& mma);
[[nodiscard]] std::string wrapper(const target::Copy& copy);

}  // namespace kiln::emit
