#include "attention/problem.h"

#include <algorithm>
#include <utility>

#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr std::int64_t kExtentMax = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kElementsMax = std::int64_t{1} << 40;  // of one tensor, gaps included
constexpr std::int64_t kWindowedMax = std::int64_t{1} << 30;  // queries and keys: in 32 bits
constexpr std::int64_t kRowsOfItem = 32;                      // of sequences: at least
constexpr float kSoftCapMax = 1e38F;                          // in f32 it has a multiple

Unexpected<Error> refused(const Problem& problem, std::string reason) {
  return Unexpected{Error{"not attention:", text(problem), std::move(reason)}};
}

// Both are at least 1; kElementsMax + 1 stands for all that is more.
std::int64_t product(std::int64_t left, std::int64_t right) {
  return left > kElementsMax / right ? kElementsMax + 1 : left * right;
}

// A dimension of one element has the step that it would have without gaps, whatever is given.
void write_out(std::int64_t& step, std::int64_t extent, std::int64_t without_gaps) {
  if (step == 0 || extent == 1) step = without_gaps;
}

Result<void> write_out(const Problem& problem, const Part& part, Spacing& spacing) {
  const auto [name, rows, heads, depth, given, written, dtype] = part;
  for (const std::int64_t step : {spacing.batch, spacing.row, spacing.head}) {
    if (step >= 0 && step <= kElementsMax) continue;
    return refused(
        problem, format("{} steps by {} elements, 0 to {} are possible", name, step, kElementsMax));
  }
  write_out(spacing.head, heads, depth);
  write_out(spacing.row, rows, product(heads, spacing.head));
  write_out(spacing.batch, problem.batch, product(rows, spacing.row));
  const std::int64_t reach = product(problem.batch, spacing.batch) + product(rows, spacing.row) +
                             product(heads, spacing.head);
  if (reach <= kElementsMax) return {};
  return refused(problem, format("{} reaches over more than {} elements", name, kElementsMax));
}

// Elements that lie at one place would be written twice.
Result<void> check_apart(const Problem& problem, const Part& part) {
  struct Dimension {
    std::int64_t step;
    std::int64_t extent;
    const char* name;
  };
  Dimension dimensions[] = {{part.spacing.batch, problem.batch, "batches"},
                            {part.spacing.row, part.rows, "rows"},
                            {part.spacing.head, part.heads, "heads"}};
  std::ranges::sort(dimensions, {}, &Dimension::step);
  std::int64_t inner = part.depth;
  for (const Dimension& each : dimensions) {
    if (each.extent == 1) continue;
    if (each.step < inner) {
      return refused(problem, format("{} of {} lie {} elements apart, and take {}", each.name,
                                     part.name, each.step, inner));
    }
    inner = (each.extent - 1) * each.step + inner;
  }
  return {};
}

bool is_windowed(const Problem& problem) { return problem.left != -1 || problem.right != -1; }

// What of a window hides keys. All up to a query's own is what `causal` means.
Result<void> write_out_window(const Problem& problem, Problem& out) {
  for (const auto& [bound, side] : {std::pair{problem.left, "left"}, {problem.right, "right"}}) {
    if (bound >= -1) continue;
    return refused(problem,
                   format("a window of {} keys to the {}: 0 and more are possible, and -1 for all",
                          bound, side));
  }
  out.causal = problem.causal || problem.right == 0;
  if (out.causal || problem.right >= problem.queries - 1) out.right = -1;
  if (problem.left >= problem.keys - 1) out.left = -1;
  if (!is_windowed(out) || problem.queries + problem.keys <= kWindowedMax) return {};
  return refused(problem, format("a window with {} queries and keys, {} are possible",
                                 problem.queries + problem.keys, kWindowedMax));
}

// Heads and tiles of queries of all sequences are counted in 32 bits.
Result<void> check_sequences(const Problem& problem) {
  if (problem.sequences == 0) return {};
  if (problem.sequences < 0 || problem.sequences >= kExtentMax) {
    return refused(problem, format("{} sequences: 0, for a batch, to {} are possible",
                                   problem.sequences, kExtentMax - 1));
  }
  if (problem.batch != 1) {
    return refused(problem, format("{} sequences in a batch of {}: it is 1 then", problem.sequences,
                                   problem.batch));
  }
  const std::int64_t tiles = problem.queries / kRowsOfItem + problem.sequences;
  if (product(tiles, problem.heads) <= kExtentMax) return {};
  return refused(problem, format("{} tiles of queries of {} heads, {} are possible", tiles,
                                 problem.heads, kExtentMax));
}

