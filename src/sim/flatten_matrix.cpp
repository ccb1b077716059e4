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
void Flattener::plain_places(TilePlan& plan, const target::Fragment& map, bool swapped) const {
  plan.lanes = static_cast<std::uint32_t>(map.lanes);
  plan.places.reserve(static_cast<std::size_t>(map.values) * plan.lanes);
  for (int value = 0; value < map.values; ++value) {
    for (int lane = 0; lane < map.lanes; ++lane) {
      const target::Element at = element_of(map, lane, value);
      plan.places.push_back(swapped ? Place{at.col, at.row} : Place{at.row, at.col});
    }
  }
}

// What of the accumulator's registers the store reads.
target::FragmentColumns Flattener::stored_part(const ir::Store& data) const {
  const FragmentPlan& fragment = program_.fragments[fragment_of_[data.frag.index]];
  const auto columns = static_cast<int>(ir::stored_columns(function_, data));
  const auto part =
      target::columns_of(registers(fragment, false), static_cast<int>(data.first_column), columns);
  KILN_CHECK(part.has_value(), "{} columns from {} are no run of registers", columns,
             data.first_column);
  return *part;
}

void Flattener::op(const ir::Fill& data) {
  emit_plan(Code::kFill, program_.fills, FillPlan{fragment(data.frag), data.value.index});
}

void Flattener::load_metadata(const ir::Load& data) {
  MetadataPlan plan;
  plan.view = view(data.view);
  plan.fragment = fragment(data.frag);
  const FragmentPlan& registers = program_.fragments[plan.fragment];
  const target::MetadataLoad load = target::metadata_load(*registers.atom, registers.dtype);
  plan.lanes = static_cast<std::uint32_t>(registers.atom->lanes);
  plan.guarded = guard_mask(data.guarded);
  plan.parts = static_cast<std::uint32_t>(load.parts);
  for (int k = 0; k < static_cast<int>(registers.values); ++k) {
    for (int lane = 0; lane < registers.atom->lanes; ++lane) {
      for (int part = 0; part < load.parts; ++part) {
        const auto index = static_cast<std::int32_t>(load.map(lane, part));
        plan.places.push_back({index % load.rows, index / load.rows + k * load.columns});
      }
    }
  }
  emit_plan(Code::kLoadMetadata, program_.metadata, std::move(plan));
}

// The parts of a load's or a store's plan that are of its matrix instruction.
template <class Move>
void Flattener::matrix_places(TilePlan& plan, const Move& data) {
  plan.interned = tally_.intern(data.instruction->name);
  plan.lanes = static_cast<std::uint32_t>(program_.fragments[plan.fragment].atom->lanes);
  for (std::size_t i = 0; i + 1 < data.matrices.size(); i += 2) {
    plan.places.push_back({static_cast<std::int32_t>(data.matrices[i]),
                           static_cast<std::int32_t>(data.matrices[i + 1])});
  }
  if (!data.warp_step.empty()) {
    plan.warp_step = {static_cast<std::int32_t>(data.warp_step[0]),
                      static_cast<std::int32_t>(data.warp_step[1])};
  }
  const auto values = 2 * data.instruction->matrices;
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int value = 0; value < values; ++value) {
      const Index at = data.instruction->result_map(lane, value);
      plan.result.push_back(static_cast<std::uint16_t>(at));
    }
  }
}

void Flattener::op(const ir::Load& data) {
  if (data.in_shared) {
    DescribePlan plan{view(data.view), fragment(data.frag), data.leading, data.stride};
    tile_of_[data.frag.index] = plan.view.buffer;
    emit_plan(Code::kDescribe, program_.descriptions, std::move(plan));
    return;
  }
  if (function_.frag_type(data.frag).role == ir::Role::kMetadata) return load_metadata(data);
  TilePlan plan;
  plan.view = view(data.view);
  plan.fragment = fragment(data.frag);
  plan.guarded = guard_mask(data.guarded);
  plan.run = static_cast<std::uint32_t>(std::max<std::int64_t>(data.element_run, 1));
  plan.instruction = data.instruction;
  const FragmentPlan& fragment = program_.fragments[plan.fragment];
  plan.values = fragment.values;
  if (data.instruction == nullptr) {
    const bool swapped = data.major == ir::Major::kCol;
    plain_places(plan, registers(fragment, swapped), swapped);
  } else {
    matrix_places(plan, data);
  }
  emit_plan(Code::kLoad, program_.tiles, std::move(plan));
}

