#include "gemm/choice.h"

#include <algorithm>
#include <optional>

#include "gemm/kernel_row.h"
#include "gemm/model.h"
#include "gemm/tuned.h"
#include "support/format.h"
#include "support/integer.h"

namespace kiln::gemm {

namespace {

// The rows of a batch-invariant problem are cut as if there were so many.
constexpr std::int64_t kInvariantRows = 4096;

// What follows from the problem, and over it what was chosen.
Choice with_defines(const KernelRow& row, const Problem& problem, int multiprocessors,
                    const Defines& chosen) {
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
    const Defines& defines = entry->choice.defines;
    if (row == nullptr || !lacks(*row, problem, arch).empty()) continue;
    return with_defines(*row, problem, multiprocessors, defines);
  }
  return std::nullopt;
}

// What decides in a batch-invariant problem: the same for every m.
Problem without_rows(Problem problem) {
  problem.m = kInvariantRows;
  problem.c_spacing.batch = 0;
  problem.a_spacing.batch = 0;
  problem.residual_spacing.batch = 0;
  return problem;
}

struct Candidate {
  const KernelRow* row = nullptr;
  const Tiling* tiling = nullptr;
  int splits = 1;
  double seconds = 0;
};

// The candidates that a row offers for a problem.
void add_candidates(const KernelRow& row, const Problem& problem, const target::Arch& arch,
                    std::vector<Candidate>& out) {
  for (const int splits : row.splits) {
    if (!lacks(row, problem, arch).empty()) continue;
    for (const Tiling& tiling : row.tilings) {
      if (!fits(tiling, problem, splits)) continue;
      if (!splits_evenly(problem, tiling, splits)) continue;
      out.push_back({.row = &row, .tiling = &tiling, .splits = splits});
    }
  }
}

// Rows earlier in the table win where the model sees no difference.
Result<Choice> choose_by_model(const Problem& problem, const target::Arch& arch,
                               int multiprocessors) {
  std::vector<Candidate> candidates;
  for (const KernelRow& row : kernel_rows()) add_candidates(row, problem, arch, candidates);
  if (candidates.empty()) {
    const std::string reasons = join(kernel_rows(), "; ", [&](const KernelRow& row) {
      return format("{}: {}", row.name, lacks(row, problem, arch));
    });
    return Unexpected{Error{"no kernel for", text(problem), reasons}};
  }
  Problem modelled = problem.batch_invariant ? without_rows(problem) : problem;
  if (modelled.grouping == Grouping::kAlongK) {
    // As many products as there are groups, of a part of k each.
    modelled.batch = modelled.groups;
    modelled.k = ceil_div(modelled.k, modelled.groups);
    modelled.groups = 0;
  }
  for (Candidate& each : candidates) {
    const Cut cut = cut_of(*each.row, *each.tiling, each.splits, modelled);
    each.seconds = modelled_seconds(modelled, cut, arch, multiprocessors);
  }
  const auto best = std::ranges::min_element(candidates, {}, &Candidate::seconds);
  return with_defines(*best->row, problem, multiprocessors,
                      tiling_defines(*best->tiling, best->splits));
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
