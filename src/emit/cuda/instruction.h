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

// Its definition, with a comment. Operands are registers. Only matrix loads and stores have one among the copies.
[[nodiscard]] std::string wrapper(const target::Mma& mma);
[[nodiscard]] std::string wrapper(const target::Copy& copy);

// Products with B, and A unless `a_registers`, in shared memory, which descriptors place: `steps` of them, one after the
// other, are added to one sum. They are one statement of assembly, whose operands the sum's registers are once: statements of
// one product each, which all read and write them, take NVVM as long as the rest of an attention kernel does.
struct StepsOf {
  const target::Mma& mma;  // a row that reads_shared
  bool a_registers = false;
  int steps = 1;
};
[[nodiscard]] std::string wrapper_name(
    const StepsOf& products);  // "mma_m64n128k16_f32_bf16_registers_x8"
[[nodiscard]] std::string wrapper(const StepsOf& products);

}  // namespace kiln::emit
