#include "measure/random_problem.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <vector>

#include "measure/random_draw.h"
#include "support/format.h"
#include "support/parse_number.h"

namespace kiln::measure {

namespace {

using gemm::Activation;
using gemm::Epilogue;
using gemm::Problem;
using gemm::Spacing;

constexpr std::int64_t kWorkMax = std::int64_t{1} << 32;  // multiplications of all products
constexpr int kUsualAlignment = 16;

struct Types {
  DType ab;
  DType c;
};
constexpr Types kProductTypes[] = {
    {DType::kBF16, DType::kBF16}, {DType::kBF16, DType::kF32},  {DType::kF16, DType::kF16},
    {DType::kF16, DType::kF32},   {DType::kE4M3, DType::kBF16}, {DType::kE4M3, DType::kF16},
    {DType::kE4M3, DType::kF32},  {DType::kE5M2, DType::kBF16}, {DType::kE5M2, DType::kF16},
    {DType::kE5M2, DType::kF32},  {DType::kTF32, DType::kF32},  {DType::kS8, DType::kS32}};
constexpr std::span<const Types> kFloats = std::span(kProductTypes).first(11);
constexpr std::span<const Types> kScaled = std::span(kProductTypes).subspan(4, 6);

// Factors (alpha, beta) that are exact in f32 and as text.
constexpr double kFactors[] = {1, -1, 0.5, 2, -0.25, 0.6875, -1.375, 0.3125, 1.0625, -0.8125};

constexpr gemm::Grouping kGroupings[] = {gemm::Grouping::kByTile, gemm::Grouping::kFollowing,
                                         gemm::Grouping::kApart};
// As words of a problem's text.
constexpr std::pair<std::string_view, gemm::Grouping> kGroupingWords[] = {
    {"rows", gemm::Grouping::kFollowing}, {"apart", gemm::Grouping::kApart}};

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kGelu,
                                       Activation::kSilu};

// What a kernel is compiled for, but for the tiling.
struct ProblemForm {
  Types types;
  Epilogue epilogue;
  bool block_scales = false;
  gemm::Grouping grouping = gemm::Grouping::kByTile;  // where there are groups
};

constexpr std::uint64_t kEpilogues = 64;
constexpr std::uint64_t kForms = kEpilogues + std::size(kProductTypes) + 6;

// Number 0 to 63 have all epilogues, each with a type that the seed picks; then come all types
// without, and those with scale factors.
ProblemForm form_of(std::uint64_t seed, std::uint64_t number) {
  const gemm::Grouping grouping = kGroupings[number % std::size(kGroupings)];
  if (number >= kEpilogues + std::size(kProductTypes)) {
    return {kScaled[number - kEpilogues - std::size(kProductTypes)], {}, true, grouping};
  }
  if (number >= kEpilogues) return {kProductTypes[number - kEpilogues], {}, false, grouping};
  Random random(seed * kEpilogues + number);
  return {random.one_of(kFloats),
          {.has_alpha = (number & 1) != 0,
           .has_beta = (number & 2) != 0,
           .has_bias = (number & 4) != 0,
           .has_residual = (number & 8) != 0,
           .activation = kActivations[number >> 4]},
          false,
          grouping};
}

bool is_prime(std::int64_t value) {
  for (std::int64_t d = 2; d * d <= value; ++d) {
    if (value % d == 0) return false;
  }
  return value >= 2;
}

std::int64_t draw_extent(Random& random) {
  constexpr std::int64_t kTiles[] = {16, 32, 64, 128, 192, 256};
  const std::int64_t kind = random.within(0, 99);
  std::int64_t out = random.within(1, kRandomExtentMax);
  if (kind < 6) {
    out = random.within(1, 2);
  } else if (kind < 36) {
    out = random.within(1, 40);
  } else if (kind < 51) {
    out = std::max<std::int64_t>(out, 2);
    while (!is_prime(out)) --out;
  } else if (kind < 71) {
    out = (std::int64_t{1} << random.within(0, 10)) + random.within(-1, 1);
  } else if (kind < 91) {
    const std::int64_t tile = random.one_of(kTiles);
    out = tile * random.within(1, 1280 / tile) + random.within(-1, 1);
  }
  return std::clamp<std::int64_t>(out, 1, kRandomExtentMax);
}

// Of so many matrices: gaps between rows and between them, in steps of so many elements.
Spacing draw_spacing(Random& random, std::int64_t rows, std::int64_t cols, std::int64_t step,
                     std::int64_t count) {
  Spacing out;
  if (random.percent(35)) out.row = (cols + step - 1) / step * step + step * random.within(0, 5);
  if (count == 1 || !random.percent(50)) return out;
  out.batch = rows * std::max(out.row, cols) + step * random.within(0, 40);
  return out;
}

// With `aligned`, rows begin at multiples of 16 bytes.
void draw_layout(Random& random, bool aligned, Problem& problem) {
  problem.a_along_k = problem.block_scales || !random.percent(10);
  problem.b_along_k = problem.block_scales || !random.percent(10);
  const auto step_of = [&](DType dtype) {
    return aligned ? std::int64_t{kUsualAlignment / size_bytes(dtype)} : std::int64_t{1};
  };
  const std::int64_t a_step = step_of(problem.a);
  const std::int64_t c_step = step_of(problem.c);
  const auto round_up = [](std::int64_t& extent, std::int64_t step) {
    extent = (extent + step - 1) / step * step;
  };
  round_up(problem.n, problem.b_along_k ? c_step : std::max(a_step, c_step));
  if (problem.a_along_k || problem.b_along_k) round_up(problem.k, a_step);
  if (!problem.a_along_k) round_up(problem.m, a_step);
  const auto draw = [&](std::int64_t rows, std::int64_t cols, std::int64_t step) {
    return draw_spacing(random, rows, cols, step, problem.batch);
  };
  const auto draw_b = [&](std::int64_t rows, std::int64_t cols) {
    return draw_spacing(random, rows, cols, a_step, std::max(problem.batch, problem.groups));
  };
  problem.a_spacing =
      problem.a_along_k ? draw(problem.m, problem.k, a_step) : draw(problem.k, problem.m, a_step);
  problem.b_spacing =
      problem.b_along_k ? draw_b(problem.n, problem.k) : draw_b(problem.k, problem.n);
  problem.c_spacing = draw(problem.m, problem.n, c_step);
  if (problem.epilogue.has_residual) problem.residual_spacing = draw(problem.m, problem.n, c_step);
  if (aligned) return;
  // Addresses of whole elements.
  int least = std::max(size_bytes(problem.a), size_bytes(problem.c));
  if (problem.block_scales) least = std::max(least, 4);
  problem.alignment = std::max(least, kUsualAlignment >> random.within(0, 4));
}

void draw_groups(Random& random, Problem& problem, gemm::Grouping grouping) {
  problem.groups = random.within(1, 6);
  problem.grouping = grouping;
  if (grouping != gemm::Grouping::kApart) return;
  const std::int64_t tiles = kRandomExtentMax / gemm::kGroupRows / problem.groups;
  problem.m = gemm::kGroupRows * problem.groups * random.within(1, tiles);
}

void draw_shape(Random& random, Problem& problem, gemm::Grouping grouping) {
  problem.m = draw_extent(random);
  problem.n = draw_extent(random);
  problem.k = draw_extent(random);
  const std::int64_t kind = random.within(0, 99);
  if (kind < 25) {
    problem.batch = random.within(2, 5);
  } else if (kind < 50) {
    draw_groups(random, problem, grouping);
  }
  if (problem.block_scales && random.percent(90)) problem.m = (problem.m + 3) / 4 * 4;
  while (problem.m * problem.n * problem.k * problem.batch > kWorkMax) problem.k /= 2;
}

// --- text

struct Number {
  std::string_view name;
  std::int64_t* value;
};

// The numbers of a problem in the order of its text; those that are 0 are left out.
std::array<Number, 12> numbers_of(RandomProblem& of) {
  Problem& p = of.problem;
  return {{{"m", &p.m},
           {"n", &p.n},
           {"k", &p.k},
           {"groups", &p.groups},
           {"lda", &p.a_spacing.row},
           {"ldb", &p.b_spacing.row},
           {"ldc", &p.c_spacing.row},
           {"ldr", &p.residual_spacing.row},
           {"stride_a", &p.a_spacing.batch},
           {"stride_b", &p.b_spacing.batch},
           {"stride_c", &p.c_spacing.batch},
           {"stride_r", &p.residual_spacing.batch}}};
}

struct Word {
  std::string_view name;
  bool* value;
  bool set;  // what the word says
};

std::array<Word, 6> words_of(RandomProblem& of) {
  Problem& p = of.problem;
  return {{{"a_along_m", &p.a_along_k, false},
           {"b_along_n", &p.b_along_k, false},
           {"scales", &p.block_scales, true},
           {"bias", &p.epilogue.has_bias, true},
           {"residual", &p.epilogue.has_residual, true},
           {"invariant", &p.batch_invariant, true}}};
}

template <class T>
bool take_number(std::string_view text, T& out) {
  const auto value = parse_number<T>(text);
  if (value) out = *value;
  return value.has_value();
}

bool parse_types(std::string_view text, Problem& problem) {
  const std::size_t star = text.find('*');
  const std::size_t arrow = text.find("->");
  if (star == std::string_view::npos || arrow == std::string_view::npos || arrow < star) {
    return false;
  }
  const auto a = dtype_from_name(text.substr(0, star));
  const auto b = dtype_from_name(text.substr(star + 1, arrow - star - 1));
  const auto c = dtype_from_name(text.substr(arrow + 2));
  if (!a || !b || !c) return false;
  problem.a = *a;
  problem.b = *b;
  problem.c = *c;
  return true;
}

bool parse_factor(std::string_view value, bool& has, double& factor) {
  has = true;
  return take_number(value, factor);
}

bool parse_value(std::string_view name, std::string_view value, RandomProblem& out) {
  if (name == "alpha") return parse_factor(value, out.problem.epilogue.has_alpha, out.alpha);
  if (name == "beta") return parse_factor(value, out.problem.epilogue.has_beta, out.beta);
  if (name == "seed") return take_number(value, out.seed);
  if (name == "align") return take_number(value, out.problem.alignment);
  if (name == "batch") return take_number(value, out.problem.batch);
  if (name == "first") return take_number(value, out.first_rows);
  for (const Number& number : numbers_of(out)) {
    if (number.name == name) return take_number(value, *number.value);
  }
  return false;
}

bool parse_word(std::string_view word, RandomProblem& out) {
  for (const Activation activation : kActivations) {
    if (activation == Activation::kNone || word != name(activation)) continue;
    out.problem.epilogue.activation = activation;
    return true;
  }
  for (const auto& [name, grouping] : kGroupingWords) {
    if (word != name) continue;
    out.problem.grouping = grouping;
    return true;
  }
  for (const Word& each : words_of(out)) {
    if (each.name != word) continue;
    *each.value = each.set;
    return true;
  }
  return false;
}

}  // namespace