void Flattener::op(const ir::Store& data) {
  TilePlan plan;
  plan.view = view(data.view);
  plan.fragment = fragment(data.frag);
  plan.guarded = guard_mask(data.guarded);
  plan.run = static_cast<std::uint32_t>(std::max<std::int64_t>(data.element_run, 1));
  plan.instruction = data.instruction;
  const target::FragmentColumns part = stored_part(data);
  plan.first_value = static_cast<std::uint32_t>(part.first_value);
  plan.values = static_cast<std::uint32_t>(part.fragment.values);
  if (data.instruction == nullptr) {
    plain_places(plan, part.fragment, data.transposed);
  } else {
    matrix_places(plan, data);
  }
  emit_plan(Code::kStore, program_.tiles, std::move(plan));
}

void Flattener::op(const ir::Scale& data) {
  if (data.waits) op(ir::MmaWait{});
  ScalePlan plan;
  plan.c = fragment(data.c);
  plan.partial = fragment(data.partial);
  plan.factor = data.factor.index;
  plan.factors = view(data.factors);
  plan.upright = function_.view_type(data.factors).shape[1].is(1);
  plan.guarded = guard_mask(data.guarded);
  const FragmentPlan& c = program_.fragments[plan.c];
  const target::Fragment map = registers(c, false);
  plan.lanes = static_cast<std::uint32_t>(map.lanes);
  for (int value = 0; value < static_cast<int>(c.values); ++value) {
    for (int lane = 0; lane < map.lanes; ++lane) {
      plan.rows.push_back(element_of(map, lane, value).row);
    }
  }
  emit_plan(Code::kScale, program_.scales, std::move(plan));
}

// The body once for each register of a lane.
void Flattener::op(const ir::Apply& data) {
  const FragmentPlan fragment_plan = program_.fragments[fragment(data.frag)];
  const target::Fragment map = registers(fragment_plan, false);
  facts_.uniform[data.row.index] = facts_.uniform[data.col.index] = false;
  const ir::OpId id = current_;
  const std::uint32_t outer = applied_value_;
  for (int value = 0; value < map.values; ++value) {
    PlacePlan plan{.row = data.row.index,
                   .col = data.col.index,
                   .lanes = static_cast<std::uint32_t>(map.lanes)};
    for (int lane = 0; lane < map.lanes; ++lane) {
      const target::Element at = element_of(map, lane, value);
      plan.places.push_back({at.row, at.col});
    }
    current_ = id;
    emit_plan(Code::kPlace, program_.places, std::move(plan));
    applied_value_ = static_cast<std::uint32_t>(value);
    region(data.body);
  }
  applied_value_ = outer;
  current_ = id;
}

void Flattener::op(const ir::Element& data) {
  uniform_[result().index] = false;
  emit_plan(Code::kRegister, program_.registers,
            RegisterPlan{fragment(data.frag), applied_value_, result().index, false});
}

void Flattener::op(const ir::SetElement& data) {
  emit_plan(Code::kRegister, program_.registers,
            RegisterPlan{fragment(data.frag), applied_value_, data.value.index, true});
}

const target::MmaExecutor* Flattener::executor(const target::Mma& atom) {
  for (const target::MmaExecutor& made : program_.executors) {
    if (&made.mma() == &atom) return &made;
  }
  return &program_.executors.emplace_back(atom);
}

ProductOperand Flattener::operand(ir::ValueId frag, ir::Major major,
                                  const std::vector<std::int64_t>& steps) {
  ProductOperand out{.fragment = fragment(frag),
                     .buffer = tile_of_[frag.index],
                     .dtype = function_.frag_type(frag).dtype,
                     .k_rows = major == ir::Major::kCol,
                     .steps = steps};
  if (out.buffer != nullptr) out.dtype = out.buffer->dtype;
  return out;
}

void Flattener::product(const ir::Mma& data) {
  KILN_CHECK(data.repeats.size() == 3 && data.repeats[0] == 1 && data.repeats[1] == 1,
             "{} is repeated along M or N", data.atom->name);
  ProductPlan plan{.a = operand(data.a, data.a_major, data.a_steps),
                   .b = operand(data.b, data.b_major, data.b_steps),
                   .c = fragment(data.c),
                   .metadata = data.metadata.valid() ? fragment(data.metadata) : MmaPlan::kNone,
                   .repeats = static_cast<std::uint32_t>(data.repeats[2]),
                   .executor = executor(*data.atom),
                   .interned = tally_.intern(data.atom->name)};
  emit_plan(Code::kProduct, program_.products, std::move(plan));
}

void Flattener::op(const ir::Mma& data) {
  if (data.atom->asynchronous) return product(data);
  MmaPlan plan;
  plan.a = fragment(data.a);
  plan.b = fragment(data.b);
  plan.c = fragment(data.c);
  if (data.metadata.valid()) plan.metadata = fragment(data.metadata);
  plan.interned = tally_.intern(data.atom->name);
  plan.executor = executor(*data.atom);
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
