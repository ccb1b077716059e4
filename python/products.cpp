// Products of kiln/gemm.h for kiln._core: problems that are prepared for a device, and 2:4 sparse matrices
// as kiln/sparse.h makes them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <string_view>

#include "handles.h"
#include "kiln/gemm.h"
#include "kiln/sparse.h"
#include "prepared.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

std::int32_t type_of(std::string_view name) {
  static constexpr std::pair<std::string_view, kiln_type> kTypes[] = {
      {"bf16", KILN_BF16},    {"f16", KILN_F16},      {"f32", KILN_F32}, {"tf32", KILN_TF32},
      {"f8_e4m3", KILN_E4M3}, {"f8_e5m2", KILN_E5M2}, {"s8", KILN_S8},   {"s32", KILN_S32}};
  for (const auto& [each, type] : kTypes) {
    if (each == name) return type;
  }
  return 0;  // refused by kiln_gemm_prepare
}

kiln_gemm_problem problem_of(const nb::dict& fields) {
  kiln_gemm_problem out = {};
  const std::map<std::string_view, std::int64_t*> whole = {{"m", &out.m},
                                                           {"n", &out.n},
                                                           {"k", &out.k},
                                                           {"lda", &out.lda},
                                                           {"ldb", &out.ldb},
                                                           {"ldc", &out.ldc},
                                                           {"ldr", &out.ldr},
                                                           {"batch", &out.batch},
                                                           {"stride_a", &out.stride_a},
                                                           {"stride_b", &out.stride_b},
                                                           {"stride_c", &out.stride_c},
                                                           {"stride_r", &out.stride_r},
                                                           {"groups", &out.groups}};
  const std::map<std::string_view, std::int32_t*> types = {
      {"type_a", &out.type_a}, {"type_b", &out.type_b}, {"type_c", &out.type_c}};
  for (const auto& [key, value] : fields) {
    const auto name = nb::cast<std::string>(key);
    if (const auto at = whole.find(name); at != whole.end()) {
      *at->second = nb::cast<std::int64_t>(value);
    } else if (const auto type = types.find(name); type != types.end()) {
      *type->second = type_of(nb::cast<std::string>(value));
    } else if (name == "flags") {
      out.flags = nb::cast<std::uint32_t>(value);
    } else if (name == "activation") {
      out.activation = nb::cast<std::int32_t>(value);
    } else if (name == "alignment") {
      out.alignment = nb::cast<std::int32_t>(value);
    } else {
      throw nb::key_error(name.c_str());
    }
  }
  return out;
}

// `fields`: those of kiln_gemm_problem by name, types as kiln names them.
nb::tuple prepare_product(const nb::dict& fields, int device) {
  const kiln_gemm_problem problem = problem_of(fields);
  return prepared(device, problem,
                  [&](std::size_t& workspace) { return kiln_gemm_prepare(&problem, &workspace); });
}

// Addresses in this CPU's memory: the matrix [rows, cols], and what is made of it.
struct Pruning {
  void* dense;
  void* packed;          // [rows, cols / 2]
  std::uint8_t* bytes;   // [rows, cols / 8]
  std::uint32_t* words;  // [rows, cols / 32]
  std::int64_t rows;
  std::int64_t cols;
};

template <class Element>
sparse::Fault prune_as(const Pruning& given, sparse::Format format, sparse::Words words) {
  const sparse::Matrix<Element> dense{static_cast<Element*>(given.dense), given.rows, given.cols};
  if (const sparse::Fault fault = sparse::prune(dense, format)) return fault;
  const sparse::Fault packed =
      sparse::compress(dense, format, static_cast<Element*>(given.packed), given.bytes);
  if (packed) return packed;
  return sparse::pack_words(sparse::Matrix{given.bytes, given.rows, given.cols / 8}, words,
                            given.words);
}

// Prunes a matrix in place. `dtype` has 8 or 16 bits; "" when all went well.
std::string prune(const std::string& dtype, const std::vector<std::uintptr_t>& addresses,
                  std::int64_t rows, std::int64_t cols) {
  if (addresses.size() != 4) throw nb::value_error("four addresses");
  const auto at = [&](std::size_t i) { return reinterpret_cast<void*>(addresses[i]); };
  const Pruning given{
      at(0), at(1), static_cast<std::uint8_t*>(at(2)), static_cast<std::uint32_t*>(at(3)),
      rows,  cols};
  struct Row {
    std::string_view name;
    sparse::Format format;
    bool is_wide;
  };
  static constexpr Row kRows[] = {{"f16", sparse::kF16Format, true},
                                  {"bf16", sparse::kBF16Format, true},
                                  {"f8_e4m3", sparse::kE4M3Format, false},
                                  {"f8_e5m2", sparse::kE5M2Format, false},
                                  {"s8", sparse::kS8Format, false}};
  for (const Row& row : kRows) {
    if (row.name != dtype) continue;
    const sparse::Fault fault =
        row.is_wide ? prune_as<std::uint16_t>(given, row.format, sparse::Words::kRowPairs)
                    : prune_as<std::uint8_t>(given, row.format, sparse::Words::kRows);
    if (!fault) return "";
    return "it has " + std::to_string(fault.found) + " rows or columns, and a multiple of " +
           std::to_string(fault.allowed) + " is needed";
  }
  return "no matrix unit takes it sparse";
}

}  // namespace

void add_products(nb::module_& module) {
  module.def("prepare_product", prepare_product);
  module.def("prune", prune);
}

}  // namespace kiln::python
