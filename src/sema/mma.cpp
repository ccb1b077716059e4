// Of the four steps `mma.fill` and `mma.store`, and the waits; `mma.load` is in mma_load.cpp, products are in
// mma_product.cpp.
//
// A register tile is declared without a shape. The `mma` that uses it tells: rows and columns come
// from the operands' views, the accumulator's type from the fill or else from A. So Alloc and Fill
// are emitted with placeholders and patched when the first `mma` is seen.
#include "sema/mma.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/arguments.h"
#include "ir/depend.h"
#include "ir/effects.h"
#include "sema/constant.h"
#include "sema/expression.h"
#include "sema/inthreads.h"
#include "sema/literal.h"
#include "sema/partial_sum.h"
#include "sema/scaled_block.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "sema/view.h"
#include "support/integer.h"
#include "target/arch.h"

namespace kiln::sema {

void mark_broken(std::initializer_list<Tile*> tiles) {
  for (Tile* tile : tiles) {
    if (tile != nullptr) tile->broken = true;
  }
}

bool check_place(Sema& sema, Span word_span, Where where) {
  const std::string word(sema.sources.text(word_span));
  const ir::Level level = sema.place.unit.level;
  const bool in_unit = level == ir::Level::kGroup || level == ir::Level::kGroup4;
  const ir::Level unit = in_unit ? ir::Level::kGroup : ir::Level::kBlock;
  if (!check_collective(sema, word_span, format("`{}`", word), unit)) return false;
  if (level == ir::Level::kGroup4 && !check_whole_warpgroups(sema, word_span, word)) return false;
  // Without wgmma a `group-4` was refused before.
  if (in_unit) return level == ir::Level::kGroup || sema.arch.has(target::Feature::kWgmma);
  const bool in_threads = sema.place.level == ir::Level::kThread;
  if (level == ir::Level::kBlock && where == Where::kUnitOrThreads) return true;
  if (level == ir::Level::kBlock && where == Where::kUnitOrBlock && !in_threads) return true;
  (void)sema.diags
      .report<diag::MmaPlacement>(
          word_span, word,
          in_threads ? std::string_view("inside `: thread`") : std::string_view("at block level"))
      .help("write it in the body of a `parallel ... : group` or `: group-4`")
      .emit();
  return false;
}

void report_no_array(Sema& sema, const Symbol& symbol, const ast::FragRef& ref) {
  if (symbol.kind == Symbol::Kind::kOperand && symbol.operand.is_error()) return;
  const auto tile = sema.tiles.find(symbol.operand.id);
  if (tile != sema.tiles.end()) mark_broken({&tile->second});
  (void)sema.diags
      .report<diag::NotAnArray>(ref.span, ref.name.text, describe(symbol.operand, sema.function))
      .label(symbol.span, "declared here")
      .help("declare an array: `{}`", symbol.kind == Symbol::Kind::kTile
                                          ? format("frag {}[2];", ref.name.text)
                                          : format("{} = mma.fill.f32 0.0f [2, 4];", ref.name.text))
      .emit();
}

Tile* find_tile(Sema& sema, const ast::FragRef& ref, bool accumulator, ir::ValueId& id) {
  const Symbol* symbol = sema.scopes.find(ref.name.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(ref.name.span, ref.name.text)
        .help_if(did_you_mean(ref.name.text, sema.scopes.names()))
        .emit();
    return nullptr;
  }
  if (symbol->kind == Symbol::Kind::kTileArray) {
    symbol = array_element(sema, *symbol, ref);
    if (symbol == nullptr) return nullptr;
  } else if (!ref.subscripts.empty()) {
    report_no_array(sema, *symbol, ref);
    return nullptr;
  }
  const Symbol::Kind wanted = accumulator ? Symbol::Kind::kAccumulator : Symbol::Kind::kTile;
  if (symbol->kind == wanted) {
    id = symbol->operand.id;
    return &sema.tiles.at(id);
  }
  if (symbol->kind == Symbol::Kind::kOperand && symbol->operand.is_error()) return nullptr;
  const bool is_tile = symbol->kind == Symbol::Kind::kTile;
  const bool is_accumulator = symbol->kind == Symbol::Kind::kAccumulator;
  (void)sema.diags
      .report<diag::MmaNotFragment>(ref.span, ref.name.text,
                                    is_tile          ? std::string("an operand tile")
                                    : is_accumulator ? std::string("an accumulator")
                                                     : describe(symbol->operand, sema.function),
                                    accumulator ? "an accumulator" : "a tile loaded by `mma.load`")
      .label(symbol->span, "declared here")
      .help("{}", accumulator ? "declare it with `name = mma.fill.f32 0.0f;`"
                              : "load it first: `name = mma.load view;`")
      .emit();
  return nullptr;
}

namespace {

// Converts the value a fill gives. The type of an accumulator without one is patched later.
std::optional<ir::ValueId> fill_value(Sema& sema, Tile& tile, const Operand& value) {
  if (tile.dtype) return convert(sema, value, *tile.dtype);
  if (value.is_error()) return std::nullopt;
  const auto number = literal_number(value);
  const auto any = number ? std::optional(emit_value(sema, ir::Const{*number}, value.span,
                                                     ir::ScalarType{value.dtype}))
                          : convert_explicitly(sema, value, value.dtype);
  if (!any) return std::nullopt;
  const auto* literal = sema.function.def_as<ir::Const>(*any);
  const ir::ValueId patched = literal != nullptr ? *any
                                                 : emit_value(sema, ir::Cast{*any}, value.span,
                                                              ir::ScalarType{value.dtype});
  tile.fill_values.push_back(patched);
  return patched;
}

// The number of a fill, as it was written.
Operand literal_of(const Sema& sema, ir::ValueId value, double number) {
  const DType dtype = std::get<ir::ScalarType>(sema.function.type(value)).dtype;
  Operand out;
  out.kind = Operand::Kind::kFloat;
  out.number = number;
  if (!is_float(dtype) && std::fabs(number) < 0x1p63) {
    out = make_int(ir::Expr(static_cast<std::int64_t>(number)), {});
  }
  out.span = sema.function.ops[sema.function.values[value].def].span;
  return out;
}

}  // namespace

void resolve_fills(Sema& sema, Tile& tile, DType dtype) {
  for (ir::ValueId value : tile.fill_values) {
    auto& data = sema.function.ops[sema.function.values[value].def].data;
    auto* constant = std::get_if<ir::Const>(&data);
    const bool fits =
        constant == nullptr || check_literal(sema, literal_of(sema, value, constant->value), dtype);
    sema.function.values[value].type = ir::ScalarType{dtype};
    if (constant != nullptr && fits) {
      constant->value = round_to(dtype, constant->value);
    }
  }
  tile.fill_values.clear();
  tile.dtype = dtype;
}

bool check_same_unit(Sema& sema, Tile& tile, Span span) {
  const Unit& unit = sema.place.unit;
  const bool of_block = tile.parallel == sema.place.launch;
  const bool in_block = unit.parallel == sema.place.launch;
  const auto matches = [&] { return !tile.unit || in_block || *tile.unit == unit.level; };
  if (tile.parallel == unit.parallel || (of_block && matches())) {
    if (!tile.unit && !in_block) tile.unit = unit.level;
    return true;
  }
  (void)sema.diags.report<diag::MmaUnitChanged>(span, tile.name)
      .label(tile.span, "declared at that level")
      .help("declare it in the same `parallel` body as the `mma` that uses it")
      .emit();
  return false;
}

namespace {

// The inner axes around the statement, those of `launch` left out, that a view's place depends on
// in one way for each instance.
struct Instances {
  ir::Expr count = 1;      // that run the statement at once
  bool told_apart = true;  // by the view
};

// How many warps or warpgroups store to the view, and whether each has a place of its own.
Instances instances_at(const Sema& sema, const Tile& tile, ir::ValueId view) {
  constexpr std::int64_t kWarpgroup = target::kWarpgroupLanes;
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const std::int64_t unit = tile.unit == ir::Level::kGroup4 ? kWarpgroup : target::kWarpLanes;
  Instances out;
  if (const auto region = enclosing_region(sema); region && region->threads == unit) return out;
  if (tile.is_value && sema.place.unit.level == ir::Level::kBlock) return out;
  if (sema.place.unit.parallel == sema.place.launch) {
    out.count = launch.threads.constant().value_or(unit) / unit;
    out.told_apart = out.count.is(1);
    return out;
  }
  const ir::Dependence place =
      ir::dependence_of(sema.function, ir::resolve_view(sema.function, view).origin);
  const auto& parallel = std::get<ir::Parallel>(sema.function.ops[sema.place.unit.parallel].data);
  for (const ir::VarId var : parallel.vars) {
    const ir::Expr& extent = sema.function.vars[var].extent;
    out.count = out.count * extent;
    if (!extent.is(1) && !place.vars.contains(var)) out.told_apart = false;
  }
  const auto all = out.count.constant();
  const auto region = enclosing_region(sema);
  if (region && all) out.count = std::min(*all, ceil_div(region->threads, unit));
  return out;
}

// Each element of a destination has one writer. A store that not all units get to is not judged.
bool check_one_writer(Sema& sema, const Tile& tile, ir::ValueId view, Span span) {
  if (sema.place.divergent_in_block.valid()) return true;
  const Instances instances = instances_at(sema, tile, view);
  if (instances.told_apart) return true;
  const std::string_view units = tile.unit == ir::Level::kGroup4 ? "warpgroups" : "warps";
  (void)sema.diags
      .report<diag::MmaStoreAmbiguous>(span, tile.name, text(sema, instances.count), units)
      .label(tile.span, "each of the {} has its own", units)
      .help("store inside the `parallel`, to a view whose place depends on all of its indices")
      .emit();
  return false;
}

}  // namespace

namespace {

// Takes the shape that an `mma` further down was seen to give.
void foresee_shape(Sema& sema, Tile& tile, ir::ValueId id) {
  if (sema.shapes == nullptr) return;
  const auto known = sema.shapes->find({tile.span, tile.before});
  if (known == sema.shapes->end()) return;
  std::get<ir::FragType>(sema.function.values[id].type) = known->second;
  tile.dtype = known->second.dtype;
}

ir::ValueId new_accumulator(Sema& sema, const Accumulators& all, const TileName& name, Span span) {
  const ir::ValueId id =
      emit_value(sema, ir::Alloc{.name = name.identifier}, span,
                 ir::FragType{ir::Role::kC, all.type.value_or(DType::kF32), 0, 0}, name.identifier);
  Tile tile;
  tile.name = name.text;
  tile.span = all.name.span;
  tile.before = sema.declared[tile.span]++;
  tile.parallel = sema.place.unit.parallel;
  if (sema.place.unit.level != ir::Level::kBlock) tile.unit = sema.place.unit.level;
  tile.is_accumulator = true;
  tile.dtype = all.type;
  foresee_shape(sema, tile, id);
  if (const auto converted = fill_value(sema, tile, all.value)) {
    emit(sema, ir::Fill{id, *converted}, span);
  }
  sema.tiles.emplace(id, std::move(tile));
  return id;
}

void refill(Sema& sema, ir::ValueId id, const Operand& value, const ast::MmaFillStmt& stmt,
            Span span) {
  Tile& tile = sema.tiles.at(id);
  if (!check_same_unit(sema, tile, stmt.target.span)) return;
  if (const auto converted = fill_value(sema, tile, value)) {
    note_product(sema, id, emit(sema, ir::Fill{id, *converted}, span));
    note_set(sema, id);
  }
}

// All tiles of an array.
void refill_array(Sema& sema, const Symbol& array, const Operand& value,
                  const ast::MmaFillStmt& stmt, Span span) {
  const auto extents = array_extents(sema, stmt.extents, stmt.target.name);
  if (!extents) return;
  if (!extents->empty() && *extents != array.extents) {
    (void)sema.diags
        .report<diag::TileArrayExtents>(stmt.target.span, stmt.target.name.text,
                                        extents_text(array.extents), extents_text(*extents))
        .label(array.span, "declared here")
        .help("`mma.fill {}, ...;` fills all of them", stmt.target.name.text)
        .emit();
    return;
  }
  for (const Symbol& element : array.elements) refill(sema, element.operand.id, value, stmt, span);
}

}  // namespace

void declare_accumulators(Sema& sema, const Accumulators& all, Span span) {
  auto extents = array_extents(sema, all.extents, all.name);
  if (!extents) return declare(sema, all.name, {});
  declare_tiles(sema, all.name, std::move(*extents),
                [&](const TileName& name) { return new_accumulator(sema, all, name, span); });
}

void analyse(Sema& sema, const ast::MmaFillStmt& stmt, ast::StmtId statement) {
  const Span span = sema.ast[statement].span;
  const ast::Name& name = stmt.target.name;
  const Symbol* symbol = sema.scopes.find(name.text);
  if (!check_place(sema, stmt.word_span, Where::kUnitOrBlock)) {
    if (stmt.declares && symbol == nullptr) declare(sema, name, {});
    return;
  }
  const Operand value = evaluate(sema, stmt.value);
  const bool is_one = symbol != nullptr && symbol->kind == Symbol::Kind::kAccumulator;
  const bool is_array = symbol != nullptr && symbol->kind == Symbol::Kind::kTileArray;
  if (is_array && stmt.target.subscripts.empty() && is_operand_array(*symbol)) {
    (void)sema.diags
        .report<diag::MmaNotFragment>(stmt.target.span, name.text, "an array of operand tiles",
                                      "an array of accumulators")
        .label(symbol->span, "declared here")
        .help("declare accumulators under another name: `sum = mma.fill.f32 0.0f [{}];`",
              join(symbol->extents, ", ", [](std::int64_t each) { return format("{}", each); }))
        .emit();
    return;
  }
  if (is_array && stmt.target.subscripts.empty()) {
    return refill_array(sema, Symbol(*symbol), value, stmt, span);
  }
  const bool declares = stmt.declares && stmt.target.subscripts.empty();
  if (declares && (!is_one || !stmt.extents.empty())) {
    const Accumulators all{name, type_of(sema, stmt.type), stmt.extents, value};
    return declare_accumulators(sema, all, span);
  }
  ir::ValueId id;
  if (find_tile(sema, stmt.target, true, id) != nullptr) refill(sema, id, value, stmt, span);
}

namespace {

// The part of the destination that `.mask` lets through: its first `rows` rows, and columns.
std::optional<ir::ValueId> mask_view(Sema& sema, ir::ValueId view, const ast::MmaStoreStmt& stmt) {
  std::vector<ast::ExprId> exprs = {stmt.rows};
  if (stmt.cols.valid()) exprs.push_back(stmt.cols);
  const auto items = evaluate_list(sema, exprs, "an extent of the mask");
  if (!items || items->size() != exprs.size()) return std::nullopt;
  std::vector<ir::Expr> shape = sema.function.view_type(view).shape;
  for (std::size_t d = 0; d < items->size(); ++d) {
    if (!(*items)[d].element) {
      (void)sema.diags.report<diag::WildcardMisplaced>((*items)[d].span).emit();
      return std::nullopt;
    }
    shape[d] = (*items)[d].element->value;
  }
  return widen_view(sema, view, std::move(shape), stmt.word_span);
}

struct Columns {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// `mc.subspan(_, 64).at(_, 1)`: columns 64 to 127. Registers are chosen when compiling, so all of
// it is constant; parts are made of whole matrices of 8 columns.
class PartOfAccumulator {
 public:
  PartOfAccumulator(Sema& sema, const Tile& tile, const ir::FragType& type, ast::ExprId part)
      : sema_(sema), tile_(tile), type_(type), part_(part) {}

