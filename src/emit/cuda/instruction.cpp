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
  if (dtype == DType::kS64) return {"long long", "l", 64};
  if (dtype == DType::kU64) return {"unsigned long long", "l", 64};
  return {"unsigned", "r", 32};
}

std::string wrapper_name(const target::Mma& mma) { return word_of(format("mma_{}", mma.name)); }
std::string wrapper_name(const target::Copy& copy) { return word_of(copy.name); }

std::string wrapper_name_with_registers(const target::Mma& mma) {
  return wrapper_name(mma) + "_registers";
}

namespace {

// A list of many registers, on lines of their own inside an assembly string.
std::string numbered_lines(int first, int count) {
  constexpr int kEach = 16;
  std::string out = "{";
  for (int i = 0; i < count; ++i) {
    const std::string_view separator = i == 0 ? "" : i % kEach == 0 ? ", \"\n      \" " : ", ";
    out += format("{}%{}", separator, first + i);
  }
  return out + "}";
}

std::string constraint_lines(const std::vector<AsmOperand>& operands) {
  constexpr std::size_t kEach = 8;
  std::string out;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string_view separator = i == 0 ? "" : i % kEach == 0 ? ",\n        " : ", ";
    out += format("{}\"{}\"({})", separator, operands[i].constraint, operands[i].expression);
  }
  return out;
}

// The wrapper of an instruction that reads B, and A unless `a_registers`, from shared memory. Where
// operands can lie either way, the template's arguments say which: 0 along the contraction.
std::string wrapper_of_descriptors(const target::Mma& mma, bool a_registers) {
  const RegisterType c = register_type(mma.acc);
  const int c_count = asm_registers(mma, target::Operand::kC);
  std::vector<AsmOperand> inputs = {{"a", "l"}};
  if (a_registers) inputs = operands("a", asm_registers(mma, target::Operand::kA), "r");
  const auto a_count = static_cast<int>(inputs.size());
  inputs.push_back({"b", "l"});
  const std::string a = a_registers ? numbered_lines(c_count, a_count) : format("%{}", c_count);
  int next = c_count + a_count;
  std::string list = format("{}, %{}", a, next++);
  if (mma.sparse) {
    list += format(", %{}, 0", next++);  // the metadata, and which lanes give it
    inputs.push_back({"metadata", "r"});
  }
  list += ", p";
  // Signs, which integers have none of, and directions.
  if (is_float(mma.acc)) list += ", 1, 1";
  const int directions = !mma.transposes ? 0 : a_registers ? 1 : 2;
  for (int i = 0; i < directions; ++i) list += format(", %{}", next++);
  constexpr const char* kTemplate[] = {"", "template <int BCol>\n",
                                       "template <int ACol, int BCol>\n"};
  if (directions == 2) inputs.push_back({"ACol", "n"});
  if (directions >= 1) inputs.push_back({"BCol", "n"});
  inputs.push_back({"int(adds)", "r"});
  const std::string_view from = a_registers ? "a in registers, b a descriptor" : "both descriptors";
  return format(
      "// {}: c += a * b, by the threads of one {} together, {}. It runs on.\n"
      "{}__device__ inline void {}({} (&c)[{}], {}, kiln::u64 b{}, bool adds = true) {{\n"
      "  asm volatile(\n"
      "      \"{{ .reg .pred p; setp.ne.b32 p, %{}, 0; \"\n"
      "      \"{} \"\n"
      "      \"{}, \"\n"
      "      \"{}; }}\"\n"
      "      : {}\n"
      "      : {});\n"
      "}}\n",
      mma.name, target::name(mma.scope), from, kTemplate[directions],
      a_registers ? wrapper_name_with_registers(mma) : wrapper_name(mma), c.type, c_count,
      a_registers ? "const unsigned* a" : "kiln::u64 a", mma.sparse ? ", unsigned metadata" : "",
      next, mma.ptx, numbered_lines(0, c_count), list,
      constraint_lines(operands("c", c_count, format("+{}", c.constraint))),
      constraint_lines(inputs));
}

}  // namespace

std::string wrapper_with_registers(const target::Mma& mma) {
  return wrapper_of_descriptors(mma, true);
}

std::string wrapper(const target::Mma& mma) {
  if (mma.reads_shared) return wrapper_of_descriptors(mma, false);
  const RegisterType a = register_type(mma.a);
  const RegisterType b = register_type(mma.b);
  const RegisterType c = register_type(mma.acc);
  const int a_count = asm_registers(mma, target::Operand::kA);
  const int b_count = asm_registers(mma, target::Operand::kB);
  const int c_count = asm_registers(mma, target::Operand::kC);
  std::vector<AsmOperand> inputs = operands("a", a_count, a.constraint);
  for (AsmOperand& operand : operands("b", b_count, b.constraint)) inputs.push_back(operand);
  std::string accumulator = numbered(0, c_count);
  const std::string sums = accumulator;
  if (mma.sparse) {
    // The metadata, and which lanes give it.
    accumulator += format(", %{}, 0x0", c_count + a_count + b_count);
    inputs.push_back({"metadata", "r"});
  }
  return format(
      "// {}: c += a * b, by the lanes of one {} together.\n"
      "__device__ inline void {}({}* c, const {}* a, const {}* b{}) {{\n"
      "  asm(\"{} \"\n"
      "      \"{}, {}, {}, {};\"\n"
      "      : {}\n"
      "      : {});\n"
      "}}\n",
      mma.name, target::name(mma.scope), wrapper_name(mma), c.type, a.type, b.type,
      mma.sparse ? ", unsigned metadata" : "", mma.ptx, sums, numbered(c_count, a_count),
      numbered(c_count + a_count, b_count), accumulator,
      constraints(operands("c", c_count, format("+{}", c.constraint))), constraints(inputs));
}

std::string wrapper(const target::Copy& copy) {
  const std::string comment =
      format("// {}: {} 8x8 {} of 16-bit elements{}; each lane gives the address of one row.\n",
             copy.name, copy.matrices, copy.matrices == 1 ? "matrix" : "matrices",
             copy.transposed ? ", each transposed" : "");
  if (copy.kind == target::CopyKind::kMatrixStore) {
    return comment + format(
                         "__device__ inline void {}(void* row, const unsigned* from) {{\n"
                         "  asm volatile(\"{} [%0], {};\"\n"
                         "               :\n"
                         "               : \"r\"(kiln::shared_address(row)), {}\n"
                         "               : \"memory\");\n"
                         "}}\n",
                         wrapper_name(copy), copy.ptx, numbered(1, copy.matrices),
                         constraints(operands("from", copy.matrices, "r")));
  }
  return comment + format(
                       "__device__ inline void {}(unsigned* to, const void* row) {{\n"
                       "  asm volatile(\"{} {}, [%{}];\"\n"
                       "               : {}\n"
                       "               : \"r\"(kiln::shared_address(row))\n"
                       "               : \"memory\");\n"
                       "}}\n",
                       wrapper_name(copy), copy.ptx, numbered(0, copy.matrices), copy.matrices,
                       constraints(operands("to", copy.matrices, "=r")));
}

}  // namespace kiln::emit
