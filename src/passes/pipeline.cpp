#include "passes/pipeline.h"

#include <algorithm>
#include <map>

#include "ir/prove.h"
#include "passes/cloner.h"
#include "passes/copies_ahead.h"
#include "passes/for_each_launch.h"
#include "passes/marked_loops.h"
#include "passes/op_maker.h"

namespace kiln::passes {

namespace {

using ir::Expr;
using ir::OpId;
using ir::ValueId;

// The buffers of one shared buffer's copies.
struct Ring {
  ValueId buffer;  // that the program declared
  ValueId array;   // S of them
  // Of copies by threads: the number of each name's buffer, the name whose turn it is first.
  std::vector<ValueId> cells = {};
};

// One copy by threads: a name for each stage.
struct RotatingNames {
  std::vector<ValueId> futures = {};
};

// Writes one loop anew.
class Pipeliner : private OpMaker {
 public:
  Pipeliner(ir::Function& function, OpId launch, OpId loop, std::int64_t stages, LoopCopies found)
      : OpMaker(function, function.ops[loop].span),
        launch_(launch),
        loop_(loop),
        stages_(stages),
        found_(std::move(found)) {}

  // `parent` is the region that the loop stands in.
  void run(ir::RegionId parent) {
    const ir::For old = for_data();
    var_ = old.var;
    lower_ = old.lower;
    upper_ = old.upper;
    hoist(old.body);
    for (const CopyAhead& each : found_.copies) {
      const ValueId event = copy_data(each).event;
      if (event.valid()) remove_op(function_, function_.values[event].def);
    }
    declare();
    for (std::int64_t i = 0; i + 1 < stages_; ++i) prologue(i);
    std::vector<OpId> before = std::move(out_);

    // The body as it is in every iteration, and a copy of it for the last ones.
    const std::vector<OpId> rest = without_copies(old.body);
    wait();
    const std::size_t waits = out_.size();
    use_rings(rest);
    rotate();
    std::vector<OpId> body = std::move(out_);
    Cloner tail(function_);
    const OpId last = clone_tail(tail, body);

    start(Expr::var(var_) + (stages_ - 1), stages_ - 1);
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(waits), out_.begin(), out_.end());
    out_.clear();
    function_.regions[old.body].ops = std::move(body);
    for_data().upper = upper_ - (stages_ - 1);
    for_data().stages = 0;
    function_.vars[var_].extent = for_data().upper;

    settle();
    std::vector<OpId> after = {last};
    after.insert(after.end(), out_.begin(), out_.end());
    auto& ops = function_.regions[parent].ops;
    auto at = std::ranges::find(ops, loop_);
    at = ops.insert(at, before.begin(), before.end()) + static_cast<std::ptrdiff_t>(before.size());
    ops.insert(at + 1, after.begin(), after.end());
  }

 private:
  ir::For& for_data() { return std::get<ir::For>(function_.ops[loop_].data); }
  const ir::Copy& copy_data(const CopyAhead& each) const {
    return std::get<ir::Copy>(function_.ops[each.copy].data);
  }

  // Buffers, events and futures of the body that are no rings are there once.
  void hoist(ir::RegionId body) {
    std::vector<OpId> kept;
    for (const OpId id : function_.regions[body].ops) {
      const ir::Op& op = function_.ops[id];
      const auto* alloc = std::get_if<ir::Alloc>(&op.data);
      const bool is_buffer = alloc != nullptr && !alloc->initial.valid() &&
                             std::holds_alternative<ir::ViewType>(function_.type(op.result));
      const bool moves = is_buffer || op.kind() == ir::OpKind::kFuture;
      if (moves && !is_ringed(op.result)) out_.push_back(id);
      if (!moves) kept.push_back(id);
    }
    function_.regions[body].ops = std::move(kept);
  }

  [[nodiscard]] bool is_ringed(ValueId value) const {
    return std::ranges::any_of(found_.copies,
                               [&](const auto& each) { return each.buffer == value; });
  }

