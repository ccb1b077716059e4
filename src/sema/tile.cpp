// Tile expressions.
//
//   p = __exp2f((s - m) * c);
//   =>
//   %p = alloc : frag<tile, f32, 64x128>
//   apply frag=%p row=i col=j { %1 = element frag=%s; %2 = element frag=%m; ...; set_element ... }
//
// What is elementwise becomes one `apply`, whose body is the expression for one element: the
// ordinary evaluator builds it. What is not (reductions, scans, loads, fills) is computed into tiles
// of its own first.
#include "sema/tile.h"

#include "ir/names.h"
#include "sema/call.h"
#include "sema/constant.h"
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/partial_sum.h"
#include "sema/statement.h"
#include "sema/tile_array.h"
#include "sema/view.h"
#include "syntax/parse.h"

namespace kiln::sema {

namespace {

constexpr std::size_t kTileRank = 2;

struct Shape {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
};

bool is_tile_builtin(ast::Builtin builtin) {
  return builtin >= ast::Builtin::kReduceMax && builtin <= ast::Builtin::kTileIndex;
}

// Whether operators apply to what it consists of element by element.
bool is_elementwise(const ast::ExprNode& node) {
  return std::holds_alternative<ast::UnaryExpr>(node) ||
         std::holds_alternative<ast::BinaryExpr>(node) ||
         std::holds_alternative<ast::ConditionalExpr>(node) ||
         std::holds_alternative<ast::CastExpr>(node) || std::holds_alternative<ast::CallExpr>(node);
}

// The tiles of one expression, and what they say of its shape.
class TileExpression {
 public:
  // `name` is that of the tile which the whole expression gives.
  TileExpression(Sema& sema, ast::ExprId expr, std::string name, PartsIn parts = PartsIn::kNowhere)
      : sema_(sema), expr_(expr), name_(std::move(name)), parts_(parts) {}

  // Computes what is not elementwise, and finds the shape. False after a report.
  bool prepare() {
    visit(expr_);
    return !failed_;
  }
  [[nodiscard]] Shape shape() const { return shape_; }
  // Whether it reads sums that are not put together.
  [[nodiscard]] bool has_parts() const { return has_parts_; }

  // The tile that is set, named: its old elements are not read.
  bool prepare_target() {
    is_read_ = false;
    return prepare();
  }

  // The tile that the whole expression is already, if it is one.
  [[nodiscard]] std::optional<ir::ValueId> whole() const {
    const auto part = sema_.tile_parts.find(expr_);
    if (part == sema_.tile_parts.end()) return std::nullopt;
    return part->second;
  }

 private:
  void visit(ast::ExprId id) {
    if (failed_ || !id.valid() || !is_tile_expression(sema_, id)) return;
    const ast::ExprNode& node = sema_.ast[id].node;
    const Span span = sema_.ast[id].span;
    if (is_tile_name(sema_, id)) {
      const Symbol* symbol = named_tile(sema_, id);
      failed_ = symbol == nullptr;
      if (symbol != nullptr) named(*symbol, id, span);
      return;
    }
    if (const auto* fill = std::get_if<ast::FragFillExpr>(&node))
      return part(id, filled(*fill, id));
    if (const auto* load = std::get_if<ast::FragLoadExpr>(&node))
      return part(id, loaded(*load, id));
    const auto* call = std::get_if<ast::CallExpr>(&node);
    if (call != nullptr && is_tile_builtin(call->builtin)) return called(*call, id);
    const auto* function = std::get_if<ast::FunctionCallExpr>(&node);
    if (function != nullptr && gives_tile(sema_, *function)) {
      return part(id, evaluate_tile_call(sema_, *function, span, name_of(id, function->name.text)));
    }
    const auto* cast = std::get_if<ast::CastExpr>(&node);
    if (cast != nullptr && cast->keeps_bits && cast->type) return recast(*cast, id);
    for (const ast::ExprId inner : syntax::children(node)) visit(inner);
  }

  void named(const Symbol& symbol, ast::ExprId id, Span span) {
    const ir::ValueId frag = symbol.operand.id;
    Tile& tile = sema_.tiles.at(frag);
    if (symbol.kind == Symbol::Kind::kTile) {
      (void)sema_.diags
          .report<diag::TileNotValue>(span, tile.name,
                                      "an operand that `mma.load` reads for an `mma`")
          .label(tile.span, "loaded here")
          .help("read it as a value: `{} = frag.load view;`", tile.name)
          .emit();
      failed_ = true;
      return;
    }
    if (!usable(frag, tile, span) || (is_read_ && !may_read(frag, id, span))) {
      failed_ = true;
      return;
    }
    sema_.tile_parts.insert_or_assign(id, frag);
    join(sema_.function.frag_type(frag), span);
  }

