#include "attention/decode_problem.h"

#include <utility>

#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr std::int64_t kExtentMax = (std::int64_t{1} << 31) - 1;

Unexpected<Error> refused(const DecodeProblem& problem, std::string reason) {
  return Unexpected{Error{"not attention:", text(problem), std::move(reason)}};
}

// The cache as keys and values of a problem of as many batches as it has pages: what spacings may be,
// and what they are where nothing is said, is the same.
Problem cache_of(const DecodeProblem& problem) {
  return {.dtype = problem.dtype,
          .batch = pages_of_cache(problem),
          .queries = 1,
          .keys = rows_of_page(problem),
          .heads = problem.key_heads,
          .key_heads = problem.key_heads,
          .depth = problem.depth,
          .k = problem.k,
          .v = problem.v};
}

// What of pages is given, and fits what else is; empty where all does.
std::string pages_mistake(const DecodeProblem& problem) {
  if (!paged(problem)) {
    if (problem.pages == 0 && problem.pages_of_sequence == 0) return {};
    return format("{} pages, and {} of each sequence, without a page size", problem.pages,
                  problem.pages_of_sequence);
  }
  if (problem.keys != 0) {
    return format("{} keys of each sequence beside pages, which say how many there are",
                  problem.keys);
  }
  for (const std::int64_t each : {problem.page_size, problem.pages, problem.pages_of_sequence}) {
    if (each >= 1 && each <= kExtentMax) continue;
    return format("extents lie between 1 and {}", kExtentMax);
  }
  if (problem.pages_of_sequence <= kExtentMax / problem.page_size) return {};
  return format("{} pages of {} keys of a sequence are more than {} keys",
                problem.pages_of_sequence, problem.page_size, kExtentMax);
}

}  // namespace

std::int64_t pages_of_cache(const DecodeProblem& problem) {
  return paged(problem) ? problem.pages : problem.batch;
}

std::int64_t rows_of_page(const DecodeProblem& problem) {
  return paged(problem) ? problem.page_size : problem.keys;
}

std::string text(const DecodeProblem& problem) {
  std::string out =
      format("{} q[{},{},{},{}] k[{},{},{},{}]", kiln::name(problem.dtype), problem.batch,
             problem.queries, problem.heads, problem.depth, pages_of_cache(problem),
             rows_of_page(problem), problem.key_heads, problem.depth);
  if (paged(problem)) out += format(", {} pages each", problem.pages_of_sequence);
  return problem.causal ? out + ", causal" : out;
}

Result<DecodeProblem> normalised(const DecodeProblem& problem) {
  if (std::string mistake = pages_mistake(problem); !mistake.empty()) {
    return refused(problem, std::move(mistake));
  }
  for (const std::int64_t extent : {problem.batch, problem.queries, problem.heads,
                                    problem.key_heads, problem.depth, rows_of_page(problem)}) {
    if (extent >= 1 && extent <= kExtentMax) continue;
    return refused(problem, format("extents lie between 1 and {}", kExtentMax));
  }
  if (problem.heads % problem.key_heads != 0) {
    return refused(problem, format("{} heads of q share {} of k and v, which do not divide them",
                                   problem.heads, problem.key_heads));
  }
  const auto cache = normalised(cache_of(problem));
  if (!cache) return refused(problem, cache.error().reason);
  const auto queries = normalised(Problem{.dtype = problem.dtype,
                                          .batch = problem.batch,
                                          .queries = problem.queries,
                                          .keys = 1,
                                          .heads = problem.heads,
                                          .key_heads = problem.heads,
                                          .depth = problem.depth});
  if (!queries) return refused(problem, queries.error().reason);
  DecodeProblem out = problem;
  out.causal = problem.causal && problem.queries > 1;  // of one query it does not matter
  if (paged(problem)) out.keys = problem.page_size * problem.pages_of_sequence;
  out.k = cache->k;
  out.v = cache->v;
  return out;
}

}  // namespace kiln::attention
