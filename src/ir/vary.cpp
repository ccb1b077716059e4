// Whether the threads of one unit differ: in a variable, in a scalar's value, in the way they go.
//
//   parallel w by 4 : group            w            differs in a block, not in a warp
//   mutable int r = w; r = r + 1;      r            as w does
//   if (t < 5) r = 7;                  r            as t does too: some threads get there only
//   while (true) { if (t < i) break; ... }          the loop's control differs as t does
//
// "Differs" is reachability: a question leads to others (a value to its operands, a cell to what is
// assigned to it and to the control around the assignments, control to conditions and bounds), and
// the answer is yes when one of them is a source: an index of a finer level, local memory. Each is
// asked once, however many lead to it, so that a question costs no more than the program is long.
// A cell that leads to itself (`i = i + 1`) adds nothing.
#include <algorithm>
#include <map>

#include "ir/prove.h"
#include "ir/reflect.h"

namespace kiln::ir {

namespace {

class Variation {
 public:
  Variation(const Function& function, Level unit)
      : function_(function),
        unit_(unit),
        vars_(function.vars.size()),
        values_(function.values.size()),
        cells_(function.values.size()),
        controls_(function.ops.size()) {}

  void ask_var(VarId id) {
    if (!is_marked(vars_, id.index)) open_vars_.push_back(id);
  }
  void ask_value(ValueId id) {
    if (id.valid() && !is_marked(values_, id.index)) open_values_.push_back(id);
  }
  void ask_control(OpId id) {
    if (!is_marked(controls_, id.index)) open_controls_.push_back(id);
  }

  // Whether anything that was asked, or that it leads to, differs.
  [[nodiscard]] bool differs();

  // How the operation that defines a value, or declares a variable, makes it differ by itself.
  bool operator()(const Const&) { return false; }
  bool operator()(const Index& op) { return ask(op.expr); }
  bool operator()(const Unary& op) { return ask(op.operand); }
  bool operator()(const Binary& op) { return ask(op.left) || ask(op.right); }
  bool operator()(const Cast& op) { return ask(op.operand); }
  bool operator()(const Choose& op) {
    return ask(op.condition) || ask(op.if_true) || ask(op.if_false);
  }
  bool operator()(const Read& op) {
    const ResolvedView view = resolve_view(function_, op.view);
    for (const Expr& index : op.index) ask(index);
    for (const Expr& origin : view.origin) ask(origin);
    return function_.view_type(view.root).space == Space::kLocal;
  }
  bool operator()(const Get& op) { return look_at_cell(op.cell); }
  bool operator()(const Parallel& op) { return op.level > unit_; }
  bool operator()(const For& op) { return ask(op.lower) || ask(op.upper); }
  bool operator()(const Bind& op) { return ask(op.value); }
  bool operator()(const auto&) { return true; }

 private:
  // Marks it as asked; true when it was before.
  static bool is_marked(std::vector<bool>& marks, std::size_t index) {
    const bool before = marks[index];
    marks[index] = true;
    return before;
  }
  // They only note the question.
  bool ask(ValueId id) {
    ask_value(id);
    return false;
  }
  bool ask(const Expr& expr) {
    std::vector<VarId> vars;
    expr.collect_vars(vars);
    for (const VarId var : vars) ask_var(var);
    return false;
  }
  // By themselves, without what they lead to.
  [[nodiscard]] bool look_at_var(VarId id);
  [[nodiscard]] bool look_at_value(ValueId id);
  [[nodiscard]] bool look_at_cell(ValueId id);
  [[nodiscard]] bool look_at_control(OpId id);
  void ask_way_out(OpId jump, OpId loop);
  void find_declarations();
  void find_owners();
  void find_jumps();

  const Function& function_;
  Level unit_;
  // What has been asked, by number.
  std::vector<bool> vars_;
  std::vector<bool> values_;
  std::vector<bool> cells_;
  std::vector<bool> controls_;
  std::vector<VarId> open_vars_;
  std::vector<ValueId> open_values_;
  std::vector<OpId> open_controls_;
  // Found when first needed.
  bool declarations_are_known_ = false;
  std::vector<OpId> declaration_;               // by VarId
  std::map<ValueId, std::vector<OpId>> sets_;   // by cell
  std::vector<OpId> owner_;                     // by OpId: the operation around it
  std::map<OpId, std::vector<OpId>> ways_out_;  // by loop: what leaves it, or a trip of it
  bool jumps_are_known_ = false;
};

bool Variation::differs() {
  while (true) {
    if (!open_values_.empty()) {
      const ValueId id = open_values_.back();
      open_values_.pop_back();
      if (look_at_value(id)) return true;
    } else if (!open_vars_.empty()) {
      const VarId id = open_vars_.back();
      open_vars_.pop_back();
      if (look_at_var(id)) return true;
    } else if (!open_controls_.empty()) {
      const OpId id = open_controls_.back();
      open_controls_.pop_back();
      if (look_at_control(id)) return true;
    } else {
      return false;
    }
  }
}

// The operations that declare variables, and those that assign to cells.
void Variation::find_declarations() {
  declarations_are_known_ = true;
  declaration_.resize(function_.vars.size());
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    const OpId id{i};
    const auto declares = [&](VarId var) {
      if (var.valid() && !declaration_[var.index].valid()) declaration_[var.index] = id;
    };
    const OpData& data = function_.ops[id].data;
    if (const auto* parallel = std::get_if<Parallel>(&data)) {
      std::for_each(parallel->vars.begin(), parallel->vars.end(), declares);
      std::for_each(parallel->cluster.begin(), parallel->cluster.end(), declares);
    } else if (const auto* loop = std::get_if<For>(&data)) {
      declares(loop->var);
    } else if (const auto* each = std::get_if<Apply>(&data)) {
      declares(each->row);
      declares(each->col);
    } else if (const auto* bind = std::get_if<Bind>(&data)) {
      declares(bind->var);
    } else if (const auto* set = std::get_if<Set>(&data)) {
      sets_[set->cell].push_back(id);
    }
  }
}

// Regions that are still being built have no owner.
void Variation::find_owners() {
  owner_.resize(function_.ops.size());
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    for (const RegionId region : regions_of(function_.ops[OpId{i}])) {
      for (const OpId inner : function_.regions[region].ops) owner_[inner.index] = OpId{i};
    }
  }
}

