// The syntax tree of one `.co` file: what was written, before anything about it is checked.
//
//   mma.row.row mc, ma, mb;
//
// is a Stmt whose node is MmaExecStmt{.a_major = kRow, .b_major = kRow, .acc = {mc}, .a = ma, ...},
// where `a` is an ExprId of a NameExpr. Nodes live in the arrays of the Ast and refer to each other
// by typed id; an invalid id means "not written". Forms of the tutorial dialect and of the current
// dialect give the same nodes. An ErrorExpr or ErrorStmt stands where a mistake has already been
// reported: later stages must stay silent about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/dtype.h"
#include "support/ids.h"
#include "support/one_of.h"
#include "support/source.h"
#include "syntax/vocabulary.h"

namespace kiln::ast {

struct ExprTag;
struct StmtTag;
using ExprId = Id<ExprTag>;
using StmtId = Id<StmtTag>;

// A written name. Empty text: none was written.
struct Name {
  std::string text;
  Span span;

  [[nodiscard]] bool valid() const { return !text.empty(); }
};

// An element type, or the name of one: a template parameter, a `constexpr type`.
struct Type {
  Type() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): an element type is the common case
  Type(DType type) : dtype(type) {}

  DType dtype = DType::kF32;
  std::string name = {};  // empty: `dtype` says it
  Span span = {};         // of the name
};

// ---- Expressions ----

struct ErrorExpr {};

struct IntExpr {
  std::uint64_t value = 0;
  DType type = DType::kS32;  // s32, s64, u32 or u64, from the size and the suffix
};
struct FloatExpr {  // `inf` too
  double value = 0;
  Type type = DType::kF64;  // f32 with the suffix `f`, else f64
};
struct BoolExpr {
  bool value = false;
};
struct NullptrExpr {};
struct StringExpr {  // adjacent literals joined, escapes replaced
  std::string value;
};
struct WildcardExpr {};  // `_`
struct NameExpr {
  std::string name;
};
// A type where a value could stand: `|f16|`, `call f<f32, 4>()`, `T == bf16`.
struct TypeExpr {
  Type type;
};

struct UnaryExpr {
  UnaryOp op{};
  Span op_span;
  ExprId operand;
};
struct BinaryExpr {  // `a # b` and the bound operators `x #+ n` too
  BinaryOp op{};
  Span op_span;
  ExprId left;
  ExprId right;
};
struct ConditionalExpr {  // a ? b : c
  ExprId condition;
  ExprId then_value;
  ExprId else_value;
};

struct MemberExpr {  // x.span, f.data, f.mdata
  ExprId base;
  Member member{};
  Span member_span;
};
// x.at(i, j): element access; also `e.at(n)`, the slot of an event. x.block(r).at(i, j): of the
// buffer x of block r of the cluster.
struct AtExpr {
  ExprId base;
  Span at_span;  // the word `at`
  std::vector<ExprId> indices;
  std::vector<ExprId> block = {};
  Span block_span = {};  // `.block(r)`, where it stands
};
// t(i), x.span(i), x(-1). `name(args)` with a name that is not a Builtin parses as this too: when
// the name is no value, it is a passthrough intrinsic or an unknown function.
struct ElementExpr {
  ExprId base;
  std::vector<ExprId> indices;
};
// a[i], and a shape derived from another: s[(0), 4], t{(0), 4} (`braces`).
struct SubscriptExpr {
  ExprId base;
  std::vector<ExprId> items;
  bool braces = false;
};
// `(2)` inside the brackets of a SubscriptExpr, where it may mean element 2 of the base. When the
// base is no shape or tuple it is only the parenthesised integer.
struct DerivedIndexExpr {
  ExprId index;
};

