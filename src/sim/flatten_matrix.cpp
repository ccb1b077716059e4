#include "sim/flatten.h"

namespace kiln::sim {

namespace {

target::Operand operand_of(ir::Role role) {
  switch (role) {
    case ir::Role::kA: return target::Operand::kA;
    case ir::Role::kB: return target::Operand::kB;
    case ir::Role::kC: return target::Operand::kC;
    case ir::Role::kMetadata: break;
  }
  KILN_UNREACHABLE("metadata fragments have no map yet");
}

}  // namespace

std::uint32_t Flattener::fragment(ir::ValueId value) {
  const std::uint32_t number = fragment_of_[value.index];
  KILN_CHECK(number != InitialisePlan::kNone, "`%{}` has no registers",
             function_.values[value].name);
  return number;
}

target::Fragment Flattener::registers(const FragmentPlan& plan, bool swapped) const {
  const auto rows = static_cast<int>(plan.rows);
  const auto cols = static_cast<int>(plan.cols);
  return target::fragment_layout(*plan.atom, operand_of(plan.role), swapped ? cols : rows,
                                 swapped ? rows : cols);
}

// `swapped`: the view's rows are the map's columns.
void Flattener::plain_places(TilePlan& plan, bool swapped) const {
  const FragmentPlan& fragment = program_.fragments[plan.fragment];
  // A transposed store swaps the view, not the fragment, whose type keeps its own rows and columns.
  const bool accumulator = fragment.role == ir::Role::kC;
  const target::Fragment map = registers(fragment, swapped && !accumulator);
  plan.places.resize(std::size_t{fragment.values} * kLanes);
  for (int value = 0; value < static_cast<int>(fragment.values); ++value) {
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      const target::Element at = element_of(map, lane, value);
      plan.places[static_cast<std::size_t>(value) * kLanes + static_cast<std::size_t>(lane)] =
          swapped ? Place{at.col, at.row} : Place{at.row, at.col};
    }
  }
}

void Flattener::op(const ir::Fill& data) {
  emit_plan(Code::kFill, program_.fills, FillPlan{fragment(data.frag), data.value.index});
}

void Flattener::op(const ir::Load& data) {
  TilePlan plan;
  plan.view = view(data.view);
  plan.fragment = fragment(data.frag);
  plan.guarded = guard_mask(data.guarded);
  plan.run = static_cast<std::uint32_t>(std::max<std::int64_t>(data.element_run, 1));
  plan.instruction = data.instruction;
  if (data.instruction == nullptr) {
    plain_places(plan, data.major == ir::Major::kCol);
  } else {
    plan.interned = tally_.intern(data.instruction->name);
    for (std::size_t i = 0; i + 1 < data.matrices.size(); i += 2) {
      plan.places.push_back({static_cast<std::int32_t>(data.matrices[i]),
                             static_cast<std::int32_t>(data.matrices[i + 1])});
    }
    const auto values = 2 * data.instruction->matrices;
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      for (int value = 0; value < values; ++value) {
        const Index at = data.instruction->result_map(lane, value);
        plan.result.push_back(static_cast<std::uint16_t>(at));
      }
    }
  }
  emit_plan(Code::kLoad, program_.tiles, std::move(plan));
}

void Flattener::op(const ir::Store& data) {
  TilePlan plan;
  plan.view = view(data.view);
  plan.fragment = fragment(data.frag);
  plan.guarded = guard_mask(data.guarded);
  plan.run = static_cast<std::uint32_t>(std::max<std::int64_t>(data.element_run, 1));
  plain_places(plan, data.transposed);
  emit_plan(Code::kStore, program_.tiles, std::move(plan));
}

void Flattener::op(const ir::Mma& data) {
  MmaPlan plan;
  plan.a = fragment(data.a);
  plan.b = fragment(data.b);
  plan.c = fragment(data.c);
  plan.interned = tally_.intern(data.atom->name);
  for (const target::MmaExecutor& executor : program_.executors) {
    if (&executor.mma() == data.atom) plan.executor = &executor;
  }
  if (plan.executor == nullptr) plan.executor = &program_.executors.emplace_back(*data.atom);
  const target::Fragment a = registers(program_.fragments[plan.a], data.a_major == ir::Major::kCol);
  const target::Fragment b = registers(program_.fragments[plan.b], data.b_major == ir::Major::kCol);
  const target::Fragment c = registers(program_.fragments[plan.c], false);
  const auto first = [](const target::Fragment& fragment, std::int64_t row, std::int64_t col) {
    return static_cast<std::uint32_t>(
        first_value(fragment, static_cast<int>(row), static_cast<int>(col)));
  };
  KILN_CHECK(data.repeats.size() == 3, "{} repeats", data.repeats.size());
  for (std::int64_t m = 0; m < data.repeats[0]; ++m) {
    for (std::int64_t n = 0; n < data.repeats[1]; ++n) {
      for (std::int64_t k = 0; k < data.repeats[2]; ++k) {
        plan.steps.push_back({first(a, m, k), first(b, n, k), first(c, m, n)});
      }
    }
  }
  emit_plan(Code::kMma, program_.mmas, std::move(plan));
}

}  // namespace kiln::sim
