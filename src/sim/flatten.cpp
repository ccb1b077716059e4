#include "sim/flatten.h"

#include "ir/effects.h"
#include "ir/loop_around.h"
#include "sim/machine.h"

#include "sim/scalar.h"

namespace kiln::sim {

Flattener::Flattener(const ir::Function& function, const HostState& host, Tally& tally,
                     bool on_host)
    : function_(function),
      host_(host),
      tally_(tally),
      on_host_(on_host),
      facts_(host.facts),
      uniform_(function.values.size(), true),
      fragment_of_(function.values.size(), InitialisePlan::kNone),
      buffer_of_(function.values.size(), nullptr),
      tile_of_(function.values.size(), nullptr),
      units_{1} {
  for (std::size_t i = 0; i < host.globals.size(); ++i) buffer_of_[i] = host.globals[i];
  program_.vars = function.vars.size();
  program_.values = function.values.size();
}

// The blocks of the grid; of a grid that is too large for anybody the most that are counted.
std::uint32_t Flattener::whole_grid(const ir::Parallel& launch) const {
  constexpr std::int64_t kMost = 1 << 20;
  std::int64_t blocks = 1;
  for (const ir::VarId var : launch.vars) {
    const std::int64_t extent = IndexExpr(function_.vars[var].extent, facts_).evaluate(nullptr, 0);
    blocks = std::min(blocks * std::clamp<std::int64_t>(extent, 0, kMost), kMost);
  }
  return static_cast<std::uint32_t>(std::max<std::int64_t>(blocks, 1));
}

void Flattener::block(const ir::Parallel& launch, std::uint32_t threads) {
  program_.threads = threads;
  program_.shared_bytes =
      launch.shared_bytes + IndexExpr(launch.shared_more, facts_).evaluate(nullptr, 0);
  for (const std::int64_t blocks : launch.cluster_shape) {
    program_.blocks *= static_cast<std::uint32_t>(blocks);
  }
  cluster_ = launch.cluster_shape;
  program_.cooperative = launch.cooperative;
  if (launch.cooperative) program_.blocks = whole_grid(launch);
  units_ = {threads};
  region_ = {0, threads};
  event_of_.assign(function_.values.size(), UINT32_MAX);
}

std::uint32_t Flattener::here() const { return static_cast<std::uint32_t>(program_.code.size()); }

std::size_t Flattener::emit(Code code, std::size_t plan) {
  program_.code.push_back({.code = code,
                           .hands_on = hands_on(code),
                           .plan = static_cast<std::uint32_t>(plan),
                           .target = 0,
                           .op = current_});
  return program_.code.size() - 1;
}

void Flattener::region(ir::RegionId id) {
  for (const ir::OpId op_id : function_.regions[id].ops) {
    current_ = op_id;
    kiln::visit([&](const auto& data) { op(data); }, function_.ops[op_id].data);
    current_ = op_id;
    if (!host_.dumps.empty() && !on_host_) dumps();
  }
}

void Flattener::dumps() {
  for (std::size_t i = 0; i < host_.dumps.size(); ++i) {
    const ir::ValueId value = host_.dumps[i].value;
    if (host_.dumps[i].after != current_) continue;
    DumpPlan plan{.point = i};
    const ir::Type& type = function_.type(value);
    if (const auto* cell = std::get_if<ir::CellType>(&type)) {
      plan.cell = value.index;
      plan.dtype = cell->dtype;
    } else if (const auto* frag = std::get_if<ir::FragType>(&type)) {
      const std::uint32_t number = fragment_of_[value.index];
      if (number == DumpPlan::kNone || tile_of_[value.index] != nullptr) continue;
      plan.fragment = number;
      plan.dtype = frag->dtype;
      const ir::TileRegisters registers = ir::tile_registers(function_, value);
      plan.unit = static_cast<std::uint32_t>(registers.map.lanes);
      plan.shape = {static_cast<std::int32_t>(frag->rows), static_cast<std::int32_t>(frag->cols)};
      for (int v = 0; v < registers.map.values; ++v) {
        for (int lane = 0; lane < registers.map.lanes; ++lane) {
          const target::Element at = element_of(registers.map, lane, v);
          plan.places.push_back(registers.swapped ? Place{at.col, at.row} : Place{at.row, at.col});
        }
      }
    } else if (const auto* buffer = std::get_if<ir::ViewType>(&type)) {
      plan.view = view(value);
      plan.dtype = buffer->dtype;
      plan.unit = std::max(units_.back(), kLanes);
    } else {
      continue;
    }
    emit_plan(Code::kDump, program_.dumps, std::move(plan));
  }
}

void Flattener::op(const ir::Parallel& data) {
  if (data.level == ir::Level::kBlock) {
    emit(Code::kLaunch, current_.index);
    return;
  }
  EnterPlan plan;
  plan.unit = static_cast<std::uint32_t>(data.unit);
  plan.enclosing = units_.back();
  for (const ir::VarId var : data.vars) {
    plan.axes.push_back({var.index, IndexExpr(function_.vars[var].extent, facts_)});
    facts_.uniform[var.index] = data.unit % kLanes == 0;
  }
  emit_plan(Code::kEnter, program_.enters, std::move(plan));
  units_.push_back(static_cast<std::uint32_t>(data.unit));
  region(data.body);
  units_.pop_back();
}

void Flattener::op(const ir::For& data) {
  LoopPlan plan{.var = data.var.index,
                .lower = IndexExpr(data.lower, facts_),
                .upper = IndexExpr(data.upper, facts_),
                .step = data.step,
                .left = is_left(),
                .inside = ir::least_trips(function_, data.body)};
  facts_.uniform[data.var.index] = plan.lower.uniform();
  program_.loops.push_back(std::move(plan));
  const std::size_t number = program_.loops.size() - 1;
  const std::size_t loop = emit(Code::kLoop, number);
  const ir::OpId id = current_;
  begin_body(true);
  region(data.body);
  current_ = id;
  end_body();
  const std::size_t next = emit(Code::kNext, number);
  program_.code[next].target = static_cast<std::uint32_t>(loop) + 1;
  rejoin();
  program_.code[loop].target = here();
}

void Flattener::op(const ir::Loop& data) {
  const ir::OpId id = current_;
  program_.forevers.push_back({carried_cells(function_, data.body)});
  const std::size_t number = program_.forevers.size() - 1;
  const std::size_t loop = emit(Code::kForever, number);
  begin_body(true);
  region(data.body);
  current_ = id;
  end_body();
  const std::size_t repeat = emit(Code::kRepeat, number);
  program_.code[repeat].target = static_cast<std::uint32_t>(loop) + 1;
  rejoin();
}

void Flattener::begin_body(bool is_loop) { bodies_.push_back({.is_loop = is_loop}); }

void Flattener::end_body() {
  for (const std::size_t from : bodies_.back().to_end) program_.code[from].target = here();
  bodies_.pop_back();
}

bool Flattener::is_left() const {
  const ir::Regions bodies = ir::regions_of(function_.ops[current_]);
  return std::any_of(bodies.begin(), bodies.end(),
                     [&](ir::RegionId body) { return ir::may_leave_early(function_, body); });
}

void Flattener::rejoin() {
  if (is_left()) bodies_.back().to_end.push_back(emit(Code::kRejoin, 0));
}

void Flattener::leave(Leave how) {
  LeavePlan plan{.how = how};
  for (auto body = bodies_.rbegin(); body != bodies_.rend() && !body->is_loop; ++body) {
    ++plan.frames;
  }
  program_.leaves.push_back(plan);
  bodies_.back().to_end.push_back(emit(Code::kLeave, program_.leaves.size() - 1));
}

void Flattener::stop() {
  end_body();
  emit(Code::kStop, 0);
}

void Flattener::op(const ir::If& data) {
  const ir::OpId id = current_;
  const std::size_t branch = emit(Code::kIf, data.condition.index);
  begin_body(false);
  region(data.then_body);
  current_ = id;
  end_body();
  const std::size_t otherwise = emit(Code::kElse, 0);
  program_.code[branch].target = static_cast<std::uint32_t>(otherwise);
  begin_body(false);
  if (data.else_body.valid()) region(data.else_body);
  current_ = id;
  end_body();
  program_.code[otherwise].target = here();
  emit(Code::kEnd, 0);
  rejoin();
}

void Flattener::op(const ir::Once& data) {
  const bool in_block = units_.size() == 1;
  program_.onces.push_back({units_.back(), in_block ? region_.first : 0});
  const ir::OpId id = current_;
  const std::size_t once = emit(Code::kOnce, program_.onces.size() - 1);
  begin_body(false);
  region(data.body);
  current_ = id;
  end_body();
  program_.code[once].target = here();
  emit(Code::kEnd, 0);
}

void Flattener::op(const ir::Return& data) {
  emit_plan(Code::kReturn, program_.returns, ir::ValueId(data.value));
}

DType Flattener::dtype(ir::ValueId value) const {
  const ir::Type& type = function_.type(value);
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) return scalar->dtype;
  if (const auto* cell = std::get_if<ir::CellType>(&type)) return cell->dtype;
  KILN_UNREACHABLE("`%{}` is no scalar", function_.values[value].name);
}

