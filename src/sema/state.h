// State of the analysis of one tile function, and the small operations every part of it uses.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"
#include "sema/operand.h"
#include "sema/scope.h"
#include "syntax/ast.h"
#include "target/arch.h"

namespace kiln::sema {

// Where the statement being analysed stands.
struct Place {
  bool in_kernel = false;
  ir::Level level = ir::Level::kBlock;  // of the innermost `parallel`
  ir::OpId parallel;                    // that Parallel
  ir::OpId launch;                      // the Parallel at kBlock around it
  // The innermost `if` or loop that only some threads of a block, of a warp, may go through.
  Span divergent_in_block;
  Span divergent_in_warp;
};

// Where some threads of a unit, and not all, leave what stands behind. Invalid: nowhere.
struct Leaving {
  Span in_block;
  Span in_warp;
};

// A `foreach` or `while` around the statement being analysed.
struct OpenLoop {
  ir::OpId parallel;  // the level it stands in: `break` cannot cross a level
  Leaving leaving = {};
  bool is_left = false;  // something inside leaves it
};

// A register tile: what is known so far, patched when the `mma` that uses it is seen.
struct Tile {
  std::string name;
  Span span;          // of the name where it was declared
  ir::OpId parallel;  // the level it was declared at
  // Who holds it, a warp or a warpgroup; of an accumulator of a block, its first `mma` says.
  std::optional<ir::Level> unit;
  bool is_accumulator = false;
  bool is_partial = false;  // an accumulator of the compiler's, for `mma.scale`
  // Accumulators: the type, when `mma.fill.T` gave it, and the values to convert to it.
  std::optional<DType> dtype;
  std::vector<ir::ValueId> fill_values;
  bool stored = false;
  Span stored_early;    // of the first store in front of every `mma`
  bool broken = false;  // a mistake with it has been reported: say no more
  // Operands: the load, and whose operand it is.
  ir::OpId load;
  ir::Major major = ir::Major::kRow;
  Span first_use;  // of the first `mma`; invalid while unused
};

// The one wish a shared buffer can have, and who wished it first.
struct SwizzleWish {
  std::int64_t bytes;
  Span span;
};

// Where the products of an accumulator go that a later `mma.scale` of the same block scales.
struct Partial {
  ir::ValueId sum;
  std::size_t scales_left = 0;  // in the block
};

struct Sema {
  const ast::Ast& ast;
  const target::Arch& arch;
  const Sources& sources;
  Diagnostics& diags;
  ir::Function& function;

  Scopes scopes;
  std::vector<ir::RegionId> regions;  // where operations go: the innermost is last
  Place place;
  std::map<ir::ValueId, Tile> tiles;               // by fragment
  std::map<std::string, std::size_t> scaled = {};  // in the innermost block: how often, by name
  std::map<ir::ValueId, Partial> partials = {};    // by accumulator, where one is collecting now
  std::map<ir::ValueId, SwizzleWish> swizzles;     // by shared allocation
  std::map<std::pair<ast::StmtId, std::size_t>, ir::Level> levels;  // of each group of a `parallel`
  std::map<ir::OpId, Span> threads_from;  // by launch: the `parallel` that set the thread count
  std::map<std::string, int> names_used;
  std::vector<OpenLoop> loops = {};  // innermost last
  ir::OpId yielding = {};            // the launch that `yielded` is about
  Leaving yielded = {};
  std::optional<ir::ViewType> declared_result;
  bool returns_nothing = false;  // declared `void`
  bool returns_scalar = false;
  bool has_syntax_errors = false;  // some statements are missing from the tree
  bool returned = false;
};

// --- building

// A name unique among the function's values and variables, from the user's.
[[nodiscard]] std::string unique_name(Sema& sema, const std::string& wanted);

// Appends to the innermost region. The second form also makes the result value.
ir::OpId emit(Sema& sema, ir::OpData data, Span span);
ir::ValueId emit_value(Sema& sema, ir::OpData data, Span span, ir::Type type,
                       const std::string& name = "");

ir::VarId add_var(Sema& sema, const std::string& name, ir::VarKind kind, ir::Expr extent,
                  Span span);

// Runs `body` with a new region as the insertion point and a new scope; gives the region.
template <class Body>
ir::RegionId in_region(Sema& sema, Body&& body) {
  const ir::RegionId region = sema.function.regions.push({});
  sema.regions.push_back(region);
  sema.scopes.push();
  body();
  sema.scopes.pop();
  sema.regions.pop_back();
  return region;
}

// --- reporting

// "`{}` is not supported yet".
void refuse(Sema& sema, Span span, std::string_view construct);
// The same of a buffer whose elements are narrower than a byte.
void refuse_sub_byte(Sema& sema, Span span, DType dtype);

// Declares, or reports redeclared-name and replaces.
void declare(Sema& sema, const ast::Name& name, Symbol symbol);

// Text of an Expr with the user's names, for messages.
[[nodiscard]] std::string text(const Sema& sema, const ir::Expr& expr);

// Reports collective-divergent when not all threads of the unit (a block or a warp) get there.
[[nodiscard]] bool check_collective(Sema& sema, Span span, std::string_view what, ir::Level unit);
// From here on control flow differs between threads wherever `varies(unit)` says so.
template <class Varies>
void note_divergence(Sema& sema, Span span, Varies&& varies) {
  if (varies(ir::Level::kBlock)) sema.place.divergent_in_block = span;
  if (varies(ir::Level::kGroup)) sema.place.divergent_in_warp = span;
}
// Reports outside-parallel when it stands in the host part.
[[nodiscard]] bool check_in_kernel(Sema& sema, Span span, std::string_view what);

}  // namespace kiln::sema