RandomProblem draw_problem(std::uint64_t seed, std::uint64_t number) {
  Random random(Random(seed).bits() + number);
  RandomProblem out;
  out.seed = random.bits() >> 32;
  const ProblemForm form = form_of(seed, static_cast<std::uint64_t>(random.within(0, kForms - 1)));
  Problem& problem = out.problem;
  problem.a = problem.b = form.types.ab;
  problem.c = form.types.c;
  problem.epilogue = form.epilogue;
  problem.block_scales = form.block_scales;
  problem.batch_invariant = random.percent(20);
  if (form.epilogue.has_alpha) out.alpha = random.one_of(kFactors);
  if (form.epilogue.has_beta) out.beta = random.one_of(kFactors);
  draw_shape(random, problem, form.grouping);
  draw_layout(random, random.percent(60), problem);
  // Fewer rows are less room for each group: another problem.
  if (problem.grouping == gemm::Grouping::kApart) return out;
  if (!problem.batch_invariant || problem.m < 2) return out;
  out.first_rows = random.within(1, problem.m - 1);
  if (problem.block_scales) out.first_rows = out.first_rows / 4 * 4;
  return out;
}

std::string types_text(const Problem& problem) {
  return format("{}*{}->{}", name(problem.a), name(problem.b), name(problem.c));
}