void Flattener::scalar(ScalarPlan plan, std::initializer_list<ir::ValueId> operands) {
  plan.kind = function_.ops[current_].kind();
  plan.type = dtype(result());
  plan.result = result().index;
  plan.uniform = true;
  std::uint32_t* slots[] = {&plan.a, &plan.b, &plan.c};
  std::size_t i = 0;
  for (const ir::ValueId operand : operands) {
    *slots[i++] = operand.index;
    plan.operand = dtype(operand);
    plan.uniform = plan.uniform && uniform(operand);
  }
  uniform_[result().index] = plan.uniform;
  emit_plan(Code::kScalar, program_.scalars, std::move(plan));
}

void Flattener::op(const ir::Const& data) {
  ScalarPlan plan;
  if (is_float(dtype(result()))) {
    plan.constant.f = round_to(dtype(result()), data.value);
  } else {
    Scalar number;
    number.f = data.value;
    plan.constant = convert(DType::kF64, dtype(result()), number);
  }
  scalar(plan, {});
}

void Flattener::op(const ir::Unary& data) {
  ScalarPlan plan;
  plan.unary = data.kind;
  scalar(plan, {data.operand});
}

void Flattener::op(const ir::Binary& data) {
  ScalarPlan plan;
  plan.binary = data.kind;
  scalar(plan, {data.left, data.right});
}

