#include "gemm/kernel_row.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "support/format.h"

namespace kiln::gemm {

namespace {

constexpr DType kFromBf16[] = {DType::kBF16, DType::kF32};
constexpr DType kFromF16[] = {DType::kF16, DType::kF32};
constexpr DType kFromF8[] = {DType::kBF16, DType::kF16, DType::kF32};
constexpr DType kF32Only[] = {DType::kF32};
constexpr DType kS32Only[] = {DType::kS32};
constexpr TypeRow kEightBitFloats[] = {
    {DType::kE4M3, DType::kF32, kFromF8},
    {DType::kE5M2, DType::kF32, kFromF8},
};
constexpr TypeRow kSparseTypes[] = {
    {DType::kBF16, DType::kF32, kFromBf16}, {DType::kF16, DType::kF32, kFromF16},
    {DType::kE4M3, DType::kF32, kFromF8},   {DType::kE5M2, DType::kF32, kFromF8},
    {DType::kS8, DType::kS32, kS32Only},
};
constexpr TypeRow kAllTypes[] = {
    {DType::kBF16, DType::kF32, kFromBf16}, {DType::kF16, DType::kF32, kFromF16},
    {DType::kE4M3, DType::kF32, kFromF8},   {DType::kE5M2, DType::kF32, kFromF8},
    {DType::kTF32, DType::kF32, kF32Only},  {DType::kS8, DType::kS32, kS32Only},
};

constexpr std::span<const TypeRow> kFloatTypes = std::span(kAllTypes).first(5);

constexpr TypeRow kWarpTypes[] = {
    {DType::kBF16, DType::kF32, kFromBf16},
    {DType::kF16, DType::kF32, kFromF16},
    {DType::kE4M3, DType::kF32, kFromF8, {target::Feature::kMmaFp8}},
    {DType::kE5M2, DType::kF32, kFromF8, {target::Feature::kMmaFp8}},
    {DType::kTF32, DType::kF32, kF32Only},
    {DType::kS8, DType::kS32, kS32Only},
};

constexpr Tiling kAlongKTilings[] = {
    {128, 256, 128, "WARPGROUPS=2 TILE_N=256 STAGES=3", 2},
    {128, 192, 128, "WARPGROUPS=2 TILE_N=192 STAGES=3"},
    {128, 128, 128, "WARPGROUPS=2 TILE_N=128 STAGES=4"},
    {64, 128, 128, "WARPGROUPS=1 TILE_N=128 STAGES=6"},
};
// A stage has half as many bytes of what is kept of A as of B. The first of those that take as long
// is chosen: of the tiles that few rows do not fill, the smaller one. Integers, of which C's elements
// have 4 bytes, are multiplied for 16 columns or a multiple.
constexpr Tiling kSparseTilings[] = {
    {256, 208, 128, "WARPGROUPS=2 HEIGHT=2 TILE_N=208 LINES=1 STAGES=4 GROUP=16", 2},
    {256, 200, 128, "WARPGROUPS=2 HEIGHT=2 TILE_N=200 LINES=1 STAGES=4 PARTS=5 GROUP=11", 2},
    {256, 208, 128, "WARPGROUPS=2 HEIGHT=2 TILE_N=208 LINES=1 STAGES=4 PARTS=13 GROUP=16"},
    {256, 192, 128, "WARPGROUPS=2 HEIGHT=2 TILE_N=192 LINES=1 STAGES=4 GROUP=11"},
    {128, 256, 128, "WARPGROUPS=2 HEIGHT=1 TILE_N=256 LINES=1 STAGES=4 GROUP=16", 2},
    {128, 192, 256, "WARPGROUPS=2 HEIGHT=1 TILE_N=192 LINES=2 STAGES=3 GROUP=16", 2, 2},
    {128, 160, 256, "WARPGROUPS=2 HEIGHT=1 TILE_N=160 LINES=2 STAGES=3 GROUP=16", 2},
    {128, 128, 256, "WARPGROUPS=2 HEIGHT=1 TILE_N=128 LINES=2 STAGES=4 GROUP=16", 2},
    {128, 128, 256, "WARPGROUPS=2 HEIGHT=1 TILE_N=128 LINES=2 STAGES=3 GROUP=16"},
    {192, 128, 256, "WARPGROUPS=3 HEIGHT=1 TILE_N=128 LINES=2 STAGES=3 GROUP=16", 2},
    {256, 128, 256, "WARPGROUPS=2 HEIGHT=2 TILE_N=128 LINES=2 STAGES=3 GROUP=8", 2, 2},
    {256, 128, 128, "WARPGROUPS=2 HEIGHT=2 TILE_N=128 LINES=1 STAGES=5 GROUP=8"},
};
// Tiles of registers are half as wide for 8-bit types.
constexpr Tiling kWarpTilings[] = {
    {128, 128, 64, "WARPS_M=2 WARPS_N=4", 2, 2},   {128, 64, 64, "WARPS_M=2 WARPS_N=2", 4, 2},
    {64, 128, 64, "WARPS_M=1 WARPS_N=4", 4, 2},    {128, 64, 64, "WARPS_M=2 WARPS_N=4", 4, 1, 1},
    {128, 32, 64, "WARPS_M=2 WARPS_N=2", 4, 1, 1},
};
constexpr int kAsyncBytes = 4;  // the least that an asynchronous copy moves
constexpr int kScaleUnit = 4;   // rows of A's scale factors are multiples of so many: 16 bytes

constexpr KernelRow kRows[] = {
    {.name = "gemm_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kAllTypes,
     .alignment = 16,
     .transposable_bytes = 2,
     .epilogue = true,
     .persistent = true},
    {.name = "gemm_skinny_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kAllTypes,
     .alignment = 16,
     .epilogue = true},
    {.name = "gemm_pingpong_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kAllTypes,
     .alignment = 16,
     .transposable_bytes = 2,
     .epilogue = true,
     .persistent = true},
    {.name = "gemm_block_scaled_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kEightBitFloats,
     .alignment = 16,
     .epilogue = true,
     .block_scales = Takes::kAlways,
     .persistent = true},
    {.name = "gemm_grouped_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kAllTypes,
     .alignment = 16,
     .epilogue = true,
     .block_scales = Takes::kToo,
     .groups = GroupsOf::kRows,
     .persistent = true},
    {.name = "gemm_k_grouped_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kFloatTypes,
     .tilings = kAlongKTilings,
     .alignment = 16,
     .transposable_bytes = 2,
     .epilogue = true,
     .block_scales = Takes::kToo,
     .groups = GroupsOf::kK,
     .persistent = true},
    {.name = "gemm_ragged_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kAllTypes,
     .alignment = 16,
     .pads = true,
     .epilogue = true,
     .persistent = true},
    // Rows of metadata, K / 32 words, begin at multiples of 16 bytes too.
    {.name = "gemm_sparse_sm90",
     .needs = {target::Feature::kWgmma, target::Feature::kTma},
     .types = kSparseTypes,
     .tilings = kSparseTilings,
     .alignment = 16,
     .m_unit = 16,
     .k_unit = 128,
     .epilogue = true,
     .a_sparse = true,
     .persistent = true},
    {.name = "gemm_sm80",
     .needs = {target::Feature::kMma, target::Feature::kCpAsync},
     .types = kWarpTypes,
     .tilings = kWarpTilings,
     .alignment = 1,
     .peak_fraction = 0.3,
     .unaligned_cycles = 1000,
     .transposable_bytes = kAnyBytes,
     .epilogue = true},
};

// One operand, as far as alignment goes.
struct Matrix {
  std::string_view name;
  DType dtype;
  const Spacing& spacing;
  std::int64_t cols;
  std::string_view pad;  // the define that says that it has rows of any alignment; "": none needed
  bool loaded = true;    // to be multiplied
};

std::vector<Matrix> matrices_of(const Problem& problem) {
  const std::int64_t kept = problem.a_sparse ? problem.k / 2 : problem.k;
  std::vector<Matrix> out = {
      {"A", problem.a, problem.a_spacing, problem.a_along_k ? kept : problem.m, "PAD_A"},
      {"B", problem.b, problem.b_spacing, problem.b_along_k ? problem.k : problem.n, "PAD_B"},
      {"C", problem.c, problem.c_spacing, problem.n, "PAD_C", false}};
  if (problem.epilogue.has_residual) {
    out.push_back({"the residual", problem.c, problem.residual_spacing, problem.n, "", false});
  }
  return out;
}

// What the matrix lacks: empty when it, its rows and those of the next product begin at multiples.
std::string unaligned(const Matrix& matrix, const Problem& problem, int alignment) {
  if (problem.alignment < alignment) {
    return format("operands lie at multiples of {} bytes, it needs {}", problem.alignment,
                  alignment);
  }
  // Kernels check their tensors' extents, whatever lies between the rows.
  for (const std::int64_t elements : {matrix.cols, matrix.spacing.row, matrix.spacing.batch}) {
    const std::int64_t bytes = elements * size_bytes(matrix.dtype);
    if (bytes % alignment == 0) continue;
    return format("{} steps by {} bytes, it needs multiples of {}", matrix.name, bytes, alignment);
  }
  return {};
}

std::string lacks_alignment(const KernelRow& row, const Problem& problem) {
  if (problem.batch_invariant && !problem.a_along_k && row.alignment > size_bytes(problem.a)) {
    return format("m is the length of A's rows, whose alignment to {} bytes may not decide here",
                  row.alignment);
  }
  bool all_aligned = true;
  for (const Matrix& matrix : matrices_of(problem)) {
    const int alignment = std::max(row.alignment, size_bytes(matrix.dtype));
    std::string reason = unaligned(matrix, problem, alignment);
    all_aligned = all_aligned && reason.empty();
    if (row.pads) reason = unaligned(matrix, problem, size_bytes(matrix.dtype));
    if (!reason.empty()) return reason;
  }
  return row.pads && all_aligned ? "only where rows are not aligned" : "";
}

GroupsOf groups_of(const Problem& problem) {
  if (problem.groups == 0) return GroupsOf::kNone;
  return problem.grouping == Grouping::kAlongK ? GroupsOf::kK : GroupsOf::kRows;
}

std::string lacks_groups(const KernelRow& row, const Problem& problem) {
  if (row.groups != groups_of(problem)) {
    if (row.groups == GroupsOf::kNone) return "no groups";
    return row.groups == GroupsOf::kRows ? "only groups of rows" : "only groups along k";
  }
  if (row.groups != GroupsOf::kK) return {};
  const Epilogue& epilogue = problem.epilogue;
  const bool more =
      epilogue.has_bias || epilogue.has_residual || epilogue.activation != Activation::kNone;
  return more ? "of the epilogue only alpha and beta" : "";
}

std::string lacks_scales(const KernelRow& row, const Problem& problem, const TypeRow& types) {
  if (!problem.block_scales) {
    return row.block_scales == Takes::kAlways ? "only with scale factors" : "";
  }
  if (row.block_scales == Takes::kNever) return "no scale factors";
  if (size_bytes(types.ab) != 1 || types.sum != DType::kF32) return "scale factors of other types";
  if (problem.m % kScaleUnit != 0) return format("m is no multiple of {}", kScaleUnit);
  return {};
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// The row of the problem's types, or null.
const TypeRow* types_of(const KernelRow& row, const Problem& problem) {
  for (const TypeRow& types : row.types) {
    if (types.ab != problem.a || types.ab != problem.b) continue;
    if (std::ranges::find(types.c, problem.c) != types.c.end()) return &types;
  }
  return nullptr;
}

}  // namespace

bool fits(const Tiling& tiling, const Problem& problem) {
  return size_bytes(problem.c) <= tiling.c_bytes_max &&
         size_bytes(problem.a) >= tiling.ab_bytes_min &&
         size_bytes(problem.a) <= tiling.ab_bytes_max &&
         (problem.groups == 0 || kGroupRows % (tiling.m / tiling.bands) == 0) &&
         (tiling.bands == 1 || problem.block_scales) &&
         (!problem.block_scales || kScaleBlock % tiling.n == 0);
}

std::span<const KernelRow> kernel_rows() { return kRows; }

const KernelRow* kernel_row(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &KernelRow::name);
  return found == std::end(kRows) ? nullptr : &*found;
}

std::string lacks(const KernelRow& row, const Problem& problem, const target::Arch& arch) {
  if (!arch.has(row.needs)) return format("not for {}", arch.name);
  const TypeRow* types = types_of(row, problem);
  if (types == nullptr || !arch.has(types->needs)) return "other element types";
  const bool turned = !problem.a_along_k || !problem.b_along_k;
  const bool can_turn =
      row.transposable_bytes == kAnyBytes || row.transposable_bytes == size_bytes(problem.a);
  if (turned && (!can_turn || row.groups == GroupsOf::kRows)) return "operands not along k";
  const bool has_epilogue = problem.epilogue != Epilogue{};
  if (!row.epilogue && has_epilogue) return "no epilogue";
  if (has_epilogue && types->sum != DType::kF32) return "no epilogue on integer sums";
  if (std::string reason = lacks_scales(row, problem, *types); !reason.empty()) return reason;
  if (row.a_sparse != problem.a_sparse) return row.a_sparse ? "only a sparse A" : "no sparse A";
  if (std::string reason = lacks_groups(row, problem); !reason.empty()) return reason;
  if (problem.k % row.k_unit != 0) return format("k is no multiple of {}", row.k_unit);
  if (problem.m % row.m_unit != 0) return format("m is no multiple of {}", row.m_unit);
  return lacks_alignment(row, problem);
}

Defines problem_defines(const KernelRow& row, const Problem& problem, int multiprocessors) {
  Defines out;
  const auto add = [&](bool has, std::string name, std::string_view value) {
    if (has) out.emplace_back(std::move(name), value);
  };
  const TypeRow* types = types_of(row, problem);
  KILN_CHECK(types != nullptr, "{} for {}", row.name, text(problem));
  add(true, "DTYPE", kiln::name(types->ab));
  add(true, "OUT", kiln::name(problem.c));
  add(types->sum != DType::kF32, "ACC", kiln::name(types->sum));
  add(row.persistent, "BLOCKS", std::to_string(multiprocessors));
  for (const Matrix& matrix : matrices_of(problem)) {
    add(row.pads && !matrix.pad.empty(), std::string(matrix.pad),
        unaligned(matrix, problem, row.alignment).empty() ? "0" : "1");
  }
  add(!problem.a_along_k, "A_ALONG_K", "0");
  add(!problem.b_along_k, "B_ALONG_K", "0");
  add(problem.grouping == Grouping::kFollowing || problem.grouping == Grouping::kApart, "BY_ROWS",
      "1");
  add(problem.grouping == Grouping::kApart, "APART", "1");
  add(row.block_scales == Takes::kToo && problem.block_scales, "SCALED", "1");
  const Epilogue& epilogue = problem.epilogue;
  add(epilogue.has_alpha, "ALPHA", "1");
  add(epilogue.has_beta, "BETA", "1");
  add(epilogue.has_bias, "BIAS", "1");
  add(epilogue.has_residual, "RESIDUAL", "1");
  add(epilogue.activation != Activation::kNone, upper(name(epilogue.activation)), "1");
  return out;
}

int step_cycles(const KernelRow& row, const Problem& problem) {
  for (const Matrix& matrix : matrices_of(problem)) {
    if (matrix.loaded && !unaligned(matrix, problem, kAsyncBytes).empty())
      return row.unaligned_cycles;
  }
  return 0;
}

std::int64_t copied_bytes(const KernelRow& row, const Problem& problem) {
  std::int64_t bytes = 0;
  const std::pair<std::string_view, std::int64_t> copies[] = {
      {"A", size_bytes(problem.a) * problem.m * problem.k},
      {"B", size_bytes(problem.b) * problem.n * problem.k}};
  for (const Matrix& matrix : matrices_of(problem)) {
    if (!row.pads || unaligned(matrix, problem, row.alignment).empty()) continue;
    for (const auto& [name, size] : copies) bytes += name == matrix.name ? size : 0;
  }
  return problem.batch * bytes;
}

Defines tiling_defines(const Tiling& tiling) {
  Defines out;
  std::string_view rest = tiling.defines;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(' '));
    const std::size_t equal = one.find('=');
    out.emplace_back(one.substr(0, equal), one.substr(equal + 1));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return out;
}

}  // namespace kiln::gemm
