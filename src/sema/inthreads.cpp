// `inthreads`: which threads of the block a predicate chooses.
//
//   parallel wg by 3 : group-4 {
//     inthreads.async (wg == 0) { ... }     ->  inthreads first=0 threads=128 async
//     inthreads.async (wg >= 1) {           ->  inthreads first=128 threads=256 async
//       inthreads (wg == 2) { ... }         ->    inthreads first=256 threads=128, barrier of 256
//     }
//
// A predicate that all threads fulfil makes no region. What it asks of numbers that are known only when
// the program runs becomes a condition inside of the region of the rest:
//
//   inthreads.async (wg == 0 && t < n) s    ->  inthreads first=0 threads=128 async { if t < n { s } }
//
// The predicate is evaluated for every thread number of the block: it may ask about indices of
// parallels inside of the block only, which are functions of that number.
#include "sema/inthreads.h"

#include <algorithm>

#include "coverage/unit_indices.h"
#include "ir/functions.h"
#include "ir/integer.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "sema/expression.h"
#include "sema/statement.h"
#include "target/arch.h"

namespace kiln::sema {

namespace {

// The predicate as operations, and what its parts depend on.
class Predicate {
 public:
  Predicate(const Sema& sema, std::int64_t block_threads)
      : function_(sema.function),
        nest_(sema.place.nest),
        block_threads_(block_threads),
        values_(sema.function.vars.size()) {}

  // Why the value chooses no threads; empty when it does.
  [[nodiscard]] std::string problem(ir::ValueId value) const;
  // Whether an operation in it is none of those that can be evaluated here.
  [[nodiscard]] bool is_run_time(ir::ValueId value) const;
  // Of a condition the parts, joined by `&&`, that can be.
  [[nodiscard]] std::vector<ir::ValueId> parts_known(ir::ValueId value) const;
  [[nodiscard]] bool holds(std::int64_t thread, const std::vector<ir::ValueId>& parts);

 private:
  [[nodiscard]] const ir::OpData& data(ir::ValueId value) const {
    return function_.ops[function_.values[value].def].data;
  }
  [[nodiscard]] bool is_unit(ir::VarId var) const;
  // The thread indices that the value depends on.
  [[nodiscard]] std::vector<ir::VarId> units_in(ir::ValueId value) const;
  [[nodiscard]] std::int64_t evaluate(ir::ValueId value) const;
  [[nodiscard]] std::int64_t evaluate(const ir::Binary& op) const;

