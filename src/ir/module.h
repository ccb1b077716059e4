// Module, Function and their tables: the tile IR as data.
//
// A function is one `__co__` function. Its body is host code (allocations, Index arithmetic,
// Return) with Parallel(kBlock) operations, each one kernel launch. Inside a launch the operations
// run in every thread of the block, as a GPU's would, except where an operation says otherwise.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "support/function_ref.h"
#include "target/arch.h"

namespace kiln::ir {

enum class VarKind : std::uint8_t {
  kDim,       // a symbolic dimension, >= 1, known at launch
  kScalar,    // an integer parameter, known at launch
  kParallel,  // an axis of a Parallel: 0 <= v < extent
  kLoop,      // of a For: lower <= v < extent
  kBound,     // set by Bind, per thread
};

[[nodiscard]] constexpr bool known_at_launch(VarKind kind) {
  return kind == VarKind::kDim || kind == VarKind::kScalar;
}

struct Var {
  std::string name;  // unique in the function
  VarKind kind = VarKind::kDim;
  Expr extent = 0;  // exclusive upper bound; 0 when unknown (kDim, kScalar, kBound)
  Span span;
  Expr first = 0;  // of a For's variable: its `lower`
};

// `constexpr int TILE = 64;` between functions.
struct FileConstant {
  std::string name;
  std::int64_t value = 0;
};

// What the program calls an index expression that it computes. Operations use the expression; only
// who writes text for people uses the name.
struct NamedIndex {
  std::string name;  // need not be unique
  Expr value;
};

struct Value {
  std::string name;  // unique in the function, the user's where there is one
  Type type;
  OpId def;  // invalid for parameters
};

struct Region {
  std::vector<OpId> ops;
};

struct Param {
  std::string name;
  Span span;
  ValueId value;           // a view or a scalar
  VarId var;               // integer scalars: the variable that holds it; else invalid
  bool is_global = false;  // `global`: a device pointer. Otherwise host memory, copied in and out
  bool is_reference = false;  // `&`: copied back
};

enum class Relation : std::uint8_t { kEqual, kLessEqual, kDivides };

// A condition on launch-time values that sema could not prove; checked at entry, before any launch.
// kDivides: left divides right.
struct EntryCheck {
  Expr left = 0;
  Relation relation = Relation::kEqual;
  Expr right = 0;
  std::string message;
  Span span;
};

// How much has been decided: rules of the verifier hold from a form on. kMet: events know their
// arrivals, triggers and bulk copies the bytes they announce. Passes need no form each;
// Module::after says how far the module has come towards the next.
enum class Form : std::uint8_t { kTile, kAtoms, kLaidOut, kPlanned, kMet, kDecided };

struct Function {
  std::string name;
  Span span;
  std::vector<Param> params;
  std::vector<EntryCheck> checks;
  IdVector<VarId, Var> vars;
  std::vector<NamedIndex> named;  // each expression once
  // Constants between the file's functions, as this function was read with them; host code of a whole
  // program shall see the same.
  std::vector<FileConstant> file_constants;
  IdVector<ValueId, Value> values;
  IdVector<OpId, Op> ops;
  IdVector<RegionId, Region> regions;
  RegionId body;

  [[nodiscard]] std::string text(const Expr& expr) const;  // with this function's variable names
  [[nodiscard]] const Type& type(ValueId value) const { return values[value].type; }
  [[nodiscard]] const ViewType& view_type(ValueId value) const;  // must be a view
  [[nodiscard]] const FragType& frag_type(ValueId value) const;  // must be a fragment
  // The operation that defines `value` as a T, or null.
  template <class T>
  [[nodiscard]] const T* def_as(ValueId value) const {
    const OpId def = values[value].def;
    return def.valid() ? std::get_if<T>(&ops[def].data) : nullptr;
  }
};

// Text of the file for the kernels' translation unit, in front of them: functions of the device, what the
// program includes and defines for them.
struct CudaPart {
  std::string text;
  Span span;  // invalid: made of several places
};

struct Module {
  const target::Arch* arch = nullptr;
  Form form = Form::kTile;
  std::string after = {};  // the last pass, if it was a step that did not yet finish the next form
  std::vector<CudaPart> cuda = {};  // in the order of the file
  std::vector<Function> functions;
};

// Where a view's elements are, followed through its subviews to the root (a parameter or an Alloc).
// Root dimension d of element (i...) is origin[d] + i[...]; the element is inside the program
// while, for every d, that coordinate is < each of limits[d] (the root's own extent is always among
// them).
struct ResolvedView {
  ValueId root;
  std::vector<Expr> origin;               // one per root dimension
  std::vector<std::vector<Expr>> limits;  // one list per root dimension
  std::size_t dropped = 0;                // leading root dimensions the view does not have
};
[[nodiscard]] ResolvedView resolve_view(const Function& function, ValueId view);

// The buffer behind a view, through its windows and other shapes: a parameter or an Alloc.
[[nodiscard]] ValueId root_of(const Function& function, ValueId view);

// Calls `visit(const Op&, OpId)` for each operation of the region and of the regions inside it, in
// program order, an operation before its regions.
void walk(const Function& function, RegionId region, FunctionRef<void(OpId)> visit);

// The regions of an operation, in order (then, else): two at most.
class Regions {
 public:
  void add(RegionId region) { all_[count_++] = region; }
  [[nodiscard]] const RegionId* begin() const { return all_.data(); }
  [[nodiscard]] const RegionId* end() const { return all_.data() + count_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] RegionId front() const { return all_[0]; }
  [[nodiscard]] RegionId back() const { return all_[count_ - 1]; }
  [[nodiscard]] RegionId operator[](std::size_t i) const { return all_[i]; }

 private:
  std::array<RegionId, 2> all_;
  std::size_t count_ = 0;
};
[[nodiscard]] Regions regions_of(const Op& op);

// Whether the load moves nothing: its tile is an operand that a warpgroup's instruction reads from
// shared memory. Known from Form::kAtoms on.
[[nodiscard]] bool is_read_in_place(const Function& function, const Load& load);

// How many of the accumulator's columns a store writes, from its first_column on.
[[nodiscard]] std::int64_t stored_columns(const Function& function, const Store& store);

// All kernel launches (Parallel at kBlock) of the function, in order.
[[nodiscard]] std::vector<OpId> launches(const Function& function);

}  // namespace kiln::ir