  std::optional<Columns> columns() {
    const auto& view = std::get<ast::ViewExpr>(sema_.ast[part_].node);
    const ast::ViewOp& op = view.ops.front();
    const bool is_tile = view.ops.size() == 1 && op.kind == ast::ViewOpKind::kSubspan &&
                         op.args.size() == 2 && op.origin.size() == 2 && op.strides.empty() &&
                         op.steps.empty();
    if (!is_tile) return fail("it is written `.subspan(_, columns).at(_, number)`");
    if (tile_.unit != ir::Level::kGroup4) return fail("only a warpgroup's accumulator has them");
    const auto rows = value(op.args[0], type_.rows);
    const auto row = value(op.origin[0], 0);
    const auto count = value(op.args[1], type_.cols);
    const auto number = value(op.origin[1], 0);
    if (!rows || !row || !count || !number) return std::nullopt;
    if (*rows != type_.rows || *row != 0) return fail(format("it has all {} rows", type_.rows));
    if (*count < 1 || *count % kMatrixColumns != 0) {
      return fail(format("{} columns are no multiple of {}", *count, kMatrixColumns));
    }
    if (*number < 0 || *number >= type_.cols / *count) {
      return fail(format("it has {} of {} columns, and no number {}", type_.cols / *count, *count,
                         *number));
    }
    return Columns{*number * *count, *count};
  }

