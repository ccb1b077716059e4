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
// What was found not to differ is never looked at again; of what differs, the chain of questions
// from the one asked to the source is remembered.
// A cell that leads to itself (`i = i + 1`) adds nothing.
#include "ir/vary.h"

#include <algorithm>
#include <array>

#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "target/arch.h"

namespace kiln::ir {

class Varying::Variation {
 public:
  Variation(const Function& function, Level unit, bool trusts_cuda)
      : function_(function), unit_(unit), trusts_cuda_(trusts_cuda) {}

  void ask_var(VarId id) { note(Kind::kVar, id.index); }
  void ask_value(ValueId id) {
    if (id.valid()) note(Kind::kValue, id.index);
  }
  void ask_cell(ValueId id) { note(Kind::kCell, id.index); }
  void ask_control(OpId id) { note(Kind::kControl, id.index); }

  // Whether anything that was asked, or that it leads to, differs.
  [[nodiscard]] bool differs();

  void forget() {
    for (const Question& question : looked_at_) {
      answer(question.kind, question.index) = Answer::kUnknown;
    }
    looked_at_.clear();
    owner_.clear();
    ways_out_.clear();
    jumps_are_known_ = false;
  }

  // How the operation that defines a value, or declares a variable, makes it differ by itself.
  bool operator()(const Const&) { return false; }
  bool operator()(const Index& op) { return ask(op.expr); }
  bool operator()(const Unary& op) { return ask(op.operand); }
  bool operator()(const Binary& op) { return ask(op.left) || ask(op.right); }
  bool operator()(const Fma& op) { return ask(op.a) || ask(op.b) || ask(op.c); }
  bool operator()(const Cast& op) { return ask(op.operand); }
  bool operator()(const Bitcast& op) { return ask(op.operand); }
  bool operator()(const Choose& op) {
    return ask(op.condition) || ask(op.if_true) || ask(op.if_false);
  }
  bool operator()(const Read& op) {
    const ResolvedView view = resolve_view(function_, op.view);
    for (const Expr& index : op.index) ask(index);
    for (const Expr& block : op.block) ask(block);
    for (const Expr& origin : view.origin) ask(origin);
    return function_.view_type(view.root).space == Space::kLocal;
  }
  bool operator()(const Get& op) {
    ask_cell(op.cell);
    return false;
  }
  // Each warp has its own.
  bool operator()(const Vote&) { return unit_ < Level::kGroup; }
  bool operator()(const Parallel& op) { return op.level > unit_; }
  bool operator()(const For& op) { return ask(op.lower) || ask(op.upper); }
  bool operator()(const Bind& op) { return ask(op.value); }
  bool operator()(const auto&) { return true; }

 private:
  enum class Kind : std::uint8_t { kVar, kValue, kCell, kControl };
  static constexpr std::size_t kKinds = 4;
  enum class Answer : std::uint8_t { kUnknown, kSame, kDiffers };
  struct Question {
    Kind kind;
    std::uint32_t index;
    std::size_t asker;  // the question that led to it
  };
  static constexpr std::size_t kNobody = SIZE_MAX;

  [[nodiscard]] Answer& answer(Kind kind, std::uint32_t index) {
    std::vector<Answer>& answers = answers_[static_cast<std::size_t>(kind)];
    if (index >= answers.size()) answers.resize(index + 1);
    return answers[index];
  }
  // What is open counts as the same: asked again, it adds nothing.
  void note(Kind kind, std::uint32_t index) {
    Answer& known = answer(kind, index);
    if (known == Answer::kSame) return;
    if (known == Answer::kUnknown) {
      known = Answer::kSame;
      looked_at_.push_back({kind, index, current_});
    }
    open_.push_back(asked_.size());
    asked_.push_back({kind, index, current_});
  }
  [[nodiscard]] bool look_at(const Question& question);
  void remember_chain();
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
  [[nodiscard]] bool stands_in_for_cuda(OpId op) const;
  void ask_way_out(OpId jump, OpId loop);
  void find_declarations();
  void find_owners();
  void find_jumps();

