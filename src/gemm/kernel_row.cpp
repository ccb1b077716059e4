#include "gemm/kernel_row.h"

#include <algorithm>
#include <cctype>

#include "support/format.h"

namespace kiln::gemm {

namespace {

constexpr TypeRow kHalves[] = {
    {DType::kBF16, DType::kBF16, DType::kBF16, "bf16"},
    {DType::kF16, DType::kF16, DType::kF16, "f16"},
};

// As deep a ring as shared memory holds beside the tile of C.
constexpr Tiling kSm90Tilings[] = {
    {.m = 128, .n = 256, .k = 64, .stages = 3},
    {.m = 128, .n = 192, .k = 64, .stages = 4},
    {.m = 128, .n = 128, .k = 64, .stages = 6},
    {.m = 128, .n = 64, .k = 64, .stages = 8},
};

constexpr KernelRow kRows[] = {
    {.name = "gemm_sm90",
     .min_arch = 90,
     .types = kHalves,
     .tilings = kSm90Tilings,
     .along_k = true,
     .alignment = 16,
     .any_spacing = true,
     .takes_epilogue = false,
     .block_scales = false,
     .persistent = true},
};

// What a kernel needs of one matrix: bytes between rows and matrices.
std::string unaligned(const KernelRow& row, const char* name, DType dtype, const Spacing& spacing) {
  for (const std::int64_t elements : {spacing.row, spacing.batch}) {
    const std::int64_t bytes = elements * size_bytes(dtype);
    if (bytes % row.alignment == 0) continue;
    return format("{} steps by {} bytes, it needs multiples of {}", name, bytes, row.alignment);
  }
  return {};
}

std::string lacks_alignment(const KernelRow& row, const Problem& problem) {
  if (problem.alignment < row.alignment) {
    return format("operands lie at multiples of {} bytes, it needs {}", problem.alignment,
                  row.alignment);
  }
  if (problem.batch_invariant && !problem.a_along_k && row.alignment > size_bytes(problem.a)) {
    return format("m is the length of A's rows, whose alignment to {} bytes may not decide here",
                  row.alignment);
  }
  struct Matrix {
    const char* name;
    DType dtype;
    const Spacing& spacing;
    std::int64_t cols;
  };
  const Matrix matrices[] = {
      {"A", problem.a, problem.a_spacing, problem.a_along_k ? problem.k : problem.m},
      {"B", problem.b, problem.b_spacing, problem.b_along_k ? problem.k : problem.n},
      {"C", problem.c, problem.c_spacing, problem.n},
      {"the residual", problem.c, problem.residual_spacing, problem.n}};
  for (const Matrix& matrix : matrices) {
    if (!row.any_spacing && matrix.spacing.row != matrix.cols) {
      return format("rows of {} have gaps", matrix.name);
    }
    if (matrix.spacing == Spacing{}) continue;  // there is no such operand
    // Kernels check their tensors' extents, whatever lies between the rows.
    const Spacing dense = {.row = matrix.cols, .batch = 0};
    for (const Spacing& spacing : {dense, matrix.spacing}) {
      std::string reason = unaligned(row, matrix.name, matrix.dtype, spacing);
      if (!reason.empty()) return reason;
    }
  }
  return {};
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

bool takes_types(const KernelRow& row, const Problem& problem) {
  return std::ranges::any_of(row.types, [&](const TypeRow& types) {
    return types.a == problem.a && types.b == problem.b && types.c == problem.c;
  });
}

}  // namespace

std::span<const KernelRow> kernel_rows() { return kRows; }

const KernelRow* kernel_row(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &KernelRow::name);
  return found == std::end(kRows) ? nullptr : &*found;
}

std::string lacks(const KernelRow& row, const Problem& problem, const target::Arch& arch) {
  if (arch.capability < row.min_arch) return format("not for {}", arch.name);
  if (!takes_types(row, problem)) return "other element types";
  if (row.along_k && !(problem.a_along_k && problem.b_along_k)) return "operands not along k";
  if (!row.takes_epilogue && problem.epilogue != Epilogue{}) return "no epilogue";
  if (row.block_scales != problem.block_scales) return "scale factors";
  return lacks_alignment(row, problem);
}

std::vector<std::pair<std::string, std::string>> problem_defines(const KernelRow& row,
                                                                 const Problem& problem,
                                                                 int multiprocessors) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const TypeRow& types : row.types) {
    if (types.a != problem.a || types.b != problem.b || types.c != problem.c) continue;
    out.emplace_back("DTYPE", types.define);
  }
  if (row.persistent) out.emplace_back("BLOCKS", std::to_string(multiprocessors));
  if (!row.along_k) {
    out.emplace_back("A_ALONG_K", problem.a_along_k ? "1" : "0");
    out.emplace_back("B_ALONG_K", problem.b_along_k ? "1" : "0");
  }
  const Epilogue& epilogue = problem.epilogue;
  if (epilogue.has_alpha) out.emplace_back("ALPHA", "1");
  if (epilogue.has_beta) out.emplace_back("BETA", "1");
  if (epilogue.has_bias) out.emplace_back("BIAS", "1");
  if (epilogue.has_residual) out.emplace_back("RESIDUAL", "1");
  if (epilogue.activation != Activation::kNone) {
    out.emplace_back(upper(name(epilogue.activation)), "1");
  }
  return out;
}

}  // namespace kiln::gemm