bool is_loop(const Op& op) { return op.kind() == OpKind::kFor || op.kind() == OpKind::kLoop; }

// `break` and `continue` belong to the innermost loop, `yield` leaves all of them.
void Variation::find_jumps() {
  if (owner_.empty()) find_owners();
  jumps_are_known_ = true;
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    const OpKind kind = function_.ops[OpId{i}].kind();
    const bool of_kernel = kind == OpKind::kYield;
    if (!of_kernel && kind != OpKind::kBreak && kind != OpKind::kContinue) continue;
    for (OpId at = owner_[i]; at.valid(); at = owner_[at.index]) {
      if (!is_loop(function_.ops[at])) continue;
      ways_out_[at].push_back(OpId{i});
      if (!of_kernel) break;
    }
  }
}

bool Variation::look_at_var(VarId id) {
  const Var& declared = function_.vars[id];
  if (declared.kind == VarKind::kDim || declared.kind == VarKind::kScalar) return false;
  if (declared.extent.is(1)) return false;  // it is always 0
  if (!declarations_are_known_) find_declarations();
  const OpId declaration = declaration_[id.index];
  return !declaration.valid() || std::visit(*this, function_.ops[declaration].data);
}

bool Variation::look_at_value(ValueId id) {
  const OpId def = function_.values[id].def;
  return def.valid() && std::visit(*this, function_.ops[def].data);  // else a parameter
}

// It differs too where some threads of the unit get to an assignment and others do not, or not as
// often; of those threads that have the cell.
bool Variation::look_at_cell(ValueId id) {
  if (is_marked(cells_, id.index)) return false;
  const Alloc* alloc = function_.def_as<Alloc>(id);
  if (alloc == nullptr) return true;
  if (!declarations_are_known_) find_declarations();
  ask_value(alloc->initial);
  const auto sets = sets_.find(id);
  if (sets == sets_.end()) return false;
  if (owner_.empty()) find_owners();
  const OpId end = owner_[function_.values[id].def.index];
  for (const OpId set : sets->second) {
    ask_value(std::get<Set>(function_.ops[set].data).value);
    for (OpId at = owner_[set.index]; at.valid() && at != end; at = owner_[at.index]) {
      ask_control(at);
    }
  }
  return false;
}

// What leads to the jump, from inside of the loop.
void Variation::ask_way_out(OpId jump, OpId loop) {
  for (OpId at = owner_[jump.index]; at != loop; at = owner_[at.index]) {
    const OpData& data = function_.ops[at].data;
    if (std::holds_alternative<If>(data)) ask_control(at);
    if (const auto* inner = std::get_if<For>(&data)) (void)(*this)(*inner);
  }
}

bool Variation::look_at_control(OpId id) {
  const OpData& data = function_.ops[id].data;
  if (const auto* branch = std::get_if<If>(&data)) {
    ask_value(branch->condition);
    return false;
  }
  if (std::holds_alternative<Once>(data) || std::holds_alternative<Inthreads>(data)) return true;
  if (!is_loop(function_.ops[id])) return false;
  if (const auto* counted = std::get_if<For>(&data)) (void)(*this)(*counted);
  if (!jumps_are_known_) find_jumps();
  const auto ways = ways_out_.find(id);
  if (ways == ways_out_.end()) return false;
  for (const OpId jump : ways->second) ask_way_out(jump, id);
  return false;
}

}  // namespace

bool varies_in(const Function& function, VarId var, Level unit) {
  Variation variation(function, unit);
  variation.ask_var(var);
  return variation.differs();
}

bool value_varies_in(const Function& function, ValueId value, Level unit) {
  Variation variation(function, unit);
  variation.ask_value(value);
  return variation.differs();
}

bool control_varies_in(const Function& function, OpId op, Level unit) {
  Variation variation(function, unit);
  variation.ask_control(op);
  return variation.differs();
}

}  // namespace kiln::ir