  const Function& function_;
  Level unit_;
  bool trusts_cuda_;
  std::array<std::vector<Answer>, kKinds> answers_;  // by number
  std::vector<Question> looked_at_;                  // all that may have an answer
  // Of what is being asked: all questions, those still open, the one that is looked at.
  std::vector<Question> asked_;
  std::vector<std::size_t> open_;
  std::size_t current_ = kNobody;
  // Found when first needed.
  std::uint32_t declarations_known_ = 0;        // of so many operations
  std::vector<OpId> declaration_;               // by VarId
  std::map<ValueId, std::vector<OpId>> sets_;   // by cell
  std::vector<OpId> owner_;                     // by OpId: the operation around it
  std::map<OpId, std::vector<OpId>> ways_out_;  // by loop: what leaves it, or a trip of it
  bool jumps_are_known_ = false;
};

bool Varying::Variation::differs() {
  bool found = false;
  while (!found && !open_.empty()) {
    current_ = open_.back();
    open_.pop_back();
    found = look_at(Question(asked_[current_]));
  }
  if (found) remember_chain();
  asked_.clear();
  open_.clear();
  current_ = kNobody;
  return found;
}

// From the question looked at back to the first one, all differ. The others have no answer yet.
void Varying::Variation::remember_chain() {
  for (const Question& question : asked_) {
    Answer& known = answer(question.kind, question.index);
    if (known == Answer::kSame) known = Answer::kUnknown;
  }
  for (std::size_t at = current_; at != kNobody; at = asked_[at].asker) {
    answer(asked_[at].kind, asked_[at].index) = Answer::kDiffers;
  }
}

bool Varying::Variation::look_at(const Question& question) {
  if (answer(question.kind, question.index) == Answer::kDiffers) return true;
  switch (question.kind) {
    case Kind::kVar: return look_at_var(VarId{question.index});
    case Kind::kValue: return look_at_value(ValueId{question.index});
    case Kind::kCell: return look_at_cell(ValueId{question.index});
    case Kind::kControl: return look_at_control(OpId{question.index});
  }
  return true;
}

// The operations that declare variables, and those that assign to cells; looks at each only once.
void Varying::Variation::find_declarations() {
  declaration_.resize(function_.vars.size());
  while (declarations_known_ < function_.ops.size()) {
    const OpId id{declarations_known_++};
    const auto declares = [&](VarId var) {
      if (var.valid() && !declaration_[var.index].valid()) declaration_[var.index] = id;
    };
    const Op& op = function_.ops[id];
    for_each_var_set(op, declares);
    for_each_touch(op, [&](const Touch& touch) {
      const bool is_cell = std::holds_alternative<CellType>(function_.type(touch.value));
      if (is_cell && touch.writes() && op.kind() != OpKind::kAlloc) {
        sets_[touch.value].push_back(id);
      }
    });
  }
}

// Regions that are still being built have no owner.
void Varying::Variation::find_owners() {
  owner_.resize(function_.ops.size());
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    for (const RegionId region : regions_of(function_.ops[OpId{i}])) {
      for (const OpId inner : function_.regions[region].ops) owner_[inner.index] = OpId{i};
    }
  }
}

// `break` and `continue` belong to the innermost loop, `yield` leaves all of them.
void Varying::Variation::find_jumps() {
  if (owner_.empty()) find_owners();
  jumps_are_known_ = true;
  for (std::uint32_t i = 0; i < function_.ops.size(); ++i) {
    const OpKind kind = function_.ops[OpId{i}].kind();
    const bool of_kernel = kind == OpKind::kYield;
    if (!leaves_early(kind)) continue;
    for (OpId at = owner_[i]; at.valid(); at = owner_[at.index]) {
      if (!is_loop(function_.ops[at].kind())) continue;
      ways_out_[at].push_back(OpId{i});
      if (!of_kernel) break;
    }
  }
}

bool Varying::Variation::look_at_var(VarId id) {
  const Var& declared = function_.vars[id];
  if (known_at_launch(declared.kind)) return false;
  if (declared.extent.is(1)) return false;  // it is always 0
  find_declarations();
  const OpId declaration = declaration_[id.index];
  return !declaration.valid() || kiln::visit(*this, function_.ops[declaration].data);
}