// "q[2,4096,16,128] k[2,4096,4,128]", or of sequences "q[4096,16,128] k[4096,4,128] of 5 sequences".
std::string shapes_text(const Problem& problem) {
  const std::string batch = problem.sequences == 0 ? format("{},", problem.batch) : "";
  std::string out = format("q[{}{},{},{}] k[{}{},{},{}]", batch, problem.queries, problem.heads,
                           problem.depth, batch, problem.keys, problem.key_heads, problem.depth);
  if (problem.sequences != 0) out += format(" of {} sequences", problem.sequences);
  return out;
}

// ", 512 keys to the left": what `text` says of a window, a soft cap and the values' depth.
std::string options_text(const Problem& problem) {
  std::string out;
  if (problem.left != -1) out += format(", {} keys to the left", problem.left);
  if (problem.right != -1) out += format(", {} keys to the right", problem.right);
  if (problem.soft_cap != 0) out += format(", soft cap {}", problem.soft_cap);
  if (problem.value_depth != 0 && problem.value_depth != problem.depth) {
    out += format(", values of depth {}", problem.value_depth);
  }
  return out;
}

}  // namespace

std::array<Part, 8> parts_of(const Problem& problem) {
  const auto [queries, keys] = std::pair{problem.queries, problem.keys};
  const auto [heads, key_heads] = std::pair{problem.heads, problem.key_heads};
  const std::int64_t depth = problem.depth;
  const std::int64_t value_depth = problem.value_depth == 0 ? depth : problem.value_depth;
  const bool back = problem.backward;
  const DType in = problem.dtype;
  const DType out = result_type(problem);
  return {{{"q", queries, heads, depth, problem.q, false, in},
           {"k", keys, key_heads, depth, problem.k, false, in},
           {"v", keys, key_heads, value_depth, problem.v, false, in},
           {"o", queries, heads, value_depth, problem.o, !back, out},
           {"dout", queries, heads, value_depth, problem.dout, false, out},
           {"dq", queries, heads, depth, problem.dq, back, out},
           {"dk", keys, key_heads, depth, problem.dk, back, out},
           {"dv", keys, key_heads, value_depth, problem.dv, back, out}}};
}

std::string text(const Problem& problem) {
  return format("{} {}{}", kiln::name(problem.dtype), shapes_text(problem),
                problem.causal ? ", causal" : "") +
         options_text(problem) + (problem.backward ? ", backward" : "") +
         (problem.any_order ? " in any order" : "");
}

Result<Problem> normalised(const Problem& problem) {
  for (const std::int64_t extent :
       {problem.batch, problem.queries, problem.keys, problem.heads, problem.key_heads,
        problem.depth, problem.value_depth == 0 ? problem.depth : problem.value_depth}) {
    if (extent >= 1 && extent <= kExtentMax) continue;
    return refused(problem, format("extents lie between 1 and {}", kExtentMax));
  }
  if (problem.heads % problem.key_heads != 0) {
    return refused(problem, format("{} heads of q share {} of k and v, which do not divide them",
                                   problem.heads, problem.key_heads));
  }
  Problem out = problem;
  out.value_depth = problem.value_depth == 0 ? problem.depth : problem.value_depth;
  if (auto fits = check_sequences(problem); !fits) return Unexpected{fits.error()};
  if (auto fits = write_out_window(problem, out); !fits) return Unexpected{fits.error()};
  if (!(problem.soft_cap >= 0 && problem.soft_cap <= kSoftCapMax)) {
    return refused(problem, format("a soft cap of {}: numbers from 0, for none, to {} are possible",
                                   problem.soft_cap, kSoftCapMax));
  }
  const std::array<Part, 8> parts = parts_of(problem);
  Spacing* const spacings[] = {&out.q,    &out.k,  &out.v,  &out.o,
                               &out.dout, &out.dq, &out.dk, &out.dv};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (auto fits = write_out(problem, parts[i], *spacings[i]); !fits) {
      return Unexpected{fits.error()};
    }
  }
  for (const Part& part : parts_of(out)) {
    if (!part.written) continue;
    if (auto fits = check_apart(out, part); !fits) return Unexpected{fits.error()};
  }
  return out;
}

}  // namespace kiln::attention
