#include "measure/bench_suites.h"

#include <algorithm>
#include <array>

#include "support/check.h"
#include "support/format.h"

namespace kiln::measure {

namespace {

struct Size {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

constexpr std::string_view kSuiteNames[] = {"dense",  "llm",    "small",        "fp8",
                                            "sparse", "ragged", "block-scaled", "grouped"};

constexpr SuiteTypes kF16[] = {{.ab = DType::kF16, .c = DType::kF16}};
constexpr SuiteTypes kBF16[] = {{.ab = DType::kBF16, .c = DType::kBF16}};
constexpr SuiteTypes kTensorFP8[] = {
    {.ab = DType::kE4M3, .c = DType::kBF16, .tensor_scales = true}};
constexpr SuiteTypes kBlockFP8[] = {{.ab = DType::kE4M3, .c = DType::kBF16, .block_scales = true}};
constexpr SuiteTypes kSparse[] = {{.ab = DType::kF16, .c = DType::kF16, .sparse = true},
                                  {.ab = DType::kBF16, .c = DType::kBF16, .sparse = true},
                                  {.ab = DType::kE4M3, .c = DType::kBF16, .sparse = true},
                                  {.ab = DType::kS8, .c = DType::kS32, .sparse = true}};

// 4000 divides by 32 and by no tile.
constexpr Size kCubes[] = {{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
                           {8192, 8192, 8192}, {4000, 4000, 4000}, {16384, 16384, 16384}};

// Weights [N, K] of a large mixture of experts and of a dense model of 70 billion weights, for one
// step of decoding (16, 64, 128 sequences), a chunk of a prompt (512) and a whole one (4096).
constexpr std::int64_t kTokens[] = {16, 64, 128, 512, 4096};
constexpr std::pair<std::int64_t, std::int64_t> kWeights[] = {
    {7168, 2048}, {4096, 7168}, {2112, 7168}, {24576, 1536}, {7168, 16384}, {8192, 28672}};
constexpr auto kLayers = [] {
  std::array<Size, std::size(kTokens) * std::size(kWeights)> out{};
  std::size_t next = 0;
  for (const auto& [n, k] : kWeights) {
    for (const std::int64_t m : kTokens) out[next++] = {m, n, k};
  }
  return out;
}();

// From one tile with a long sum to a tile for every second multiprocessor.
constexpr Size kFewTiles[] = {{128, 128, 8192},  {256, 256, 4096},  {256, 256, 16384},
                              {512, 512, 256},   {512, 512, 2048},  {512, 512, 8192},
                              {1024, 1024, 256}, {1024, 1024, 512}, {64, 4096, 4096},
                              {2048, 64, 4096},  {384, 640, 1536},  {768, 768, 768}};

constexpr Size kPrimes[] = {{1021, 1021, 1021}, {2039, 2039, 2039}, {4093, 4093, 4093},
                            {4099, 4093, 4111}, {8191, 8191, 8191}, {127, 4099, 2039},
                            {4099, 127, 2039},  {1021, 4093, 257},  {17, 7177, 2053}};

constexpr Size kBlockScaled[] = {{4096, 7168, 16384}};
constexpr Size kBlockScaledLayers[] = {{4096, 7168, 16384}, {4096, 4096, 7168}, {4096, 24576, 1536},
                                       {4096, 7168, 2048},  {128, 7168, 16384}, {64, 2112, 7168}};
constexpr Size kSparseSizes[] = {{8192, 8192, 8192}, {4096, 8192, 8192}};

// So many groups, and the rows each has room for.
struct Groups {
  std::int64_t count;
  std::int64_t room;
  gemm::Grouping grouping;
  std::int64_t n;
  std::int64_t k;
};
constexpr std::int64_t kRowsApart = 1024;  // that all of them have, when they lie apart
constexpr Groups kGroups[] = {{4, 8192, gemm::Grouping::kFollowing, 4096, 7168},
                              {4, 8192, gemm::Grouping::kFollowing, 7168, 2048},
                              {8, 4096, gemm::Grouping::kFollowing, 4096, 7168},
                              {8, 4096, gemm::Grouping::kFollowing, 7168, 2048},
                              {1, 4096, gemm::Grouping::kApart, 4096, 7168},
                              {1, 4096, gemm::Grouping::kApart, 7168, 2048},
                              {4, 4096, gemm::Grouping::kApart, 4096, 7168},
                              {4, 4096, gemm::Grouping::kApart, 7168, 2048}};
constexpr std::span<const SuiteTypes> kGroupTypes[] = {kBlockFP8, kTensorFP8, kBF16};

// Each has every one of its types with every one of its sizes.
struct Part {
  std::string_view suite;
  std::span<const SuiteTypes> types;
  std::span<const Size> sizes;
};
constexpr Part kParts[] = {
    {"dense", kF16, kCubes},          {"dense", kBF16, kCubes},
    {"llm", kBF16, kLayers},          {"small", kBF16, kFewTiles},
    {"fp8", kTensorFP8, kCubes},      {"fp8", kTensorFP8, kLayers},
    {"fp8", kBlockFP8, kBlockScaled}, {"sparse", kSparse, kSparseSizes},
    {"ragged", kBF16, kPrimes},       {"block-scaled", kBlockFP8, kBlockScaledLayers},
};

void add_grouped(std::vector<gemm::Problem>& out) {
  for (const auto& types : kGroupTypes) {
    for (const Groups& groups : kGroups) {
      out.push_back(suite_problem(groups.count * groups.room, groups.n, groups.k, types.front()));
      out.back().groups = groups.count;
      out.back().grouping = groups.grouping;
    }
  }
}

std::string besides(const gemm::Problem& problem) {
  std::string out;
  if (problem.epilogue.has_alpha) out += ", tensor scales";
  if (problem.block_scales) out += ", block scales";
  if (problem.a_sparse) out += ", 2:4 sparse";
  if (problem.groups > 0) out += format(", groups of {} rows", rows_of_each(problem));
  return out;
}

}  // namespace

std::span<const std::string_view> suite_names() { return kSuiteNames; }

std::string suite_list() {
  return join(kSuiteNames, ", ", [](std::string_view name) { return std::string(name); });
}

bool is_suite(std::string_view name) {
  return std::ranges::find(kSuiteNames, name) != std::end(kSuiteNames);
}

std::span<const std::string_view> tuned_suite_names() {
  return std::span(kSuiteNames).first(std::size(kSuiteNames) - 1);
}

std::string tuned_suite_list() {
  return join(tuned_suite_names(), ", ", [](std::string_view name) { return std::string(name); });
}

bool is_tuned_suite(std::string_view name) {
  return std::ranges::find(tuned_suite_names(), name) != tuned_suite_names().end();
}

std::vector<gemm::Problem> cases_of(std::string_view suite) {
  KILN_CHECK(is_suite(suite), "no suite is called `{}`", suite);
  std::vector<gemm::Problem> out;
  for (const Part& part : kParts) {
    if (part.suite != suite) continue;
    for (const SuiteTypes& types : part.types) {
      for (const Size& size : part.sizes) {
        out.push_back(suite_problem(size.m, size.n, size.k, types));
      }
    }
  }
  if (suite == "grouped") add_grouped(out);
  return out;
}

std::int64_t rows_of_each(const gemm::Problem& problem) {
  if (problem.groups == 0) return 0;
  const std::int64_t room = problem.m / problem.groups;
  return problem.grouping == gemm::Grouping::kApart ? std::min(room, kRowsApart / problem.groups)
                                                    : room;
}

std::int64_t counted_rows(const gemm::Problem& problem) {
  return problem.groups == 0 ? problem.m : problem.groups * rows_of_each(problem);
}

gemm::Problem of_one_group(const gemm::Problem& problem) {
  gemm::Problem out = problem;
  if (problem.groups == 0) return out;
  out.m = rows_of_each(problem);
  out.groups = 0;
  out.grouping = gemm::Grouping::kByTile;
  return out;
}

std::string shape_of(const gemm::Problem& problem) {
  const std::string out = format("M={},N={},K={}", problem.m, problem.n, problem.k);
  return problem.groups == 0 ? out : out + format(",G={}", problem.groups);
}

std::string types_of(const gemm::Problem& problem) {
  const std::string_view ab = name(problem.a);
  return format("{} * {} -> {}{}", ab, ab, name(problem.c), besides(problem));
}

void show_note(io::Console& console, const gemm::Problem& problem, const std::string& text) {
  io::show_progress(console, "");
  console.err << format("note: {}, {}: {}\n", shape_of(problem), types_of(problem), text);
}

}  // namespace kiln::measure