bool Varying::Variation::look_at_value(ValueId id) {
  const OpId def = function_.values[id].def;
  return def.valid() && kiln::visit(*this, function_.ops[def].data);  // else a parameter
}

// It differs too where some threads of the unit get to an assignment and others do not, or not as
// often; of those threads that have the cell.
bool Varying::Variation::look_at_cell(ValueId id) {
  const Alloc* alloc = function_.def_as<Alloc>(id);
  if (alloc == nullptr) return true;
  find_declarations();
  ask_value(alloc->initial);
  const auto sets = sets_.find(id);
  if (sets == sets_.end()) return false;
  if (owner_.empty()) find_owners();
  const OpId end = owner_[function_.values[id].def.index];
  for (const OpId set : sets->second) {
    const auto* by_program = std::get_if<Set>(&function_.ops[set].data);
    if (trusts_cuda_ && (by_program == nullptr || stands_in_for_cuda(set))) continue;
    if (by_program == nullptr) return true;
    ask_value(by_program->value);
    for (OpId at = owner_[set.index]; at.valid() && at != end; at = owner_[at.index]) {
      ask_control(at);
    }
  }
  return false;
}

bool Varying::Variation::stands_in_for_cuda(OpId op) const {
  for (OpId at = owner_[op.index]; at.valid(); at = owner_[at.index]) {
    if (function_.ops[at].kind() == OpKind::kCuda) return true;
  }
  return false;
}

// What leads to the jump, from inside of the loop.
void Varying::Variation::ask_way_out(OpId jump, OpId loop) {
  for (OpId at = owner_[jump.index]; at != loop; at = owner_[at.index]) {
    const OpData& data = function_.ops[at].data;
    if (std::holds_alternative<If>(data)) ask_control(at);
    if (const auto* inner = std::get_if<For>(&data)) (void)(*this)(*inner);
  }
}

bool Varying::Variation::look_at_control(OpId id) {
  const OpData& data = function_.ops[id].data;
  if (const auto* branch = std::get_if<If>(&data)) {
    ask_value(branch->condition);
    return false;
  }
  if (const auto* some = std::get_if<Inthreads>(&data)) return !has_whole_units(*some, unit_);
  if (std::holds_alternative<Once>(data)) return true;
  if (!is_loop(function_.ops[id].kind())) return false;
  if (const auto* counted = std::get_if<For>(&data)) (void)(*this)(*counted);
  if (!jumps_are_known_) find_jumps();
  const auto ways = ways_out_.find(id);
  if (ways == ways_out_.end()) return false;
  for (const OpId jump : ways->second) ask_way_out(jump, id);
  return false;
}

Varying::Varying(const Function& function, OfCuda of_cuda)
    : function_(function), of_cuda_(of_cuda) {}
Varying::~Varying() = default;

Varying::Variation& Varying::in(Level unit) {
  std::unique_ptr<Variation>& variation = by_unit_[unit];
  if (variation == nullptr) {
    variation = std::make_unique<Variation>(function_, unit, of_cuda_ == OfCuda::kMayBeTheSame);
  }
  return *variation;
}

Varying& Varying::anew() {
  for (const auto& [unit, variation] : by_unit_) variation->forget();
  return *this;
}

bool Varying::var(VarId var, Level unit) {
  in(unit).ask_var(var);
  return in(unit).differs();
}

bool Varying::value(ValueId value, Level unit) {
  in(unit).ask_value(value);
  return in(unit).differs();
}

bool Varying::control(OpId op, Level unit) {
  in(unit).ask_control(op);
  return in(unit).differs();
}

bool has_whole_units(const Inthreads& some, Level unit) {
  const std::int64_t lanes = unit == Level::kGroup    ? target::kWarpLanes
                             : unit == Level::kGroup4 ? target::kWarpgroupLanes
                                                      : 0;
  return lanes != 0 && some.first % lanes == 0 && some.threads % lanes == 0;
}

bool varies_in(const Function& function, VarId var, Level unit) {
  return Varying(function).var(var, unit);
}

bool value_varies_in(const Function& function, ValueId value, Level unit) {
  return Varying(function).value(value, unit);
}

bool control_varies_in(const Function& function, OpId op, Level unit) {
  return Varying(function).control(op, unit);
}

}  // namespace kiln::ir
