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

std::string wrapper_name(const StepsOf& products) {
  return format("{}{}{}", wrapper_name(products.mma), products.a_registers ? "_registers" : "",
                products.steps == 1 ? std::string() : format("_x{}", products.steps));
}

namespace {

// A list of many registers, on lines of their own inside an assembly string. A line ends with `ending`: one of a macro with a
// backslash.
std::string numbered_lines(int first, int count, std::string_view ending = "") {
  constexpr int kEach = 16;
  std::string out = "{";
  for (int i = 0; i < count; ++i) {
    if (i > 0) out += i % kEach == 0 ? format(", \"{}\n      \" ", ending) : ", ";
    out += format("%{}", first + i);
  }
  return out + "}";
}

std::string constraint_lines(const std::vector<AsmOperand>& operands, std::size_t each) {
  std::string out;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string_view separator = i == 0 ? "" : i % each == 0 ? ",\n        " : ", ";
    out += format("{}\"{}\"({})", separator, operands[i].constraint, operands[i].expression);
  }
  return out;
}

// An operand of products one after the other: how the wrapper takes it, and what the statement takes of it for each step.
struct Source {
  std::string parameters;
  std::vector<AsmOperand> operands = {};
};

// Of several steps each has a number of its own that is added: as[2].
std::string start_of(const std::string& name, int steps, int step) {
  return steps == 1 ? "" : format("{}s[{}]", name, step);
}

std::string parameters_of(const std::string& declared, const std::string& name, int steps) {
  return steps == 1 ? declared : format("{}, const int (&{}s)[{}]", declared, name, steps);
}

Source descriptor(const std::string& name, int steps) {
  Source out = {parameters_of("kiln::u64 " + name, name, steps)};
  for (int step = 0; step < steps; ++step) {
    const std::string start = start_of(name, steps, step);
    out.operands.push_back({start.empty() ? name : format("{} + {}", name, start), "l"});
  }
  return out;
}

Source registers(const std::string& name, int count, int steps) {
  Source out = {parameters_of("const unsigned* " + name, name, steps)};
  for (int step = 0; step < steps; ++step) {
    const std::string start = start_of(name, steps, step);
    for (int r = 0; r < count; ++r) {
      const std::string index = start.empty() ? format("{}", r)
                                : r == 0      ? start
                                              : format("{} + {}", start, r);
      out.operands.push_back({format("{}[{}]", name, index), "r"});
    }
  }
  return out;
}

// The statement's operands behind the sum's registers; an operand's number is that of those before it.
struct Inputs {
  int first = 0;
  std::vector<AsmOperand> operands = {};
  std::string parameters = {};

  int add(const Source& source) {
    const int number = add_operands(source.operands);
    parameters += ", " + source.parameters;
    return number;
  }
  int add_operands(const std::vector<AsmOperand>& more) {
    const int number = first + static_cast<int>(operands.size());
    operands.insert(operands.end(), more.begin(), more.end());
    return number;
  }
};

// What the sum's registers are called where several instructions have them.
constexpr const char* kSums = "KILN_SUMS";

}  // namespace

// Where operands can lie either way, the template's arguments say which: 0 along the contraction.
std::string wrapper(const StepsOf& products) {
  const target::Mma& mma = products.mma;
  const int steps = products.steps;
  const RegisterType c = register_type(mma.acc);
  const int c_count = asm_registers(mma, target::Operand::kC);
  const int a_count = products.a_registers ? asm_registers(mma, target::Operand::kA) : 1;
  Inputs inputs = {.first = c_count};
  const int a =
      inputs.add(products.a_registers ? registers("a", a_count, steps) : descriptor("a", steps));
  const int b = inputs.add(descriptor("b", steps));
  const int metadata = mma.sparse ? inputs.add(registers("meta", 1, steps)) : 0;
  const int directions = !mma.transposes ? 0 : products.a_registers ? 1 : 2;
  // Signs, which integers have none of, and directions.
  std::string modifiers = is_float(mma.acc) ? ", 1, 1" : "";
  if (directions == 2) modifiers += format(", %{}", inputs.add_operands({{"ACol", "n"}}));
  if (directions >= 1) modifiers += format(", %{}", inputs.add_operands({{"BCol", "n"}}));
  const int adds = inputs.add_operands({{"int(adds)", "r"}});

  // `&`: the first step writes them before the others have read A's registers. Without it a compiler may take one register for
  // both where they hold the same.
  const std::vector<AsmOperand> sums_operands =
      operands("c", c_count, format("+&{}", c.constraint));
  const std::string sums = steps == 1 ? numbered_lines(0, c_count) : format("\" {} \"", kSums);
  std::string text;
  for (int step = 0; step < steps; ++step) {
    std::string list = products.a_registers ? numbered_lines(a + step * a_count, a_count)
                                            : format("%{}", a + step);
    list += format(", %{}", b + step);
    if (mma.sparse) list += format(", %{}, 0", metadata + step);  // and which lanes give it
    text += format("      \"{} {}, \"\n      \"{}, {}{}; {}\"\n", mma.ptx, sums, list,
                   step == 0 ? "p" : "q", modifiers, step + 1 == steps ? "}" : "");
  }
  constexpr const char* kTemplate[] = {"", "template <int BCol>\n",
                                       "template <int ACol, int BCol>\n"};
  const std::string from =
      products.a_registers ? "a in registers, b a descriptor" : "both descriptors";
  const std::string threads =
      format("by the threads of one {} together, {}", target::name(mma.scope), from);
  const std::string comment =
      steps == 1 ? format("// {}: c += a * b, {}. It runs on.\n", mma.name, threads)
                 : format(
                       "// {} products {}: c += a * b, {}.\n"
                       "// Of product i they begin as[i] and bs[i] further. They run on.\n",
                       steps, mma.name, threads);
  return format(
      "{}{}__device__ inline void {}({} (&c)[{}]{}, bool adds = true) {{\n"
      "{}"
      "  asm volatile(\n"
      "      \"{{ .reg .pred p{}; setp.ne.b32 p, %{}, 0; {}\"\n"
      "{}"
      "      : {}\n"
      "      : {});\n"
      "{}}}\n",
      comment, kTemplate[directions], wrapper_name(products), c.type, c_count, inputs.parameters,
      steps == 1 ? "" : format("#define {} \"{}\"\n", kSums, numbered_lines(0, c_count, " \\")),
      steps == 1 ? "" : ", q", adds, steps == 1 ? "" : "setp.eq.b32 q, 0, 0; ", text,
      constraint_lines(sums_operands, 8), constraint_lines(inputs.operands, steps == 1 ? 8 : 4),
      steps == 1 ? "" : format("#undef {}\n", kSums));
}

std::string wrapper(const target::Mma& mma) {
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