// One step of a view chain, with the `.step`, `.at` or `.from` that belongs to it.
struct ViewOp {
  ViewOpKind kind{};
  Span span;       // ".subspan(8, 8).at(i, j)"
  Span word_span;  // "subspan"
  std::vector<ExprId> args;
  std::vector<ExprId> strides;           // after `:`
  std::vector<ExprId> steps;             // .step(...)
  std::vector<ExprId> origin;            // .at(...) of chunk, subspan, modspan; .from(...) of view
  Span steps_span;                       // the word `step`; invalid when not written
  Span origin_span;                      // the word `at` or `from`; invalid when not written
  Storage map_storage = Storage::kNone;  // .map<local>(...)
};
struct ViewExpr {
  ExprId base;  // a NameExpr, SubscriptExpr or MemberExpr, never a ViewExpr
  std::vector<ViewOp> ops;
};

struct ShapeExpr {  // [a, b]
  std::vector<ExprId> items;
};
struct TupleExpr {  // {a, b}
  std::vector<ExprId> items;
};
struct MeasureExpr {  // |s|: product of extents; |f16| (a TypeExpr): bytes of an element
  ExprId operand;
};
struct CastExpr {  // __to<f16>(e), __to<"C++ type">(e), __bitcast<u32>(e)
  std::optional<Type> type;
  std::string cpp_type;  // when `type` is empty
  Span type_span;
  ExprId operand;
  bool keeps_bits = false;  // __bitcast
};
// A call of a Builtin, or of a qualified name `ns::f(x)` (builtin = kNone, name "ns::f").
struct CallExpr {
  Builtin builtin = Builtin::kNone;
  Name name;
  std::vector<ExprId> args;
};
struct DeviceCallExpr {  // call ns::f<T, 4>(args)
  Name name;             // "ns::f"
  std::vector<ExprId> template_args;
  std::vector<ExprId> args;
};
// A call of a function of this language, `leave<4>(sum, out, done)`: a statement, or a value.
struct FunctionCallExpr {
  Name name;
  std::vector<ExprId> template_args;  // those that are written, the first ones
  std::vector<ExprId> args;
};
struct SelectExpr {  // select(c, x0, x1, ...)
  ExprId index;
  std::vector<ExprId> choices;
};

struct FragFillExpr {  // frag.fill.f32 [64, 1] v
  Type type;
  std::vector<ExprId> shape;
  ExprId value;
};
struct FragLoadExpr {  // frag.load view
  ExprId source;
};

using ExprNode =
    OneOf<ErrorExpr, IntExpr, FloatExpr, BoolExpr, NullptrExpr, StringExpr, WildcardExpr, NameExpr,
          TypeExpr, UnaryExpr, BinaryExpr, ConditionalExpr, MemberExpr, AtExpr, ElementExpr,
          SubscriptExpr, DerivedIndexExpr, ViewExpr, ShapeExpr, TupleExpr, MeasureExpr, CastExpr,
          CallExpr, DeviceCallExpr, FunctionCallExpr, SelectExpr, FragFillExpr, FragLoadExpr>;
struct Expr {
  ExprNode node;
  Span span;  // parentheses around it included
};

// ---- Parts of statements ----

struct FragRef {  // mc, mc[i], mc[i][j]
  Name name;
  std::vector<ExprId> subscripts;
  Span span;
};
// `x`, `x[2]`, `x[2][3] {0.0f}`, `x = 3`: one name of a declaration.
struct Declarator {
  Name name;
  std::vector<ExprId> extents;
  ExprId init;
  bool braces = false;  // {init} rather than = init
  Span span;
};

struct Attribute {
  enum class Kind : std::uint8_t {
    kLaunchBounds,
    kMaxnreg,
    kOrder,
    kPersistent,
    kPipeline,
    kSchedule,
    kThreads
  };
  Kind kind{};
  std::vector<ExprId> args;  // `_` is a WildcardExpr; for kSchedule the arguments of k_tiles
  Span span;
};
// `pipeline` of `[[pipeline(3)]]`.
[[nodiscard]] std::string_view spelling(Attribute::Kind kind);

