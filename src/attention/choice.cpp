#include "attention/choice.h"

#include <algorithm>
#include <optional>
#include <span>

#include "attention/needs.h"
#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr const char* kKernel = "attention_sm90";
constexpr const char* kBackward = "attention_backward_sm90";
constexpr const char* kOf8Bits = "attention_f8_sm90";
constexpr const char* kOfSequences = "attention_varlen_sm90";
constexpr const char* kBackwardOfSequences = "attention_varlen_backward_sm90";

// What the kernel is best compiled with. Empty: a problem of any kind; the kernel's own defaults.
struct Row {
  std::int64_t depth;
  std::optional<bool> masked = {};  // some queries do not see all keys
  bool uneven = false;              // of problems alone whose later queries see more keys
  std::int64_t keys_from = 1;       // so many or more
  std::int64_t queries_from = 1;    // blocks of a cluster that have none are for nothing
  std::string_view defines = {};
  std::int64_t value_depth = 0;  // 0: as depth
};

// Of the rows that fit the first counts, so those for more keys stand in front.
constexpr Row kRows[] = {
    // From so many keys on, items that are as long as others count for more than keys that stay in the cache (FEW).
    {.depth = 64, .masked = true, .keys_from = 16384, .defines = "CONSUMERS=3 FEW=1000"},
    {.depth = 64, .masked = true, .keys_from = 4096, .defines = "CONSUMERS=3"},
    {.depth = 64, .masked = true},
    {.depth = 64, .keys_from = 16384, .queries_from = 193, .defines = "CLUSTER=2 CONSUMERS=3"},
    {.depth = 64, .defines = "CONSUMERS=3 TOGETHER=8"},
    {.depth = 96},
    {.depth = 128, .masked = true, .defines = "SPARE=true"},
    {.depth = 128, .queries_from = 129, .defines = "CLUSTER=2 TURNS=false SPARE=true"},
    {.depth = 128, .defines = "TURNS=false SPARE=true"},
    {.depth = 192, .defines = "AHEAD=1 TILE=112", .value_depth = 128},
    {.depth = 192, .defines = "AHEAD=1 APART=false TILE=112"},
    // Two tiles of keys and of values fit beside one item's queries, and nothing else does.
    // Two blocks that share keys load half of them each; that one of them sees fewer counts for less.
    {.depth = 256,
     .uneven = true,
     .keys_from = 8192,
     .queries_from = 129,
     .defines = "AHEAD=1 APART=false CLUSTER=2 TILE=80"},
    {.depth = 256,
     .masked = true,
     .keys_from = 16384,
     .defines = "AHEAD=1 APART=false TILE=80 FEW=1000"},
    {.depth = 256,
     .masked = true,
     .keys_from = 8192,
     .defines = "AHEAD=1 APART=false TILE=80 TOGETHER=2"},
    {.depth = 256, .masked = true, .defines = "AHEAD=1 APART=false TILE=64 TOGETHER=2"},
    {.depth = 256, .queries_from = 129, .defines = "AHEAD=1 APART=false TILE=80 CLUSTER=2"},
    {.depth = 256, .defines = "AHEAD=1 APART=false TILE=80"},
};

// The same of the gradients' kernels. More queries at a time are more registers than there are. Blocks that share what they
// load go on together, which is slower where one of them sees less than the other.
constexpr Row kBackwardRows[] = {
    {.depth = 64},
    {.depth = 96},
    {.depth = 128, .masked = false, .keys_from = 4096, .queries_from = 129, .defines = "CLUSTER=2"},
    {.depth = 128},
    {.depth = 256,
     .masked = false,
     .keys_from = 1024,
     .queries_from = 129,
     .defines = "HALVES=true KEY_TILE=64 VALUE_STAGES=1 CLUSTER=2"},
    {.depth = 256, .defines = "HALVES=true KEY_TILE=64 VALUE_STAGES=1 EARLY=true"},
};
constexpr Row kBackwardRowsOfSequences[] = {
    {.depth = 64},
    {.depth = 96},
    {.depth = 128},
    {.depth = 256, .defines = "HALVES=true KEY_TILE=64 VALUE_STAGES=1 EARLY=true"},
};

