#include "gemm/choice.h"

#include <algorithm>
#include <optional>

#include "gemm/kernel_row.h"
#include "gemm/space.h"
#include "gemm/tuned.h"
#include "support/format.h"

namespace kiln::gemm {

namespace {

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

Result<Choice> choose_by_model(const Problem& problem, const target::Arch& arch,
                               int multiprocessors) {
  const std::optional<Variant> best = best_variant(problem, arch, multiprocessors);
  if (best) return choice_of(*best, problem, multiprocessors);
  const std::string reasons = join(kernel_rows(), "; ", [&](const KernelRow& row) {
    return format("{}: {}", row.name, lacks(row, problem, arch));
  });
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
