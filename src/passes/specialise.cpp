#include "passes/specialise.h"

#include <algorithm>
#include <map>

#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "passes/bulk_instead.h"
#include "passes/bulk_stores.h"
#include "passes/by_threads.h"
#include "passes/cloner.h"
#include "passes/copies_ahead.h"
#include "passes/division.h"
#include "passes/for_each_launch.h"
#include "passes/marked_loops.h"
#include "passes/op_maker.h"
#include "passes/producer_slice.h"
#include "target/arch.h"

namespace kiln::passes {

namespace {

using ir::Expr;
using ir::Level;
using ir::OpId;
using ir::ValueId;

bool refuse(Diagnostics& diags, Span loop, const Obstacle& obstacle) {
  (void)diags.report<diag::PipelineProducer>(loop, obstacle.why)
      .label(obstacle.place, "here")
      .help("`[[pipeline(S)]]` without `producer` starts the copies in the kernel's own threads")
      .emit();
  return false;
}

// A marked loop of the kernel with what its producer does.
struct Produced {
  OpId loop;
  LoopCopies found;
  std::int64_t stages = 0;
  ValueId full = {};
  ValueId empty = {};
  std::map<ValueId, ValueId> rings = {};  // by the buffer that the program declared
};

// Writes one kernel anew.
class Specialiser : private OpMaker {
 public:
  Specialiser(const target::Arch& arch, ir::Function& function, OpId launch, Division division)
      : OpMaker(function, function.ops[launch].span),
        by_hardware_(arch.has(target::Feature::kTma)),
        launch_(launch),
        division_(division),
        registers_(consumer_registers(arch, std::get<ir::Parallel>(function.ops[launch].data),
                                      division)) {}

  // The kernel's body with everything inside of one `parallel`; those that there were are taken away.
  void flatten() {
    ir::Var var{unique_var_name(function_, "p"), ir::VarKind::kParallel, Expr(division_.units + 1),
                span_, 0};
    unit_ = function_.vars.push(std::move(var));
    std::vector<OpId> flat = flattened(launch_data().body);
    function_.regions[launch_data().body].ops = std::move(flat);
  }

  void build(std::vector<Produced>& loops, const std::set<OpId>& needed) {
    std::vector<OpId> first;
    for (Produced& each : loops) declare(each, first);
    hoist_shared(first);
    Cloner producer(function_);
    std::set<OpId> kept = needed;
    for (const Produced& each : loops) {
      kept.insert(each.loop);
      for (const CopyAhead& copy : each.found.copies) {
        kept.insert(copy.copy);
        kept.insert(copy.address.begin(), copy.address.end());
      }
    }
    producer.keeps = [&](OpId id) { return kept.contains(id); };
    const std::vector<OpId> all = function_.regions[launch_data().body].ops;
    std::vector<OpId> produced;
    for (const OpId id : all) {
      if (kept.contains(id)) produced.push_back(producer.clone(id));
    }
    // Around the marked ones there is nothing that could start ahead.
    for (const auto& [id, clone] : producer.ops) {
      if (auto* loop = std::get_if<ir::For>(&function_.ops[clone].data)) loop->stages = 0;
    }
    for (const Produced& each : loops) {
      start_copies(each, producer);
      use_copies(each);
    }
    finish(std::move(first), std::move(produced));
  }

 private:
  ir::Parallel& launch_data() { return std::get<ir::Parallel>(function_.ops[launch_].data); }

  std::vector<OpId> flattened(ir::RegionId region) {
    const std::vector<OpId> ops = function_.regions[region].ops;
    std::vector<OpId> out;
    for (const OpId id : ops) {
      const auto* inner = std::get_if<ir::Parallel>(&function_.ops[id].data);
      if (inner == nullptr) {
        for (const ir::RegionId next : ir::regions_of(function_.ops[id])) {
          std::vector<OpId> flat = flattened(next);
          function_.regions[next].ops = std::move(flat);
        }
        out.push_back(id);
        continue;
      }
      const std::vector<OpId> body = taken_apart(*inner);
      out.insert(out.end(), body.begin(), body.end());
    }
    return out;
  }

  // The body of a `parallel` whose variables are made of the number of the unit.
  std::vector<OpId> taken_apart(const ir::Parallel& inner) {
    Cloner with(function_);
    Expr rest = division_.units == 1 ? Expr(0) : Expr::var(unit_);
    for (std::size_t i = inner.vars.size(); i-- > 0;) {
      const Expr extent = function_.vars[inner.vars[i]].extent;
      with.exprs[inner.vars[i]] = i == 0 ? rest : mod(rest, extent);
      if (i != 0) rest = floor_div(rest, extent);
    }
    std::vector<OpId> body = flattened(inner.body);
    for (const OpId id : body) with.replace_in(id);
    return body;
  }

