// Levels, loops, branches and regions of threads.
#include "emit/co/say.h"

namespace kiln::emit_co {

void say_region(Co& co, ir::RegionId region) {
  for (const ir::OpId id : co.function.regions[region].ops) {
    if (co.done[id.index] || co.inlined[id.index]) continue;
    const ir::Op& op = co.function.ops[id];
    kiln::visit([&](const auto& data) { say(co, op, data); }, op.data);
  }
}

void say_block(Co& co, const std::string& head, ir::RegionId region) {
  line(co, head + " {");
  ++co.depth;
  say_region(co, region);
  --co.depth;
  line(co, "}");
}

namespace {

// "{x, y} by [A, B]"
std::string axes(Co& co, const std::vector<ir::VarId>& vars) {
  const auto name = [&](ir::VarId var) { return co.var_names[var.index]; };
  const auto extent = [&](ir::VarId var) { return spell_text(co, co.function.vars[var].extent); };
  if (vars.size() == 1) return format("{} by [{}]", name(vars[0]), extent(vars[0]));
  return format("{{{}}} by [{}]", join(vars, ", ", name), join(vars, ", ", extent));
}

bool has_inner_level(const Co& co, const ir::Parallel& launch) {
  bool found = false;
  ir::walk(co.function, launch.body, [&](ir::OpId id) {
    found = found || co.function.ops[id].kind() == ir::OpKind::kParallel;
  });
  return found;
}

void say_attributes(Co& co, const ir::Parallel& launch) {
  if (!has_inner_level(co, launch) && !launch.threads.is(1)) {
    line(co, format("[[threads({})]]", spell_text(co, launch.threads)));
  }
  if (launch.threads_bound != 0 || launch.blocks_min != 0) {
    const std::string blocks = launch.blocks_min == 0 ? "" : format(", {}", launch.blocks_min);
    const std::string threads =
        launch.threads_bound == 0 ? "_" : format("{}", launch.threads_bound);
    line(co, format("[[launch_bounds({}{})]]", threads, blocks));
  }
  if (launch.persistent) line(co, "[[persistent]]");
  if (launch.columns_together != 0)
    line(co, format("[[order(columns, {})]]", launch.columns_together));
  if (launch.rows_together != 0) line(co, format("[[order(rows, {})]]", launch.rows_together));
  if (launch.hilbert) line(co, "[[order(hilbert)]]");
  if (launch.registers_max != 0) line(co, format("[[maxnreg({})]]", launch.registers_max));
}

void say_launch(Co& co, const ir::Parallel& launch) {
  ir::walk(co.function, launch.body, [&](ir::OpId id) {
    const ir::Op& op = co.function.ops[id];
    const auto* event = std::get_if<ir::Event>(&op.data);
    if (event != nullptr && event->grid) line(co, event_text(co, op, *event));
  });
  say_attributes(co, launch);
  const std::string level = launch.cooperative ? "block<cooperative>" : "block";
  const std::string head = format("parallel {} : {}", axes(co, launch.vars), level);
  if (launch.cluster.empty()) return say_block(co, head, launch.body);
  line(co, format("parallel {} : cluster {{", axes(co, launch.cluster)));
  ++co.depth;
  say_block(co, head, launch.body);
  --co.depth;
  line(co, "}");
}

}  // namespace

void say(Co& co, const ir::Op&, const ir::Parallel& data) {
  if (data.level == ir::Level::kBlock) return say_launch(co, data);
  const std::string_view level = data.level == ir::Level::kThread  ? "thread"
                                 : data.level == ir::Level::kGroup ? "group"
                                                                   : "group-4";
  const std::string what = data.vars.empty() ? "by 1" : axes(co, data.vars);
  co.levels.push_back(&data);
  say_block(co, format("parallel {} : {}", what, level), data.body);
  co.levels.pop_back();
}

namespace {

void say_loop(Co& co, const ir::For& data, const std::string& range) {
  if (data.stages != 0) {
    std::vector<std::string> asked;
    if (data.stages != ir::kStagesChosen) asked.push_back(format("{}", data.stages));
    if (data.producer) asked.emplace_back("producer");
    const std::string args = join(asked, ", ", [](const std::string& word) { return word; });
    line(co, asked.empty() ? "[[pipeline]]" : format("[[pipeline({})]]", args));
  }
  const std::string suffix = data.unroll == 0 ? "" : format(" : unroll({})", data.unroll);
  say_block(co, format("foreach {}{}{}", co.var_names[data.var.index], range, suffix), data.body);
}

}  // namespace

void say(Co& co, const ir::Op&, const ir::For& data) {
  const std::string upper = spell_text(co, data.upper);
  if (data.lower.is(0) && data.step == 1) return say_loop(co, data, format(" in [{}]", upper));
  const std::string step = data.step == 1 ? "" : format(":{}", data.step);
  const std::string lower = data.lower.is(0) ? "" : spell_text(co, data.lower);
  line(co, format("with {} in [{}] {{", co.var_names[data.var.index], upper));
  ++co.depth;
  say_loop(co, data, format("({}:{})", lower, step));
  --co.depth;
  line(co, "}");
}

void say(Co& co, const ir::Op&, const ir::If& data) {
  line(co, format("if ({}) {{", scalar_text(co, data.condition)));
  ++co.depth;
  say_region(co, data.then_body);
  --co.depth;
  if (data.else_body.valid()) {
    line(co, "} else {");
    ++co.depth;
    say_region(co, data.else_body);
    --co.depth;
  }
  line(co, "}");
}

// What one thread of a unit does is what stands outside of the innermost level.
void say(Co& co, const ir::Op&, const ir::Once& data) { say_region(co, data.body); }

void say(Co& co, const ir::Op&, const ir::Return& data) {
  if (!data.value.valid()) return line(co, "return;");
  const bool is_buffer = std::holds_alternative<ir::ViewType>(co.function.type(data.value));
  line(co, format("return {};", is_buffer ? view(co, data.value) : scalar_text(co, data.value)));
}

void say(Co& co, const ir::Op&, const ir::Loop& data) { say_block(co, "while (true)", data.body); }
void say(Co& co, const ir::Op&, const ir::Break&) { line(co, "break;"); }
void say(Co& co, const ir::Op&, const ir::Continue&) { line(co, "continue;"); }
void say(Co& co, const ir::Op&, const ir::Yield&) { line(co, "yield;"); }

namespace {

// The number of a level's instance: of several axes the last varies fastest.
ir::Expr instance(const Co& co, const ir::Parallel& level) {
  ir::Expr out = 0;
  for (const ir::VarId var : level.vars)
    out = out * co.function.vars[var].extent + ir::Expr::var(var);
  return out;
}

std::int64_t instances(const Co& co, const ir::Parallel& level) {
  ir::Expr out = 1;
  for (const ir::VarId var : level.vars) out = out * co.function.vars[var].extent;
  return out.constant().value_or(0);
}

// "p == 1" of so many units from the first one on, of `count` there are.
std::string condition(Co& co, const ir::Expr& number, std::int64_t first, std::int64_t units,
                      std::int64_t count) {
  const std::string text = bracketed(spell(co, number), Binding::kShift);
  if (units == 1) return format("{} == {}", text, first);
  if (first + units == count) return format("{} >= {}", text, first);
  if (first == 0) return format("{} < {}", text, units);
  return format("{} >= {} && {} < {}", text, first, text, first + units);
}

// The predicate over the outermost levels that are fine enough; "" when none are.
std::string predicate(Co& co, const ir::Inthreads& data) {
  ir::Expr number = 0;
  std::int64_t count = 1;
  for (const ir::Parallel* level : co.levels) {
    number = number * instances(co, *level) + instance(co, *level);
    count *= instances(co, *level);
    if (level->unit == 0 || data.first % level->unit != 0 || data.threads % level->unit != 0)
      continue;
    return condition(co, number, data.first / level->unit, data.threads / level->unit, count);
  }
  return "";
}

// Behind a region that is not `async` the block meets, unasked.
void skip_meeting(Co& co, const ir::Op& op, const ir::Inthreads& data) {
  if (data.async) return;
  for (std::uint32_t r = 0; r < co.function.regions.size(); ++r) {
    const auto& ops = co.function.regions[ir::RegionId{r}].ops;
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
      const bool here = &co.function.ops[ops[i]] == &op;
      if (here && co.function.ops[ops[i + 1]].kind() == ir::OpKind::kBarrier) {
        co.done[ops[i + 1].index] = true;
      }
    }
  }
}

}  // namespace

void say(Co& co, const ir::Op& op, const ir::Inthreads& data) {
  const std::string chosen = predicate(co, data);
  if (chosen.empty()) return unsayable(co, op, "no index around it numbers its threads");
  say_block(co, format("inthreads{} ({})", data.async ? ".async" : "", chosen), data.body);
  skip_meeting(co, op, data);
}

void say(Co& co, const ir::Op& op, const ir::Cuda&) {
  unsayable(co, op, "text of CUDA is not said again yet");
}
void say(Co& co, const ir::Op& op, const ir::NoOp&) { unsayable(co, op, "it is none"); }

}  // namespace kiln::emit_co
