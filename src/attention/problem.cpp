#include "attention/problem.h"

#include <algorithm>
#include <utility>

#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr std::int64_t kExtentMax = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kElementsMax = std::int64_t{1} << 40;  // of one tensor, gaps included

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
  const auto [name, rows, heads, given, written] = part;
  for (const std::int64_t step : {spacing.batch, spacing.row, spacing.head}) {
    if (step >= 0 && step <= kElementsMax) continue;
    return refused(
        problem, format("{} steps by {} elements, 0 to {} are possible", name, step, kElementsMax));
  }
  write_out(spacing.head, heads, problem.depth);
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
  std::int64_t inner = problem.depth;
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

}  // namespace

std::array<Part, 8> parts_of(const Problem& problem) {
  const auto [queries, keys] = std::pair{problem.queries, problem.keys};
  const bool back = problem.backward;
  return {{{"q", queries, problem.heads, problem.q, false},
           {"k", keys, problem.key_heads, problem.k, false},
           {"v", keys, problem.key_heads, problem.v, false},
           {"o", queries, problem.heads, problem.o, !back},
           {"dout", queries, problem.heads, problem.dout, false},
           {"dq", queries, problem.heads, problem.dq, back},
           {"dk", keys, problem.key_heads, problem.dk, back},
           {"dv", keys, problem.key_heads, problem.dv, back}}};
}

std::string text(const Problem& problem) {
  return format("{} q[{},{},{},{}] k[{},{},{},{}]{}", kiln::name(problem.dtype), problem.batch,
                problem.queries, problem.heads, problem.depth, problem.batch, problem.keys,
                problem.key_heads, problem.depth, problem.causal ? ", causal" : "") +
         (problem.backward ? ", backward" : "");
}

Result<Problem> normalised(const Problem& problem) {
  for (const std::int64_t extent : {problem.batch, problem.queries, problem.keys, problem.heads,
                                    problem.key_heads, problem.depth}) {
    if (extent >= 1 && extent <= kExtentMax) continue;
    return refused(problem, format("extents lie between 1 and {}", kExtentMax));
  }
  if (problem.heads % problem.key_heads != 0) {
    return refused(problem, format("{} heads of q share {} of k and v, which do not divide them",
                                   problem.heads, problem.key_heads));
  }
  Problem out = problem;
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
