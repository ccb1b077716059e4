// Register tiles as values: reductions, scans and changes of layout.
//
// A reduction goes as the device code does: each lane puts its own values together, then lanes
// exchange what they have by `shfl.sync.bfly`, one power of two after the other, so that every lane
// ends with the result, rounded in that order. So does a scan: a lane's run of a line first, then the
// runs of the lanes before it, then the blocks before.
#include <algorithm>
#include <array>
#include <limits>

#include "ir/functions.h"
#include "sim/machine.h"
#include "sim/scalar.h"
#include "support/check.h"

namespace kiln::sim {

namespace {

// What a lane has of one row or column.
struct Part {
  double value = 0;
  std::int32_t index = std::numeric_limits<std::int32_t>::max();
};

// The largest element that a register can hold.
double highest(DType dtype) {
  if (is_float(dtype)) return std::numeric_limits<double>::infinity();
  constexpr double kBelow63Bits = 0x1p63 - 1024;  // the largest of a double that an s64 is
  return std::min(info(dtype).max, kBelow63Bits);
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return info(dtype).kind == NumberKind::kSigned ? -highest(dtype) - 1 : 0;
}

// What changes nothing. A warp may have nothing else of a padded tile.
Part first_part(ir::ReduceKind kind, DType dtype) {
  switch (kind) {
    case ir::ReduceKind::kSum: return {0};
    case ir::ReduceKind::kProduct: return {1};
    case ir::ReduceKind::kMin: return {highest(dtype)};
    case ir::ReduceKind::kMax:
    case ir::ReduceKind::kArgMax: return {lowest(dtype)};
  }
  KILN_UNREACHABLE("no reduction");
}

double in_type(DType dtype, double value) {
  if (is_float(dtype)) return round_to(dtype, value);
  return static_cast<double>(wrap(dtype, static_cast<std::int64_t>(value)));
}

// Integers wrap; a product of two may have more bits than a double.
double product_in(DType dtype, double a, double b) {
  if (is_float(dtype)) return round_to(dtype, a * b);
  const auto bits = [](double x) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  };
  return static_cast<double>(wrap(dtype, static_cast<std::int64_t>(bits(a) * bits(b))));
}

Part joined(ir::ReduceKind kind, DType dtype, const Part& a, const Part& b) {
  switch (kind) {
    case ir::ReduceKind::kSum: return {in_type(dtype, a.value + b.value)};
    case ir::ReduceKind::kProduct: return {product_in(dtype, a.value, b.value)};
    case ir::ReduceKind::kMax: return {ir::larger_of(a.value, b.value)};
    case ir::ReduceKind::kMin: return {ir::smaller_of(a.value, b.value)};
    case ir::ReduceKind::kArgMax: {
      const bool second = a.value < b.value || (a.value == b.value && b.index < a.index);
      return second ? b : a;
    }
  }
  KILN_UNREACHABLE("no reduction");
}

using Parts = std::array<Part, kLanes>;

// Of nothing but what is no number there is no largest: 0.
std::int32_t place_of(const Part& part) { return part.index == Part{}.index ? 0 : part.index; }

// All lanes' parts of one value of the target.
Parts own_parts(const Warp& warp, const FragmentPlan& source, const ReducePlan& plan,
                std::uint32_t target, DType dtype) {
  Parts parts;
  parts.fill(first_part(plan.kind, dtype));
  const std::uint32_t first_lane = warp.index * kLanes % plan.lanes;
  for (std::uint32_t value = 0; value < source.values; ++value) {
    if (plan.target_of[value] != target) continue;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t at = std::size_t{value} * plan.lanes + first_lane + lane;
      if (!plan.outside.empty() && plan.outside[at]) continue;
      Part own{warp.registers[source.offset + lane * source.values + value]};
      if (!plan.index.empty()) own.index = plan.index[at];
      parts[lane] = joined(plan.kind, dtype, parts[lane], own);
    }
  }
  return parts;
}

// All lanes make a tile of another one.
void begin(Machine& machine, Warp& warp, std::uint32_t source, std::uint32_t target) {
  check_whole(machine, warp);
  check_filled(machine, warp, source);
  check_idle(machine, warp, source);
  check_idle(machine, warp, target);
}

}  // namespace

void execute_reduce(Machine& machine, Warp& warp, const ReducePlan& plan) {
  begin(machine, warp, plan.source, plan.target);
  const FragmentPlan& source = machine.program.fragments[plan.source];
  const FragmentPlan& target = machine.program.fragments[plan.target];
  const bool places = plan.kind == ir::ReduceKind::kArgMax;
  const DType dtype = places ? source.dtype : target.dtype;
  for (std::uint32_t value = 0; value < target.values; ++value) {
    Parts parts = own_parts(warp, source, plan, value, dtype);
    for (const std::uint32_t bit : plan.exchanges) {
      const Parts before = parts;
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        parts[lane] = joined(plan.kind, dtype, before[lane], before[lane ^ bit]);
      }
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      warp.registers[target.offset + lane * target.values + value] =
          places ? place_of(parts[lane]) : parts[lane].value;
    }
  }
  count_issues(machine, plan);
  warp.fragment_set[plan.target] = true;
  warp.unfenced[plan.target] = true;
}