 private:
  static constexpr std::int64_t kMatrixColumns = 8;

  std::optional<std::int64_t> value(ast::ExprId id, std::int64_t of_wildcard) {
    if (std::holds_alternative<ast::WildcardExpr>(sema_.ast[id].node)) return of_wildcard;
    return evaluate_constant(sema_, id, "a part of an accumulator");
  }

  // A part that there is.
  std::string example() const {
    if (tile_.unit != ir::Level::kGroup4) {
      return format("store all of it: `mma.store {}, ...`", tile_.name);
    }
    const std::int64_t half = type_.cols / 2;
    const std::int64_t count = half % kMatrixColumns == 0 ? half : kMatrixColumns;
    const std::int64_t number = type_.cols / count - 1;
    return format("`{}.subspan(_, {}).at(_, {})` is its columns {} to {}", tile_.name, count,
                  number, number * count, (number + 1) * count - 1);
  }

  std::nullopt_t fail(const std::string& why) {
    (void)sema_.diags
        .report<diag::MmaStorePart>(sema_.ast[part_].span, tile_.name, type_.rows, type_.cols, why)
        .help("{}", example())
        .emit();
    return std::nullopt;
  }

  Sema& sema_;
  const Tile& tile_;
  const ir::FragType& type_;
  ast::ExprId part_;
};

}  // namespace

void store_tile(Sema& sema, ir::ValueId frag, const TileStore& store, Span span) {
  const Tile& tile = sema.tiles.at(frag);
  const ir::FragType type = sema.function.frag_type(frag);
  const std::int64_t columns = store.columns == 0 ? type.cols : store.columns;
  const Operand target = evaluate_view(sema, store.target);
  if (target.is_error()) return;
  const std::vector<ir::Expr> shape = sema.function.view_type(target.id).shape;
  if (shape.size() != 2) {
    (void)sema.diags.report<diag::MmaRank>(target.span, shape.size())
        .help("take a rank-2 view of it")
        .emit();
    return;
  }
  const std::vector<std::int64_t> extents =
      store.transposed ? std::vector{columns, type.rows} : std::vector{type.rows, columns};
  for (std::size_t d = 0; d < 2; ++d) {
    const auto extent = shape[d].constant();
    if (!extent || *extent == extents[d]) continue;
    if (*extent < extents[d] && store.masked != nullptr) continue;
    (void)sema.diags.report<diag::MmaStoreShape>(target.span, d, *extent, extents[d])
        .label(store.tile_span, "`{}` is {}x{}", tile.name, type.rows, columns)
        .help("store into `.subspan({}, {}).at(...)`", extents[0], extents[1])
        .emit();
    return;
  }
  ir::ValueId view = target.id;
  if (!check_one_writer(sema, tile, view, store.word_span)) return;
  const std::vector<ir::Expr> wanted{extents[0], extents[1]};
  if (store.masked != nullptr) {
    const auto masked = mask_view(sema, view, *store.masked);
    if (!masked) return;
    view = *masked;
  }
  if (!(sema.function.view_type(view).shape == wanted))
    view = widen_view(sema, view, wanted, target.span);
  emit(sema,
       ir::Store{.frag = frag,
                 .view = view,
                 .first_column = store.first_column,
                 .transposed = store.transposed,
                 .masked = store.masked != nullptr},
       span);
}

void analyse(Sema& sema, const ast::MmaStoreStmt& stmt, ast::StmtId statement) {
  const Span span = sema.ast[statement].span;
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.acc, true, id);
  if (tile != nullptr) tile->stored = true;
  const bool of_value = tile != nullptr && tile->is_value;
  const Where where = of_value ? Where::kUnitOrThreads : Where::kUnitOrBlock;
  if (!check_place(sema, stmt.word_span, where)) return mark_broken({tile});
  if (tile != nullptr && tile->broken) return;
  if (tile == nullptr || !check_same_unit(sema, *tile, stmt.acc.span)) return;
  const ir::FragType type = sema.function.frag_type(id);
  if (type.rows == 0) {
    tile->stored_early = stmt.acc.span;
    return;
  }
  std::optional<Columns> part = Columns{0, type.cols};
  if (stmt.part.valid()) part = PartOfAccumulator(sema, *tile, type, stmt.part).columns();
  if (!part) return;
  store_tile(sema, id,
             {.target = stmt.target,
              .tile_span = stmt.acc.span,
              .word_span = stmt.word_span,
              .first_column = part->first,
              .columns = part->count,
              .transposed = stmt.transp,
              .masked = stmt.masked ? &stmt : nullptr},
             span);
}

// Products of warp instructions are complete when the statement ends; a pass drops these operations
// where there is nothing in flight.
void analyse(Sema& sema, const ast::MmaCommitStmt&, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (check_collective(sema, span, "`mma.commit`", ir::Level::kGroup)) {
    emit(sema, ir::MmaCommit{true}, span);
  }
}

void analyse(Sema& sema, const ast::MmaWaitStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const auto groups = evaluate_constant(sema, stmt.groups, "the number of groups in flight");
  if (!groups || !check_collective(sema, span, "`mma.wait`", ir::Level::kGroup)) return;
  constexpr std::int64_t kGroupsMax = 7;  // PTX: an immediate; more than any pipeline has
  if (*groups < 0 || *groups > kGroupsMax) {
    (void)sema.diags.report<diag::MmaWaitGroups>(sema.ast[stmt.groups].span, *groups, kGroupsMax)
        .help("`mma.wait<0>;` waits for all products")
        .emit();
    return;
  }
  emit(sema, ir::MmaWait{*groups, true}, span);
}

namespace {

// Whether what the function does is to be seen from outside: it writes memory there, or has a buffer
// that is good for nothing else. A kernel without any effect is there to be compiled, not to be run.
bool has_effect(const ir::Function& function) {
  const std::vector<std::size_t> read = ir::read_params(function);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const bool is_buffer =
        std::holds_alternative<ir::ViewType>(function.type(function.params[i].value));
    if (is_buffer && std::ranges::find(read, i) == read.end()) return true;
  }
  for (const ir::Op& op : function.ops) {
    bool writes = op.kind() == ir::OpKind::kPrint;
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      const auto* view = std::get_if<ir::ViewType>(&function.type(touch.value));
      writes = writes || (touch.writes() && touch.use != ir::Use::kStarts && view != nullptr &&
                          view->space == ir::Space::kGlobal);
    });
    if (writes) return true;
  }
  return false;
}