  // Of sums that are not put together.
  bool may_read(ir::ValueId frag, ast::ExprId id, Span span) {
    const bool open = sema_.sums.open.contains(frag);
    if (!may_be_parts(id) || (!open && parts_ == PartsIn::kWhole)) {
      return check_joined(sema_, frag, span);
    }
    has_parts_ = has_parts_ || open;
    return true;
  }
  [[nodiscard]] bool may_be_parts(ast::ExprId id) const {
    return parts_ == PartsIn::kAnywhere || (parts_ == PartsIn::kWhole && id == expr_);
  }
  void report_part(const ast::CallExpr& call, ast::ExprId id) {
    const std::string_view text = sema_.sources.text(sema_.ast[id].span);
    const std::string_view operand = sema_.sources.text(sema_.ast[call.args[0]].span);
    (void)sema_.diags.report<diag::PartialSumRead>(sema_.ast[id].span, text)
        .help("take the whole sums, `__reduce_sum({}, ..)`, or give the parts a name of their own",
              operand)
        .emit();
  }

  bool usable(ir::ValueId frag, Tile& tile, Span span) {
    tile.stored = true;
    if (tile.broken || !check_same_unit(sema_, tile, span)) return false;
    const bool of_units = !tile.is_value && sema_.place.unit.level == ir::Level::kBlock;
    if (of_units) {
      refuse(sema_, span,
             "computing with an accumulator outside of the `parallel` that multiplies");
      return false;
    }
    if (sema_.function.frag_type(frag).rows > 0) return true;
    if (!tile.broken) {
      (void)sema_.diags.report<diag::TileUnshaped>(span, tile.name)
          .label(tile.span, "declared here")
          .help("say it: `{}`", shaped_declaration(sema_, tile))
          .emit();
    }
    tile.broken = true;
    return false;
  }

  void part(ast::ExprId id, std::optional<ir::ValueId> frag) {
    failed_ = failed_ || !frag;
    if (!frag) return;
    sema_.tile_parts.insert_or_assign(id, *frag);
    join(sema_.function.frag_type(*frag), sema_.ast[id].span);
  }

  std::optional<ir::ValueId> filled(const ast::FragFillExpr& fill, ast::ExprId id);
  std::optional<ir::ValueId> loaded(const ast::FragLoadExpr& load, ast::ExprId id);
  void called(const ast::CallExpr& call, ast::ExprId id);
  void recast(const ast::CastExpr& cast, ast::ExprId id);
  std::optional<ir::ValueId> reduced(const ast::CallExpr& call, ir::ValueId source, int dimension,
                                     ast::ExprId id);

  void join(const ir::FragType& type, Span span) { join(Shape{type.rows, type.cols}, span); }
  void join(Shape tile, Span span) {
    const auto meets = [](std::int64_t a, std::int64_t b) { return a == b || a == 1 || b == 1; };
    if (!meets(shape_.rows, tile.rows) || !meets(shape_.cols, tile.cols)) {
      (void)sema_.diags
          .report<diag::TileExtents>(span, shape_.rows, shape_.cols, tile.rows, tile.cols)
          .label(largest_, "{}x{}", shape_.rows, shape_.cols)
          .help("an extent goes with the same extent, or with 1")
          .emit();
      failed_ = true;
      return;
    }
    if (tile.rows * tile.cols > shape_.rows * shape_.cols || !largest_.valid()) largest_ = span;
    shape_ = {std::max(shape_.rows, tile.rows), std::max(shape_.cols, tile.cols)};
  }

  Sema& sema_;
  // Of the tile that a part of the expression becomes.
  [[nodiscard]] std::string name_of(ast::ExprId part, std::string_view word) const {
    return part == expr_ && !name_.empty() ? name_ : std::string(word);
  }

