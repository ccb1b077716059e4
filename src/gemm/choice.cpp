#include "gemm/choice.h"

#include <algorithm>
#include <optional>

#include "gemm/kernel_row.h"
#include "gemm/model.h"
#include "gemm/tuned.h"
#include "support/format.h"

namespace kiln::gemm {

namespace {

// The rows of a batch-invariant problem are cut as if there were so many.
constexpr std::int64_t kInvariantRows = 4096;

// What follows from the problem, and over it what was chosen.
Choice with_defines(const KernelRow& row, const Problem& problem, int multiprocessors,
                    const std::vector<std::pair<std::string, std::string>>& chosen) {
  Choice out{.kernel = std::string(row.name), .defines = chosen};
  for (auto& define : problem_defines(row, problem, multiprocessors)) {
    const bool given =
        std::ranges::any_of(chosen, [&](const auto& each) { return each.first == define.first; });
    if (!given) out.defines.push_back(std::move(define));
  }
  std::ranges::sort(out.defines);
  return out;
}

std::optional<Choice> choose_tuned(const Problem& problem, const target::Arch& arch,
                                   int multiprocessors) {
  const TunedTable* table = shipped_table(arch);
  if (table == nullptr) return std::nullopt;
  for (const TunedEntry* entry : fitting(*table, problem)) {
    const KernelRow* row = kernel_row(entry->choice.kernel);
    if (row == nullptr || !lacks(*row, problem, arch).empty()) continue;
    return with_defines(*row, problem, multiprocessors, entry->choice.defines);
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> tiling_defines(const Tiling& tiling) {
  return {{"SPLITS", std::to_string(tiling.splits)},
          {"STAGES", std::to_string(tiling.stages)},
          {"TILE_K", std::to_string(tiling.k)},
          {"TILE_M", std::to_string(tiling.m)},
          {"TILE_N", std::to_string(tiling.n)}};
}

// What decides in a batch-invariant problem: the same for every m.
Problem without_rows(Problem problem) {
  problem.m = kInvariantRows;
  problem.c_spacing.batch = 0;
  problem.a_spacing.batch = 0;
  problem.residual_spacing.batch = 0;
  return problem;
}

// Rows earlier in the table win where the model sees no difference.
Result<Choice> choose_by_model(const Problem& problem, const target::Arch& arch,
                               int multiprocessors) {
  const Problem modelled = problem.batch_invariant ? without_rows(problem) : problem;
  std::optional<Choice> best;
  double best_seconds = 0;
  std::string reasons;
  for (const KernelRow& row : kernel_rows()) {
    const std::string missing = lacks(row, problem, arch);
    if (!missing.empty()) {
      reasons += format("{}{}: {}", reasons.empty() ? "" : "; ", row.name, missing);
      continue;
    }
    for (const Tiling& tiling : row.tilings) {
      const double seconds = modelled_seconds(modelled, tiling, arch, multiprocessors);
      if (best && seconds >= best_seconds) continue;
      best = with_defines(row, problem, multiprocessors, tiling_defines(tiling));
      best_seconds = seconds;
    }
  }
  if (best) return std::move(*best);
  return Unexpected{Error{"no kernel for", text(problem), reasons}};
}

}  // namespace

std::string text(const Choice& choice) {
  std::string out = choice.kernel;
  for (const auto& [name, value] : choice.defines) out += format(" -D {}={}", name, value);
  return out;
}

Result<Choice> choose(const Problem& problem, const target::Arch& arch, int multiprocessors) {
  KILN_CHECK(multiprocessors >= 1, "{} multiprocessors", multiprocessors);
  const Result<Problem> whole = normalised(problem);
  if (!whole) return Unexpected{whole.error()};
  if (auto tuned = choose_tuned(*whole, arch, multiprocessors)) return std::move(*tuned);
  return choose_by_model(*whole, arch, multiprocessors);
}

}  // namespace kiln::gemm
