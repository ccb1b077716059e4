#include "attention/decode_choice.h"

#include <algorithm>
#include <array>

#include "attention/needs.h"
#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr const char* kKernel = "attention_decode_sm90";
constexpr std::int64_t kRows = 64;  // of queries in a block
constexpr std::int64_t kTile = 64;  // keys at a time
constexpr std::int64_t kPieceMin = 8;
constexpr std::int64_t kSplitsMax = 128;
constexpr std::int64_t kRowsMax = 65535;  // a grid's second dimension

// What the kernel is compiled with for a depth: as many keys and values are on their way as shared
// memory holds, with TOGETHER blocks on a multiprocessor.
struct Row {
  std::int64_t depth;
  int stages;
  int together;
};
constexpr std::array<Row, 3> kRowsOfDepth = {{{64, 6, 2}, {128, 3, 2}, {256, 3, 1}}};

const Row* row_of(const DecodeProblem& problem) {
  const auto* found = std::ranges::find(kRowsOfDepth, problem.depth, &Row::depth);
  return found == kRowsOfDepth.end() ? nullptr : found;
}

std::int64_t rows_of(const DecodeProblem& problem) {
  return problem.queries * (problem.heads / problem.key_heads);
}

std::string lacking(const DecodeProblem& problem, const target::Arch& arch) {
  if (std::string needed = missing(arch, problem.dtype); !needed.empty()) return needed;
  if (row_of(problem) == nullptr) {
    return format("a depth of {}, it takes 64, 128 and 256: fill q, k and v up with zeros",
                  problem.depth);
  }
  if (problem.page_size % kPieceMin != 0) {
    return format("pages of {} keys, it takes multiples of {}", problem.page_size, kPieceMin);
  }
  if (rows_of(problem) > kRowsMax) {
    return format("{} queries of heads that share keys, it takes {}: kiln/attention.h is for many",
                  rows_of(problem), kRowsMax);
  }
  const char* const outermost = paged(problem) ? "pages" : "batches";
  std::string step = unaligned_step("k", problem.k, problem.dtype, outermost);
  return step.empty() ? unaligned_step("v", problem.v, problem.dtype, outermost) : step;
}

// So many keys, a power of two, lie in one page.
std::int64_t piece_of(const DecodeProblem& problem) {
  if (!paged(problem)) return kTile;
  std::int64_t piece = kPieceMin;
  while (piece < kTile && problem.page_size % (2 * piece) == 0) piece *= 2;
  return piece;
}

// The least number that leaves the fewest multiprocessors idle in the last round of blocks, or nearly
// so. `blocks` there are for each part of the keys, `at_once` of all run at the same time.
std::int64_t splits_of(std::int64_t blocks, std::int64_t at_once, std::int64_t tiles) {
  const std::int64_t most = std::min(tiles, kSplitsMax);
  if (blocks * 5 >= at_once * 4) return 1;
  const auto busy = [&](std::int64_t splits) {
    const std::int64_t all = blocks * splits;
    const std::int64_t rounds = (all + at_once - 1) / at_once;
    return static_cast<double>(all) / static_cast<double>(rounds * at_once);
  };
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) best = std::max(best, busy(splits));
  std::int64_t splits = 1;
  while (busy(splits) < 0.85 * best) ++splits;
  return splits;
}

}  // namespace

std::string text(const DecodeChoice& choice) {
  return format("{}, splits={}", gemm::text(choice.kernel), choice.splits);
}

Result<DecodeChoice> choose(const DecodeProblem& problem, const target::Arch& arch,
                            int multiprocessors) {
  if (std::string reason = lacking(problem, arch); !reason.empty()) {
    return Unexpected{Error{"no kernel for", text(problem), format("{}: {}", kKernel, reason)}};
  }
  const Row& row = *row_of(problem);
  const std::int64_t strips = (rows_of(problem) + kRows - 1) / kRows;
  const std::int64_t blocks = std::min(problem.batch * problem.key_heads, kRowsMax) * strips;
  const std::int64_t tiles = (problem.keys - 1) / kTile + 1;
  DecodeChoice out;
  out.splits = splits_of(blocks, std::int64_t{multiprocessors} * row.together, tiles);
  const auto word = [](bool holds) { return std::string(holds ? "true" : "false"); };
  out.kernel = {.kernel = kKernel,
                .defines = {{"CAUSAL", word(problem.causal)},
                            {"D", format("{}", problem.depth)},
                            {"DTYPE", std::string(name(problem.dtype))},
                            {"PAGED", word(paged(problem))},
                            {"PIECE", format("{}", piece_of(problem))},
                            {"SPLIT", word(out.splits > 1)},
                            {"STAGES", format("{}", row.stages)},
                            {"TOGETHER", format("{}", row.together)}}};
  return out;
}

}  // namespace kiln::attention
