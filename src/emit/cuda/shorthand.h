// The program's own names for index expressions in a kernel's text, where it would repeat them.
//
//   const int tile = block_id + 132 * round;
//   if (tile < tiles_m * tiles_n) {
//
// A name is declared in the region where all of its variables have come, in front of the operation
// that says it first; one that may divide by 0 in that operation's own region, and not for the
// second operand of `&&`: nothing is computed in front of the test that it stands behind. Which one that is, and whether the text says a name more than once, is known
// only when the text has been written: it is written again then.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "emit/cuda/spell.h"
#include "ir/module.h"

namespace kiln::emit {

struct Shorthand {
  std::size_t index = 0;              // of Function::named
  ir::OpId place = {};                // in front of which it is declared; invalid: not known yet
  ir::VarId var = {};                 // stands for the value
  std::vector<ir::VarId> needs = {};  // what it is made of
  ir::Expr value = {};                // with the names that came before it
  bool can_be = false;                // an int
  bool may_divide_by_zero = false;
  bool never_negative = false;
  std::size_t depth = 0;  // of the region that declares it
  bool in_scope = false;
  bool used = false;
  bool ended = false;  // with the region that it was used in
};

// `expr` with `var` in place of `value`, wherever it is a part of a sum or of another operation.
[[nodiscard]] ir::Expr shortened(const ir::Expr& expr, const ir::Expr& value, ir::VarId var);

class Shorthands {
 public:
  // Those with a place are declared there.
  Shorthands(const ir::Function& function, std::vector<Shorthand> names);

  // Names and variables that come inside of a scope leave with it.
  struct Scope {
    std::size_t names;
    std::size_t vars;
  };
  [[nodiscard]] Scope open() const { return {in_scope_.size(), vars_.size()}; }
  void close(const Scope& scope);
  void enter_region() { operations_.emplace_back(); }
  void leave_region();
  // What is spelled meanwhile may not be computed at all: the second operand of `&&`.
  void enter_choice() { ++choices_; }
  void leave_choice() { --choices_; }

  void add_var(ir::VarId var) {
    vars_.push_back(var);
    has_new_ = true;
  }
  // The region goes on with this operation; `facts` speak of the text's variables. Those to be
  // declared in front of it.
  std::span<const Shorthand* const> advance(ir::OpId op, const VarFacts& facts);
  // With the names in scope; in text, those are used then.
  [[nodiscard]] ir::Expr shorten(ir::Expr expr, bool is_text);

  [[nodiscard]] const std::vector<Shorthand>& all() const { return all_; }

 private:
  void take_in(std::size_t name, const VarFacts& facts);
  // May stand here, in a text or in another name's value.
  [[nodiscard]] bool may_be(const Shorthand& name, bool is_text) const {
    if (!name.may_divide_by_zero) return true;
    return is_text && !name.ended && (name.used || choices_ == 0);
  }
  void use(Shorthand& name);

  const ir::Function& function_;
  std::vector<Shorthand> all_;
  std::map<ir::OpId, std::vector<const Shorthand*>> declared_;  // by what they stand in front of
  std::vector<std::size_t> in_scope_;                           // of all_
  std::vector<ir::VarId> vars_;
  int choices_ = 0;
  bool has_new_ = false;              // among them, for which no name has been looked for
  std::vector<ir::OpId> operations_;  // by depth: where the region is
};

}  // namespace kiln::emit