void Flattener::op(const ir::Cast& data) { scalar({}, {data.operand}); }

void Flattener::op(const ir::Bitcast& data) { scalar({}, {data.operand}); }

void Flattener::op(const ir::Choose& data) {
  scalar({}, {data.condition, data.if_true, data.if_false});
}

void Flattener::op(const ir::Fma& data) { scalar({}, {data.a, data.b, data.c}); }

void Flattener::op(const ir::Index& data) {
  IndexPlan plan{
      .expr = IndexExpr(data.expr, facts_), .type = dtype(result()), .result = result().index};
  uniform_[plan.result] = plan.expr.uniform();
  emit_plan(Code::kIndex, program_.indices, std::move(plan));
}

void Flattener::op(const ir::Bind& data) {
  facts_.uniform[data.var.index] = uniform(data.value);
  emit_plan(Code::kBind, program_.binds, BindPlan{data.var.index, data.value.index});
}

// What a cell holds may depend on the lanes that set it.
void Flattener::op(const ir::Get& data) {
  uniform_[result().index] = false;
  emit_plan(Code::kCell, program_.cells, CellPlan{data.cell.index, result().index, false});
}

void Flattener::op(const ir::Set& data) {
  emit_plan(Code::kCell, program_.cells, CellPlan{data.cell.index, data.value.index, true});
}

void Flattener::op(const ir::Assert& data) {
  emit_plan(Code::kAssert, program_.asserts, AssertPlan{data.condition.index, data.message});
}

void Flattener::op(const ir::Print& data) {
  PrintPlan plan{.text = data.text, .values = {}};
  for (const ir::ValueId value : data.values) plan.values.push_back({value.index, dtype(value)});
  emit_plan(Code::kPrint, program_.prints, std::move(plan));
}

// Without a stand-in only who counts comes here, and counts nothing.
void Flattener::op(const ir::Cuda& data) {
  if (data.stand_in.valid()) region(data.stand_in);
}

void Flattener::op(const ir::CopyWait& data) {
  emit_plan(Code::kCopyWait, program_.waits, std::int64_t{data.pending});
}

void Flattener::op(const ir::MmaWait& data) {
  program_.waits.push_back(data.pending);
  emit(Code::kMmaWait, program_.waits.size() - 1);
}

void Flattener::op(const ir::Barrier& data) {
  emit_plan(Code::kBarrier, program_.barriers,
            BarrierPlan{.level = data.level,
                        .cluster = data.cluster || data.grid,
                        .grid = data.grid,
                        .id = static_cast<std::uint32_t>(data.id),
                        .threads = static_cast<std::uint32_t>(data.threads)});
}

void Flattener::set_axes(const ir::Parallel& launch) {
  for (const ir::VarId var : launch.vars) facts_.uniform[var.index] = true;
  for (const ir::VarId var : launch.cluster) facts_.uniform[var.index] = true;
}

Program flatten_launch(const ir::Function& function, ir::OpId launch, std::uint32_t threads,
                       const HostState& host, Tally& tally) {
  const auto& data = std::get<ir::Parallel>(function.ops[launch].data);
  Flattener flattener(function, host, tally, false);
  flattener.block(data, threads);
  flattener.set_axes(data);
  flattener.region(data.body);
  flattener.stop();
  return flattener.take();
}

Program flatten_host(const ir::Function& function, const HostState& host, Tally& tally) {
  Flattener flattener(function, host, tally, true);
  flattener.region(function.body);
  flattener.stop();
  return flattener.take();
}

}  // namespace kiln::sim