  const ir::Function& function_;
  const std::vector<ir::OpId>& nest_;
  std::int64_t block_threads_;
  std::vector<std::int64_t> values_;  // of the variables, for one thread
};

bool Predicate::is_unit(ir::VarId var) const { return is_unit_index(function_, nest_, var); }

std::vector<ir::VarId> Predicate::units_in(ir::ValueId value) const {
  std::vector<ir::VarId> out;
  if (!value.valid() || !function_.values[value].def.valid()) return out;
  const ir::Op& op = function_.ops[function_.values[value].def];
  if (const auto* index = std::get_if<ir::Index>(&op.data)) index->expr.collect_vars(out);
  ir::for_each_operand(op, [&](std::string_view, ir::ValueId operand) {
    const auto inner = units_in(operand);
    out.insert(out.end(), inner.begin(), inner.end());
  });
  std::erase_if(out, [&](ir::VarId var) { return !is_unit(var); });
  return out;
}

bool Predicate::is_run_time(ir::ValueId value) const {
  if (!function_.values[value].def.valid()) return true;  // a parameter
  if (std::holds_alternative<ir::Const>(data(value))) return false;
  if (const auto* index = std::get_if<ir::Index>(&data(value))) {
    std::vector<ir::VarId> vars;
    index->expr.collect_vars(vars);
    return std::any_of(vars.begin(), vars.end(), [&](ir::VarId var) { return !is_unit(var); });
  }
  if (const auto* op = std::get_if<ir::Unary>(&data(value))) return is_run_time(op->operand);
  if (const auto* op = std::get_if<ir::Cast>(&data(value))) return is_run_time(op->operand);
  if (const auto* op = std::get_if<ir::Binary>(&data(value))) {
    return is_run_time(op->left) || is_run_time(op->right);
  }
  return true;
}

std::string Predicate::problem(ir::ValueId value) const {
  if (!function_.values[value].def.valid()) return "it is the same for all threads";
  if (const auto* op = std::get_if<ir::Unary>(&data(value)); op != nullptr) {
    return problem(op->operand);
  }
  const auto* op = std::get_if<ir::Binary>(&data(value));
  if (op == nullptr) return "it is the same for all threads";
  if (!ir::is_comparison(op->kind)) {
    const std::string left = problem(op->left);
    return left.empty() ? problem(op->right) : left;
  }
  const bool left = !units_in(op->left).empty();
  const bool right = !units_in(op->right).empty();
  if (left && right) return "it compares two thread indices with each other";
  if (!left && !right) return "a part of it is the same for all threads";
  return "";
}

std::vector<ir::ValueId> Predicate::parts_known(ir::ValueId value) const {
  if (!is_run_time(value)) return {value};
  const auto* op = function_.def_as<ir::Binary>(value);
  if (op == nullptr || op->kind != ir::BinaryKind::kLogicalAnd) return {};
  std::vector<ir::ValueId> out = parts_known(op->left);
  const std::vector<ir::ValueId> right = parts_known(op->right);
  out.insert(out.end(), right.begin(), right.end());
  return out;
}

bool Predicate::holds(std::int64_t thread, const std::vector<ir::ValueId>& parts) {
  coverage::set_unit_indices(function_, nest_, block_threads_, thread, values_);
  return std::ranges::all_of(parts, [&](ir::ValueId value) { return evaluate(value) != 0; });
}

// In the operands' type, as a GPU does; a division by zero, which has no value, gives 0.
std::int64_t Predicate::evaluate(const ir::Binary& op) const {
  const DType dtype = std::get<ir::ScalarType>(function_.type(op.left)).dtype;
  const std::int64_t left = evaluate(op.left);
  const std::int64_t right = evaluate(op.right);
  return ir::value_of(op.kind, is_float(dtype) ? DType::kS64 : dtype, left, right).value_or(0);
}

std::int64_t Predicate::evaluate(ir::ValueId value) const {
  if (const auto* op = std::get_if<ir::Const>(&data(value))) {
    return static_cast<std::int64_t>(op->value);
  }
  if (const auto* op = std::get_if<ir::Index>(&data(value))) return op->expr.evaluate(values_);
  if (const auto* op = std::get_if<ir::Cast>(&data(value))) return evaluate(op->operand);
  if (const auto* op = std::get_if<ir::Binary>(&data(value))) return evaluate(*op);
  const auto& op = std::get<ir::Unary>(data(value));
  const std::int64_t operand = evaluate(op.operand);
  if (op.kind == ir::UnaryKind::kNot) return operand == 0 ? 1 : 0;
  return op.kind == ir::UnaryKind::kNegate ? -operand : ~operand;
}

void report_predicate(Sema& sema, Span span, std::string_view why) {
  (void)sema.diags.report<diag::InthreadsPredicate>(span, sema.sources.text(span), why)
      .help(
          "compare an index of a `parallel` inside of the block with a number; `if` takes other "
          "conditions")
      .emit();
}

// The threads for which all of it holds, among `outer`.
std::optional<ThreadRun> run_of(Sema& sema, Predicate& predicate,
                                const std::vector<ir::ValueId>& parts, Span span, ThreadRun outer) {
  std::vector<ThreadRun> runs;
  for (std::int64_t t = outer.first; t < outer.first + outer.threads; ++t) {
    if (!predicate.holds(t, parts)) continue;
    if (runs.empty() || runs.back().first + runs.back().threads != t) runs.push_back({t, 0});
    ++runs.back().threads;
  }
  if (runs.empty()) {
    report_predicate(sema, span, format("none of the {} threads fulfils it", outer.threads));
    return std::nullopt;
  }
  if (runs.size() == 1) return runs[0];
  (void)sema.diags
      .report<diag::InthreadsRuns>(span, runs[0].first, runs[0].first + runs[0].threads - 1,
                                   runs[1].first, runs[1].first + runs[1].threads - 1)
      .help("write one `inthreads` for each run of threads")
      .emit();
  return std::nullopt;
}

// Evaluates the predicate; its operations are taken back, for nothing reads them. `late`: whether some of
// it is known only when the program runs.
std::optional<ThreadRun> threads_of(Sema& sema, ast::ExprId condition, ThreadRun outer,
                                    std::int64_t block_threads, bool& late) {
  auto& ops = sema.function.regions[sema.regions.back()].ops;
  const std::size_t before = ops.size();
  const Operand operand = evaluate(sema, condition);
  const Span span = sema.ast[condition].span;
  if (operand.is_error()) return std::nullopt;
  if (operand.dtype != DType::kBool || !operand.is_number()) {
    report_predicate(sema, span, format("it is {}", describe(operand, sema.function)));
    return std::nullopt;
  }
  const auto value = convert_to_bool(sema, operand);
  if (!value) return std::nullopt;
  sema.function.regions[sema.regions.back()].ops.resize(before);
  Predicate predicate(sema, block_threads);
  if (const std::string why = predicate.problem(*value); !why.empty()) {
    report_predicate(sema, span, why);
    return std::nullopt;
  }
  late = predicate.is_run_time(*value);
  return run_of(sema, predicate, predicate.parts_known(*value), span, outer);
}

// The body, behind the condition where it is known only now.
void analyse_chosen(Sema& sema, const ast::InthreadsStmt& stmt, bool late) {
  if (!late) return analyse_statement(sema, stmt.body);
  const auto flag = convert_to_bool(sema, evaluate(sema, stmt.condition));
  if (!flag) return;
  const Place outer = sema.place;
  note_divergence(sema, sema.ast[stmt.condition].span, [](ir::Level) { return true; });
  const ir::OpId op = emit(sema, ir::If{*flag, {}, {}}, stmt.word_span);
  const ir::RegionId body = in_region(sema, [&] { analyse_statement(sema, stmt.body); });
  std::get<ir::If>(sema.function.ops[op].data).then_body = body;
  sema.place = outer;
}

// The unit that `mma` statements in the region belong to.
Unit unit_of(const Sema& sema, ir::OpId region, ThreadRun run) {
  if (sema.place.level != ir::Level::kThread) return sema.place.unit;
  for (auto id = sema.place.nest.rbegin(); id != sema.place.nest.rend(); ++id) {
    const ir::Level level = std::get<ir::Parallel>(sema.function.ops[*id].data).level;
    if (level != ir::Level::kThread) return {level, *id};
  }
  if (run.threads == target::kWarpLanes && run.first % target::kWarpLanes == 0)
    return {ir::Level::kGroup, region};
  const bool warpgroup = run.threads == kWarpgroup && run.first % kWarpgroup == 0;
  if (warpgroup && sema.arch.has(target::Feature::kWgmma)) return {ir::Level::kGroup4, region};
  return {ir::Level::kThread, region};
}

// Where threads of the region leave the kernel, the block has not all of them behind it.
void note_yield_inside(Sema& sema, ir::OpId region, Span span) {
  bool yields = false;
  ir::walk(
      sema.function, std::get<ir::Inthreads>(sema.function.ops[region].data).body,
      [&](ir::OpId id) { yields = yields || sema.function.ops[id].kind() == ir::OpKind::kYield; });
  if (yields && !sema.yielded.in_block.valid()) sema.yielded.in_block = span;
}

}  // namespace

bool is_unit_index(const ir::Function& function, const std::vector<ir::OpId>& nest, ir::VarId var) {
  return std::any_of(nest.begin(), nest.end(), [&](ir::OpId id) {
    const auto& vars = std::get<ir::Parallel>(function.ops[id].data).vars;
    return std::find(vars.begin(), vars.end(), var) != vars.end();
  });
}

std::optional<ThreadRun> enclosing_region(const Sema& sema) {
  if (!sema.place.inthreads.valid()) return std::nullopt;
  const auto& region = std::get<ir::Inthreads>(sema.function.ops[sema.place.inthreads].data);
  return ThreadRun{region.first, region.threads};
}

bool check_whole_warpgroups(Sema& sema, Span span, std::string_view what) {
  const auto run = enclosing_region(sema);
  if (!run || (run->first % kWarpgroup == 0 && run->threads % kWarpgroup == 0)) return true;
  (void)sema.diags
      .report<diag::WarpgroupPartial>(span, format("`{}`", what), run->first,
                                      run->first + run->threads - 1)
      .label(sema.function.ops[sema.place.inthreads].span, "the region")
      .help("choose {} threads in a row, from a multiple of {} on", kWarpgroup, kWarpgroup)
      .emit();
  return false;
}

void analyse(Sema& sema, const ast::InthreadsStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const std::string_view word = stmt.is_async ? "`inthreads.async`" : "`inthreads`";
  if (!check_collective(sema, stmt.word_span, word, ir::Level::kBlock)) return;
  if (stmt.is_async && sema.place.inthreads.valid()) {
    (void)sema.diags.report<diag::InthreadsNestedAsync>(stmt.word_span)
        .label(sema.function.ops[sema.place.inthreads].span, "inside of this one")
        .help("leave out `.async`, or write the regions beside each other")
        .emit();
  }
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const auto block_threads = launch.threads.constant();
  if (!block_threads) {
    refuse(sema, stmt.word_span, "`inthreads` in a block whose threads are counted at run time");
    return;
  }
  const ThreadRun all = enclosing_region(sema).value_or(ThreadRun{0, *block_threads});
  // After a mistake the body is looked at as if all threads ran it. The mistake may be the number
  // of threads: nobody counts through more than a block can have, or through none.
  const bool miscounted = *block_threads < 1 || *block_threads > sema.arch.threads_per_block_max;
  if (*block_threads < 1 && !sema.diags.has_errors()) {
    report_predicate(sema, sema.ast[stmt.condition].span,
                     "no `parallel` around it says which threads the block has");
  }
  bool late = false;
  const auto chosen =
      miscounted ? std::nullopt : threads_of(sema, stmt.condition, all, *block_threads, late);
  if (chosen && chosen->threads == all.threads) {  // no region: these threads go through it anyway
    analyse_chosen(sema, stmt, late);
    if (!stmt.is_async) emit(sema, ir::Barrier{.level = ir::Level::kBlock}, span);
    return;
  }
  const ThreadRun run = chosen.value_or(all);
  const Place outer = sema.place;
  const ir::OpId op = emit(
      sema,
      ir::Inthreads{.first = run.first, .threads = run.threads, .async = stmt.is_async, .body = {}},
      stmt.word_span);
  const bool whole_warps =
      run.first % target::kWarpLanes == 0 && run.threads % target::kWarpLanes == 0;
  sema.place.unit = unit_of(sema, op, run);
  sema.place.inthreads = op;
  sema.place.divergent_in_block = {};
  sema.place.divergent_in_warp = whole_warps ? Span{} : stmt.word_span;
  const ir::RegionId body = in_region(sema, [&] { analyse_chosen(sema, stmt, late); });
  std::get<ir::Inthreads>(sema.function.ops[op].data).body = body;
  sema.place = outer;
  note_yield_inside(sema, op, stmt.word_span);
  if (!stmt.is_async) emit(sema, ir::Barrier{.level = ir::Level::kBlock}, span);
}

}  // namespace kiln::sema
