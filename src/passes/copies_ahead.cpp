#include "passes/copies_ahead.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

using ir::OpId;
using ir::ValueId;

class Finder {
 public:
  Finder(const ir::Function& function, OpId launch, OpId loop, std::int64_t ahead,
         Diagnostics& diags)
      : function_(function),
        launch_(launch),
        loop_(std::get<ir::For>(function.ops[loop].data)),
        span_(function.ops[loop].span),
        ahead_(ahead),
        diags_(diags) {
    ir::walk(function, loop_.body, [&](OpId id) { inside_.insert(id); });
  }

  Checked<LoopCopies> run() {
    if (loop_.step != 1) return refuse_loop("it steps by more than 1");
    if (ir::may_leave(function_, loop_.body)) {
      return refuse_loop("it may be left, or a trip of it, before its end");
    }
    LoopCopies out;
    for (const OpId id : body()) {
      if (!is_candidate(id)) continue;
      const auto found = look_at(id);
      if (!found) return Unexpected{found.error()};
      out.copies.push_back(*found);
    }
    if (out.copies.empty()) {
      return diags_.report<diag::PipelineNoCopies>(span_)
          .help(
              "put the `dma.copy` or `tma.copy` into the body itself, not into an `if` or a loop "
              "in it")
          .emit();
    }
    if (auto fine = check_buffers(out); !fine) return Unexpected{fine.error()};
    for (const CopyAhead& each : out.copies) note_meetings(each, out.meetings);
    return out;
  }

 private:
  [[nodiscard]] const std::vector<OpId>& body() const { return function_.regions[loop_.body].ops; }
  [[nodiscard]] const ir::Op& op(OpId id) const { return function_.ops[id]; }

  Unexpected<Reported> refuse_loop(std::string_view why) {
    return diags_.report<diag::PipelineLoop>(span_, why)
        .help("take the attribute away; nothing is moved then")
        .emit();
  }

  // A copy from global to shared memory that is complete at the end of its statement.
  [[nodiscard]] bool is_candidate(OpId id) const {
    const auto* copy = std::get_if<ir::Copy>(&op(id).data);
    if (copy == nullptr || copy->async) return false;
    return function_.view_type(copy->src).space == ir::Space::kGlobal &&
           function_.view_type(copy->dst).space == ir::Space::kShared;
  }

  Checked<CopyAhead> look_at(OpId id) {
    const auto& copy = std::get<ir::Copy>(op(id).data);
    std::set<OpId> address;
    std::optional<Obstacle> obstacle = need(copy.src, address);
    if (!obstacle) obstacle = need(copy.dst, address);
    if (!obstacle) obstacle = is_written(ir::root_of(function_, copy.src));
    if (!obstacle) obstacle = is_awaited(copy.src, address);
    if (!obstacle && copy.multicast) {
      obstacle = Obstacle{"it is a multicast, for which the cluster's blocks meet every time",
                          op(id).span};
    }
    // A producer starts no copies of iterations that there are not.
    const bool overshoots = !copy.bulk && !loop_.producer && !always_has_trips();
    if (!obstacle && overshoots) obstacle = may_read_outside(copy.src);
    if (obstacle) {
      return diags_.report<diag::PipelineDependence>(op(id).span, ahead_, obstacle->why)
          .label(obstacle->place, "here")
          .help("take the attribute away, or make where the copy reads from depend on `{}` alone",
                function_.vars[loop_.var].name)
          .emit();
    }
    CopyAhead out{id, ir::root_of(function_, copy.dst), {}};
    for (const OpId each : body()) {
      if (address.contains(each)) out.address.push_back(each);
    }
    return out;
  }

  // Adds what the value is made of in the body; an obstacle where the loop computes it.
  std::optional<Obstacle> need(ValueId value, std::set<OpId>& out) {
    const OpId def = function_.values[value].def;
    if (!def.valid() || !inside_.contains(def)) return std::nullopt;
    if (op(def).kind() == ir::OpKind::kAlloc) {
      if (std::holds_alternative<ir::ViewType>(function_.type(value))) return std::nullopt;
      return Obstacle{format("it depends on `{}`, a variable of the loop's body", name(value)),
                      op(def).span};
    }
    if (!out.insert(def).second) return std::nullopt;
    if (auto found = obstacle_of(def)) return found;
    std::optional<Obstacle> found;
    ir::for_each_operand(op(def), [&](std::string_view, ValueId operand) {
      if (!found && operand.valid()) found = need(operand, out);
    });
    ir::for_each_expr(op(def), [&](const ir::Expr& expr) {
      if (!found) found = need(expr, out);
    });
    return found;
  }