  // Rings and events stand in front of everything of the kernel, beside what the program declares.
  void declare() {
    auto& launch = function_.regions[body_of(function_, launch_)].ops;
    std::vector<OpId> first;
    for (const CopyAhead& each : found_.copies) {
      if (!rings_.contains(each.buffer))
        rings_[each.buffer] = {each.buffer, ring_of(first, each.buffer, stages_)};
      if (copy_data(each).bulk && !event_.valid()) {
        event_ = named(first, ir::Event{.name = "full"}, ir::EventType{stages_}, "full");
      }
    }
    launch.insert(launch.begin(), first.begin(), first.end());
    for (const CopyAhead& each : found_.copies) declare_names(each);
  }

  void declare_names(const CopyAhead& each) {
    if (copy_data(each).bulk) return;
    Ring& ring = rings_.at(each.buffer);
    const std::string name = function_.values[ring.array].name;
    const bool has_cells = !ring.cells.empty();
    for (std::int64_t s = 0; s < stages_; ++s) {
      if (!has_cells) {
        const ValueId number =
            emit_value(ir::Const{static_cast<double>(s)}, ir::ScalarType{DType::kS32});
        const std::string cell = format("{}_{}_at", name, s);
        ring.cells.push_back(emit_value(ir::Alloc{.name = cell, .initial = number},
                                        ir::CellType{DType::kS32}, cell));
      }
      const std::string future = format("{}_{}", name, s);
      names_[each.copy].futures.push_back(emit_value(ir::Future{future}, ir::FutureType{}, future));
    }
  }

  // The ring's buffer of the iteration `turn`, which is the stage's one from that of this iteration.
  ValueId stage_of(const Ring& ring, const Expr& turn, std::int64_t stage) {
    Expr number = mod(turn - lower_, Expr(stages_));
    if (!ring.cells.empty()) {
      const ValueId got = emit_value(ir::Get{ring.cells[static_cast<std::size_t>(stage)]},
                                     ir::ScalarType{DType::kS32});
      const std::string name =
          unique_var_name(function_, format("{}_at", function_.values[ring.array].name));
      const ir::VarId var =
          function_.vars.push({name, ir::VarKind::kBound, Expr(stages_), span_, 0});
      emit(ir::Bind{var, got});
      number = Expr::var(var);
    }
    return OpMaker::stage_of(ring.buffer, ring.array, number);
  }

  // Starts the copies of iteration `turn`.
  void start(const Expr& turn, std::int64_t stage) {
    Cloner ahead(function_);
    ahead.exprs[var_] = turn;
    for (const auto& [buffer, ring] : rings_) ahead.values[buffer] = stage_of(ring, turn, stage);
    for (const CopyAhead& each : found_.copies) {
      for (const OpId id : each.address) {
        const ValueId result = function_.ops[id].result;
        const bool is_done = result.valid() && ahead.values.contains(result);
        if (!is_done) out_.push_back(ahead.clone(id));
      }
      const OpId id = ahead.clone(each.copy);
      auto& copy = std::get<ir::Copy>(function_.ops[id].data);
      copy.async = true;
      if (copy.bulk) {
        copy.event = event_;
        copy.slot = mod(turn - lower_, Expr(stages_));
      } else {
        copy.future = names_.at(each.copy).futures[static_cast<std::size_t>(stage)];
      }
      out_.push_back(id);
    }
    if (event_.valid()) emit(ir::Trigger{event_, mod(turn - lower_, Expr(stages_))});
  }

  // Iteration i's copies in front of the loop.
  void prologue(std::int64_t i) {
    const Expr turn = lower_ + i;
    const bool is_sure = ir::always_less_equal(function_, turn + 1, upper_);
    if (!event_.valid() || is_sure) return start(turn, i);
    const ir::ScalarType number{DType::kS32};
    const ValueId left = emit_value(ir::Index{turn}, number);
    const ValueId right = emit_value(ir::Index{upper_}, number);
    const ValueId is_there =
        emit_value(ir::Binary{ir::BinaryKind::kLt, left, right}, ir::ScalarType{DType::kBool});
    std::vector<OpId> outer = std::move(out_);
    out_.clear();
    start(turn, i);
    const ir::RegionId then_body = function_.regions.push({std::move(out_)});
    out_ = std::move(outer);
    emit(ir::If{is_there, then_body, {}});
  }

  std::vector<OpId> without_copies(ir::RegionId body) const {
    std::vector<OpId> out;
    for (const OpId id : function_.regions[body].ops) {
      const bool is_copy =
          std::ranges::any_of(found_.copies, [&](const auto& each) { return each.copy == id; });
      if (!is_copy && std::ranges::find(found_.meetings, id) == found_.meetings.end())
        out.push_back(id);
    }
    return out;
  }