struct ParallelGroup {
  Name tuple;               // the t of `t = {x, y} by ...`
  std::vector<Name> names;  // empty: `parallel by 4`
  bool braces = false;      // {x, y}
  std::vector<ExprId> bounds;
  bool brackets = false;  // by [a, b]
  std::optional<Level> level;
  Span level_span;
  Name level_argument;  // the target of `device(name)`
  bool cooperative = false;
  Span span;
};

// `v in 8`, `{a, b} in [4, 8]`, `t = {a, b} in s.span`.
struct WithItem {
  Name name;                   // v or t; empty for `{a, b} in`
  std::vector<Name> elements;  // a, b; empty for `v in`
  bool braces = false;
  ExprId bounds;
  Span span;
};
struct Tie {  // where x <-> y
  Name left;
  Name right;
};
struct ForeachItem {
  std::optional<WithItem> declares;  // `v in ...`; the fields below are then unused
  Name local;                        // the c of `c = v(1:)`
  Name variable;                     // v
  bool ranged = false;               // (low:high:step) was written
  ExprId low;
  ExprId high;
  ExprId step;
  Span span;
};
struct LoopSuffix {
  enum class Kind : std::uint8_t { kUnroll, kVectorize };
  Kind kind{};
  Name variable;  // vectorize(variable, factor)
  ExprId factor;  // may be invalid for a bare `unroll`
  Span span;
};

struct Swizzle {
  ExprId bytes;  // invalid: `.swiz` without a number
  Span span;
};
struct Sparsity {  // .sp, .sp<2:4>
  ExprId kept;
  ExprId of;
  Span span;
};
struct PadConfig {
  std::vector<ExprId> low;
  std::vector<ExprId> high;
  std::vector<ExprId> middle;
  ExprId value;
  Span span;
};

struct AsmOperand {  // [name] "constraint"(value)
  Name name;
  std::string constraint;
  ExprId value;
  Span span;
};

// ---- Statements ----

struct ErrorStmt {};
struct EmptyStmt {};
struct BlockStmt {
  std::vector<StmtId> body;
};

// `int a = 1, b = 2;`, `mutable x = 3;`, `f32 acc;`
struct ScalarDeclStmt {
  bool is_mutable = false;
  Span mutable_span;
  Storage storage = Storage::kNone;  // never legal; kept so that the mistake can be named
  Span storage_span;
  std::optional<Type> type;  // empty: `mutable x = ...`
  bool is_int = false;       // written `int`, which is immutable where `s32` is not
  Span type_span;
  std::vector<Declarator> declarators;
};
// constexpr int TILE = 64 * WG, HALF = TILE / 2;  constexpr type T = bf16;
struct ConstantStmt {
  enum class Kind : std::uint8_t { kInteger, kBool, kType };
  struct Item {
    Name name;
    ExprId value;
  };
  Kind kind{};
  std::vector<Item> items;
};
struct MdspanDeclStmt {  // mdspan<2> s : [4, 8];
  ExprId rank;
  Name name;
  ExprId shape;
};
struct ItupleDeclStmt {  // ituple<2> t = {4, 8};  the word `ituple` may be missing
  ExprId rank;
  Name name;
  ExprId value;
};
struct BufferDeclStmt {  // shared f16 [64, 32] s[3] {0.0f};
  Storage storage = Storage::kNone;
  Span storage_span;
  Type type;
  Span type_span;
  std::vector<ExprId> shape;
  Span shape_span;
  std::vector<Declarator> declarators;
};
// frag f32 [64] peak {-inf};  frag f32 x = y * 2;  and  frag.f32 mc[2] {0.0f};  (an accumulator
// array: no shape)
struct FragDeclStmt {
  bool accumulator = false;
  std::optional<Type> type;
  Span type_span;
  std::vector<ExprId> shape;
  std::vector<Declarator> declarators;
};
struct EventDeclStmt {  // shared event<128> go[2] = ready, free_[2];
  struct Item {
    Declarator declarator;  // init: an initialiser other than `ready`, which is a mistake
    bool ready = false;
  };
  Storage storage = Storage::kNone;
  Span storage_span;
  ExprId threads;
  std::vector<Item> items;
};