std::string text(const RandomProblem& problem) {
  RandomProblem copy = problem;
  const Problem& p = problem.problem;
  std::string out = types_text(p);
  for (const Number& number : numbers_of(copy)) {
    if (*number.value != 0) out += format(" {}={}", number.name, *number.value);
  }
  if (p.batch != 1) out += format(" batch={}", p.batch);
  if (p.alignment != kUsualAlignment) out += format(" align={}", p.alignment);
  if (p.epilogue.has_alpha) out += format(" alpha={}", problem.alpha);
  if (p.epilogue.has_beta) out += format(" beta={}", problem.beta);
  for (const Word& word : words_of(copy)) {
    if (*word.value == word.set) out += format(" {}", word.name);
  }
  for (const auto& [word, grouping] : kGroupingWords) {
    if (p.grouping == grouping) out += format(" {}", word);
  }
  if (p.epilogue.activation != Activation::kNone) {
    out += format(" {}", name(p.epilogue.activation));
  }
  if (problem.first_rows != 0) out += format(" first={}", problem.first_rows);
  return out + format(" seed={}", problem.seed);
}

std::optional<RandomProblem> parse_problem(std::string_view text) {
  RandomProblem out;
  bool typed = false;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t equal = word.find('=');
    bool fits = false;
    if (!typed) {
      fits = typed = parse_types(word, out.problem);
    } else if (equal == std::string_view::npos) {
      fits = parse_word(word, out);
    } else {
      fits = parse_value(word.substr(0, equal), word.substr(equal + 1), out);
    }
    if (!fits) return std::nullopt;
  }
  const Problem& p = out.problem;
  if (!typed || p.m < 1 || p.n < 1 || p.k < 1 || !gemm::normalised(p)) return std::nullopt;
  if (out.first_rows < 0 || out.first_rows >= p.m) return std::nullopt;
  return out;
}

Problem with_first_rows(const RandomProblem& problem) {
  Problem out = gemm::normalised(problem.problem).value();
  out.m = problem.first_rows;
  return out;
}

}  // namespace kiln::measure