  std::optional<Obstacle> need(const ir::Expr& expr, std::set<OpId>& out) {
    std::vector<ir::VarId> vars;
    expr.collect_vars(vars);
    for (const ir::VarId var : vars) {
      for (const OpId id : body()) {
        const auto* bind = std::get_if<ir::Bind>(&op(id).data);
        if (bind == nullptr || bind->var != var) continue;
        out.insert(id);
        if (auto found = need(bind->value, out)) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Obstacle> obstacle_of(OpId def) const {
    if (const auto* get = std::get_if<ir::Get>(&op(def).data)) {
      for (const OpId id : inside_) {
        const auto* set = std::get_if<ir::Set>(&op(id).data);
        if (set == nullptr || set->cell != get->cell) continue;
        return Obstacle{format("it depends on `{}`, which the loop sets", name(get->cell)),
                        op(id).span};
      }
      return std::nullopt;
    }
    if (const auto* read = std::get_if<ir::Read>(&op(def).data)) {
      return is_written(ir::root_of(function_, read->view));
    }
    const bool is_plain = ir::is_pure(op(def).kind()) || op(def).kind() == ir::OpKind::kSubview ||
                          op(def).kind() == ir::OpKind::kAlias;
    if (is_plain) return std::nullopt;
    return Obstacle{"it depends on what the loop computes", op(def).span};
  }

  // Where the loop writes to the buffer.
  std::optional<Obstacle> is_written(ValueId root) const {
    for (const OpId id : inside_) {
      bool writes = false;
      ir::for_each_touch(op(id), [&](const ir::Touch& touch) {
        writes = writes || (touch.writes() && is_view_of(touch.value, root));
      });
      if (writes)
        return Obstacle{format("it depends on `{}`, which the loop writes", name(root)),
                        op(id).span};
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_view_of(ValueId value, ValueId root) const {
    return std::holds_alternative<ir::ViewType>(function_.type(value)) &&
           ir::root_of(function_, value) == root;
  }

  // Where other threads write what the copy, or its address, reads, and the loop waits for them.
  std::optional<Obstacle> is_awaited(ValueId src, const std::set<OpId>& address) const {
    std::set<ValueId> roots = {ir::root_of(function_, src)};
    for (const OpId id : address) {
      const auto* read = std::get_if<ir::Read>(&op(id).data);
      if (read != nullptr) roots.insert(ir::root_of(function_, read->view));
    }
    const auto waits = std::ranges::find_if(inside_, [&](OpId id) { return is_of_threads(id); });
    if (waits == inside_.end()) return std::nullopt;
    std::optional<Obstacle> out;
    ir::walk(function_, body_of(function_, launch_), [&](OpId id) {
      ir::for_each_touch(op(id), [&](const ir::Touch& touch) {
        if (out || !touch.writes() || !touch.value.valid()) return;
        if (!std::holds_alternative<ir::ViewType>(function_.type(touch.value))) return;
        const ValueId root = ir::root_of(function_, touch.value);
        if (!roots.contains(root)) return;
        out = Obstacle{format("the kernel writes `{}`, and the loop waits in between", name(root)),
                       op(*waits).span};
      });
    });
    return out;
  }

  // A wait for other threads, and not for one of the loop's own bulk copies.
  [[nodiscard]] bool is_of_threads(OpId id) const {
    if (op(id).kind() == ir::OpKind::kBarrier) return true;
    const auto* wait = std::get_if<ir::EventWait>(&op(id).data);
    if (wait == nullptr) return false;
    return std::ranges::none_of(body(), [&](OpId other) {
      const auto* copy = std::get_if<ir::Copy>(&op(other).data);
      return copy != nullptr && is_candidate(other) && copy->event == wait->event;
    });
  }

  [[nodiscard]] bool always_has_trips() const {
    return ir::always_less_equal(function_, loop_.lower + ahead_, loop_.upper);
  }

  // The copies in front of the loop are started for iterations too that there are not. What they read is then
  // nothing where they begin behind the end; anything else is no place to look at.
  std::optional<Obstacle> may_read_outside(ValueId view) const {
    const ir::ResolvedView at = ir::resolve_view(function_, view);
    for (std::size_t d = 0; d < at.origin.size(); ++d) {
      const auto origin = of_loop(at.origin[d]);
      const bool uses = at.origin[d].uses(loop_.var) || !origin || origin->uses(loop_.var);
      if (uses && d < at.dropped) {
        return Obstacle{format("`{}` chooses a dimension that the tile does not have",
                               function_.vars[loop_.var].name),
                        function_.vars[loop_.var].span};
      }
      if (!origin || !grows(*origin)) {
        return Obstacle{
            format("where it reads does not grow with `{}`, and the loop may have fewer iterations",
                   function_.vars[loop_.var].name),
            function_.vars[loop_.var].span};
      }
    }
    return std::nullopt;
  }

  // With what the body binds in place of its names; nothing where that is no index expression.
  [[nodiscard]] std::optional<ir::Expr> of_loop(ir::Expr expr) const {
    bool is_known = true;
    const auto bound = [&](ir::VarId var) -> std::optional<ir::Expr> {
      for (const OpId id : body()) {
        const auto* bind = std::get_if<ir::Bind>(&op(id).data);
        if (bind == nullptr || bind->var != var) continue;
        const auto* index = function_.def_as<ir::Index>(bind->value);
        is_known = is_known && index != nullptr;
        return index == nullptr ? std::nullopt : std::optional(index->expr);
      }
      return std::nullopt;
    };
    const std::size_t deepest = body().size();
    for (std::size_t i = 0; i <= deepest && is_known; ++i) {
      const ir::Expr next = expr.substitute(bound);
      if (next == expr) break;
      expr = next;
    }
    return is_known ? std::optional(expr) : std::nullopt;
  }

  // From 0 or more on, and never less in a later iteration.
  [[nodiscard]] bool grows(const ir::Expr& expr) const {
    const auto at = [&](const ir::Expr& turn) {
      return expr.substitute([&](ir::VarId var) -> std::optional<ir::Expr> {
        return var == loop_.var ? std::optional(turn) : std::nullopt;
      });
    };
    if (!expr.uses(loop_.var)) return true;
    return ir::always_less_equal(function_, ir::Expr(0), at(loop_.lower)) &&
           ir::always_less_equal(function_, expr, at(ir::Expr::var(loop_.var) + 1));
  }

  [[nodiscard]] std::string name(ValueId value) const { return function_.values[value].name; }

  // The buffers are the loop's own: nothing else writes them, nothing outside sees them, and nothing reads
  // them before they are filled.
  Checked<bool> check_buffers(const LoopCopies& found) {
    std::set<OpId> copies;
    std::set<ValueId> buffers;
    for (const CopyAhead& each : found.copies) {
      copies.insert(each.copy);
      const bool is_first = buffers.insert(each.buffer).second;
      const bool is_whole = std::get<ir::Copy>(op(each.copy).data).dst == each.buffer;
      if (is_first && is_whole) continue;
      return refuse_buffer(
          each.buffer,
          {is_whole ? "two copies fill it" : "a copy fills a part of it", op(each.copy).span});
    }
    for (const ValueId buffer : buffers) {
      if (const auto obstacle = misuse(buffer, copies)) {
        return refuse_buffer(buffer, *obstacle);
      }
    }
    return true;
  }

  Unexpected<Reported> refuse_buffer(ValueId buffer, const Obstacle& obstacle) {
    return diags_.report<diag::PipelineBuffer>(span_, name(buffer), ahead_ + 1, obstacle.why)
        .label(obstacle.place, "here")
        .help("give the loop a buffer of its own")
        .emit();
  }

  std::optional<Obstacle> misuse(ValueId buffer, const std::set<OpId>& copies) {
    std::optional<Obstacle> found;
    const auto* alloc = function_.def_as<ir::Alloc>(buffer);
    if (alloc == nullptr || alloc->initial.valid()) {
      return Obstacle{"it starts with a value", op(function_.values[buffer].def).span};
    }
    bool is_filled = false;
    ir::walk(function_, body_of(function_, launch_), [&](OpId id) {
      if (found) return;
      if (copies.contains(id)) {
        const auto& copy = std::get<ir::Copy>(op(id).data);
        is_filled = is_filled || ir::root_of(function_, copy.dst) == buffer;
        return;
      }
      found = use_of(buffer, id, is_filled);
    });
    return found;
  }

  std::optional<Obstacle> use_of(ValueId buffer, OpId id, bool is_filled) const {
    const Span place = op(id).span;
    if (const auto* alias = std::get_if<ir::Alias>(&op(id).data);
        alias != nullptr && alias->base == buffer) {
      return Obstacle{"it has another shape, too", place};
    }
    const auto* window = std::get_if<ir::Subview>(&op(id).data);
    if (window != nullptr && window->base == buffer && !inside_.contains(id)) {
      return Obstacle{"a part of it has a name outside of the loop", place};
    }
    std::optional<Obstacle> out;
    ir::for_each_touch(op(id), [&](const ir::Touch& touch) {
      if (out || !touch.value.valid() || !is_view_of(touch.value, buffer)) return;
      if (touch.writes())
        out = Obstacle{"it is written in another way as well", place};
      else if (!inside_.contains(id))
        out = Obstacle{"it is read outside of the loop as well", place};
      else if (!is_filled)
        out = Obstacle{"it is read before the copy", place};
    });
    return out;
  }

  // The event of a synchronous bulk copy is triggered and waited for right behind it.
  void note_meetings(const CopyAhead& each, std::vector<OpId>& out) const {
    const auto& copy = std::get<ir::Copy>(op(each.copy).data);
    if (!copy.event.valid()) return;
    for (const OpId id : body()) {
      const auto* trigger = std::get_if<ir::Trigger>(&op(id).data);
      const auto* wait = std::get_if<ir::EventWait>(&op(id).data);
      const bool of_copy = (trigger != nullptr && trigger->event == copy.event) ||
                           (wait != nullptr && wait->event == copy.event);
      if (of_copy) out.push_back(id);
    }
  }

  const ir::Function& function_;
  OpId launch_;
  const ir::For& loop_;
  Span span_;
  std::int64_t ahead_;
  Diagnostics& diags_;
  std::set<OpId> inside_;
};

}  // namespace

Checked<LoopCopies> copies_ahead(const ir::Function& function, ir::OpId launch, ir::OpId loop,
                                 std::int64_t stages, Diagnostics& diags) {
  return Finder(function, launch, loop, stages - 1, diags).run();
}

}  // namespace kiln::passes
