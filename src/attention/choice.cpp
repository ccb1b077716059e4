#include "attention/choice.h"

#include <algorithm>
#include <optional>
#include <span>

#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr const char* kKernel = "attention_sm90";
constexpr const char* kBackward = "attention_backward_sm90";
constexpr int kUnit = 16;  // bytes; what a tensor map steps by is a multiple

// What the kernel is best compiled with. Empty: a problem of any kind; the kernel's own defaults.
struct Row {
  std::int64_t depth;
  std::optional<bool> causal = {};
  std::int64_t keys_from = 1;  // so many or more
  std::string_view defines = {};
};

// Of the rows that fit the first counts, so those for more keys stand in front.
constexpr Row kRows[] = {
    {.depth = 64, .causal = true, .keys_from = 4096, .defines = "CONSUMERS=3"},
    {.depth = 64, .causal = true},
    {.depth = 64, .defines = "CONSUMERS=3 TOGETHER=8"},
    {.depth = 128},
    // Two tiles of keys and of values fit beside one item's queries, and nothing else does.
    {.depth = 256,
     .causal = true,
     .keys_from = 2048,
     .defines = "AHEAD=1 APART=false TILE=80 LATE=true TOGETHER=2"},
    {.depth = 256, .causal = true, .defines = "AHEAD=1 APART=false TILE=64 LATE=true TOGETHER=2"},
    {.depth = 256, .defines = "AHEAD=1 APART=false TILE=80 LATE=true TURNS=false"},
};

// The same of the gradients' kernel. More queries at a time are more registers than there are.
constexpr Row kBackwardRows[] = {
    {.depth = 64},
    {.depth = 128},
    {.depth = 256, .defines = "HALVES=true KEY_TILE=48"},
};

const Row* row_of(const Problem& problem) {
  const std::span<const Row> rows =
      problem.backward ? std::span<const Row>(kBackwardRows) : std::span<const Row>(kRows);
  const auto found = std::ranges::find_if(rows, [&](const Row& row) {
    return row.depth == problem.depth && problem.keys >= row.keys_from &&
           row.causal.value_or(problem.causal) == problem.causal;
  });
  return found == rows.end() ? nullptr : &*found;
}

// A step that bulk copies do not take, in words; empty when there is none.
std::string unaligned(const Problem& problem) {
  for (const Part& part : parts_of(problem)) {
    const std::pair<const char*, std::int64_t> steps[] = {
        {"batches", part.spacing.batch}, {"rows", part.spacing.row}, {"heads", part.spacing.head}};
    for (const auto& [what, elements] : steps) {
      const std::int64_t bytes = elements * size_bytes(problem.dtype);
      if (bytes % kUnit == 0) continue;
      return format("{} of {} lie {} bytes apart, it needs multiples of {}: a copy has them", what,
                    part.name, bytes, kUnit);
    }
  }
  return {};
}

std::string lacking(const Problem& problem, const target::Arch& arch) {
  if (!arch.features.include({target::Feature::kWgmma, target::Feature::kTma})) {
    return format("{} has no matrix units of warpgroups or no bulk copies, as sm_90a has them",
                  arch.name);
  }
  if (problem.dtype != DType::kBF16 && problem.dtype != DType::kF16) {
    return format("tensors of {}, it takes bf16 and f16", name(problem.dtype));
  }
  if (row_of(problem) == nullptr) {
    return format("a depth of {}, it takes 64, 128 and 256: fill q, k and v up with zeros",
                  problem.depth);
  }
  return unaligned(problem);
}

// "TILE=80 APART=false" as names and values.
void add(std::string_view text, gemm::Defines& defines) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const std::size_t equals = word.find('=');
    defines.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
}

}  // namespace

Result<gemm::Choice> choose(const Problem& problem, const target::Arch& arch, int multiprocessors) {
  const char* const kernel = problem.backward ? kBackward : kKernel;
  if (std::string reason = lacking(problem, arch); !reason.empty()) {
    return Unexpected{Error{"no kernel for", text(problem), format("{}: {}", kernel, reason)}};
  }
  gemm::Choice out{.kernel = kernel};
  if (!problem.backward) out.defines = {{"BLOCKS", format("{}", multiprocessors)}};
  out.defines.insert(out.defines.end(), {{"CAUSAL", problem.causal ? "true" : "false"},
                                         {"D", format("{}", problem.depth)},
                                         {"DTYPE", std::string(name(problem.dtype))}});
  add(row_of(problem)->defines, out.defines);
  std::ranges::sort(out.defines);
  return out;
}

}  // namespace kiln::attention