// The same of the kernel of sequences of any lengths, whose blocks share nothing.
constexpr Row kRowsOfSequences[] = {
    {.depth = 64, .masked = true},
    {.depth = 64, .defines = "CONSUMERS=3 TOGETHER=8"},
    {.depth = 96},
    {.depth = 128, .defines = "SPARE=true"},
    {.depth = 192, .defines = "AHEAD=1 TILE=112", .value_depth = 128},
    {.depth = 192, .defines = "AHEAD=1 APART=false TILE=112"},
    {.depth = 256, .masked = true, .defines = "AHEAD=1 APART=false TILE=64 TOGETHER=2"},
    {.depth = 256, .defines = "AHEAD=1 APART=false TILE=80"},
};

// Of forward problems whose blocks draw their work, where some of it takes longer; measured on H200. Depths and numbers of
// keys that are not here are faster as they are.
constexpr Row kRowsBalanced[] = {
    {.depth = 64, .keys_from = 8192, .defines = "CONSUMERS=3 KEYS_TOGETHER=262144"},
    {.depth = 64},
    {.depth = 96},
    {.depth = 128, .keys_from = 4096, .defines = "TURNS=false SPARE=true"},
    {.depth = 128, .keys_from = 2048, .defines = "SPARE=true"},
    {.depth = 192, .defines = "AHEAD=1 TILE=112", .value_depth = 128},
    {.depth = 192, .defines = "AHEAD=1 APART=false TILE=112"},
};

// Of q, k and v of 8 bits; measured on H200.
constexpr Row kRowsOf8Bits[] = {
    {.depth = 64, .defines = "CONSUMERS=3 TILE=128"},
    {.depth = 128, .masked = true, .keys_from = 4096, .defines = "TILE=192"},
    {.depth = 128, .masked = true},
    {.depth = 128, .defines = "CONSUMERS=3 TILE=96"},
    {.depth = 256, .defines = "AHEAD=1 LATE=true"},
};

// Of those whose dq may be added up in any order, where that is faster; measured on H200.
constexpr Row kRowsInAnyOrder[] = {
    {.depth = 64, .defines = "DETERMINISTIC=false QUERY_TILE=128"},
    {.depth = 128, .defines = "DETERMINISTIC=false"},
};

const char* kernel_of(const Problem& problem) {
  if (has_8_bits(problem)) return kOf8Bits;
  if (problem.sequences != 0) return problem.backward ? kBackwardOfSequences : kOfSequences;
  return problem.backward ? kBackward : kKernel;
}

std::span<const Row> rows_of(const Problem& problem) {
  if (has_8_bits(problem)) return kRowsOf8Bits;
  if (problem.sequences != 0) {
    return problem.backward ? std::span<const Row>(kBackwardRowsOfSequences) : kRowsOfSequences;
  }
  return problem.backward ? std::span<const Row>(kBackwardRows) : kRows;
}

std::int64_t value_depth_of(const Row& row) {
  return row.value_depth == 0 ? row.depth : row.value_depth;
}

// Whether later queries see more keys.
bool is_uneven(const Problem& problem) {
  return problem.left == -1 && (problem.causal || problem.right != -1);
}

const Row* row_among(std::span<const Row> rows, const Problem& problem) {
  const bool masked = problem.causal || problem.left != -1 || problem.right != -1;
  const auto found = std::ranges::find_if(rows, [&](const Row& row) {
    return row.depth == problem.depth && value_depth_of(row) == problem.value_depth &&
           problem.keys >= row.keys_from && problem.queries >= row.queries_from &&
           row.masked.value_or(masked) == masked && (is_uneven(problem) || !row.uneven);
  });
  return found == rows.end() ? nullptr : &*found;
}

// Whether each block has several items, tiles of at most 128 queries of a head.
bool has_many_items(const Problem& problem, int multiprocessors) {
  constexpr std::int64_t kQueries = 128;
  constexpr std::int64_t kItems = 2;
  const std::int64_t tiles =
      problem.queries / kQueries + std::max<std::int64_t>(problem.sequences, 1);
  return problem.batch * problem.heads * tiles >= kItems * multiprocessors;
}

