// Rules of names, scopes and nesting.
#include <map>
#include <set>

#include "ir/effects.h"
#include "ir/names.h"
#include "ir/prove.h"
#include "ir/rules.h"

namespace kiln::ir {

namespace {

bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
  });
}

void names_are_unique(const Module&, const Function& f, Mistakes& mistakes) {
  const auto look = [&](const auto& table, std::string_view what) {
    std::set<std::string_view> seen;
    for (const auto& row : table) {
      if (!is_plain(row.name)) {
        mistakes.push_back(format("{} `{}` cannot be read back", what, row.name));
      } else if (!seen.insert(row.name).second) {
        mistakes.push_back(format("two {}s named `{}`", what, row.name));
      }
    }
  };
  look(f.vars, "variable");
  look(f.values, "value");
}

void params_are_values(const Module&, const Function& f, Mistakes& mistakes) {
  for (const Param& param : f.params) {
    const Value& value = f.values[param.value];
    const ViewType* view = type_as<ViewType>(f, param.value);
    const ScalarType* scalar = type_as<ScalarType>(f, param.value);
    if (value.name != param.name || value.def.valid()) {
      mistakes.push_back(format("parameter `{}` is value `%{}`", param.name, value.name));
    }
    if (view == nullptr && scalar == nullptr) {
      mistakes.push_back(format("parameter `{}` is neither a view nor a scalar", param.name));
    }
    if (view != nullptr && view->space != Space::kGlobal) {
      mistakes.push_back(
          format("parameter `{}` is a view of {} memory", param.name, name_of(view->space)));
    }
    for (const Expr& extent : view == nullptr ? std::vector<Expr>{} : view->shape) {
      if (known_at_launch(f, extent)) continue;
      mistakes.push_back(format("parameter `{}` has the extent {}, which no call knows", param.name,
                                f.text(extent)));
    }
    if (!param.var.valid()) continue;
    if (scalar == nullptr || !is_integer(scalar->dtype) ||
        f.vars[param.var].kind != VarKind::kScalar) {
      mistakes.push_back(format("`{}` is no integer held by scalar variable `{}`", param.name,
                                f.vars[param.var].name));
    }
  }
}

bool may_be_missing(OpKind kind, std::string_view key) {
  return (kind == OpKind::kReturn && key == "value") ||
         (kind == OpKind::kAlloc && key == "initial") || (kind == OpKind::kIf && key == "else") ||
         (kind == OpKind::kCopy && (key == "event" || key == "future")) ||
         (kind == OpKind::kMma && key == "metadata") || (kind == OpKind::kApply && key == "ones") ||
         (kind == OpKind::kMmaWait && key == "first") ||
         (kind == OpKind::kAtomic && key == "compare") ||
         (kind == OpKind::kCuda && key == "stand_in");
}

void operands_are_given(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const Op& op = f.ops[id];
    for_each_field(op, [&](std::string_view key, const auto& field) {
      constexpr bool kIsDecision = std::is_same_v<std::remove_cvref_t<decltype(field)>, Layout>;
      if constexpr (!kIsDecision && requires { field.valid(); }) {
        if (!field.valid() && !may_be_missing(op.kind(), key)) {
          complain(mistakes, f, id, "`{}` is missing", key);
        }
      }
    });
  });
}

void operands_are_in_scope(const Module&, const Function& f, Mistakes& mistakes) {
  std::vector<bool> visible(f.values.size());
  for (const Param& param : f.params) visible[param.value.index] = true;
  const auto enter = [&](auto& self, RegionId region) -> void {
    std::vector<ValueId> defined;
    for (const OpId id : f.regions[region].ops) {
      for_each_operand(f.ops[id], [&](std::string_view key, ValueId value) {
        if (!value.valid() || visible[value.index]) return;
        complain(mistakes, f, id, "`{}` names `%{}` where it is not visible", key,
                 f.values[value].name);
      });
      for (const RegionId inner : regions_of(f.ops[id])) self(self, inner);
      const ValueId result = f.ops[id].result;
      if (!result.valid()) continue;
      visible[result.index] = true;
      defined.push_back(result);
    }
    for (const ValueId value : defined) visible[value.index] = false;
  };
  enter(enter, f.body);
}

void results_are_defined(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const Op& op = f.ops[id];
    if (op.result.valid() != has_result(op.kind())) {
      complain(mistakes, f, id, "{} result", op.result.valid() ? "has a" : "has no");
    } else if (op.result.valid() && f.values[op.result].def != id) {
      complain(mistakes, f, id, "its result has another definition");
    }
  });
}

