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

constexpr std::string_view kSuiteNames[] = {"dense", "llm", "small", "fp8", "sparse", "ragged"};

constexpr SuiteTypes kF16[] = {{.ab = DType::kF16, .c = DType::kF16}};
constexpr SuiteTypes kBF16[] = {{.ab = DType::kBF16, .c = DType::kBF16}};
constexpr SuiteTypes kTensorFP8[] = {
    {.ab = DType::kE4M3, .c = DType::kBF16, .tensor_scales = true}};
constexpr SuiteTypes kBlockFP8[] = {{.ab = DType::kE4M3, .c = DType::kBF16, .block_scales = true}};
constexpr SuiteTypes kSparseF16[] = {{.ab = DType::kF16, .c = DType::kF16, .sparse = true}};

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
constexpr Size kSparseSizes[] = {{8192, 8192, 8192}, {4096, 8192, 8192}};

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
    {"fp8", kBlockFP8, kBlockScaled}, {"sparse", kSparseF16, kSparseSizes},
    {"ragged", kBF16, kPrimes},
};

std::string_view besides(const gemm::Problem& problem) {
  if (problem.epilogue.has_alpha) return ", tensor scales";
  if (problem.block_scales) return ", block scales";
  return problem.a_sparse ? ", 2:4 sparse" : "";
}

}  // namespace

std::span<const std::string_view> suite_names() { return kSuiteNames; }

std::string suite_list() {
  return join(kSuiteNames, ", ", [](std::string_view name) { return std::string(name); });
}

bool is_suite(std::string_view name) {
  return std::ranges::find(kSuiteNames, name) != std::end(kSuiteNames);
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
  return out;
}

std::string shape_of(const gemm::Problem& problem) {
  return format("M={},N={},K={}", problem.m, problem.n, problem.k);
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
