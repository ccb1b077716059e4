#include "emit/cuda/instruction.h"

#include <vector>

#include "emit/cuda/names.h"
#include "support/format.h"

namespace kiln::emit {

namespace {

// One register operand: its C++ expression and its constraint.
struct AsmOperand {
  std::string expression;
  std::string constraint;
};

std::vector<AsmOperand> operands(const char* array, int count, const std::string& constraint) {
  std::vector<AsmOperand> out;
  for (int r = 0; r < count; ++r) out.push_back({format("{}[{}]", array, r), constraint});
  return out;
}

// {%2, %3, %4}
std::string numbered(int first, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += format("{}%{}", i == 0 ? "" : ", ", first + i);
  return out + "}";
}

std::string constraints(const std::vector<AsmOperand>& operands) {
  return join(operands, ", ", [](const AsmOperand& operand) {
    return format("\"{}\"({})", operand.constraint, operand.expression);
  });
}

int asm_registers(const target::Mma& mma, target::Operand operand) {
  const DType dtype = dtype_of(mma, operand);
  return target::values_of(mma, operand) * info(dtype).bits / register_type(dtype).bits;
}

}  // namespace

RegisterType register_type(DType dtype) {
  if (dtype == DType::kF32) return {"float", "f", 32};
  if (dtype == DType::kF64) return {"double", "d", 64};
  if (dtype == DType::kS32) return {"int", "r", 32};
  return {"unsigned", "r", 32};
}

std::string wrapper_name(const target::Mma& mma) { return legal_name(format("mma_{}", mma.name)); }
std::string wrapper_name(const target::Copy& copy) { return legal_name(copy.name); }

std::string wrapper(const target::Mma& mma) {
  const RegisterType a = register_type(mma.a);
  const RegisterType b = register_type(mma.b);
  const RegisterType c = register_type(mma.acc);
  const int a_count = asm_registers(mma, target::Operand::kA);
  const int b_count = asm_registers(mma, target::Operand::kB);
  const int c_count = asm_registers(mma, target::Operand::kC);
  std::vector<AsmOperand> inputs = operands("a", a_count, a.constraint);
  for (AsmOperand& operand : operands("b", b_count, b.constraint)) inputs.push_back(operand);
  const std::string accumulator = numbered(0, c_count);
  return format(
      "// {}: c += a * b, by the lanes of one {} together.\n"
      "__device__ inline void {}({}* c, const {}* a, const {}* b) {{\n"
      "  asm(\"{} \"\n"
      "      \"{}, {}, {}, {};\"\n"
      "      : {}\n"
      "      : {});\n"
      "}}\n",
      mma.name, target::name(mma.scope), wrapper_name(mma), c.type, a.type, b.type, mma.ptx,
      accumulator, numbered(c_count, a_count), numbered(c_count + a_count, b_count), accumulator,
      constraints(operands("c", c_count, format("+{}", c.constraint))), constraints(inputs));
}

std::string wrapper(const target::Copy& copy) {
  return format(
      "// {}: {} 8x8 {} of 16-bit elements{}; each lane gives the address of one row.\n"
      "__device__ inline void {}(unsigned* to, const void* row) {{\n"
      "  asm volatile(\"{} {}, [%{}];\"\n"
      "               : {}\n"
      "               : \"r\"(kiln::shared_address(row))\n"
      "               : \"memory\");\n"
      "}}\n",
      copy.name, copy.matrices, copy.matrices == 1 ? "matrix" : "matrices",
      copy.transposed ? ", each transposed" : "", wrapper_name(copy), copy.ptx,
      numbered(0, copy.matrices), copy.matrices, constraints(operands("to", copy.matrices, "=r")));
}

}  // namespace kiln::emit