std::vector<VarId> vars_set_by(const Op& op) {
  std::vector<VarId> vars;
  for_each_var_set(op, [&](VarId var) { vars.push_back(var); });
  return vars;
}

VarKind kind_set_by(OpKind kind) {
  if (kind == OpKind::kParallel) return VarKind::kParallel;
  return kind == OpKind::kFor || kind == OpKind::kApply ? VarKind::kLoop : VarKind::kBound;
}

void vars_are_in_scope(const Module&, const Function& f, Mistakes& mistakes) {
  std::vector<bool> visible(f.vars.size());
  for (std::size_t i = 0; i < f.vars.size(); ++i) {
    const VarKind kind = f.vars[VarId{static_cast<std::uint32_t>(i)}].kind;
    visible[i] = known_at_launch(kind);
  }
  const auto set = [&](const std::vector<VarId>& vars, bool to) {
    for (const VarId var : vars) {
      if (var.valid()) visible[var.index] = to;
    }
  };
  const auto look = [&](OpId id, const Expr& expr) {
    std::vector<VarId> used;
    expr.collect_vars(used);
    for (const VarId var : used) {
      if (!visible[var.index]) {
        complain(mistakes, f, id, "variable `{}` has no value here", f.vars[var].name);
      }
    }
  };
  const auto enter = [&](auto& self, RegionId region) -> void {
    std::vector<VarId> bound;
    for (const OpId id : f.regions[region].ops) {
      const Op& op = f.ops[id];
      for_each_expr(op, [&](const Expr& expr) { look(id, expr); });
      const ViewType* view = type_as<ViewType>(f, op.result);
      if (view != nullptr) {
        for (const Expr& extent : view->shape) look(id, extent);
      }
      set(vars_set_by(op), true);
      for (const RegionId inner : regions_of(op)) self(self, inner);
      if (op.kind() != OpKind::kBind)
        set(vars_set_by(op), false);
      else
        bound.push_back(std::get<Bind>(op.data).var);
    }
    set(bound, false);
  };
  enter(enter, f.body);
}

void vars_are_set_once(const Module&, const Function& f, Mistakes& mistakes) {
  std::vector<bool> set(f.vars.size());
  walk(f, f.body, [&](OpId id) {
    const OpKind kind = f.ops[id].kind();
    for (const VarId var : vars_set_by(f.ops[id])) {
      if (!var.valid()) continue;
      if (set[var.index]) complain(mistakes, f, id, "sets `{}` again", f.vars[var].name);
      set[var.index] = true;
      if (f.vars[var].kind == kind_set_by(kind)) continue;
      complain(mistakes, f, id, "sets `{}`, a {} variable", f.vars[var].name,
               name_of(f.vars[var].kind));
    }
  });
}

void axes_have_extents(const Module&, const Function& f, Mistakes& mistakes) {
  for (const Var& var : f.vars) {
    const bool bounded = var.kind == VarKind::kParallel || var.kind == VarKind::kLoop;
    const std::optional<std::int64_t> extent = var.extent.constant();
    if (var.kind == VarKind::kParallel && extent && *extent < 1) {
      mistakes.push_back(format("axis `{}` has extent {}", var.name, *extent));
    }
    if (!bounded && !var.extent.is(0) && var.kind != VarKind::kBound) {
      mistakes.push_back(format("{} variable `{}` has an extent", name_of(var.kind), var.name));
    }
  }
}

void expressions_fit(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    for_each_expr(f.ops[id], [&](const Expr& expr) {
      if (expr.overflowed()) complain(mistakes, f, id, "an expression leaves 64 bits");
    });
  });
  for (const Var& var : f.vars) {
    if (!var.extent.overflowed()) continue;
    mistakes.push_back(format("the extent of `{}` leaves 64 bits", var.name));
  }
}

void launches_are_not_nested(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const Parallel* parallel = std::get_if<Parallel>(&f.ops[id].data);
    if (parallel == nullptr) return;
    const bool outermost = innermost_parallel(f, enclosing) == nullptr;
    if (outermost == (parallel->level == Level::kBlock)) return;
    complain(mistakes, f, id, "a {} level {} a launch", name_of(parallel->level),
             outermost ? "outside" : "inside");
  });
}