  void wait() {
    for (const CopyAhead& each : found_.copies) {
      if (!copy_data(each).bulk) emit(ir::FutureWait{names_.at(each.copy).futures[0]});
    }
    if (event_.valid()) emit(ir::EventWait{event_, mod(Expr::var(var_) - lower_, Expr(stages_))});
  }

  void use_rings(const std::vector<OpId>& rest) {
    Cloner now(function_);
    for (const auto& [buffer, ring] : rings_)
      now.values[buffer] = stage_of(ring, Expr::var(var_), 0);
    for (const OpId id : rest) {
      now.replace_in(id);
      out_.push_back(id);
    }
  }

  // Each name takes the place of the one before it.
  void rotate() {
    for (const auto& [buffer, ring] : rings_) {
      if (ring.cells.empty()) continue;
      std::vector<ValueId> numbers;
      for (const ValueId cell : ring.cells) {
        numbers.push_back(emit_value(ir::Get{cell}, ir::ScalarType{DType::kS32}));
      }
      for (std::size_t s = 0; s < ring.cells.size(); ++s) {
        emit(ir::Set{ring.cells[s], numbers[(s + 1) % numbers.size()]});
      }
    }
    for (const CopyAhead& each : found_.copies) {
      if (copy_data(each).bulk) continue;
      const auto& futures = names_.at(each.copy).futures;
      for (std::size_t s = 0; s + 1 < futures.size(); ++s)
        emit(ir::Exchange{futures[s], futures[s + 1]});
    }
  }

  OpId clone_tail(Cloner& tail, const std::vector<OpId>& body) {
    ir::For last = for_data();
    ir::Var var = function_.vars[var_];
    var.name = unique_var_name(function_, var.name);
    last.lower = max(upper_ - (stages_ - 1), lower_);
    last.stages = 0;
    var.first = last.lower;
    last.var = function_.vars.push(std::move(var));
    tail.exprs[var_] = Expr::var(last.var);
    ir::Region region;
    for (const OpId id : body) region.ops.push_back(tail.clone(id));
    last.body = function_.regions.push(std::move(region));
    return make(last);
  }

  // Copies of iterations that there were not are on their way still.
  void settle() {
    const bool is_sure = ir::always_less_equal(function_, lower_ + (stages_ - 1), upper_);
    if (is_sure) return;
    for (const CopyAhead& each : found_.copies) {
      if (copy_data(each).bulk) continue;
      for (std::int64_t s = 0; s + 1 < stages_; ++s) {
        emit(ir::FutureWait{names_.at(each.copy).futures[static_cast<std::size_t>(s)]});
      }
    }
  }

  OpId launch_;
  OpId loop_;
  std::int64_t stages_;
  LoopCopies found_;
  ir::VarId var_;
  Expr lower_;
  Expr upper_;
  std::map<ValueId, Ring> rings_;
  std::map<OpId, RotatingNames> names_;
  ValueId event_;
};

// False after a report.
bool pipeline_loop(const ir::Module& module, ir::Function& function, const Marked& marked,
                   Diagnostics& diags) {
  auto& loop = std::get<ir::For>(function.ops[marked.loop].data);
  const std::int64_t asked = std::max<std::int64_t>(loop.stages, 2);
  auto found = copies_ahead(function, marked.launch, marked.loop, asked, diags);
  if (!found) return false;
  const auto stages = stages_for(module, function, marked, *found, diags);
  if (!stages) return false;
  // No more are ahead than there are.
  const std::int64_t trips = (loop.upper - loop.lower).constant().value_or(ir::kStagesMax);
  if (trips < 2) {
    loop.stages = 0;
    return true;
  }
  Pipeliner(function, marked.launch, marked.loop, std::min(*stages, trips), std::move(*found))
      .run(marked.parent);
  return true;
}

}  // namespace

Checked<bool> pipeline(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for_each_launch(module, [&](ir::Function& function, OpId launch) {
    for (const Marked& each : marked_loops(function, launch)) {
      failed = !pipeline_loop(module, function, each, diags) || failed;
    }
  });
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