struct AssignStmt {  // `x = e` declares x when there is no x yet
  ExprId target;
  AssignOp op{};
  Span op_span;
  ExprId value;
};
struct ExprStmt {  // i++; __atomic_add(x.at(i), 1); call f(x);
  ExprId value;
};

// h = dma.copy.swiz<64>.async src => shared after f;
struct MoveStmt {
  Name handle;
  Engine engine{};
  MoveOp op{};
  Span word_span;  // "dma.copy"
  std::optional<PadConfig> pad;
  std::vector<ExprId> permutation;  // of .transp<...>
  Span permutation_span;
  bool is_async = false;
  Span async_span;
  ExprId event;  // .async<event>
  std::optional<Swizzle> swizzle;
  bool zfill = false;  // also when written on the source view
  std::optional<Sparsity> sparse;
  ExprId promote;
  bool multicast = false;
  bool adds = false;  // .add
  Eviction eviction = Eviction::kNone;
  ExprId source;
  Storage target_storage = Storage::kNone;  // `=> shared`; `target` is then invalid
  Span target_span;
  ExprId target;  // a view, or a SelectExpr
  Name after;
};
struct PlaceholderStmt {  // f = dma.any;
  Name name;
  Engine engine{};
};

struct MmaFillStmt {  // mc = mma.fill.f32 0.0f;  mc = mma.fill.f32 0.0f [2, 4];  mma.fill mc, 0.0f;
  FragRef target;
  bool declares = false;  // written with `=`
  std::optional<Type> type;
  Span type_span;
  ExprId value;
  std::vector<ExprId> extents;  // of an array
  Span word_span;               // "mma.fill"
};
struct MmaLoadStmt {  // ma = mma.load.swiz<128> v;  mma.load v, mc;
  FragRef target;
  bool declares = false;
  bool to_registers = false;  // .frag
  std::optional<Swizzle> swizzle;
  bool is_async = false;
  ExprId source;
  Span word_span;
};
struct MmaExecStmt {
  Name future;  // f = mma.row.row.async ...
  Major a_major{};
  Major b_major{};
  bool sparse = false;
  bool scaled = false;
  bool is_async = false;
  FragRef acc;
  ExprId a;
  ExprId b;
  ExprId metadata;  // .sp
  ExprId a_scale;   // .scale
  ExprId b_scale;
  std::vector<Attribute> attributes;
  Span word_span;  // "mma.row.row"
};
struct MmaScaleStmt {
  FragRef acc;
  std::optional<FragRef> source;  // mma.scale acc, source, a_scale, b_scale
  ExprId a_scale;
  ExprId b_scale;
  Span word_span;
};
struct MmaStoreStmt {
  bool transp = false;
  bool is_async = false;
  bool masked = false;
  FragRef acc;
  ExprId part;  // the whole of `mc.subspan(_, 64).at(_, 1)`; invalid: all of the accumulator
  ExprId target;
  ExprId rows;  // of .mask
  ExprId cols;
  Span word_span;
};
struct MmaCommitStmt {};
struct MmaWaitStmt {  // mma.wait<1>;
  ExprId groups;
};

struct ApplyStmt {  // apply {i, j} in acc.span body
  std::vector<Name> names;
  FragRef anchor;
  StmtId body;
};
struct FragStoreStmt {  // frag.store tile, view;
  Span word_span;       // "frag.store"
  ExprId value;
  ExprId target;
};
struct ReduceStmt {
  ReduceOp op{};
  FragRef target;
  FragRef source;
  ExprId dimension;
};
struct AllReduceStmt {
  FragRef operand;
};
struct FragCopyStmt {  // copy(target, source);
  FragRef target;
  FragRef source;
};