// Elements of an array that no product uses, where one uses others, are not there.
void drop_unused(Sema& sema) {
  std::set<ir::ValueId> unused;
  for (const auto& each : sema.tiles) {
    const Tile& tile = each.second;
    const bool is_element = tile.is_accumulator && tile.name.find('[') != std::string::npos;
    if (!is_element || tile.first_use.valid() || tile.broken || tile.stored_early.valid()) continue;
    const bool has_others = std::ranges::any_of(sema.tiles, [&](const auto& other) {
      return other.second.span == tile.span && other.second.first_use.valid();
    });
    if (has_others) unused.insert(each.first);
  }
  const auto is_of_unused = [&](ir::OpId id) {
    const ir::Op& op = sema.function.ops[id];
    const auto* fill = std::get_if<ir::Fill>(&op.data);
    return unused.contains(fill == nullptr ? op.result : fill->frag);
  };
  for (std::uint32_t i = 0; !unused.empty() && i < sema.function.regions.size(); ++i) {
    std::erase_if(sema.function.regions[ir::RegionId{i}].ops, is_of_unused);
  }
  for (const ir::ValueId id : unused) sema.tiles.erase(id);
}

// A tile that no product adds to is in registers that others decide: its columns may be no run of them.
void refuse_parts_of_values(Sema& sema) {
  const ir::Function& function = sema.function;
  for (const ir::Op& op : function.ops) {
    const auto* store = std::get_if<ir::Store>(&op.data);
    if (store == nullptr) continue;
    const ir::FragType& type = function.frag_type(store->frag);
    const auto tile = sema.tiles.find(store->frag);
    const bool is_value = type.role == ir::Role::kTile && tile != sema.tiles.end();
    if (!is_value || tile->second.broken || stored_columns(function, *store) == type.cols) continue;
    const std::string& name = tile->second.name;
    (void)sema.diags
        .report<diag::MmaStorePart>(op.span, name, type.rows, type.cols,
                                    "only what products are added to has them")
        .help("store all of it: `mma.store {}, ...`", name)
        .emit();
  }
}

}  // namespace