  void declare(Produced& each, std::vector<OpId>& first) {
    for (const CopyAhead& copy : each.found.copies) {
      const ValueId event = copy_data(copy).event;
      if (event.valid()) remove_op(function_, function_.values[event].def);
      each.rings[copy.buffer] = ring_of(first, copy.buffer, each.stages);
    }
    each.full = named(first, ir::Event{.name = "full"}, ir::EventType{each.stages}, "full");
    each.empty = named(first, ir::Event{.name = "empty", .ready = true}, ir::EventType{each.stages},
                       "empty");
  }

  // All other shared buffers and events, too, belong to the block.
  void hoist_shared(std::vector<OpId>& first) {
    const std::vector<OpId> others = shared_of(function_, launch_data().body);
    first.insert(first.end(), others.begin(), others.end());
    for (const OpId id : first) remove_op(function_, id);
  }

  const ir::Copy& copy_data(const CopyAhead& each) const {
    return std::get<ir::Copy>(function_.ops[each.copy].data);
  }
  [[nodiscard]] const ir::For& loop_data(OpId loop) const {
    return std::get<ir::For>(function_.ops[loop].data);
  }

  // The number of the loop's trip, counted through the loops around it, and whether each number occurs.
  struct Turn {
    Expr number = 0;
    bool each = true;
  };
  [[nodiscard]] Turn turn_of(OpId loop) const {
    const ir::For& inner = loop_data(loop);
    Turn out{Expr::var(inner.var) - inner.lower, true};
    const Expr trips = inner.upper - inner.lower;
    std::vector<OpId> around = ancestors_of(function_, launch_, loop);
    std::ranges::reverse(around);
    Expr factor = trips;
    for (const OpId id : around) {
      if (function_.ops[id].kind() == ir::OpKind::kIf) out.each = false;
      const auto* outer = std::get_if<ir::For>(&function_.ops[id].data);
      if (outer == nullptr) continue;
      out.each = false;
      // Where trips differ, the slots begin anew with each.
      if (outer->step != 1 || factor.uses(outer->var) || uses_bound(factor)) break;
      const Expr number = out.number + (Expr::var(outer->var) - outer->lower) * factor;
      if (number.overflowed()) break;  // 64 bits do not count them
      out.number = number;
      factor = factor * (outer->upper - outer->lower);
    }
    return out;
  }

  // Whether it is made of something that the kernel computes as it goes.
  [[nodiscard]] bool uses_bound(const Expr& expr) const {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    return std::ranges::any_of(
        vars, [&](ir::VarId var) { return function_.vars[var].kind == ir::VarKind::kBound; });
  }

  void wait_for(ValueId event, const Turn& turn, std::int64_t stages) {
    ir::EventWait wait{.event = event, .slot = mod(turn.number, Expr(stages))};
    if (turn.each) {
      wait.tracked = false;
      wait.generation = floor_div(turn.number, Expr(stages));
    }
    emit(std::move(wait));
  }

  [[nodiscard]] static Expr slot_of(const Turn& turn, std::int64_t stages) {
    return mod(turn.number, Expr(stages));
  }

  // The producer's loop, which was cloned: it waits for a stage, fills it, and says so.
  void start_copies(const Produced& each, const Cloner& cloned) {
    span_ = function_.ops[each.loop].span;
    const OpId loop = cloned.ops.at(each.loop);
    ir::For& data = std::get<ir::For>(function_.ops[loop].data);
    data.stages = 0;
    data.producer = false;
    const ir::RegionId body = data.body;
    Turn turn = turn_of(each.loop);
    turn.number = turn.number.substitute([&](ir::VarId var) -> std::optional<Expr> {
      const auto found = cloned.exprs.find(var);
      return found == cloned.exprs.end() ? std::nullopt : std::optional(found->second);
    });
    wait_for(each.empty, turn, each.stages);
    Cloner into(function_);
    for (const auto& [buffer, ring] : each.rings)
      into.values[buffer] = stage_of(buffer, ring, slot_of(turn, each.stages));
    for (const OpId id : function_.regions[body].ops) {
      into.replace_in(id);
      if (auto* copy = std::get_if<ir::Copy>(&function_.ops[id].data)) {
        copy->async = true;
        copy->bulk = copy->bulk || by_hardware_;
        copy->event = each.full;
        copy->slot = slot_of(turn, each.stages);
      }
      out_.push_back(id);
    }
    emit(ir::Trigger{each.full, slot_of(turn, each.stages)});
    function_.regions[body].ops = std::move(out_);
    out_.clear();
  }