struct WaitStmt {  // events and futures: NameExpr, SubscriptExpr or AtExpr
  std::vector<ExprId> refs;
};
struct TriggerStmt {
  bool cluster = false;
  std::vector<ExprId> refs;
  std::vector<Name> after;
};
struct RotateStmt {  // swap f, g;  rotate(f, g, h);
  bool is_swap = false;
  std::vector<Name> names;
};
struct ReturnStmt {
  ExprId value;
};
struct SyncStmt {  // sync.shared;  sync.barrier : block;  sync.fence : block<shared>;
  SyncKind kind{};
  std::optional<Level> level;
  Span level_span;
  Storage storage = Storage::kNone;
};
struct CallStmt {  // call f(x);
  ExprId call;     // a DeviceCallExpr
};
struct CppStmt {  // __cpp__("...");
  std::string text;
  Span text_span;
};
// [[expect({ y.at(i) = x.at(i); })]] call f(x, y);   [[expect(a + b)]] f32 c = call f(a, b);
struct ExpectStmt {  // what the CUDA of the statement does, in this language
  StmtId body;       // a BlockStmt, or
  ExprId value;      // of the call
  StmtId statement;
  Span word_span;  // "expect"
};
struct AsmStmt {
  bool is_volatile = false;
  std::string text;
  std::vector<AsmOperand> outputs;
  std::vector<AsmOperand> inputs;
  std::vector<std::string> clobbers;
};
struct AssertStmt {
  ExprId condition;
  std::string message;
};
struct PrintStmt {
  bool newline = false;
  bool compile_time = false;  // print!(...)
  std::vector<ExprId> args;
};
struct PragmaStmt {  // #pragma croq intrinsic prefix p_ | namespace ns
  enum class Kind : std::uint8_t { kPrefix, kNamespace };
  Kind kind{};
  Name name;
};

struct ParallelStmt {
  Span word_span;  // "parallel"
  std::vector<Attribute> attributes;
  bool is_async = false;
  Span async_span;
  Name stream;
  std::vector<ParallelGroup> groups;
  StmtId body;
};
struct WithStmt {
  std::vector<WithItem> items;
  std::vector<Tie> ties;
  StmtId body;
};
struct ForeachStmt {
  std::vector<Attribute> attributes;
  std::vector<ForeachItem> items;
  std::vector<LoopSuffix> suffixes;
  StmtId body;
};
struct WhileStmt {
  ExprId condition;
  StmtId body;
};
struct IfStmt {
  bool is_constexpr = false;  // the branch that is not taken means nothing
  ExprId condition;           // may be a DeviceCallExpr
  StmtId then_body;
  StmtId else_body;
};
struct InthreadsStmt {
  Span word_span;
  bool is_async = false;
  ExprId condition;
  StmtId body;
};
struct BreakStmt {};
struct ContinueStmt {};
struct YieldStmt {};

// clang-format off
using StmtNode = OneOf<ErrorStmt
#define KILN_STATEMENT(Node) , Node
#include "syntax/statement.def"
    >;
// clang-format on
struct Stmt {
  StmtNode node;
  Span span;  // the whole statement, its `;` or body included
};

// ---- Functions and files ----