  ast::ExprId expr_;
  std::string name_;
  PartsIn parts_;
  bool has_parts_ = false;
  Shape shape_;
  Span largest_;
  bool is_read_ = true;
  bool failed_ = false;
};

// Threads for a block that works with register tiles and says no number. False after a report when
// it says one that makes no whole warps, or that is known at launch only.
bool give_threads(Sema& sema, const Tile& tile) {
  constexpr std::int64_t kThreads = 128;
  auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const auto [from, first] = sema.threads_from.try_emplace(sema.place.launch, tile.span);
  if (first) launch.threads = kThreads;
  const auto threads = launch.threads.constant();
  if (threads && *threads % target::kWarpLanes == 0) return true;
  (void)sema.diags
      .report<diag::TileThreads>(tile.span, tile.name, text(sema, launch.threads),
                                 target::kWarpLanes)
      .label(from->second, "{} threads here", text(sema, launch.threads))
      .help("give the block whole warps, {} threads for example", kThreads)
      .emit();
  return false;
}

// A tile of the unit that runs here. `dtype` may be told later.
ir::ValueId new_tile(Sema& sema, const std::string& name, DType dtype, Shape shape, Span span) {
  const ir::ValueId id =
      emit_value(sema, ir::Alloc{.name = name}, span,
                 ir::FragType{ir::Role::kTile, dtype, shape.rows, shape.cols}, name);
  Tile tile;
  tile.name = name;
  tile.span = span;
  tile.parallel = sema.place.unit.parallel;
  tile.unit = sema.place.unit.level;
  tile.is_accumulator = true;
  tile.dtype = dtype;
  tile.stored = true;
  tile.first_use = span;
  tile.is_value = true;
  if (tile.unit == ir::Level::kBlock) tile.broken = !give_threads(sema, tile);
  sema.tiles.emplace(id, std::move(tile));
  note_set(sema, id);
  return id;
}

constexpr std::string_view kConvertIt = "convert it: `__to<f32>(x)`";
constexpr std::string_view kOtherType = "take `s32`, `f32` or `f64`";
constexpr std::string_view kConvertEach =
    "convert each element: `t = frag.fill.f32 [rows, columns] 0; apply {i, j} in t.span t.at(i, j) "
    "= __to<f32>(view.at(i, j));`";

// `write 0x80000000u`, where a literal that only an unsigned number of 32 bits holds made the elements
// of the expression longer than that.
std::string help_of_long(Sema& sema, ast::ExprId expr) {
  const auto* literal = sema.ast.as<ast::IntExpr>(expr);
  const Span span = sema.ast[expr].span;
  if (literal != nullptr && literal->type == DType::kS64 && literal->value <= UINT32_MAX) {
    const std::string_view written = sema.sources.text(span);
    return format("write `{}u`: `{}` does not fit an s32, and so is an s64", written, written);
  }
  for (const ast::ExprId inner : syntax::children(sema.ast[expr].node)) {
    std::string help = inner.valid() ? help_of_long(sema, inner) : "";
    if (!help.empty()) return help;
  }
  return "";
}

bool check_element_type(Sema& sema, DType dtype, Span span, std::string_view of_long = kConvertIt) {
  const bool is_long = is_integer(dtype) && info(dtype).bits > 32;
  if (!is_sub_byte(dtype) && dtype != DType::kBool && !is_long) return true;
  (void)sema.diags.report<diag::TileElement>(span, name(dtype))
      .help("{}", dtype == DType::kBool ? "choose numbers by it: `condition ? 1 : 0`"
                  : is_long             ? of_long
                                        : kConvertIt)
      .emit();
  return false;
}

// Constant extents of a tile; a single one counts as rows.
std::optional<Shape> tile_shape(Sema& sema, const std::vector<ast::ExprId>& exprs, Span span) {
  const auto extents = evaluate_extents(sema, exprs, "an extent of a register tile");
  if (!extents) return std::nullopt;
  if (extents->empty() || extents->size() > kTileRank) {
    (void)sema.diags.report<diag::TileRank>(span, extents->size())
        .help("write `[rows, columns]`")
        .emit();
    return std::nullopt;
  }
  std::vector<std::int64_t> values = {1, 1};
  for (std::size_t d = 0; d < extents->size(); ++d) {
    const auto constant = (*extents)[d].value.constant();
    if (!constant) {
      (void)sema.diags
          .report<diag::ExtentNotConstant>(sema.ast[exprs[std::min(d, exprs.size() - 1)]].span,
                                           "an extent of a register tile",
                                           text(sema, (*extents)[d].value))
          .emit();
      return std::nullopt;
    }
    values[d] = *constant;
  }
  return Shape{values[0], values[1]};
}

std::optional<ir::ValueId> TileExpression::filled(const ast::FragFillExpr& fill, ast::ExprId id) {
  const Span span = sema_.ast[id].span;
  const DType dtype = type_of(sema_, fill.type);
  if (!check_element_type(sema_, dtype, span, kOtherType)) return std::nullopt;
  const auto shape = tile_shape(sema_, fill.shape, span);
  if (!shape) return std::nullopt;
  const auto value = convert(sema_, evaluate(sema_, fill.value), dtype);
  if (!value) return std::nullopt;
  const ir::ValueId frag = new_tile(sema_, name_of(id, "filled"), dtype, *shape, span);
  emit(sema_, ir::Fill{frag, *value}, span);
  return frag;
}

std::optional<ir::ValueId> TileExpression::loaded(const ast::FragLoadExpr& load, ast::ExprId id) {
  const Span span = sema_.ast[id].span;
  const auto view = tile_view(sema_, load.source);
  if (!view) return std::nullopt;
  const ir::ViewType type = sema_.function.view_type(view->id);
  if (!check_element_type(sema_, type.dtype, span, kConvertEach)) return std::nullopt;
  const Shape shape{*type.shape[0].constant(), *type.shape[1].constant()};
  const ir::ValueId frag = new_tile(sema_, name_of(id, "loaded"), type.dtype, shape, span);
  emit(sema_, ir::Load{.frag = frag, .view = view->id, .to_registers = true}, span);
  return frag;
}

struct Reduction {
  ast::Builtin builtin;
  ir::ReduceKind kind;
  bool of_bools;  // of 0 and 1
};
constexpr Reduction kReductions[] = {
    {ast::Builtin::kReduceMax, ir::ReduceKind::kMax, false},
    {ast::Builtin::kReduceMin, ir::ReduceKind::kMin, false},
    {ast::Builtin::kReduceSum, ir::ReduceKind::kSum, false},
    {ast::Builtin::kPartialSum, ir::ReduceKind::kSum, false},
    {ast::Builtin::kReduceProduct, ir::ReduceKind::kProduct, false},
    {ast::Builtin::kReduceAny, ir::ReduceKind::kMax, true},
    {ast::Builtin::kReduceAll, ir::ReduceKind::kMin, true},
    {ast::Builtin::kReduceArgMax, ir::ReduceKind::kArgMax, false},
};

const Reduction* reduction_of(ast::Builtin builtin) {
  for (const Reduction& row : kReductions) {
    if (row.builtin == builtin) return &row;
  }
  return nullptr;
}

}  // namespace

// Sums of narrow floats are kept in f32.
DType reduced_type(ir::ReduceKind kind, DType source) {
  if (kind == ir::ReduceKind::kArgMax) return DType::kS32;
  const bool adds = kind == ir::ReduceKind::kSum || kind == ir::ReduceKind::kProduct;
  const bool narrow = is_float(source) && info(source).bits < 32;
  return adds && narrow ? DType::kF32 : source;
}

ir::ValueId make_tile(Sema& sema, const std::string& name, const ir::FragType& type, Span span) {
  return new_tile(sema, name, type.dtype, {type.rows, type.cols}, span);
}

namespace {

std::optional<ir::ValueId> TileExpression::reduced(const ast::CallExpr& call, ir::ValueId source,
                                                   int dimension, ast::ExprId id) {
  const Span span = sema_.ast[id].span;
  const ir::FragType type = sema_.function.frag_type(source);
  if (call.builtin == ast::Builtin::kScanSum) {
    const ir::ValueId sums =
        new_tile(sema_, name_of(id, "sums"), reduced_type(ir::ReduceKind::kSum, type.dtype),
                 {type.rows, type.cols}, span);
    emit(sema_, ir::Scan{.frag = sums, .source = source, .dimension = dimension}, span);
    return sums;
  }
  const Reduction& row = *reduction_of(call.builtin);
  const Shape shape = dimension == 0 ? Shape{1, type.cols} : Shape{type.rows, 1};
  const ir::ValueId frag = new_tile(sema_, name_of(id, ir::name_of(row.kind)),
                                    reduced_type(row.kind, type.dtype), shape, span);
  emit(sema_, ir::Reduce{.frag = frag, .source = source, .kind = row.kind, .dimension = dimension},
       span);
  return frag;
}

// Fills `frag` element by element, `update` saying what is combined with what it holds. `flags`: by 1
// where the expression is true and 0 elsewhere.
std::optional<ir::ValueId> apply_expression(Sema& sema, ast::ExprId expr, ir::ValueId frag,
                                            const ast::AssignStmt* update, bool flags = false);
void TileExpression::called(const ast::CallExpr& call, ast::ExprId id) {
  const auto dimension = evaluate_constant(sema_, call.args[1], "the dimension");
  if (dimension && *dimension != 0 && *dimension != 1) {
    (void)sema_.diags.report<diag::TileDimension>(sema_.ast[call.args[1]].span, *dimension)
        .help("`{}(x, 1)` goes along the rows, from column to column", call.name.text)
        .emit();
  }
  failed_ = failed_ || !dimension || (*dimension != 0 && *dimension != 1);
  if (failed_) return;
  const Reduction* row = reduction_of(call.builtin);
  const bool of_bools = row != nullptr && row->of_bools;
  std::optional<ir::ValueId> source;
  if (of_bools) {
    const auto flags = evaluate_flags(sema_, call.args[0], PartsIn::kNowhere);
    if (flags) source = flags->tile;
  } else {
    source = evaluate_tile(sema_, call.args[0], "part");
  }
  if (!source) {
    failed_ = true;
    return;
  }
  if (call.builtin != ast::Builtin::kTileIndex) {
    const auto made = reduced(call, *source, static_cast<int>(*dimension), id);
    if (call.builtin == ast::Builtin::kPartialSum) {
      note_parts(sema_, *made, sema_.ast[id].span);
      const bool fine = may_be_parts(id);
      if (!fine) report_part(call, id);
      failed_ = !fine;
      has_parts_ = fine;
    }
    return part(id, made);
  }
  sema_.tile_indices[id] = static_cast<int>(*dimension);
  const ir::FragType& type = sema_.function.frag_type(*source);
  join(*dimension == 0 ? Shape{type.rows, 1} : Shape{1, type.cols}, sema_.ast[id].span);
}

// `__bitcast` of a tile: to a type of the same width element by element; else the tile gets more columns,
// or fewer.
void TileExpression::recast(const ast::CastExpr& cast, ast::ExprId id) {
  const Span span = sema_.ast[id].span;
  const DType dtype = type_of(sema_, *cast.type);
  const auto source = evaluate_tile(sema_, cast.operand, "bits");
  failed_ = failed_ || !source || !check_element_type(sema_, dtype, span, kOtherType);
  if (failed_) return;
  const ir::FragType type = sema_.function.frag_type(*source);
  const std::int64_t from = info(type.dtype).bits;
  const std::int64_t to = info(dtype).bits;
  if (from == to) return part(cast.operand, source);
  const std::int64_t bits = type.cols * from;
  if (bits % to != 0) {
    (void)sema_.diags
        .report<diag::BitcastColumns>(span, type.cols, name(type.dtype), bits, name(dtype), to)
        .label(sema_.ast[cast.operand].span, "{}x{}", type.rows, type.cols)
        .help("take a multiple of {} columns", to / from)
        .emit();
    failed_ = true;
    return;
  }
  const ir::ValueId frag =
      new_tile(sema_, name_of(id, "recast"), dtype, {type.rows, bits / to}, span);
  emit(sema_, ir::Recast{.frag = frag, .source = *source}, span);
  part(id, frag);
}

std::optional<ir::ValueId> apply_expression(Sema& sema, ast::ExprId expr, ir::ValueId frag,
                                            const ast::AssignStmt* update, bool flags) {
  const Span span = sema.ast[expr].span;
  const ir::FragType type = sema.function.frag_type(frag);
  const bool is_new = !sema.tiles.at(frag).dtype.has_value();
  const ir::VarId row = add_var(sema, "row", ir::VarKind::kLoop, type.rows, span);
  const ir::VarId col = add_var(sema, "col", ir::VarKind::kLoop, type.cols, span);
  const ir::OpId op = emit(sema, ir::Apply{.frag = frag, .row = row, .col = col, .body = {}}, span);
  const auto outer = sema.apply;  // none, or that of a statement
  sema.apply = OpenApply{.frag = frag,
                         .row = row,
                         .col = col,
                         .first_op = sema.function.ops.size(),
                         .is_expression = true};
  bool fine = true;
  const ir::RegionId body = in_region(sema, [&] {
    Operand value = evaluate(sema, expr);
    if (update != nullptr && update->op != ast::AssignOp::kSet && !value.is_error()) {
      value = combine(sema, operator_of(update->op), update->op_span,
                      element_of_tile(sema, frag, sema.ast[update->target].span), value);
    }
    value.span = span;
    fine = !value.is_error();
    if (fine && flags) {
      const auto one = emit_value(sema, ir::Const{1}, span, ir::ScalarType{DType::kS32});
      const auto none = emit_value(sema, ir::Const{0}, span, ir::ScalarType{DType::kS32});
      const auto truth = convert_to_bool(sema, value);
      fine = truth.has_value();
      if (truth) {
        value = make_scalar(
            emit_value(sema, ir::Choose{*truth, one, none}, span, ir::ScalarType{DType::kS32}),
            DType::kS32, span);
      }
    }
    if (fine && is_new) {
      const std::string of_long = help_of_long(sema, expr);
      fine = check_element_type(sema, value.dtype, span, of_long.empty() ? kConvertIt : of_long);
      std::get<ir::FragType>(sema.function.values[frag].type).dtype = value.dtype;
      sema.tiles.at(frag).dtype = value.dtype;
    }
    const auto converted =
        fine ? convert(sema, value, sema.function.frag_type(frag).dtype) : std::nullopt;
    fine = converted.has_value();
    if (converted) emit(sema, ir::SetElement{frag, *converted}, span);
  });
  sema.apply = outer;
  std::get<ir::Apply>(sema.function.ops[op].data).body = body;
  if (!fine) return std::nullopt;
  return frag;
}

// Remembers what is known of parts outside, for as long as one expression is computed.
class PartsKept {
 public:
  explicit PartsKept(Sema& sema)
      : sema_(sema), parts_(sema.tile_parts), indices_(sema.tile_indices) {}
  ~PartsKept() {
    sema_.tile_parts = std::move(parts_);
    sema_.tile_indices = std::move(indices_);
  }
  PartsKept(const PartsKept&) = delete;
  PartsKept& operator=(const PartsKept&) = delete;

