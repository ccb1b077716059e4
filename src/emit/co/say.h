// What the functions that say operations share: the function, its names, and the text so far.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"
#include "ir/names.h"
#include "support/format.h"

namespace kiln::emit_co {

// How tightly an expression's outermost operator binds, in the order of the language: `& ^ |` bind more
// tightly than arithmetic there.
enum class Binding : std::uint8_t {
  kTernary,
  kOr,
  kAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kBits,
  kPrimary,
};

struct Spelled {
  std::string text;
  Binding binding = Binding::kPrimary;
};

// The text, in brackets when its operator binds less tightly than `least`.
[[nodiscard]] std::string bracketed(const Spelled& spelled, Binding least);

// Where an operation stands: its region, and how many stand in front of it there.
struct Site {
  ir::RegionId region;
  std::size_t index = 0;
};

struct Co {
  const ir::Function& function;
  Diagnostics& diags;
  std::string out = {};
  int depth = 0;
  bool failed = false;
  std::set<std::string> taken = {};               // names that something has
  std::vector<std::string> value_names = {};      // by value; "": none yet
  std::vector<std::string> var_names = {};        // by variable
  std::vector<std::vector<ir::OpId>> users = {};  // by value: the operations that take it
  std::vector<Site> sites = {};                   // by operation
  std::vector<bool> inlined = {};                 // by operation: said where its value is used
  std::vector<bool> done = {};                    // by operation: said with another one
  // By value, of those that stand for another tile: an operand that is made of one.
  std::map<ir::ValueId, ir::ValueId> stands_for = {};
  // Buffers that are declared as arrays, and the dimensions that number their elements.
  std::map<ir::ValueId, std::size_t> arrays = {};
  std::vector<const ir::Parallel*> levels = {};  // the inner ones around, outermost first
  std::vector<std::string> stores = {};  // handles of bulk stores that nothing has waited for
  // Names of copies that change places: by variable that holds the number of a name's buffer, the name;
  // the cells that these numbers are kept in, and the arrays of the buffers.
  std::map<ir::VarId, ir::ValueId> stages = {};
  std::map<ir::ValueId, ir::ValueId> stage_cells = {};
  std::set<ir::ValueId> stage_arrays = {};
  // Within a tile expression: names of tiles stand for their elements, and these variables are their
  // rows and columns.
  bool whole_tiles = false;
  std::map<ir::VarId, std::string> indices = {};
  // Within `apply`: what an element is reached by.
  std::string row = {};
  std::string col = {};
};

void line(Co& co, std::string_view text);
// Reports that the operation cannot be said, and why.
void unsayable(Co& co, const ir::Op& op, std::string_view why);

// A name that nothing else of the function has.
[[nodiscard]] std::string fresh_name(Co& co, std::string wanted);
// The value's name, which it has from its first mention on.
[[nodiscard]] const std::string& name_of(Co& co, ir::ValueId value);

[[nodiscard]] std::string type_name(DType dtype);
// `value` as a literal of the type.
[[nodiscard]] Spelled literal(DType dtype, double value);
[[nodiscard]] Spelled integer_literal(DType dtype, std::int64_t whole);
[[nodiscard]] Spelled spell(Co& co, const ir::Expr& expr);
[[nodiscard]] std::string spell_text(Co& co, const ir::Expr& expr);
[[nodiscard]] std::string list(Co& co, const std::vector<ir::Expr>& exprs);
// A view as an expression of views.
[[nodiscard]] std::string view(Co& co, ir::ValueId value);
// An element of it, of the thread's own block or of another one of the cluster.
[[nodiscard]] std::string element(Co& co, ir::ValueId buffer, const std::vector<ir::Expr>& index,
                                  const std::vector<ir::Expr>& block = {});
// A scalar where it is used: its name, or the expression that gives it.
[[nodiscard]] Spelled scalar(Co& co, ir::ValueId value);
[[nodiscard]] std::string scalar_text(Co& co, ir::ValueId value);
// `f` or `f[slot]` of an event.
[[nodiscard]] std::string event(Co& co, ir::ValueId value, const ir::Expr& slot);
[[nodiscard]] std::string quoted(std::string_view text);

// Finds names of copies that change places.
void find_rotations(Co& co);
// Finds what is said where it is used (`inlined`), before anything is said.
void plan_inlining(Co& co);

// Whether the operation that gives the tile its first value says the tile's name and type as well.
[[nodiscard]] bool declares(const Co& co, const ir::Op& op, ir::ValueId tile);
// Whether the event is one that a synchronous bulk copy brought with it.
[[nodiscard]] bool is_of_copy(const Co& co, ir::ValueId event);
// Its declaration.
[[nodiscard]] std::string event_text(Co& co, const ir::Op& op, const ir::Event& data);

void say_region(Co& co, ir::RegionId region);
void say_block(Co& co, const std::string& head, ir::RegionId region);

// One function per operation: its statement. Those that only give a value say it in `value_text`.
#define KILN_OP(Struct, ...) void say(Co& co, const ir::Op& op, const ir::Struct& data);
#include "ir/op.def"
#undef KILN_OP
void say(Co& co, const ir::Op& op, const ir::NoOp& none);

// One function per operation that gives a scalar: its expression.
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Const& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Index& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Unary& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Binary& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Fma& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Cast& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Bitcast& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Choose& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Get& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Read& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Atomic& data);
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const ir::Element& data);
// Others give none.
[[nodiscard]] Spelled value_of(Co& co, const ir::Op& op, const auto&) {
  unsayable(co, op, "it gives no number");
  return {"0"};
}

}  // namespace kiln::emit_co
