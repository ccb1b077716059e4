#include "measure/random_run.h"

#include <bit>
#include <cmath>

#include "ir/functions.h"
#include "support/format.h"

namespace kiln::measure {

namespace {

using bench::Filling;
using bench::Matrices;
using gemm::Problem;
using gemm::Spacing;

constexpr double kF32Roundoff = 0x1p-24;

// Slots of reports: those of the checks of results, of each stage, and of what must be untouched.
constexpr std::size_t kSums = 0;
constexpr std::size_t kExactSums = 1;
constexpr std::size_t kAgain = 2;
constexpr std::size_t kFirstRows = 3;
constexpr std::size_t kZones = 4;
constexpr const char* kZoneNames[] = {"C",
                                      "C",
                                      "A",
                                      "B",
                                      "the bias",
                                      "the residual",
                                      "A's scales",
                                      "B's scales",
                                      "group_of_tile",
                                      "rows_of_group",
                                      "the workspace"};

std::int64_t group_tiles(const Problem& problem) {
  return (problem.m + gemm::kGroupRows - 1) / gemm::kGroupRows;
}

// So many tiles of rows one group may have; all of them together are a few more than there are.
std::int64_t tiles_of_group(const Problem& problem) {
  if (problem.groups == 0) return 0;
  return std::max<std::int64_t>(1, 2 * group_tiles(problem) / problem.groups);
}

Matrices matrices(DType dtype, std::int64_t rows, std::int64_t columns) {
  return {.data = nullptr,
          .format = bench_format(dtype),
          .rows = rows,
          .columns = columns,
          .row_step = columns,
          .count = 1,
          .matrix_step = rows * columns};
}

Matrices matrices(DType dtype, std::int64_t rows, std::int64_t columns, const Spacing& spacing) {
  Matrices out = matrices(dtype, rows, columns);
  out.row_step = spacing.row;
  out.matrix_step = spacing.batch;
  return out;
}

Matrices times(std::int64_t count, Matrices one) {
  one.count = count;
  return one;
}

Matrices nothing() { return matrices(DType::kF32, 0, 0); }

bench::Factor factor(const Matrices& data, bool along_k, const Matrices& scales) {
  const bool scaled = element_count(scales) != 0;
  return {.data = data.data,
          .format = data.format,
          .outer_step = along_k ? data.row_step : 1,
          .k_step = along_k ? 1 : data.row_step,
          .scales = scaled ? static_cast<const float*>(scales.data) : nullptr,
          .scale_outer = 1,
          .scale_k = gemm::kScaleBlock,
          .scale_outer_step = 1,
          .scale_k_step = scales.row_step};
}

bench::Activation activation_of(gemm::Activation activation) {
  switch (activation) {
    case gemm::Activation::kNone: return bench::Activation::kNone;
    case gemm::Activation::kRelu: return bench::Activation::kRelu;
    case gemm::Activation::kGelu: return bench::Activation::kGelu;
    case gemm::Activation::kSilu: return bench::Activation::kSilu;
  }
  return bench::Activation::kNone;
}

double splits_of(const gemm::Choice& choice) {
  for (const auto& [name, value] : choice.defines) {
    if (name == "SPLITS") return std::atof(value.c_str());
  }
  return 1;
}

std::string place_text(const Matrices& all, std::int64_t number) {
  const std::int64_t row = number / all.columns;
  const std::string inside = format("{}, {}", row % all.rows, number % all.columns);
  return all.count == 1 ? format("c[{}]", inside) : format("c[{}, {}]", row / all.rows, inside);
}

// What a report of elements says that is wrong; `wanted` elements were to be seen.
void add_elements(const bench::Report& report, const Matrices& c, std::int64_t wanted,
                  std::string_view what, std::vector<std::string>& faults) {
  const auto seen = static_cast<std::int64_t>(report.elements);
  if (seen != wanted) {
    faults.push_back(format("{}: the check saw {} of {} elements", what, seen, wanted));
  }
  if (report.outside == 0) return;
  faults.push_back(
      format("{}: {} of {} elements, the first is {}: expected {}, allowed error "
             "{:.3g}, got {}",
             what, report.outside, seen, place_text(c, static_cast<std::int64_t>(report.first)),
             report.expected, report.bound, report.actual));
}

}  // namespace

double exact_factor(double factor) {
  return std::copysign(std::exp2(std::round(std::log2(std::fabs(factor)))), factor);
}

bench::Bound random_bound(const Problem& problem, const gemm::Choice& choice,
                          const reference::EinsumNumerics& numerics) {
  if (!is_float(problem.c)) return exact_bound(problem);
  bench::Bound out = bench_bound(numerics, problem);
  double steps = splits_of(choice) - 1;
  // Roundings by block scales: the product of both factors, its product with the sum of a block,
  // and the addition of that.
  if (problem.block_scales) steps += 2 + static_cast<double>(gemm::scale_blocks(problem.k));
  out.relative += steps * kF32Roundoff;
  return out;
}

Result<void> RandomRun::place(const RandomCase& one) {
  const Problem& p = one.plan.problem();
  const std::int64_t a_rows = p.a_along_k ? p.m : p.k;
  const std::int64_t b_rows = p.b_along_k ? p.n : p.k;
  const Matrices c = times(p.batch, matrices(p.c, p.m, p.n, p.c_spacing));
  const Matrices a_scale = matrices(DType::kF32, gemm::scale_blocks(p.k), p.m);
  const Matrices b_scale = matrices(DType::kF32, gemm::scale_blocks(p.n), gemm::scale_blocks(p.k));
  const std::int64_t b_count = std::max(p.batch, p.groups);
  const Matrices bias = matrices(p.c, std::max<std::int64_t>(1, p.groups), p.n);
  const bool by_tile = p.groups > 0 && p.grouping == gemm::Grouping::kByTile;
  const Matrices group_of_tile = matrices(DType::kS32, 1, group_tiles(p));
  const Matrices rows_of_group = matrices(DType::kS32, 1, p.groups);
  const Matrices residual = times(p.batch, matrices(p.c, p.m, p.n, p.residual_spacing));
  const bool scaled_first = p.block_scales && one.first != nullptr;
  const std::size_t bytes =
      std::max(one.plan.workspace_bytes(), one.first == nullptr ? 0 : one.first->workspace_bytes());
  const auto words = static_cast<std::int64_t>((bytes + 3) / 4);
  const auto if_there = [](bool there, const Matrices& all) { return there ? all : nothing(); };
  struct Wanted {
    Operand& operand;
    Matrices elements;
    int alignment;
  };
  const Wanted all[] = {
      {slots_.a, times(p.batch, matrices(p.a, a_rows, p.a_along_k ? p.k : p.m, p.a_spacing)),
       p.alignment},
      {slots_.b, times(b_count, matrices(p.b, b_rows, p.b_along_k ? p.k : p.n, p.b_spacing)),
       p.alignment},
      {slots_.c, c, p.alignment},
      {slots_.again, c, p.alignment},
      {slots_.before, if_there(p.epilogue.has_beta || p.groups > 0, c), p.alignment},
      {slots_.bias, if_there(p.epilogue.has_bias, bias), p.alignment},
      {slots_.residual, if_there(p.epilogue.has_residual, residual), p.alignment},
      {slots_.a_scale, if_there(p.block_scales, times(p.batch, a_scale)), p.alignment},
      {slots_.b_scale, if_there(p.block_scales, times(b_count, b_scale)), p.alignment},
      {slots_.group_of_tile, if_there(by_tile, group_of_tile), size_bytes(DType::kS32)},
      {slots_.rows_of_group, if_there(p.groups > 0 && !by_tile, rows_of_group),
       size_bytes(DType::kS32)},
      {slots_.first_scale,
       if_there(scaled_first, times(p.batch, matrices(DType::kF32, gemm::scale_blocks(p.k),
                                                      one.problem.first_rows))),
       p.alignment},
      {slots_.workspace, matrices(DType::kF32, words == 0 ? 0 : 1, words),
       static_cast<int>(gemm::kWorkspaceUnit)}};
  for (const Wanted& each : all) {
    if (auto placed = device_.place(each.operand, each.elements, each.alignment); !placed) {
      return placed;
    }
    if (auto poisoned = device_.poison(each.operand); !poisoned) return poisoned;
  }
  return {};
}

// C as it is before a start: read when there is beta, kept in places with groups, else poison.
Result<void> RandomRun::fill_c(const RandomCase& one, Stage stage, Operand& c) {
  if (auto poisoned = device_.poison(c); !poisoned) return poisoned;
  const Problem& p = one.problem.problem;
  if (!p.epilogue.has_beta && p.groups == 0) return {};
  const Filling filling = stage == Stage::kExact ? Filling::kIntegers : Filling::kNormal;
  return device_.fill(c, {.filling = filling, .seed = one.problem.seed + 3});
}

// New values for everything that is read; gaps keep their poison.
Result<void> RandomRun::fill(const RandomCase& one, Stage stage) {
  const bool exact = stage == Stage::kExact;
  const Filling filling = exact ? Filling::kIntegers : Filling::kNormal;
  const Filling scales = exact ? Filling::kExactScales : Filling::kScales;
  const Problem& p = one.plan.problem();
  const float density = integer_density(p.k);
  const auto groups = static_cast<float>(p.groups);
  const auto tiles = static_cast<float>(tiles_of_group(p));
  struct Filled {
    const Operand& operand;
    Filling filling;
    float extent;
  };
  const Filled all[] = {{slots_.a, filling, density},
                        {slots_.b, filling, density},
                        {slots_.bias, filling, 0},
                        {slots_.residual, filling, 0},
                        {slots_.a_scale, scales, 0},
                        {slots_.b_scale, scales, 0},
                        {slots_.group_of_tile, Filling::kGroups, groups},
                        {slots_.rows_of_group, Filling::kGroupRows, tiles}};
  std::uint64_t seed = (one.problem.seed << 8) + (exact ? 128 : 64);
  for (const Filled& each : all) {
    auto filled = device_.fill(each.operand,
                               {.filling = each.filling, .extent = each.extent, .seed = ++seed});
    if (!filled) return filled;
  }
  if (auto filled = fill_c(one, stage, slots_.before); !filled) return filled;
  return fill_c(one, stage, slots_.c);
}

gemm::Operands RandomRun::operands(const RandomCase& one, Stage stage, const Operand& c) const {
  const auto factor = [&](double value) {
    return stage == Stage::kExact ? exact_factor(value) : value;
  };
  const gemm::Epilogue& epilogue = one.problem.problem.epilogue;
  return {.a = slots_.a.address(),
          .b = slots_.b.address(),
          .c = c.address(),
          .bias = slots_.bias.address(),
          .residual = slots_.residual.address(),
          .a_scale = slots_.a_scale.address(),
          .b_scale = slots_.b_scale.address(),
          .group_of_tile = slots_.group_of_tile.address(),
          .rows_of_group = slots_.rows_of_group.address(),
          .alpha = epilogue.has_alpha ? factor(one.problem.alpha) : 1,
          .beta = epilogue.has_beta ? factor(one.problem.beta) : 0};
}

Result<void> RandomRun::start(const gemm::Plan& plan, const RandomCase& one, Stage stage,
                              const Operand& c) {
  if (auto poisoned = device_.poison(slots_.workspace); !poisoned) return poisoned;
  gemm::Operands given = operands(one, stage, c);
  if (&plan == one.first && slots_.first_scale.bytes != 0) {
    given.a_scale = slots_.first_scale.address();
  }
  return plan.start(given, slots_.workspace.address(), nullptr);
}

// Computes the problem a second time, into other memory: the same bits are wanted.
Result<void> RandomRun::run_twice(const RandomCase& one) {
  if (auto filled = fill_c(one, Stage::kNormal, slots_.again); !filled) return filled;
  auto started = start(one.plan, one, Stage::kNormal, slots_.again);
  if (!started) return started;
  return device_.check_same(kAgain, slots_.again.elements, slots_.c.elements);
}

Result<void> RandomRun::run_first_rows(const RandomCase& one) {
  if (one.first == nullptr) return {};
  if (slots_.first_scale.bytes != 0) {
    auto copied = device_.copy(slots_.a_scale.elements, slots_.first_scale.elements);
    if (!copied) return copied;
  }
  if (auto filled = fill_c(one, Stage::kNormal, slots_.again); !filled) return filled;
  auto started = start(*one.first, one, Stage::kNormal, slots_.again);
  if (!started) return started;
  Matrices rows = slots_.again.elements;
  rows.rows = one.problem.first_rows;
  return device_.check_same(kFirstRows, rows, slots_.c.elements);
}

bench::Problem RandomRun::to_check(const RandomCase& one, Stage stage) const {
  const Problem& p = one.plan.problem();
  const bool exact = stage == Stage::kExact;
  const gemm::Operands given = operands(one, stage, slots_.c);
  bench::Factor b = factor(slots_.b.elements, p.b_along_k, slots_.b_scale.elements);
  b.scale_outer = gemm::kScaleBlock;
  b.scale_outer_step = slots_.b_scale.elements.row_step;
  b.scale_k_step = 1;
  return {.product = {.a = factor(slots_.a.elements, p.a_along_k, slots_.a_scale.elements),
                      .b = b,
                      .depth = p.k,
                      .scale = 1,
                      .bound = exact ? exact_bound(p)
                                     : random_bound(p, one.plan.choice(), one.numerics)},
          .a_step = p.a_spacing.batch,
          .b_step = p.b_spacing.batch,
          .a_scale_step = slots_.a_scale.elements.matrix_step,
          .b_scale_step = slots_.b_scale.elements.matrix_step,
          .c = slots_.c.elements,
          .epilogue = {.alpha = given.alpha,
                       .beta = given.beta,
                       .before = p.epilogue.has_beta ? slots_.before.elements : nothing(),
                       .bias = slots_.bias.elements,
                       .residual = slots_.residual.elements,
                       .activation = activation_of(p.epilogue.activation),
                       .roundoff = exact ? 0 : kF32Roundoff,
                       .function_roundoff = kF32Roundoff,
                       .smallest = smallest(DType::kF32),
                       .root_half = round_to(DType::kF32, std::sqrt(0.5)),
                       .function_ulps = ir::kFunctionUlps},
          .groups = {.of_tile = static_cast<const int*>(slots_.group_of_tile.elements.data),
                     .tile_rows = gemm::kGroupRows,
                     .count = p.groups,
                     .kept = slots_.before.elements,
                     .rows = static_cast<const int*>(slots_.rows_of_group.elements.data),
                     .room = p.grouping == gemm::Grouping::kApart ? p.m / p.groups : 0}};
}

Result<void> RandomRun::run_stage(const RandomCase& one, Stage stage) {
  if (auto filled = fill(one, stage); !filled) return filled;
  if (auto started = start(one.plan, one, stage, slots_.c); !started) return started;
  const std::size_t report = stage == Stage::kExact ? kExactSums : kSums;
  return device_.check(report, to_check(one, stage));
}

Result<void> RandomRun::check_zones() {
  const Operand* const all[] = {&slots_.c,
                                &slots_.again,
                                &slots_.a,
                                &slots_.b,
                                &slots_.bias,
                                &slots_.residual,
                                &slots_.a_scale,
                                &slots_.b_scale,
                                &slots_.group_of_tile,
                                &slots_.rows_of_group,
                                &slots_.workspace};
  static_assert(std::size(all) == std::size(kZoneNames));
  for (std::size_t i = 0; i < std::size(all); ++i) {
    if (auto checked = device_.check_untouched(kZones + i, *all[i]); !checked) return checked;
  }
  return {};
}

Result<std::vector<std::string>> RandomRun::check(const RandomCase& one) {
  const auto run = [&]() -> Result<void> {
    if (auto cleared = device_.clear_reports(); !cleared) return cleared;
    if (auto placed = place(one); !placed) return placed;
    if (auto done = run_stage(one, Stage::kNormal); !done) return done;
    if (auto done = run_twice(one); !done) return done;
    if (auto done = run_first_rows(one); !done) return done;
    // What the starts so far wrote outside: the next stage poisons C again.
    if (auto done = check_zones(); !done) return done;
    return run_stage(one, Stage::kExact);
  };
  if (auto done = run(); !done) return Unexpected{done.error()};
  const auto reports = device_.reports();
  if (!reports) return Unexpected{reports.error()};
  std::vector<std::string> faults;
  const Matrices& c = slots_.c.elements;
  const std::int64_t elements = element_count(c);
  add_elements((*reports)[kSums], c, elements, "normal values", faults);
  add_elements((*reports)[kExactSums], c, elements, "integers", faults);
  add_elements((*reports)[kAgain], c, elements, "other bits in the second run", faults);
  if (one.first != nullptr) {
    Matrices rows = c;
    rows.rows = one.problem.first_rows;
    add_elements((*reports)[kFirstRows], rows, element_count(rows), "other bits in fewer rows",
                 faults);
  }
  for (std::size_t i = 0; i < std::size(kZoneNames); ++i) {
    const bench::Report& report = (*reports)[kZones + i];
    if (report.outside == 0) continue;
    faults.push_back(
        format("{} bytes in or around {} were overwritten", report.outside, kZoneNames[i]));
  }
  return faults;
}

}  // namespace kiln::measure