  // The consumers' loop: it waits for a stage, reads it, and gives it back.
  void use_copies(const Produced& each) {
    span_ = function_.ops[each.loop].span;
    ir::For& data = std::get<ir::For>(function_.ops[each.loop].data);
    data.stages = 0;
    data.producer = false;
    const ir::RegionId body = data.body;
    const Turn turn = turn_of(each.loop);
    wait_for(each.full, turn, each.stages);
    Cloner into(function_);
    for (const auto& [buffer, ring] : each.rings)
      into.values[buffer] = stage_of(buffer, ring, slot_of(turn, each.stages));
    for (const OpId id : function_.regions[body].ops) {
      if (is_start(each, id)) continue;
      into.replace_in(id);
      out_.push_back(id);
    }
    emit(ir::Trigger{each.empty, slot_of(turn, each.stages)});
    function_.regions[body].ops = std::move(out_);
    out_.clear();
  }

  [[nodiscard]] static bool is_start(const Produced& each, OpId id) {
    const auto& copies = each.found.copies;
    return std::ranges::any_of(copies, [&](const auto& copy) { return copy.copy == id; }) ||
           std::ranges::find(each.found.meetings, id) != each.found.meetings.end();
  }

  OpId region_of_threads(std::int64_t first, std::int64_t threads, std::vector<OpId> ops) {
    const ir::RegionId body = function_.regions.push({std::move(ops)});
    return make(ir::Inthreads{.first = first, .threads = threads, .async = true, .body = body});
  }

  void finish(std::vector<OpId> first, std::vector<OpId> produced) {
    span_ = function_.ops[launch_].span;
    std::vector<OpId> used = function_.regions[launch_data().body].ops;
    if (registers_ != 0) {
      launch_data().blocks_min = 0;  // one block has them all
      produced.insert(produced.begin(), make(ir::Registers{kProducerRegisters, false}));
      used.insert(used.begin(), make(ir::Registers{registers_, true}));
    }
    const std::int64_t consumers = division_.consumers();
    const OpId reads = region_of_threads(0, consumers, std::move(used));
    const OpId starts = region_of_threads(consumers, division_.unit(), std::move(produced));
    const ir::RegionId inner = function_.regions.push({{starts, reads}});
    ir::Parallel units;
    units.level = division_.level;
    units.vars = {unit_};
    units.unit = division_.unit();
    units.body = inner;
    first.push_back(make(std::move(units)));
    function_.regions[launch_data().body].ops = std::move(first);
    launch_data().threads = Expr(consumers + division_.unit());
  }