void launches_fit(const Module& module, const Function& f, Mistakes& mistakes) {
  for_each_op<Parallel>(f, [&](const Parallel& parallel, OpId id) {
    if (parallel.level != Level::kBlock) return;
    if (parallel.vars.empty() || parallel.vars.size() > 3) {
      complain(mistakes, f, id, "{} axes, a grid has 1 to 3", parallel.vars.size());
    }
    const std::optional<std::int64_t> threads = parallel.threads.constant();
    const std::int64_t most = module.arch == nullptr ? 1024 : module.arch->threads_per_block_max;
    if (threads && (*threads < 1 || *threads > most)) {
      complain(mistakes, f, id, "{} threads, a block has 1 to {}", *threads, most);
    }
  });
}

void parallel_levels_descend(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const Parallel* parallel = std::get_if<Parallel>(&f.ops[id].data);
    if (parallel == nullptr) return;
    if (parallel->unit != threads_of(parallel->level)) {
      complain(mistakes, f, id, "unit {}, a {} has {}", parallel->unit, name_of(parallel->level),
               threads_of(parallel->level));
    }
    const Parallel* around = innermost_parallel(f, enclosing);
    const bool inner = parallel->level != Level::kBlock;  // else launches-are-not-nested says so
    if (inner && around != nullptr && parallel->level <= around->level) {
      complain(mistakes, f, id, "a {} level inside a {}", name_of(parallel->level),
               name_of(around->level));
    }
  });
}

void parallel_units_fill(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const Parallel* parallel = std::get_if<Parallel>(&f.ops[id].data);
    const Parallel* around = innermost_parallel(f, enclosing);
    if (parallel == nullptr || parallel->level == Level::kBlock || around == nullptr) return;
    Expr needed(parallel->unit);
    for (const VarId var : parallel->vars) {
      if (var.valid()) needed = needed * f.vars[var].extent;
    }
    const Expr there = around->level == Level::kBlock ? around->threads : Expr(around->unit);
    if (needed == there) return;
    complain(mistakes, f, id, "its instances have {} threads, the unit around it {}",
             f.text(needed), f.text(there));
  });
}

void loops_step_up(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<For>(f, [&](const For& loop, OpId id) {
    if (loop.step < 1) complain(mistakes, f, id, "step {} is below 1", loop.step);
    if (loop.var.valid() && !(f.vars[loop.var].first == loop.lower)) {
      complain(mistakes, f, id, "`{}` begins at {}, the loop at {}", f.vars[loop.var].name,
               f.text(f.vars[loop.var].first), f.text(loop.lower));
    }
    if (loop.unroll < 0) complain(mistakes, f, id, "unroll {} is below 0", loop.unroll);
  });
}

void conditions_are_bool(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    for_each_operand(f.ops[id], [&](std::string_view key, ValueId value) {
      if (key != "condition" || !value.valid() || is_scalar_of(f, value, DType::kBool)) return;
      complain(mistakes, f, id, "`%{}` is no bool", f.values[value].name);
    });
  });
}

// `break` and `continue` act on the loop around them, and leave no level of threads for it.
void jumps_have_a_loop(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const OpKind kind = f.ops[id].kind();
    if (kind != OpKind::kBreak && kind != OpKind::kContinue) return;
    for (auto around = enclosing.rbegin(); around != enclosing.rend(); ++around) {
      const OpKind outer = f.ops[*around].kind();
      if (is_loop(outer)) return;
      if (outer != OpKind::kIf) break;
    }
    complain(mistakes, f, id, "in no loop of its level");
  });
}

// One elected thread alone cannot leave the kernel.
void yields_are_of_all(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    if (f.ops[id].kind() != OpKind::kYield) return;
    const bool elected = std::any_of(enclosing.begin(), enclosing.end(), [&](OpId around) {
      return f.ops[around].kind() == OpKind::kOnce;
    });
    if (elected) complain(mistakes, f, id, "by one thread of the unit");
  });
}

// Nothing else ends it.
void loops_can_end(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Loop>(f, [&](const Loop& loop, OpId id) {
    if (!loop.body.valid()) return;
    bool ends = false;
    walk(f, loop.body, [&](OpId inner) {
      const OpKind kind = f.ops[inner].kind();
      ends = ends || kind == OpKind::kBreak || kind == OpKind::kYield;
    });
    if (!ends) complain(mistakes, f, id, "nothing leaves it");
  });
}

void returns_are_on_the_host(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    if (traits(f.ops[id].kind()).place != Place::kHost) return;
    if (innermost_parallel(f, enclosing) == nullptr) return;
    complain(mistakes, f, id, "returns from inside a launch");
  });
}