 private:
  Sema& sema_;
  std::map<ast::ExprId, ir::ValueId> parts_;
  std::map<ast::ExprId, int> indices_;
};

bool is_placed(Sema& sema, Span span) { return check_place(sema, span, Where::kUnitOrThreads); }

// Sets an existing tile.
void set_tile(Sema& sema, ir::ValueId frag, ast::ExprId expr, const ast::AssignStmt* update,
              Span target_span) {
  PartsKept kept(sema);
  const bool adds = update != nullptr && update->op == ast::AssignOp::kAdd;
  TileExpression expression(sema, expr, "", adds ? PartsIn::kWhole : PartsIn::kNowhere);
  if (!expression.prepare()) return;
  const ir::FragType type = sema.function.frag_type(frag);
  const Shape shape = expression.shape();
  const auto fits = [](std::int64_t part, std::int64_t whole) {
    return part == whole || part == 1;
  };
  if (!fits(shape.rows, type.rows) || !fits(shape.cols, type.cols)) {
    const Tile& tile = sema.tiles.at(frag);
    (void)sema.diags
        .report<diag::TileAssigned>(target_span, tile.name, type.rows, type.cols, shape.rows,
                                    shape.cols)
        .label(sema.ast[expr].span, "{}x{}", shape.rows, shape.cols)
        .help("give the result a name of its own")
        .emit();
    return;
  }
  (void)apply_expression(sema, expr, frag, update);
  if (expression.has_parts()) note_parts(sema, frag, sema.ast[expr].span);
}

// Whether it is added to as to a sum that is not put together: parts to parts.
bool adds_parts(const Sema& sema, const ast::AssignStmt& stmt) {
  if (stmt.op != ast::AssignOp::kAdd) return false;
  const auto* call = sema.ast.as<ast::CallExpr>(stmt.value);
  if (call != nullptr) return call->builtin == ast::Builtin::kPartialSum;
  const auto* named = sema.ast.as<ast::NameExpr>(stmt.value);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  return symbol != nullptr && is_tile_name(sema, stmt.value) &&
         sema.sums.open.contains(symbol->operand.id);
}

void declare_tile(Sema& sema, const ast::Name& name, std::optional<ir::ValueId> frag) {
  if (!frag) return declare(sema, name, {});
  Tile& tile = sema.tiles.at(*frag);
  tile.name = name.text;
  tile.span = name.span;
  Operand operand;
  operand.kind = Operand::Kind::kFragment;
  operand.id = *frag;
  declare(sema, name, {Symbol::Kind::kAccumulator, operand, {}});
}

}  // namespace

std::optional<Flags> evaluate_flags(Sema& sema, ast::ExprId expr, PartsIn parts, bool empties) {
  PartsKept kept(sema);
  const Span span = sema.ast[expr].span;
  TileExpression expression(sema, expr, "", parts);
  if (!expression.prepare()) return std::nullopt;
  const ir::ValueId frag = new_tile(sema, "flags", DType::kS32, expression.shape(), span);
  if (empties) {
    const auto none = emit_value(sema, ir::Const{0}, span, ir::ScalarType{DType::kS32});
    emit(sema, ir::Fill{frag, none}, span);
  }
  if (!apply_expression(sema, expr, frag, nullptr, true)) return std::nullopt;
  return Flags{frag, expression.has_parts()};
}

bool is_tile_expression(const Sema& sema, ast::ExprId expr) {
  if (!expr.valid()) return false;
  const ast::ExprNode& node = sema.ast[expr].node;
  if (is_tile_name(sema, expr)) return true;
  if (std::holds_alternative<ast::FragFillExpr>(node) ||
      std::holds_alternative<ast::FragLoadExpr>(node)) {
    return true;
  }
  const auto* call = std::get_if<ast::CallExpr>(&node);
  if (call != nullptr && call->builtin == ast::Builtin::kAny) return false;  // a bool
  if (call != nullptr && is_tile_builtin(call->builtin)) return true;
  if (const auto* function = std::get_if<ast::FunctionCallExpr>(&node)) {
    return gives_tile(sema, *function) || is_elementwise_call(sema, *function);
  }
  if (!is_elementwise(node)) return false;
  for (const ast::ExprId inner : syntax::children(node)) {
    if (is_tile_expression(sema, inner)) return true;
  }
  return false;
}

std::optional<ir::ValueId> evaluate_tile(Sema& sema, ast::ExprId expr, const std::string& name,
                                         PartsIn parts) {
  const Span span = sema.ast[expr].span;
  if (!is_placed(sema, span)) return std::nullopt;
  if (!is_tile_expression(sema, expr)) {
    const Operand other = evaluate(sema, expr);
    if (other.is_error()) return std::nullopt;
    (void)sema.diags
        .report<diag::TileNotValue>(span, sema.sources.text(span), describe(other, sema.function))
        .help("{}", other.kind == Operand::Kind::kView
                        ? format("read it into registers: `frag.load {}`", sema.sources.text(span))
                        : "make a tile of it: `frag.fill.f32 [rows, columns] value`")
        .emit();
    return std::nullopt;
  }
  PartsKept kept(sema);
  TileExpression expression(sema, expr, name, parts);
  if (!expression.prepare()) return std::nullopt;
  if (const auto whole = expression.whole()) return whole;
  const ir::ValueId frag = new_tile(sema, name, DType::kF32, expression.shape(), span);
  sema.tiles.at(frag).dtype.reset();
  return apply_expression(sema, expr, frag, nullptr);
}

Operand element_of_tile(Sema& sema, ir::ValueId frag, Span span) {
  const DType dtype = sema.function.frag_type(frag).dtype;
  const ir::ValueId value = emit_value(sema, ir::Element{frag}, span, ir::ScalarType{dtype});
  return make_scalar(value, dtype, span);
}

std::optional<Operand> tile_element(Sema& sema, ast::ExprId id, Span span) {
  if (!sema.apply || !sema.apply->is_expression) return std::nullopt;
  if (const auto index = sema.tile_indices.find(id); index != sema.tile_indices.end()) {
    const ir::VarId var = index->second == 0 ? sema.apply->row : sema.apply->col;
    return make_int(ir::Expr::var(var), span);
  }
  const auto part = sema.tile_parts.find(id);
  if (part == sema.tile_parts.end()) return std::nullopt;
  return element_of_tile(sema, part->second, span);
}

// A second name for a tile is a tile of its own, and so is one of another type.
void declare_tile_value(Sema& sema, const ast::Name& name, ast::ExprId value, Span span,
                        std::optional<DType> dtype) {
  // A name for parts is no copy of them.
  const bool copies = dtype || is_tile_name(sema, value);
  auto frag = evaluate_tile(sema, value, name.text, copies ? PartsIn::kNowhere : PartsIn::kWhole);
  if (!frag) return declare_tile(sema, name, frag);
  const ir::FragType type = sema.function.frag_type(*frag);
  const bool retyped = dtype && *dtype != type.dtype;
  const bool fits = !retyped || check_element_type(sema, *dtype, span);
  if (fits && (retyped || is_tile_name(sema, value))) {
    const ir::ValueId copy =
        new_tile(sema, name.text, dtype.value_or(type.dtype), {type.rows, type.cols}, span);
    PartsKept kept(sema);
    sema.tile_parts.insert_or_assign(value, *frag);
    frag = apply_expression(sema, value, copy, nullptr);
  }
  declare_tile(sema, name, frag);
}

void assign_tile(Sema& sema, const ast::AssignStmt& stmt, Span span) {
  const Span target_span = sema.ast[stmt.target].span;
  if (!is_tile_name(sema, stmt.target)) {
    const auto* target = sema.ast.as<ast::NameExpr>(stmt.target);
    return declare_tile_value(sema, {target->name, target_span}, stmt.value, span);
  }
  const Symbol* symbol = named_tile(sema, stmt.target);
  if (symbol == nullptr) return;
  const ir::ValueId frag = symbol->operand.id;
  if (!is_placed(sema, span) || sema.tiles.at(frag).broken) return;
  if (symbol->kind == Symbol::Kind::kTile) {
    (void)sema.diags
        .report<diag::ImmutableAssigned>(target_span, sema.tiles.at(frag).name, "a register tile")
        .label(sema.tiles.at(frag).span, "loaded here")
        .help("load it again: `{} = mma.load view;`", sema.tiles.at(frag).name)
        .emit();
    return;
  }
  PartsKept kept(sema);
  TileExpression self(sema, stmt.target, "");
  const bool scales = stmt.op == ast::AssignOp::kMultiply || stmt.op == ast::AssignOp::kDivide;
  const bool reads = stmt.op != ast::AssignOp::kSet && !scales && !adds_parts(sema, stmt);
  if (reads ? !self.prepare() : !self.prepare_target()) return;
  set_tile(sema, frag, stmt.value, &stmt, target_span);
  if (stmt.op == ast::AssignOp::kSet) note_set(sema, frag);
}

namespace {

// The expression in `{v}`.
ast::ExprId braced(const Sema& sema, ast::ExprId init) {
  const auto* braces = sema.ast.as<ast::TupleExpr>(init);
  return braces != nullptr && braces->items.size() == 1 ? braces->items[0] : init;
}

// `frag f32 [64, 32] x {0.0f};`, or an array of such tiles.
void declare_shaped(Sema& sema, const ast::FragDeclStmt& stmt, const ast::Declarator& item,
                    Span span) {
  const DType dtype = type_of(sema, stmt.type).value_or(DType::kF32);
  const auto shape = tile_shape(sema, stmt.shape, span);
  auto extents = array_extents(sema, item.extents, item.name);
  if (!shape || !extents || !check_element_type(sema, dtype, stmt.type_span, kOtherType)) {
    return declare(sema, item.name, {});
  }
  std::optional<ir::ValueId> value;
  if (item.init.valid() && item.braces) {
    value = convert(sema, evaluate(sema, braced(sema, item.init)), dtype);
  }
  declare_tiles(sema, item.name, std::move(*extents), [&](const TileName& name) {
    const ir::ValueId frag = new_tile(sema, name.identifier, dtype, *shape, item.name.span);
    sema.tiles.at(frag).name = name.text;
    if (value) emit(sema, ir::Fill{frag, *value}, item.span);
    if (item.init.valid() && !item.braces) {
      set_tile(sema, frag, item.init, nullptr, item.name.span);
    }
    return frag;
  });
}

}  // namespace

void analyse(Sema& sema, const ast::FragDeclStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const bool placed = is_placed(sema, span);
  for (const ast::Declarator& item : stmt.declarators) {
    if (!placed) {
      declare(sema, item.name, {});
    } else if (!stmt.shape.empty()) {
      declare_shaped(sema, stmt, item, span);
    } else if (item.init.valid() && item.braces && stmt.accumulator) {
      const Operand value = evaluate(sema, braced(sema, item.init));
      declare_accumulators(sema, {item.name, type_of(sema, stmt.type), item.extents, value},
                           item.span);
    } else if (item.init.valid() && !item.braces && item.extents.empty()) {
      declare_tile_value(sema, item.name, item.init, item.name.span, type_of(sema, stmt.type));
    } else if (!stmt.type && !item.init.valid() && !item.extents.empty()) {
      auto extents = array_extents(sema, item.extents, item.name);
      if (!extents) {
        declare(sema, item.name, {});
      } else {
        declare_operands(sema, item.name, std::move(*extents));
      }
    } else {
      refuse(sema, item.span, "a register tile with neither a shape nor a value");
      declare(sema, item.name, {});
    }
  }
}

}  // namespace kiln::sema
