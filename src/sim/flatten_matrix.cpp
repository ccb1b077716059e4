#include "ir/effects.h"
#include "ir/registers.h"
#include "sim/flatten.h"

namespace kiln::sim {

std::uint32_t Flattener::fragment(ir::ValueId value) {
  const std::uint32_t number = fragment_of_[value.index];
  KILN_CHECK(number != InitialisePlan::kNone, "`%{}` has no registers",
             function_.values[value].name);
  return number;
}

// `swapped`: the view's rows are the map's columns.
void Flattener::plain_places(TilePlan& plan, ir::ValueId frag, const target::Fragment& map,
                             bool swapped) const {
  const auto edge = ir::minded_edge(function_, function_.ops[current_], frag);
  plan.lanes = static_cast<std::uint32_t>(map.lanes);
  plan.places.reserve(static_cast<std::size_t>(map.values) * plan.lanes);
  for (int value = 0; value < map.values; ++value) {
    for (int lane = 0; lane < map.lanes; ++lane) {
      const target::Element at = element_of(map, lane, value);
      const bool beyond = edge && (at.row >= edge->row || at.col >= edge->col);
      plan.places.push_back(beyond    ? Place{-1, -1}
                            : swapped ? Place{at.col, at.row}
                                      : Place{at.row, at.col});
    }
  }
}

// Of lanes that hold the same elements one writes them.
void Flattener::leave_to_first(TilePlan& plan, const target::Fragment& map) const {
  for (int lane = 0; lane < map.lanes; ++lane) {
    if (is_first_holder(map, lane)) continue;
    for (std::size_t value = 0; value < plan.values; ++value) {
      plan.places[value * plan.lanes + static_cast<std::size_t>(lane)] = {-1, -1};
    }
  }
}

void Flattener::op(const ir::Fill& data) {
  if (data.implied) return;
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
  plan.before = guard_mask(data.before);
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
  plan.lanes = program_.fragments[plan.fragment].lanes;
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
  plan.before = guard_mask(data.before);
  plan.run = static_cast<std::uint32_t>(std::max<std::int64_t>(data.element_run, 1));
  plan.wide_run = static_cast<std::uint32_t>(data.wide_run);
  plan.instruction = data.instruction;
  const FragmentPlan& fragment = program_.fragments[plan.fragment];
  plan.values = fragment.values;
  if (data.instruction == nullptr) {
    const ir::TileRegisters registers = ir::tile_registers(function_, data.frag);
    plain_places(plan, data.frag, registers.map, registers.swapped);
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
  plan.before = guard_mask(data.before);
  plan.run = static_cast<std::uint32_t>(std::max<std::int64_t>(data.element_run, 1));
  plan.wide_run = static_cast<std::uint32_t>(data.wide_run);
  plan.instruction = data.instruction;
  const auto part = ir::stored_registers(function_, data);
  KILN_CHECK(part.has_value(), "columns from {} are no run of registers", data.first_column);
  plan.first_value = static_cast<std::uint32_t>(part->first_value);
  plan.values = static_cast<std::uint32_t>(part->fragment.values);
  if (data.instruction == nullptr) {
    plain_places(plan, data.frag, part->fragment, data.transposed);
    leave_to_first(plan, part->fragment);
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
  plan.dtype = function_.frag_type(data.c).dtype;
  plan.factors = view(data.factors);
  plan.upright = function_.view_type(data.factors).shape[1].is(1);
  plan.guarded = guard_mask(data.guarded);
  plan.before = guard_mask(data.before);
  const FragmentPlan& c = program_.fragments[plan.c];
  const target::Fragment map = ir::tile_registers(function_, data.c).map;
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
  const target::Fragment map = ir::tile_registers(function_, data.frag).map;
  facts_.uniform[data.row.index] = facts_.uniform[data.col.index] = false;
  const ir::OpId id = current_;
  const Applied outer = std::move(applied_);
  applied_ = {};
  for (const ir::ValueId tile : ir::tiles_in(function_, data)) {
    applied_.values[tile] = values_beside(ir::tile_registers(function_, tile).map, map);
    KILN_CHECK(!applied_.values[tile].empty(), "`{}` is held by other lanes than `{}`",
               function_.values[tile].name, function_.values[data.frag].name);
  }
  if (!repeating_digits(map).empty()) {
    for (int lane = 0; lane < map.lanes; ++lane) {
      applied_.holders.push_back(is_first_holder(map, lane) ? Place{0, 0} : Place{-1, -1});
    }
  }
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
    applied_.value = static_cast<std::size_t>(value);
    applied_body(data);
  }
  applied_ = outer;
  current_ = id;
}

// Where it matters, only for the lanes whose place lies within the edge of a padded tile.
void Flattener::applied_body(const ir::Apply& data) {
  const ir::OpId id = current_;
  const auto edge = ir::minded_edge(function_, function_.ops[id], data.frag);
  if (!edge || ir::goes_beyond_unseen(function_, data)) return region(data.body);
  PlacePlan plan{.row = data.row.index, .col = data.col.index, .edge = {edge->row, edge->col}};
  for (const ir::OpId inner : function_.regions[data.body].ops) {
    const auto* set = std::get_if<ir::SetElement>(&function_.ops[inner].data);
    if (set != nullptr) plan.gives.push_back(fragment(set->frag));
  }
  program_.places.push_back(std::move(plan));
  const std::size_t inside = emit(Code::kInside, program_.places.size() - 1);
  begin_body(false);
  region(data.body);
  current_ = id;
  end_body();
  program_.code[inside].target = here();
  emit(Code::kEnd, 0);
}

// The register that holds the tile's element at the place that the apply is at.
std::uint32_t Flattener::applied_register(ir::ValueId tile) const {
  return static_cast<std::uint32_t>(applied_.values.at(tile)[applied_.value]);
}

void Flattener::op(const ir::Element& data) {
  uniform_[result().index] = false;
  emit_plan(Code::kRegister, program_.registers,
            RegisterPlan{fragment(data.frag), applied_register(data.frag), result().index, false});
}

void Flattener::op(const ir::SetElement& data) {
  emit_plan(Code::kRegister, program_.registers,
            RegisterPlan{fragment(data.frag), applied_register(data.frag), data.value.index, true});
}

void Flattener::op(const ir::Reduce& data) {
  const ir::TileRegisters from = ir::tile_registers(function_, data.source);
  const ir::TileRegisters to = ir::tile_registers(function_, data.frag);
  const auto dimension = static_cast<int>(data.dimension);
  ReducePlan plan{.target = fragment(data.frag),
                  .source = fragment(data.source),
                  .kind = data.kind,
                  .lanes = static_cast<std::uint32_t>(from.lanes()),
                  .interned = tally_.intern("shfl")};
  for (const int value : target::reduced_values(to.map, from.map, dimension)) {
    plan.target_of.push_back(static_cast<std::uint32_t>(value));
  }
  for (const int lanes : ir::exchanges_of(function_, data)) {
    plan.exchanges.push_back(static_cast<std::uint32_t>(lanes));
  }
  const bool places = data.kind == ir::ReduceKind::kArgMax;
  const auto edge = ir::minded_edge(function_, function_.ops[current_], data.source);
  for (int value = 0; (places || edge) && value < from.values(); ++value) {
    for (int lane = 0; lane < from.lanes(); ++lane) {
      const ir::TilePlace at = from(lane, value);
      const int along = dimension == 0 ? at.row : at.col;
      if (places) plan.index.push_back(along);
      if (edge) plan.outside.push_back(along >= (dimension == 0 ? edge->row : edge->col));
    }
  }
  emit_plan(Code::kReduce, program_.reductions, std::move(plan));
}

void Flattener::op(const ir::Vote& data) {
  emit_plan(Code::kVote, program_.votes, VotePlan{fragment(data.frag), result().index});
}

void Flattener::op(const ir::Scan& data) {
  const target::Fragment map = ir::tile_registers(function_, data.source).map;
  const auto lines = target::lines_along(map, static_cast<int>(data.dimension));
  KILN_CHECK(lines.has_value(), "`{}` is not lined up", function_.values[data.source].name);
  ScanPlan plan{.target = fragment(data.frag),
                .source = fragment(data.source),
                .run = static_cast<std::uint32_t>(lines->run),
                .blocks = static_cast<std::uint32_t>(lines->blocks),
                .interned = tally_.intern("shfl")};
  plan.values.assign(lines->values.begin(), lines->values.end());
  plan.exchanges.assign(lines->lanes.begin(), lines->lanes.end());
  emit_plan(Code::kScan, program_.scans, std::move(plan));
}

void Flattener::op(const ir::Convert& data) {
  ConvertPlan plan{.target = fragment(data.frag),
                   .source = fragment(data.source),
                   .source_of = {},
                   .quads = ir::quad_moves(function_, data),
                   .interned = tally_.intern("shfl")};
  for (const int value : ir::moved_values(ir::tile_registers(function_, data.source),
                                          ir::tile_registers(function_, data.frag))) {
    plan.source_of.push_back(static_cast<std::uint32_t>(value));
  }
  emit_plan(Code::kConvert, program_.conversions, std::move(plan));
}

void Flattener::op(const ir::Recast& data) {
  const ir::RecastSides sides = ir::sides_of(function_, data);
  RecastPlan plan{
      .target = fragment(data.frag),
      .source = fragment(data.source),
      .splits = sides.narrow == data.frag,
      .parts = ir::parts_of_values(ir::tile_registers(function_, sides.wide),
                                   ir::tile_registers(function_, sides.narrow), sides.count)};
  emit_plan(Code::kRecast, program_.recasts, std::move(plan));
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
                   .parts = {},
                   .adds = IndexExpr(data.adds, facts_),
                   .executor = executor(*data.atom),
                   .interned = tally_.intern(data.atom->name)};
  for (std::int64_t k = 0; k < data.repeats[2]; ++k) {
    plan.parts.push_back(static_cast<std::uint32_t>(data.part(k)));
  }
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
  const target::Fragment a = ir::tile_registers(function_, data.a).map;
  const target::Fragment b = ir::tile_registers(function_, data.b).map;
  const target::Fragment c = ir::tile_registers(function_, data.c).map;
  const auto first = [](const target::Fragment& fragment, std::int64_t row, std::int64_t col) {
    return static_cast<std::uint32_t>(
        first_value(fragment, static_cast<int>(row), static_cast<int>(col)));
  };
  KILN_CHECK(data.repeats.size() == 3, "{} repeats", data.repeats.size());
  for (std::int64_t m = 0; m < data.repeats[0]; ++m) {
    for (std::int64_t n = 0; n < data.repeats[1]; ++n) {
      for (std::int64_t i = 0; i < data.repeats[2]; ++i) {
        const std::int64_t k = data.part(i);
        plan.steps.push_back({first(a, m, k), first(b, n, k), first(c, m, n)});
      }
    }
  }
  emit_plan(Code::kMma, program_.mmas, std::move(plan));
}

}  // namespace kiln::sim
