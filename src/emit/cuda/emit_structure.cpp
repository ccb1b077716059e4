// Parallel levels, loops, branches and barriers.
#include <algorithm>

#include "emit/cuda/emit_op.h"
#include "target/arch.h"

namespace kiln::emit {

using ir::Expr;
using ir::Op;

namespace {

// The operations of a region that have text of their own, but for one.
std::vector<const Op*> spelled_ops(const Kernel& kernel, ir::RegionId region, ir::OpId skipped) {
  std::vector<const Op*> out;
  for (const ir::OpId id : kernel.function.regions[region].ops) {
    if (id == skipped) continue;
    const Op& op = kernel.function.ops[id];
    const bool inlined = op.result.valid() && kernel.inlined[op.result.index];
    const bool silent = op.kind() == ir::OpKind::kSubview || op.kind() == ir::OpKind::kEvent;
    if (kernel.uses.live_ops[id.index] && !inlined && !silent) out.push_back(&op);
  }
  return out;
}

void emit_single(Kernel& kernel, const Op& op) {
  if (op.span.valid()) kernel.out.at(kernel.sources.place(op.span));
  kiln::visit([&](const auto& data) { emit_op(kernel, op, data); }, op.data);
}

// Under one condition what one thread alone does, operation after operation.
void emit_elected(Kernel& kernel, std::span<const Op* const> ops, const std::string& condition) {
  if (ops[0]->span.valid()) kernel.out.at(kernel.sources.place(ops[0]->span));
  kernel.out.open(format("if ({}) {{", condition));
  kernel.elected_here = true;
  for (const Op* op : ops) emit_single(kernel, *op);
  kernel.elected_here = false;
  kernel.out.close();
}

// The operations that are spelled together with the first one; returns how many.
std::size_t emit_run(Kernel& kernel, std::span<const Op* const> ops) {
  const bool chain = ops[0]->kind() == ir::OpKind::kInthreads;
  const std::string condition = election(kernel, *ops[0]);
  std::size_t count = 1;
  for (; count < ops.size(); ++count) {
    const Op& next = *ops[count];
    const bool follows = chain ? next.kind() == ir::OpKind::kInthreads
                               : !condition.empty() && election(kernel, next) == condition;
    if (!follows) break;
  }
  if (chain) {
    emit_inthreads(kernel, ops.first(count));
  } else if (count > 1) {
    emit_elected(kernel, ops.first(count), condition);
  } else {
    emit_single(kernel, *ops[0]);
  }
  return count;
}

// Brings the names into the text that are said first in this operation of the region.
void declare_names(Kernel& kernel, const Op& op) {
  const auto id = static_cast<std::uint32_t>(&op - &kernel.function.ops[ir::OpId{0}]);
  for (const Shorthand* name : kernel.shorthands.advance(ir::OpId{id}, kernel.facts())) {
    kernel.out.line(format("const int {} = {};", kernel.name(name->var),
                           kernel.spelled_as_it_is(name->value).text));
  }
}

}  // namespace

void emit_region(Kernel& kernel, ir::RegionId region, ir::OpId skipped) {
  const std::vector<const Op*> ops = spelled_ops(kernel, region, skipped);
  const Shorthands::Scope scope = kernel.shorthands.open();
  kernel.shorthands.enter_region();
  for (std::size_t i = 0; i < ops.size();) {
    declare_names(kernel, *ops[i]);
    i += emit_run(kernel, std::span(ops).subspan(i));
  }
  kernel.shorthands.leave_region();
  kernel.shorthands.close(scope);
}

namespace {

// Which of the units of so many threads this thread is in. Of whole warps the compiler shall know
// that it is the same for all lanes: addresses made of it are then computed once for a warp.
Expr instance_of(Kernel& kernel, std::int64_t unit) {
  if (unit % target::kWarpLanes != 0) return floor_div(kernel.thread_in(kernel.unit), Expr(unit));
  const Expr warp = kernel.use_warp();
  const Expr inside = kernel.unit == 0 ? warp : mod(warp, Expr(kernel.unit / target::kWarpLanes));
  return floor_div(inside, Expr(unit / target::kWarpLanes));
}

}  // namespace

// The last axis varies fastest over the instances; the first one is what remains.
void emit_op(Kernel& kernel, const Op&, const ir::Parallel& parallel) {
  const bool counts = std::ranges::any_of(parallel.vars, [&](ir::VarId var) {
    return kernel.uses.vars[var.index] && !kernel.function.vars[var].extent.is(1);
  });
  // Without that the kernel need not know its threads' numbers.
  Expr instance = 0;
  if (counts) instance = instance_of(kernel, parallel.unit);
  std::vector<std::string> declarations;
  std::vector<ir::VarId> added;
  for (std::size_t axis = parallel.vars.size(); axis-- > 0;) {
    const ir::VarId var = parallel.vars[axis];
    const Expr& extent = kernel.function.vars[var].extent;
    Expr value = axis == 0 ? instance : mod(instance, extent);
    if (extent.is(1)) value = 0;
    if (kernel.uses.vars[var.index]) {
      declarations.push_back(format("const int {} = {};", kernel.name(var), kernel.text(value)));
      added.push_back(var);
    }
    instance = floor_div(instance, extent);
  }
  kernel.out.open("{");
  for (auto text = declarations.rbegin(); text != declarations.rend(); ++text) {
    kernel.out.line(*text);
  }
  const std::int64_t outer = kernel.unit;
  const Shorthands::Scope scope = kernel.shorthands.open();
  for (const ir::VarId var : added) kernel.shorthands.add_var(var);
  kernel.unit = parallel.unit;
  emit_region(kernel, parallel.body);
  kernel.unit = outer;
  kernel.shorthands.close(scope);
  kernel.out.close();
}

void emit_op(Kernel& kernel, const Op&, const ir::For& loop) {
  const std::string& var = kernel.name(loop.var);
  if (loop.unroll > 0) kernel.out.line(format("#pragma unroll {}", loop.unroll));
  kernel.out.open(format("for (int {} = {}; {} < {}; {}) {{", var, kernel.text(loop.lower), var,
                         bracketed(kernel.spelled(loop.upper), Binding::kShift),
                         loop.step == 1 ? "++" + var : format("{} += {}", var, loop.step)));
  const Shorthands::Scope scope = kernel.shorthands.open();
  kernel.shorthands.add_var(loop.var);
  emit_region(kernel, loop.body);
  kernel.shorthands.close(scope);
  kernel.out.close();
}

void emit_op(Kernel& kernel, const Op&, const ir::If& branch) {
  kernel.out.open(format("if ({}) {{", scalar(kernel, branch.condition).text));
  emit_region(kernel, branch.then_body);
  if (branch.else_body.valid()) {
    kernel.out.between("} else {");
    emit_region(kernel, branch.else_body);
  }
  kernel.out.close();
}

void emit_op(Kernel& kernel, const Op&, const ir::Once& once) {
  const Spelled number = kernel.spelled(kernel.thread_in(kernel.unit));
  const bool of_region = kernel.unit == 0 && kernel.region != nullptr;
  kernel.out.open(format("if ({} == {}) {{", bracketed(number, Binding::kEquality),
                         of_region ? kernel.region->first : 0));
  emit_region(kernel, once.body);
  kernel.out.close();
}

namespace {

// The loop's first statement, where it leaves the loop unless something is true that needs no
// statement of its own.
struct LoopTest {
  ir::OpId branch;
  ir::ValueId goes_on;
};
LoopTest test_of(const Kernel& kernel, const ir::Loop& loop) {
  for (const ir::OpId id : kernel.function.regions[loop.body].ops) {
    const Op& op = kernel.function.ops[id];
    if (!kernel.uses.live_ops[id.index]) continue;
    if (op.result.valid() && kernel.inlined[op.result.index]) continue;
    const auto* branch = std::get_if<ir::If>(&op.data);
    if (branch == nullptr || branch->else_body.valid()) return {};
    const std::vector<ir::OpId>& ops = kernel.function.regions[branch->then_body].ops;
    const bool leaves = ops.size() == 1 && kernel.function.ops[ops[0]].kind() == ir::OpKind::kBreak;
    const auto* ends = kernel.function.def_as<ir::Unary>(branch->condition);
    const bool negated = ends != nullptr && ends->kind == ir::UnaryKind::kNot &&
                         kernel.inlined[branch->condition.index];
    return leaves && negated ? LoopTest{id, ends->operand} : LoopTest{};
  }
  return {};
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::Loop& loop) {
  const LoopTest test = test_of(kernel, loop);
  const bool tested = test.branch.valid();
  kernel.out.open(format("while ({}) {{", tested ? scalar(kernel, test.goes_on).text : "true"));
  emit_region(kernel, loop.body, test.branch);
  kernel.out.close();
}

void emit_op(Kernel& kernel, const Op&, const ir::Break&) { kernel.out.line("break;"); }
void emit_op(Kernel& kernel, const Op&, const ir::Continue&) { kernel.out.line("continue;"); }
void emit_op(Kernel& kernel, const Op&, const ir::Yield&) {
  for (const std::string& line : meeting_closing(kernel)) kernel.out.line(line);
  kernel.out.line("return;");
}

void emit_op(Kernel&, const Op&, const ir::Return&) {
  KILN_UNREACHABLE("a return inside a kernel");
}

void emit_op(Kernel&, const Op&, const ir::NoOp&) {}

namespace {

// Of the whole warp, or of the lanes of a region that is a part of one.
std::string warp_barrier(const Kernel& kernel, const ir::Barrier& barrier) {
  if (barrier.threads == 0 || kernel.region == nullptr) return "kiln::barrier_group();";
  return format("kiln::barrier_lanes<{}, {}>();", kernel.region->first % target::kWarpLanes,
                barrier.threads);
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::Barrier& barrier) {
  if (barrier.grid) {
    kernel.requirements.headers.insert("grid.cuh");
    return kernel.out.line("kiln::barrier_grid();");
  }
  if (barrier.cluster) {
    kernel.requirements.headers.insert("cluster.cuh");
    return kernel.out.line("kiln::barrier_cluster();");
  }
  kernel.requirements.headers.insert("barrier.cuh");
  if (barrier.id != 0) {
    return kernel.out.line(format("kiln::barrier_threads<{}, {}>();", barrier.id, barrier.threads));
  }
  switch (barrier.level) {
    case ir::Level::kBlock: return kernel.out.line("kiln::barrier_block();");
    case ir::Level::kGroup4: return kernel.out.line("kiln::barrier_group4();");
    case ir::Level::kGroup: return kernel.out.line(warp_barrier(kernel, barrier));
    case ir::Level::kThread: break;
  }
  KILN_UNREACHABLE("a barrier of one thread");
}

void emit_op(Kernel& kernel, const Op&, const ir::CopyWait& wait) {
  kernel.requirements.headers.insert("memory.cuh");
  kernel.out.line(format("kiln::cp_async_wait<{}>();", wait.pending));
}

namespace {

void wgmma_line(Kernel& kernel, std::string line) {
  kernel.requirements.headers.insert("wgmma.cuh");
  kernel.out.line(std::move(line));
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::MmaFence&) {
  wgmma_line(kernel, "kiln::wgmma_fence();");
}

void emit_op(Kernel& kernel, const Op&, const ir::MmaCommit&) {
  wgmma_line(kernel, "kiln::wgmma_commit();");
}

void emit_op(Kernel& kernel, const Op&, const ir::MmaWait& wait) {
  kernel.needs_shared = kernel.needs_shared || wait.first.valid() || !wait.held.empty();
  if (wait.first.valid()) {
    wgmma_line(kernel, format("kiln::compute_first(smem, {});", kernel.name(wait.first)));
  }
  wgmma_line(kernel, format("kiln::wgmma_wait<{}>();", wait.pending));
  for (std::size_t i = 0; i < wait.held.size(); ++i) {
    wgmma_line(kernel, format("kiln::hold<{}>(smem, {});", i % 2, kernel.name(wait.held[i])));
  }
}

void emit_op(Kernel& kernel, const Op&, const ir::ProxyFence& fence) {
  wgmma_line(kernel, format("kiln::fence_async_proxy{}();", fence.global ? "_global" : ""));
}

}  // namespace kiln::emit