// Whether blocks draw their work. Sequences have any lengths, with a mask or without.
bool draws(const Problem& problem, int multiprocessors) {
  const bool may =
      problem.balanced && !problem.backward && has_many_items(problem, multiprocessors);
  if (!may || problem.sequences != 0) return may;
  return is_uneven(problem) &&
         (has_8_bits(problem) || row_among(kRowsBalanced, problem) != nullptr);
}

const Row* row_of(const Problem& problem, int multiprocessors) {
  const bool has_rows = !has_8_bits(problem) && problem.sequences == 0;
  if (has_rows && draws(problem, multiprocessors)) return row_among(kRowsBalanced, problem);
  if (problem.backward && problem.any_order && problem.sequences == 0) {
    if (const Row* row = row_among(kRowsInAnyOrder, problem)) return row;
  }
  return row_among(rows_of(problem), problem);
}

// "64, 96, 128, 192 with values of 128, 192 and 256".
std::string depths_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const Row& row : rows_of(problem)) {
    std::string name = format("{}", row.depth);
    if (row.value_depth != 0) name += format(" with values of {}", row.value_depth);
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  std::string out = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) {
    out += (i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return out;
}

std::string unaligned(const Problem& problem) {
  for (const Part& part : parts_of(problem)) {
    std::string step = unaligned_step(part.name, part.spacing, part.dtype);
    if (!step.empty()) return step + ": a copy has them";
  }
  return {};
}

// What there is of 16 bits alone.
std::string of_16_bits(const Problem& problem) {
  const std::pair<const char*, bool> asked[] = {
      {"gradients", problem.backward},
      {"sequences of any lengths", problem.sequences != 0},
      {"a soft cap", problem.soft_cap != 0}};
  for (const auto& [what, wanted] : asked) {
    if (wanted) {
      return format(
          "{} with tensors of {}, there is that of bf16 and f16 alone: convert q, k and v", what,
          name(problem.dtype));
    }
  }
  return {};
}

std::string lacking(const Problem& problem, const Row* row, const target::Arch& arch) {
  const bool small = has_8_bits(problem);
  std::string needed = small ? missing(arch) : missing(arch, problem.dtype);
  if (needed.empty() && small) needed = of_16_bits(problem);
  if (!needed.empty()) return needed;
  if (row == nullptr) {
    std::string with;
    if (problem.value_depth != problem.depth) {
      with = format(" with values of {}", problem.value_depth);
    }
    return format("a depth of {}{}, it takes {}: fill q, k and v up with zeros", problem.depth,
                  with, depths_of(problem));
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
  const char* const kernel = kernel_of(problem);
  const Row* const row = row_of(problem, multiprocessors);
  if (std::string reason = lacking(problem, row, arch); !reason.empty()) {
    return Unexpected{Error{"no kernel for", text(problem), format("{}: {}", kernel, reason)}};
  }
  gemm::Choice out{.kernel = kernel};
  if (!problem.backward) out.defines = {{"BLOCKS", format("{}", multiprocessors)}};
  out.defines.insert(out.defines.end(), {{"CAUSAL", problem.causal ? "true" : "false"},
                                         {"D", format("{}", problem.depth)}});
  if (!has_8_bits(problem)) out.defines.emplace_back("DTYPE", std::string(name(problem.dtype)));
  const std::pair<const char*, bool> more[] = {{"LEFT", problem.left != -1},
                                               {"RIGHT", problem.right != -1},
                                               {"SOFT_CAP", problem.soft_cap != 0},
                                               {"DRAWN", draws(problem, multiprocessors)}};
  for (const auto& [name, given] : more) {
    if (given) out.defines.emplace_back(name, "true");
  }
  if (problem.value_depth != problem.depth) {
    out.defines.emplace_back("DV", format("{}", problem.value_depth));
  }
  add(row->defines, out.defines);
  std::ranges::sort(out.defines);
  return out;
}

}  // namespace kiln::attention