  bool by_hardware_;
  OpId launch_;
  Division division_;
  std::int64_t registers_;
  ir::VarId unit_;
};

// What a kernel's loops ask of their producer.
struct Wish {
  std::vector<Produced> loops;
  std::vector<RowCondition> conditions;  // of copies that the hardware then makes
};

// The buffers that the kernel writes, and where.
std::map<ValueId, Span> written_in(const ir::Function& function, OpId launch) {
  std::map<ValueId, Span> out;
  ir::walk(function, body_of(function, launch), [&](OpId id) {
    for (const ir::Touch& touch : ir::memory_touched(function, function.ops[id])) {
      if (touch.writes()) out.emplace(ir::root_of(function, touch.value), function.ops[id].span);
    }
  });
  return out;
}

// Whether the producer can make the copy: the hardware for it, else the producer's threads.
std::optional<Obstacle> cannot_start(const ir::Module& module, const ir::Function& function,
                                     OpId id, std::vector<RowCondition>& conditions) {
  const auto& copy = std::get<ir::Copy>(function.ops[id].data);
  if (copy.bulk) return std::nullopt;
  if (module.arch->has(target::Feature::kTma)) return bulk_instead(function, id, conditions);
  if (copy.unit == 0) return std::nullopt;
  return Obstacle{"each warp makes a copy of its own", function.ops[id].span};
}

std::optional<Obstacle> cannot_produce(const ir::Module& module, const ir::Function& function,
                                       OpId launch, const LoopCopies& found,
                                       std::vector<RowCondition>& conditions) {
  const std::map<ValueId, Span> written = written_in(function, launch);
  for (const CopyAhead& each : found.copies) {
    const auto& copy = std::get<ir::Copy>(function.ops[each.copy].data);
    const auto at = written.find(ir::root_of(function, copy.src));
    if (at != written.end()) {
      return Obstacle{
          format("the kernel writes `{}`, which the copies read", function.values[at->first].name),
          at->second};
    }
    if (auto obstacle = cannot_start(module, function, each.copy, conditions)) return obstacle;
  }
  return std::nullopt;
}

// Another loop with a producer inside of this one: one producer cannot fill the stage of the outer loop and go through
// all of the inner one's before the consumers have seen it.
std::optional<Obstacle> marked_inside(const ir::Function& function, OpId loop) {
  std::optional<Obstacle> out;
  ir::walk(function, std::get<ir::For>(function.ops[loop].data).body, [&](OpId id) {
    const auto* inner = std::get_if<ir::For>(&function.ops[id].data);
    if (out || inner == nullptr || !inner->producer) return;
    out = Obstacle{"a loop with a producer stands inside of it", function.ops[id].span};
  });
  return out;
}

// Finds out what a launch wishes; nothing after a report.
std::optional<Wish> look_at(const ir::Module& module, const ir::Function& function, OpId launch,
                            Diagnostics& diags) {
  Wish out;
  std::int64_t taken = 0;
  for (Marked each : loops_with_producer(function, launch)) {
    each.taken = taken;
    if (const auto inner = marked_inside(function, each.loop)) {
      refuse(diags, function.ops[each.loop].span, *inner);
      return std::nullopt;
    }
    const std::int64_t asked = std::get<ir::For>(function.ops[each.loop].data).stages;
    auto found = copies_ahead(function, launch, each.loop, std::max<std::int64_t>(asked, 2), diags);
    if (!found) return std::nullopt;
    if (const auto obstacle = cannot_produce(module, function, launch, *found, out.conditions)) {
      refuse(diags, function.ops[each.loop].span, *obstacle);
      return std::nullopt;
    }
    const auto stages = stages_for(module, function, each, *found, diags);
    if (!stages) return std::nullopt;
    taken += (*stages - 1) * stage_bytes(function, launch, *found);
    out.loops.push_back({each.loop, std::move(*found), *stages});
  }
  return out;
}

// Divides a launch whose copies the hardware can make, whatever the shape. False after a report.
bool divide_whole(const ir::Module& module, ir::Function& function, OpId launch, Wish wish,
                  Diagnostics& diags) {
  Division division;
  const OpId loop = wish.loops[0].loop;
  if (const auto obstacle = division_of(module, function, launch, division)) {
    return refuse(diags, function.ops[loop].span, *obstacle);
  }
  Specialiser work(*module.arch, function, launch, division);
  work.flatten();
  std::set<OpId> needed;
  for (const Produced& each : wish.loops) {
    const auto obstacle = producer_slice(function, launch, each.loop, each.found, needed);
    if (obstacle) return refuse(diags, function.ops[each.loop].span, *obstacle);
  }
  work.build(wish.loops, needed);
  return true;
}

// Divides a launch of which a loop asks for a producer. False after a report.
bool divide(const ir::Module& module, ir::Function& function, OpId launch, Diagnostics& diags) {
  const std::vector<Marked> marked = loops_with_producer(function, launch);
  Division division;
  if (const auto obstacle = division_of(module, function, launch, division)) {
    return refuse(diags, function.ops[marked[0].loop].span, *obstacle);
  }
  auto wish = look_at(module, function, launch, diags);
  if (!wish) return false;
  if (!wish->conditions.empty()) or_by_threads(function, launch, wish->conditions);
  const BulkStores stores = module.arch->has(target::Feature::kTma)
                                ? bulk_stores(function, launch, wish->conditions)
                                : BulkStores{};
  if (!stores.conditions.empty()) {
    const OpId again = or_else(function, launch, stores.conditions, "_storing_by_threads");
    auto same = look_at(module, function, again, diags);
    if (!same || !divide_whole(module, function, again, std::move(*same), diags)) return false;
  }
  store_in_bulk(function, stores.copies);
  return divide_whole(module, function, launch, std::move(*wish), diags);
}

}  // namespace

Checked<bool> specialise(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, OpId launch) {
    if (loops_with_producer(function, launch).empty()) return;
    ir::Function before = function;
    if (divide(module, function, launch, diags)) return;
    function = std::move(before);  // it may be half divided, and passes behind this one look at it
    failed = true;
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