// Where only counts matter no tile has values: then all votes but one in kVotesAgainst are against, so that loops end.
void execute_vote(Machine& machine, Warp& warp, const VotePlan& plan) {
  constexpr std::uint64_t kVotesAgainst = 1009;  // a prime: it comes to every warp
  check_whole(machine, warp);
  bool found = false;
  if (machine.counting != nullptr) {
    found = ++machine.votes % kVotesAgainst == 0;
  } else {
    check_filled(machine, warp, plan.fragment);
    check_idle(machine, warp, plan.fragment);
    const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
    const auto first = warp.registers.begin() + static_cast<std::ptrdiff_t>(fragment.offset);
    found = std::any_of(first, first + static_cast<std::ptrdiff_t>(kLanes * fragment.values),
                        [](double value) { return value != 0; });
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    warp.value(plan.result, lane).i = found ? 1 : 0;
  }
}

namespace {

using Sums = std::array<double, kLanes>;

// Of all lanes: what stands in a block before the lane's own run, and the sum of the whole block,
// from the sums of the runs in `all`.
Sums sums_before(const ScanPlan& plan, DType dtype, Sums& all) {
  Sums before{};
  for (const std::uint32_t bit : plan.exchanges) {
    const Sums other = all;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const double there = other[lane ^ bit];
      if ((lane & bit) != 0) before[lane] = in_type(dtype, there + before[lane]);
      all[lane] = in_type(dtype, all[lane] + there);
    }
  }
  return before;
}

}  // namespace

void execute_scan(Machine& machine, Warp& warp, const ScanPlan& plan) {
  begin(machine, warp, plan.source, plan.target);
  const FragmentPlan& source = machine.program.fragments[plan.source];
  const FragmentPlan& target = machine.program.fragments[plan.target];
  const DType dtype = target.dtype;
  Sums carry{};
  for (std::size_t first = 0; first < plan.values.size(); first += plan.run) {
    if (first % (std::size_t{plan.run} * plan.blocks) == 0) carry = {};  // another line
    Sums all{};
    for (std::size_t k = first; k < first + plan.run; ++k) {
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const double own = warp.registers[source.offset + lane * source.values + plan.values[k]];
        all[lane] = in_type(dtype, k == first ? own : all[lane] + own);
        warp.registers[target.offset + lane * target.values + plan.values[k]] = all[lane];
      }
    }
    const Sums before = sums_before(plan, dtype, all);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const double base = in_type(dtype, carry[lane] + before[lane]);
      for (std::size_t k = first; k < first + plan.run; ++k) {
        double& sum = warp.registers[target.offset + lane * target.values + plan.values[k]];
        sum = in_type(dtype, base + sum);
      }
      carry[lane] = in_type(dtype, carry[lane] + all[lane]);
    }
  }
  count_issues(machine, plan);
  warp.fragment_set[plan.target] = true;
  warp.unfenced[plan.target] = true;
}

void execute_convert(Machine& machine, Warp& warp, const ConvertPlan& plan) {
  begin(machine, warp, plan.source, plan.target);
  const FragmentPlan& source = machine.program.fragments[plan.source];
  const FragmentPlan& target = machine.program.fragments[plan.target];
  const auto source_of = [&](std::uint32_t lane, std::uint32_t value) {
    if (!plan.source_of.empty()) return lane * source.values + plan.source_of[value];
    const auto at = plan.quads.source_of(static_cast<int>(lane), static_cast<int>(value));
    return static_cast<std::uint32_t>(at.lane) * source.values +
           static_cast<std::uint32_t>(at.value);
  };
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    for (std::uint32_t value = 0; value < target.values; ++value) {
      const double held = warp.registers[source.offset + source_of(lane, value)];
      warp.registers[target.offset + lane * target.values + value] =
          source.dtype == target.dtype ? held : round_to(target.dtype, held);
    }
  }
  count_issues(machine, plan);
  warp.fragment_set[plan.target] = true;
  warp.unfenced[plan.target] = true;
}

void execute_recast(Machine& machine, Warp& warp, const RecastPlan& plan) {
  begin(machine, warp, plan.source, plan.target);
  const FragmentPlan& source = machine.program.fragments[plan.source];
  const FragmentPlan& target = machine.program.fragments[plan.target];
  using Bytes = std::array<std::byte, sizeof(double)>;
  std::vector<Bytes> wide(plan.splits ? source.values : target.values);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const double* from = &warp.registers[source.offset + lane * source.values];
    double* to = &warp.registers[target.offset + lane * target.values];
    for (std::size_t v = 0; v < wide.size() && plan.splits; ++v) {
      store_element(source.dtype, wide[v].data(), 0, from[v]);
    }
    for (std::size_t v = 0; v < plan.parts.size(); ++v) {
      Bytes& bytes = wide[static_cast<std::size_t>(plan.parts[v].value)];
      const auto part = static_cast<std::size_t>(plan.parts[v].part);
      if (plan.splits) {
        to[v] = load_element(target.dtype, bytes.data(), part);
      } else {
        store_element(source.dtype, bytes.data(), part, from[v]);
      }
    }
    for (std::size_t v = 0; v < wide.size() && !plan.splits; ++v) {
      to[v] = load_element(target.dtype, wide[v].data(), 0);
    }
  }
  warp.fragment_set[plan.target] = true;
  warp.unfenced[plan.target] = true;
}

}  // namespace kiln::sim