void barriers_have_a_unit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Barrier>(f, [&](const Barrier& barrier, OpId id) {
    if (barrier.level == Level::kThread) complain(mistakes, f, id, "one thread has no barrier");
  });
}

void once_runs_alone(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const bool inside = std::any_of(enclosing.begin(), enclosing.end(), [&](OpId around) {
      return f.ops[around].kind() == OpKind::kOnce;
    });
    if (inside && is_collective(f.ops[id])) {
      complain(mistakes, f, id, "needs a whole unit but runs in one thread");
    }
  });
}

void collectives_are_launched(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    if (traits(f.ops[id].kind()).place != Place::kKernel) return;
    if (innermost_parallel(f, enclosing) == nullptr) complain(mistakes, f, id, "outside a launch");
  });
}

bool writes_memory(const Function& f, const Op& op) {
  const std::vector<Touch> touches = memory_touched(f, op);
  return std::any_of(touches.begin(), touches.end(), [](const Touch& touch) {
    return touch.writes() && touch.use != Use::kStarts;
  });
}

// Whether each place of `whole` has an element of `part`: its own, or its row's or column's.
bool spans(const FragType& part, const FragType& whole) {
  const auto meets = [](std::int64_t extent, std::int64_t of) {
    return extent == of || extent == 1;
  };
  return meets(part.rows, whole.rows) && meets(part.cols, whole.cols);
}

// An element is of a tile that has one for each place that the `apply` around goes through, and
// nothing else in there needs more than one thread or writes memory.
void applies_go_element_by_element(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const Apply* around = nullptr;
    for (const OpId outer : enclosing) {
      if (const auto* each = std::get_if<Apply>(&f.ops[outer].data)) around = each;
    }
    const Op& op = f.ops[id];
    const auto* element = std::get_if<Element>(&op.data);
    const auto* set = std::get_if<SetElement>(&op.data);
    if (element != nullptr || set != nullptr) {
      const FragType* tile = type_as<FragType>(f, element != nullptr ? element->frag : set->frag);
      const FragType* whole = around == nullptr ? nullptr : type_as<FragType>(f, around->frag);
      if (tile == nullptr || whole == nullptr) {
        complain(mistakes, f, id, "in no `apply` of register tiles");
      } else if (!spans(*tile, *whole)) {
        complain(mistakes, f, id, "{}x{} in an `apply` of {}x{}", tile->rows, tile->cols,
                 whole->rows, whole->cols);
      }
    } else if (around != nullptr && op.kind() != OpKind::kWrite &&
               (is_collective(op) || writes_memory(f, op) || op.kind() == OpKind::kOnce)) {
      complain(mistakes, f, id, "inside an `apply`");
    }
  });
}

constexpr Rule kStructureRules[] = {
    {"names-are-unique", Form::kTile, names_are_unique},
    {"params-are-values", Form::kTile, params_are_values},
    {"operands-are-given", Form::kTile, operands_are_given},
    {"operands-are-in-scope", Form::kTile, operands_are_in_scope},
    {"results-are-defined", Form::kTile, results_are_defined},
    {"vars-are-in-scope", Form::kTile, vars_are_in_scope},
    {"vars-are-set-once", Form::kTile, vars_are_set_once},
    {"axes-have-extents", Form::kTile, axes_have_extents},
    {"expressions-fit", Form::kTile, expressions_fit},
    {"launches-are-not-nested", Form::kTile, launches_are_not_nested},
    {"launches-fit", Form::kTile, launches_fit},
    {"parallel-levels-descend", Form::kTile, parallel_levels_descend},
    {"parallel-units-fill", Form::kTile, parallel_units_fill},
    {"loops-step-up", Form::kTile, loops_step_up},
    {"conditions-are-bool", Form::kTile, conditions_are_bool},
    {"jumps-have-a-loop", Form::kTile, jumps_have_a_loop},
    {"yields-are-of-all", Form::kTile, yields_are_of_all},
    {"loops-can-end", Form::kTile, loops_can_end},
    {"returns-are-on-the-host", Form::kTile, returns_are_on_the_host},
    {"barriers-have-a-unit", Form::kTile, barriers_have_a_unit},
    {"once-runs-alone", Form::kTile, once_runs_alone},
    {"collectives-are-launched", Form::kTile, collectives_are_launched},
    {"applies-go-element-by-element", Form::kTile, applies_go_element_by_element},
};

}  // namespace

std::span<const Rule> structure_rules() { return kStructureRules; }

}  // namespace kiln::ir