void check_tiles(Sema& sema) {
  drop_unused(sema);
  refuse_parts_of_values(sema);
  const bool is_run = has_effect(sema.function);
  std::set<Span> reported;  // of the tiles of an array the first
  for (const auto& [id, tile] : sema.tiles) {
    if (tile.broken) continue;
    const bool fine = tile.first_use.valid() && !tile.stored_early.valid() &&
                      (!tile.is_accumulator || tile.stored);
    if (fine && !tile.open_extents.empty()) {
      for (const ir::Expr& extent : tile.open_extents) {
        if (!extent.constant()) report_open_tile(sema, tile.span, extent);
      }
    }
    if (fine || !reported.insert(tile.span).second) continue;
    if (!tile.first_use.valid()) {
      (void)sema.diags.report<diag::MmaUnused>(tile.span, tile.name)
          .help("{}", tile.is_accumulator ? "accumulate into it with `mma.row.row`, or remove it"
                                          : "use it in an `mma`, or remove it")
          .emit();
    } else if (tile.stored_early.valid()) {
      refuse(sema, tile.stored_early, "storing an accumulator before its first `mma`");
    } else if (!is_run) {
      (void)sema.diags.report<diag::MmaResultUnused>(tile.span, tile.name)
          .help("write it: `mma.store {}, view;`", tile.name)
          .emit();
    } else if (tile.is_accumulator && !tile.stored) {
      (void)sema.diags.report<diag::MmaNeverStored>(tile.span, tile.name)
          .help("write it: `mma.store {}, view;`", tile.name)
          .emit();
    }
  }
}

}  // namespace kiln::sema
