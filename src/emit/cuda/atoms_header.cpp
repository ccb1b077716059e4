#include "emit/cuda/atoms_header.h"

#include <algorithm>
#include <span>
#include <vector>

#include "emit/cuda/instruction.h"
#include "emit/cuda/names.h"
#include "layout/print.h"
#include "support/format.h"
#include "target/copy.h"
#include "target/mma.h"

namespace kiln::emit {

namespace {

constexpr std::string_view kOpening =
    "// The atoms: one struct for each matrix instruction, matrix load or store and asynchronous\n"
    "// copy that kiln knows. Generated from src/target by `./dev docs`; not edited by hand.\n"
    "// clang-format off\n"
    "//\n"
    "// A map sends (lane, value) to an element of the operand's tile, row + rows * column, where "
    "A is\n"
    "// (M, K), B is (N, K) and C is (M, N). `kiln map m16n8k16.f32.f16` draws it.\n"
    "#pragma once\n"
    "\n"
    "#include \"kiln/device/memory.cuh\"\n"
    "#include \"kiln/device/types.cuh\"\n"
    "#include \"kiln/layout/value.h\"\n"
    "\n"
    "namespace kiln::atom {\n";

// The layout's members in braces: a literal would be parsed anew by every compilation.
std::string initialiser(const Layout& layout) {
  const auto list = [&](const auto& numbers) {
    return "{" +
           join(std::span(numbers, static_cast<std::size_t>(layout.leaves)), ", ",
                [](auto number) { return format("{}", static_cast<Index>(number)); }) +
           "}";
  };
  return format("{{{}, {}, {}, {}, {}}}", list(layout.extents), list(layout.strides),
                list(layout.opens), list(layout.closes), layout.leaves);
}

std::string map_function(std::string_view name, const Layout& map) {
  return format(
      "  // {}\n  __host__ __device__ static constexpr Layout {}() {{\n    return {};\n  }}\n",
      to_text(map), name, initialiser(map));
}

// The element types of A, B and C, and the registers that hold them.
std::string type_lines(const target::Mma& row) {
  return format(
      "  using A = {}; using B = {}; using C = {};\n"
      "  using RegisterA = {}; using RegisterB = {}; using RegisterC = {};\n",
      name(row.a), name(row.b), name(row.acc), register_type(row.a).type, register_type(row.b).type,
      register_type(row.acc).type);
}

// The shape and the maps, which rows of types of the same width share: evaluated once for all.
std::string fragments_name(const target::Mma& row) {
  // Where several lanes hold an element, C lies in another way for each width of the accumulator.
  const bool repeats = size(row.c_map) > Index{row.shape.m} * row.shape.n;
  return format("Fragments{}x{}x{}w{}{}", row.shape.m, row.shape.n, row.shape.k,
                std::max(1, 32 / info(row.a).bits),
                repeats ? format("c{}", info(row.acc).bits) : "");
}

std::string fragments(const target::Mma& row) {
  std::string out = format(
      "struct {} {{\n"
      "  enum : int {{ kM = {}, kN = {}, kK = {}, kLanes = {} }};\n",
      fragments_name(row), row.shape.m, row.shape.n, row.shape.k, row.lanes);
  out += map_function("map_a", row.a_map);
  out += map_function("map_b", row.b_map);
  out += map_function("map_c", row.c_map);
  return out + "};\n";
}

std::string all_fragments() {
  std::vector<std::string> seen;
  std::string out = "\nnamespace detail {\n\n";
  for (const target::Mma& row : target::all_mmas()) {
    if (row.reads_shared || row.sparse) continue;  // the library has neither
    const std::string text = fragments(row);
    if (std::ranges::find(seen, text) != seen.end()) continue;
    out += text;
    seen.push_back(text);
  }
  return out + "\n}  // namespace detail\n";
}

std::string atom(const target::Mma& row) {
  std::string out = format("\n{}struct {} : detail::{} {{\n", wrapper(row), word_of(row.name),
                           fragments_name(row));
  out += type_lines(row);
  out += format(
      "  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {{\n"
      "    {}(c, a, b);\n"
      "  }}\n"
      "}};\n",
      wrapper_name(row));
  return out;
}

// A matrix load's or store's wrapper has the atom's name, so it goes into a namespace of its own.
std::string matrix_atom(const target::Copy& row) {
  const bool stores = row.kind == target::CopyKind::kMatrixStore;
  const std::string_view parameters =
      stores ? "void* row, const unsigned* from" : "unsigned* to, const void* row";
  return format(
      "\nnamespace detail {{\n{}}}  // namespace detail\n"
      "struct {} {{\n"
      "  enum : int {{ kBytes = {}, kMatrices = {} }};\n"
      "{}"
      "  __device__ static void {}({}) {{ detail::{}({}); }}\n"
      "}};\n",
      wrapper(row), wrapper_name(row), row.bytes, row.matrices,
      map_function("result_map", row.result_map), stores ? "store" : "load", parameters,
      wrapper_name(row), stores ? "row, from" : "to, row");
}

std::string async_atom(const target::Copy& row) {
  return format(
      "\n// {}, {} bytes a lane\n"
      "struct {} {{\n"
      "  enum : int {{ kBytes = {} }};\n"
      "  __device__ static void start(void* shared, const void* global, int valid) {{\n"
      "    cp_async<{}>(shared, global, valid);\n"
      "  }}\n"
      "}};\n",
      row.ptx, row.bytes, word_of(row.name), row.bytes, row.bytes);
}

}  // namespace

std::string atoms_header() {
  std::string out(kOpening);
  out += all_fragments();
  for (const target::Mma& row : target::all_mmas()) {
    if (!row.reads_shared && !row.sparse) out += atom(row);
  }
  for (const target::Copy& row : target::all_copies()) {
    if (row.matrices > 0) out += matrix_atom(row);
    if (row.kind == target::CopyKind::kAsync) out += async_atom(row);
  }
  return out + "\n}  // namespace kiln::atom\n";
}

}  // namespace kiln::emit
