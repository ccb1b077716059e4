#include "gemm/problem.h"

#include <span>

#include "support/integer.h"

namespace kiln::gemm {

namespace {

constexpr std::int64_t kExtentMax = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kElementsMax = std::int64_t{1} << 40;  // of one operand
constexpr int kAlignmentMax = 256;

Error refused(const Problem& problem, std::string reason) {
  return {"not a matrix product:", text(problem), std::move(reason)};
}

struct StridedMatrix {
  const char* name;
  std::int64_t rows;  // of memory
  std::int64_t cols;
  std::int64_t count;  // of such matrices
  Spacing& spacing;
};

Result<void> normalise(const Problem& problem, const StridedMatrix& matrix) {
  Spacing& spacing = matrix.spacing;
  if (spacing.row == 0) spacing.row = matrix.cols;
  if (spacing.row < matrix.cols || spacing.row > kElementsMax / matrix.rows) {
    return Unexpected{refused(problem, format("{} rows of {} have {} elements and lie {} apart",
                                              matrix.rows, matrix.name, matrix.cols, spacing.row))};
  }
  const std::int64_t whole = matrix.rows * spacing.row;
  if (matrix.count == 1 || spacing.batch == 0) spacing.batch = whole;
  if (spacing.batch < whole || spacing.batch > kElementsMax / matrix.count) {
    return Unexpected{refused(problem, format("{} matrices {} of {} elements lie {} apart",
                                              matrix.count, matrix.name, whole, spacing.batch))};
  }
  return {};
}

Result<void> check_sparse(const Problem& problem) {
  if (!problem.a_sparse) return {};
  if (!problem.a_along_k) return Unexpected{refused(problem, "a sparse A lies along k")};
  if (problem.k % kMetadataWord == 0) return {};
  return Unexpected{refused(
      problem, format("with a sparse A k is a multiple of {}, not {}", kMetadataWord, problem.k))};
}

Result<void> check_groups(const Problem& problem) {
  if (problem.groups < 0 || problem.groups > kExtentMax) {
    return Unexpected{refused(problem, format("{} groups, there may be 1 to {}, or 0 for none",
                                              problem.groups, kExtentMax))};
  }
  if (problem.groups == 0 && problem.grouping != Grouping::kByTile) {
    return Unexpected{
        refused(problem, "rows of groups, and `groups` is 0: say how many there are")};
  }
  if (problem.groups == 0) return {};
  if (problem.batch != 1) {
    return Unexpected{refused(
        problem, format("{} groups and a batch of {}: start each of these products by itself",
                        problem.groups, problem.batch))};
  }
  if (problem.grouping != Grouping::kApart) return {};
  if (problem.m % problem.groups == 0 && problem.m / problem.groups % kGroupRows == 0) return {};
  return Unexpected{refused(
      problem,
      format("{} groups apart have room for a multiple of {} rows each, and m is {}: take {}",
             problem.groups, kGroupRows, problem.m,
             ceil_div(problem.m, problem.groups * kGroupRows) * problem.groups * kGroupRows))};
}

}  // namespace

std::string_view name(Activation activation) {
  switch (activation) {
    case Activation::kNone: return "none";
    case Activation::kRelu: return "relu";
    case Activation::kGelu: return "gelu";
    case Activation::kSilu: return "silu";
  }
  return "";
}

std::string text(const Problem& problem) {
  const auto matrix = [](DType dtype, std::int64_t rows, std::int64_t cols) {
    return format("{}[{},{}]", kiln::name(dtype), rows, cols);
  };
  const std::int64_t m = problem.m;
  const std::int64_t n = problem.n;
  const std::int64_t k = problem.k;
  std::string b = problem.b_along_k ? matrix(problem.b, n, k) : matrix(problem.b, k, n);
  std::string c = matrix(problem.c, m, n);
  std::string& with_groups = problem.grouping == Grouping::kAlongK ? c : b;
  if (problem.groups != 0) {
    with_groups.insert(with_groups.find('[') + 1, format("{},", problem.groups));
  }
  std::string out = format(
      "{} * {} -> {}", problem.a_along_k ? matrix(problem.a, m, k) : matrix(problem.a, k, m), b, c);
  if (problem.a_sparse) out += ", A sparse";
  if (problem.batch != 1) out += format(", {} times", problem.batch);
  return out;
}

Result<Problem> normalised(const Problem& problem) {
  Problem out = problem;
  for (const std::int64_t extent : {problem.m, problem.n, problem.k, problem.batch}) {
    if (extent >= 1 && extent <= kExtentMax) continue;
    return Unexpected{refused(problem, format("extents lie between 1 and {}", kExtentMax))};
  }
  const int alignment = problem.alignment;
  if (alignment < 1 || alignment > kAlignmentMax || (alignment & (alignment - 1)) != 0) {
    return Unexpected{refused(problem, format("an alignment of {} bytes", alignment))};
  }
  if (auto fits = check_sparse(problem); !fits) return Unexpected{fits.error()};
  if (auto fits = check_groups(problem); !fits) return Unexpected{fits.error()};
  const std::int64_t kept = problem.a_sparse ? problem.k / 2 : problem.k;
  const std::int64_t a_cols = problem.a_along_k ? kept : problem.m;
  const std::int64_t b_cols = problem.b_along_k ? problem.k : problem.n;
  const std::int64_t batch = problem.batch;
  const bool along_k = problem.grouping == Grouping::kAlongK;
  const std::int64_t b_count = problem.groups == 0 || along_k ? batch : problem.groups;
  const std::int64_t c_count = along_k ? problem.groups : batch;
  if (!problem.epilogue.has_residual) out.residual_spacing = {};
  const StridedMatrix matrices[] = {
      {"A", problem.a_along_k ? problem.m : problem.k, a_cols, batch, out.a_spacing},
      {"B", problem.b_along_k ? problem.n : problem.k, b_cols, b_count, out.b_spacing},
      {"C", problem.m, problem.n, c_count, out.c_spacing},
      {"the residual", problem.m, problem.n, batch, out.residual_spacing}};
  for (const StridedMatrix& matrix : std::span(matrices).first(out.epilogue.has_residual ? 4 : 3)) {
    if (auto fits = normalise(out, matrix); !fits) return Unexpected{fits.error()};
  }
  return out;
}

}  // namespace kiln::gemm
