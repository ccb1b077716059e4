// State of the analysis of one tile function, and the small operations every part of it uses.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"
#include "ir/vary.h"
#include "sema/operand.h"
#include "sema/scope.h"
#include "syntax/ast.h"
#include "target/arch.h"

namespace kiln::sema {

// The warp or warpgroup that `mma` statements belong to, or a coarser level without one.
struct Unit {
  ir::Level level = ir::Level::kBlock;
  ir::OpId parallel = {};  // or the `inthreads` region whose threads it is
};

// Where the statement being analysed stands.
struct Place {
  bool in_kernel = false;
  ir::Level level = ir::Level::kBlock;  // of the innermost `parallel`
  ir::OpId parallel;                    // that Parallel
  ir::OpId launch;                      // the Parallel at kBlock around it
  // The innermost `if` or loop that only some threads of a block, of a warp, may go through.
  // An `inthreads` region starts anew: all its threads go through it.
  Span divergent_in_block;
  Span divergent_in_warp;
  // As level and parallel; inside of `: thread`, of the unit around it.
  Unit unit = {};
  std::vector<ir::OpId> nest = {};  // the parallels inside of the launch, outermost first
  ir::OpId inthreads = {};          // the innermost region
};

// What is known of an event, for the checks at the end of the function.
struct EventInfo {
  std::string name;
  Span span;
  std::vector<std::int64_t> extents;  // of the array; empty: a single event
  bool ready = false;
  ast::Storage storage = ast::Storage::kShared;
  Span waited;          // first
  Span triggered;       // first
  Span completed;       // by the first copy that names it
  bool broken = false;  // a mistake with it has been reported: say no more
};

// A barrier that the program names by a number, `__bar_sync(1, 256)`: an event of the launch.
struct NamedBarrier {
  ir::ValueId event;
  std::int64_t threads = 0;
  Span span = {};                    // where it was named first
  std::set<ir::OpId> arriving = {};  // regions whose threads come by, and go on
  std::set<ir::OpId> meeting = {};   // and wait
};

// A `global` event: each launch that names it has one of its own.
struct GridEvent {
  ir::Event op;
  EventInfo info;
  std::int64_t slots = 1;
  std::map<ir::OpId, ir::ValueId> by_launch = {};
};

// Names of copies that `swap`, `rotate` or `select` connect share one array of buffers. Each name
// holds the number of its buffer, in a cell when names change places. Where the program declares the
// buffers, their array is theirs, and each copy says the number.
struct Rotation {
  std::size_t names = 0;
  std::int64_t buffers = 0;  // as many, where the program does not declare them
  bool exchanges = false;    // else the numbers are fixed
  bool declared = false;     // the copies go to buffers that the program declares
  bool stores = false;       // or to global memory: no buffers, only what has been read or not
  ir::ValueId array;         // [names, shape...]; the first copy says which shape
  ir::ViewType buffer = {};  // of a name; in the array it may be followed by bytes that nobody uses
  bool typed = false;
  ir::ValueId event = {};  // of bulk copies that are waited for by name: a slot for each buffer
  bool waited = false;     // under one of its names
};

// A name that a copy gave, or that waits for one (`dma.any`).
struct Handle {
  enum class Kind : std::uint8_t {
    kPlaceholder,
    kSynchronous,
    kIssued,  // asynchronous, by the threads (cp.async)
    kDone,    // asynchronous in the program's text, and complete with its statement
    kLoad,    // asynchronous and bulk, to shared memory
    kStore,   // asynchronous and bulk, to global memory
  };
  std::string name;
  Span span;
  Kind kind = Kind::kPlaceholder;
  bool is_placeholder = false;  // began as one
  bool rotates = false;
  std::size_t rotation = 0;    // its Rotation, if it rotates
  std::int64_t position = 0;   // the buffer it starts with
  ir::ValueId cell = {};       // the buffer it has, if names are exchanged
  ir::ValueId future = {};     // kIssued
  ir::ValueId event = {};      // kLoad, waited for by name: of its own
  std::string completes = {};  // the event it completes instead
  std::vector<ir::OpId> copies = {};
  std::vector<ir::RegionId> regions = {};  // where they stand
  bool used = false;                       // as an operand of `swap` or `rotate`
  Span waited = {};
  ir::RegionId waited_in = {};
};

// What the text of a function says about names before they are declared.
struct NamePlan {
  std::map<std::string, std::size_t> group = {};  // names that share buffers
  std::vector<std::vector<std::string>> groups = {};
  std::vector<bool> exchanges = {};                   // by group
  std::vector<bool> declared = {};                    // by group: copies go to declared places
  std::set<std::string> boxes = {};                   // buffers that bulk copies go to, of a group
  std::map<std::string, std::string> completes = {};  // `trigger e after f`: f -> "e"
  std::set<std::string> sums = {};                    // products are added to them
  std::set<std::string> factors = {};                 // or are of them
  std::set<std::string> metadata = {};                // or say where a sparse A has its elements
};

// Where some threads of a unit, and not all, leave what stands behind. Invalid: nowhere.
struct Leaving {
  Span in_block;
  Span in_warp;
};

// A `foreach` or `while` around the statement being analysed.
struct OpenLoop {
  ir::OpId parallel;   // the level it stands in: `break` cannot cross a level
  ir::OpId inthreads;  // and the region: nor can it leave one
  Leaving leaving = {};
  bool is_left = false;  // something inside leaves it
};

// A register tile: what is known so far, patched when the `mma` that uses it is seen.
struct Tile {
  std::string name;
  Span span;               // of the name where it was declared
  std::size_t before = 0;  // accumulators: how many others were declared there before it
  ir::OpId parallel;       // the level it was declared at
  // Who holds it, a warp or a warpgroup; of an accumulator of a block, its first `mma` says.
  std::optional<ir::Level> unit;
  bool is_accumulator = false;
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
  // What looks like metadata may have extents that the launch decides: those of its view, which has
  // 1 there until a product says how many it needs.
  std::vector<ir::Expr> open_extents = {};
  bool is_value = false;  // made by a tile expression
};

// An `apply` around the statement being analysed, or around a tile expression.
struct OpenApply {
  ir::ValueId frag;
  ir::VarId row;
  ir::VarId col;
  std::size_t first_op = 0;    // operations from here on stand in its body
  bool is_expression = false;  // the names of tiles stand for the elements at its place
  ir::RegionId outside = {};   // where it stands
  std::map<ir::ValueId, ir::ValueId> parts = {};  // of vectors: the tile of what lanes add to them
};

// What is known of vectors that lanes add to, each to a part of its own (partial_sum.h).
struct PartialSums {
  std::map<ir::ValueId, Span> open = {};  // not put together: where lanes added to it
  std::set<ir::ValueId> settled = {};     // set or added to since the iteration began
  std::map<ir::ValueId, Span> read = {};  // read in it, by then not settled
  std::map<ir::ValueId, Span> left = {};  // open where a jump leaves the iteration
};

// The one wish a shared buffer can have, and who wished it first.
struct SwizzleWish {
  std::int64_t bytes;
  Span span;
};

struct PlacedOp {
  ir::OpId op;
  ir::RegionId region;
};

// What a block of statements has done to an accumulator.
struct CollectedProducts {
  std::vector<PlacedOp> since = {};  // products and fills, since its last `mma.scale`
  ir::OpId first = {};   // of the block's own region: the first of them, or what that stands in
  ir::ValueId sum = {};  // what the block's `mma.scale` scales, once there is one
};

// A block of statements around the one being analysed.
struct OpenBlock {
  ir::RegionId region;
  std::size_t calls = 0;  // around it
  bool in_copy = false;   // of the body of a loop that is written out
  std::map<ir::ValueId, CollectedProducts> products = {};  // by accumulator
};

// An array of what `mma.load` gives. Each load makes a tile, which an element then names.
struct OperandArray {
  ir::RegionId region;                   // where it is declared, and all of its loads stand
  std::vector<Symbol> elements;          // row by row; without a fragment before the first load
  std::vector<std::string> texts;        // "a[1][0]"
  std::vector<std::string> identifiers;  // "a_1_0"
};

// What a `return` gives back: a buffer, a number, or nothing.
struct GivenBack {
  Span span;
  ir::ValueId buffer = {};
  std::optional<DType> number = {};
};

// A declaration of an accumulator: the place of its name, and how many others were declared there
// before it (the elements of an array, and what is written out).
struct Declaration {
  Span name;
  std::size_t before = 0;
  friend auto operator<=>(const Declaration&, const Declaration&) = default;
};
using Shapes = std::map<Declaration, ir::FragType>;

// A call of a function that is being put in its place.
struct OpenCall {
  const ast::TileFunction* function = nullptr;
  ir::RegionId region = {};    // where the call stands
  std::size_t loops = 0;       // around it
  std::string tile_name = {};  // of the tile that it returns
  bool returned = false;
  Operand result = {};
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
  std::map<ir::ValueId, Tile> tiles;   // by fragment
  std::vector<OpenBlock> blocks = {};  // innermost last
  std::vector<OperandArray> operand_arrays = {};
  std::map<ir::ValueId, SwizzleWish> swizzles;  // by shared allocation
  std::map<ir::ValueId, EventInfo> events = {};
  std::map<std::pair<ir::OpId, std::int64_t>, NamedBarrier> barriers = {};  // of a launch
  std::vector<GridEvent> grid_events = {};
  ir::Varying varying{function};  // asked `anew`
  NamePlan plan = {};
  std::vector<Handle> handles = {};
  std::vector<Rotation> rotations = {};
  ir::RegionId launch_body = {};
  std::vector<ir::VarId> cluster = {};  // the axes of the `parallel : cluster` around the launch
  bool cluster_launched = false;        // that launch has come
  std::map<std::pair<ast::StmtId, std::size_t>, ir::Level> levels;  // of each group of a `parallel`
  const std::map<std::string, const ast::TileFunction*>* functions = nullptr;
  Scopes globals = {};                             // constants between functions
  std::map<std::string, std::string> absent = {};  // parameters whose condition does not hold
  std::vector<OpenCall> calls = {};                // innermost last
  std::map<ir::OpId, Span> threads_from;  // by launch: the `parallel` that set the thread count
  std::map<std::string, int> names_used;
  std::vector<OpenLoop> loops = {};  // innermost last
  std::optional<OpenApply> apply = {};
  const Operand* derives_from = nullptr;  // what `(i)` is an element of, in `s[(0), 4]`
  PartialSums sums = {};
  // In a tile expression: tiles that parts of it have been computed into, and the dimension whose
  // index an `__index` is.
  std::map<ast::ExprId, ir::ValueId> tile_parts = {};
  std::map<ast::ExprId, int> tile_indices = {};
  // Accumulators whose `mma` stands further down.
  const Shapes* shapes = nullptr;
  std::map<Span, std::size_t> declared = {};  // how many accumulators, by the place of the name
  bool guessed_type = false;     // a type's name had no meaning: what follows says no more of types
  bool stopped_early = false;    // a loop was not written out to its end: it had a mistake
  bool has_tile_arrays = false;  // the function's text declares one
  bool stores_parts = false;     // and stores a part of an accumulator
  bool looks_ahead = false;      // for the shapes of accumulators; what is wrong is said later
  bool in_copy = false;          // of the body of a loop that is written out
  std::int64_t copies = 1;       // of what is analysed, in loops that are written out
  // What conditions of the host part around the launch say: `divisor` divides `of`.
  struct Divides {
    std::int64_t divisor;
    ir::Expr of;
  };
  std::vector<Divides> divisors = {};
  std::vector<ir::Expr> guards = {};                // not negative here, by the conditions around
  std::map<ir::VarId, std::string> obstacles = {};  // why the loop of a variable is not written out
  // Subscripts that are known at launch alone, each with the value that the statement is analysed for.
  std::vector<std::pair<ir::Expr, std::int64_t>> chosen = {};
  ir::OpId yielding = {};  // the launch that `yielded` is about
  Leaving yielded = {};
  std::optional<ir::ViewType> declared_result;
  std::optional<DType> declared_number;  // the result is declared as a number of this type
  bool returns_nothing = false;          // declared `void`
  bool has_syntax_errors = false;        // some statements are missing from the tree
  bool returned = false;
  std::optional<GivenBack> given_back = {};   // by the first `return`
  const ast::ExpectStmt* expected = nullptr;  // of the statement under way, until its CUDA takes it
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

// Whether a part of the text is inside of another one.
[[nodiscard]] inline bool lies_in(Span inner, Span outer) {
  return inner.file == outer.file && inner.begin >= outer.begin && inner.end <= outer.end;
}

// --- reporting

// "`{}` is not supported yet".
void refuse(Sema& sema, Span span, std::string_view construct);
// Refuses what a copy would have to pack: sparse tiles are packed before the call.
void refuse_packing(Sema& sema, Span span, std::string_view what);
// Refuses a holder ("a buffer", "a variable") of numbers that are narrower than a byte.
void refuse_sub_byte(Sema& sema, Span span, std::string_view holder, DType dtype);

// Declares, or reports redeclared-name and replaces.
void declare(Sema& sema, const ast::Name& name, Symbol symbol);
// The parameter's condition does not hold: who names it is told so.
void note_absent(Sema& sema, const ast::Param& param);

// Text of an Expr with the user's names, for messages.
[[nodiscard]] std::string text(const Sema& sema, const ir::Expr& expr);
// "f16 [64, K]".
[[nodiscard]] std::string type_text(const Sema& sema, const ir::ViewType& type);

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