// One extent of a parameter's shape.
struct Dim {
  enum class Kind : std::uint8_t { kExpr, kAnonymous, kUnbounded };  // M or 16, `?`, `??`
  Kind kind{};
  ExprId value;  // of kExpr
  Span span;
};
struct ShapeDecl {  // [M, 16], mdspan<2>, mdspan[M, 16]
  std::vector<Dim> dims;
  ExprId mdspan_rank;  // of mdspan<2>; `dims` is then empty
  Span span;
};
struct ParamType {
  // kFragment, kEvent: of a `__co_device__` function.
  enum class Kind : std::uint8_t { kScalar, kSpanned, kStream, kFragment, kEvent };
  Kind kind{};
  std::optional<Type> dtype;  // empty where it is not written: `frag [R, C] x`
  bool is_int = false;        // written `int`
  std::optional<ShapeDecl> shape;
  Span span;
};
struct Param {
  ExprId condition;                  // of `if (CAUSAL) s32 offset`: it exists where that holds
  Storage storage = Storage::kNone;  // of a `__co__` function, only `global` is legal
  Span storage_span;
  ParamType type;
  bool reference = false;
  Span reference_span;
  Name name;
  std::vector<ExprId> extents;  // of an array: `shared bf16 [64, 32] ring[S]`, `event full[S]`
  Span span;
};
struct ReturnType {
  enum class Kind : std::uint8_t { kVoid, kAuto, kScalar, kSpanned, kFragment };
  Kind kind{};
  Type dtype;
  ShapeDecl shape;
  Span span;
};

// `type T = bf16`, `[[tune(2, 3, 4)]] int STAGES = 4`
struct TemplateParam {
  ConstantStmt::Kind kind{};
  Name name;
  ExprId fallback;           // the default; invalid where there is none
  ExprId bound;              // what the command line says; invalid where it says nothing
  std::vector<ExprId> tune;  // values that `kiln tune` tries
  Span span;
};
struct Template {
  std::vector<TemplateParam> params;
  ExprId condition;  // of `requires`
};

// Top-level regions, in the order of the file and of the files that it includes; together they hold
// everything but white space, comments and preprocessor lines.
struct TileFunction {
  bool is_device = false;  // `__co_device__`: called by others, a part of who calls it
  Template templ;
  ReturnType result;
  Name name;
  std::vector<Param> params;
  StmtId body;  // a BlockStmt; invalid when the function or its signature could not be read
  // A mistake was reported in its text: names may be missing, so doubts are not worth a report.
  bool has_syntax_errors = false;
  Span signature_span;
  Span span;  // `template` or `__co__` to `}`
};
struct HostText {
  Span span;
};
struct Constant {  // `constexpr int TILE = 64;` between functions: a ConstantStmt
  StmtId statement;
  Span span;
};
struct DeviceText {  // __device__ functions, with their `template<...>`
  Span span;
};
struct KernelBlock {  // __cok__ { ... }
  Span span;
  Span content;  // between the braces
};
using Region = std::variant<TileFunction, Constant, HostText, DeviceText, KernelBlock>;

// A macro used inside a tile function: text at `use` came from the `#define` at `definition`.
struct Expansion {
  std::string name;
  Span use;
  Span definition;
};

// A macro as it stands at the end of the file: what CUDA in it may name.
struct MacroText {
  std::string name;
  std::string text;  // "#define PAIR(a) ((a) * 2)"
};

struct Ast {
  FileId file;
  IdVector<ExprId, Expr> exprs;
  IdVector<StmtId, Stmt> stmts;
  std::vector<Region> regions;
  std::vector<PragmaStmt> pragmas;  // those outside functions
  std::vector<Expansion> expansions;
  std::vector<MacroText> macros;  // in the order of their definitions

  [[nodiscard]] const Expr& operator[](ExprId id) const { return exprs[id]; }
  [[nodiscard]] const Stmt& operator[](StmtId id) const { return stmts[id]; }

  // The node when it is a T, else null (also for an invalid id).
  template <class T>
  [[nodiscard]] const T* as(ExprId id) const {
    return id.valid() ? std::get_if<T>(&exprs[id].node) : nullptr;
  }
  template <class T>
  [[nodiscard]] const T* as(StmtId id) const {
    return id.valid() ? std::get_if<T>(&stmts[id].node) : nullptr;
  }

  template <class T>
  ExprId add_expr(T node, Span span) {
    return exprs.push({ExprNode(std::move(node)), span});
  }
  template <class T>
  StmtId add_stmt(T node, Span span) {
    return stmts.push({StmtNode(std::move(node)), span});
  }
};

}  // namespace kiln::ast
