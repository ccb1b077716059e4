// The four steps: `mma.fill`, `mma.load`, `mma.row.row`, `mma.store`.
//
// A register tile is declared without a shape. The `mma` that uses it tells: rows and columns come
// from the operands' views, the accumulator's type from the fill or else from A. So Alloc and Fill
// are emitted with placeholders and patched here when the first `mma` is seen.
#include <algorithm>

#include "kiln/sparse.h"
#include "sema/expression.h"
#include "sema/statement.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

// A mistake with these tiles has been reported: nothing more is said about them.
void mark_broken(std::initializer_list<Tile*> tiles) {
  for (Tile* tile : tiles) {
    if (tile != nullptr) tile->broken = true;
  }
}

// The same for the tiles that a refused statement names.
void mark_named_broken(Sema& sema, const ast::MmaExecStmt& stmt) {
  std::vector<std::string> names = {stmt.acc.name.text};
  for (ast::ExprId operand : {stmt.a, stmt.b}) {
    if (const auto* named = sema.ast.as<ast::NameExpr>(operand)) names.push_back(named->name);
  }
  for (const std::string& name : names) {
    const Symbol* symbol = sema.scopes.find(name);
    const auto tile = symbol == nullptr ? sema.tiles.end() : sema.tiles.find(symbol->operand.id);
    if (tile != sema.tiles.end()) tile->second.broken = true;
  }
}

// What a statement of the family needs of its place: loads and products belong to one warp or
// warpgroup; fills and stores may also stand in a block, for all of them.
enum class Where : std::uint8_t { kUnit, kUnitOrBlock };

// False after a report when this is no place for the statement.
bool check_place(Sema& sema, Span word_span, Where where) {
  const std::string word(sema.sources.text(word_span));
  const ir::Level level = sema.place.level;
  const bool in_unit = level == ir::Level::kGroup || level == ir::Level::kGroup4;
  const ir::Level unit = in_unit ? ir::Level::kGroup : ir::Level::kBlock;
  if (!check_collective(sema, word_span, format("`{}`", word), unit)) return false;
  if (in_unit) return level == ir::Level::kGroup || sema.arch.has_warpgroup;  // else refused before
  if (level == ir::Level::kBlock && where == Where::kUnitOrBlock) return true;
  (void)sema.diags
      .report<diag::MmaPlacement>(word_span, word,
                                  level == ir::Level::kThread
                                      ? std::string_view("inside `: thread`")
                                      : std::string_view("at block level"))
      .help("write it in the body of a `parallel ... : group` or `: group-4`")
      .emit();
  return false;
}

// The tile a reference names, or null after a report.
Tile* find_tile(Sema& sema, const ast::FragRef& ref, bool accumulator, ir::ValueId& id) {
  if (!ref.subscripts.empty()) {
    refuse(sema, ref.span, "an array of accumulators");
    return nullptr;
  }
  const Symbol* symbol = sema.scopes.find(ref.name.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(ref.name.span, ref.name.text)
        .help_if(did_you_mean(ref.name.text, sema.scopes.names()))
        .emit();
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

// Converts the value a fill gives. The type of an accumulator without one is patched later.
std::optional<ir::ValueId> fill_value(Sema& sema, Tile& tile, const Operand& value) {
  if (tile.dtype) return convert(sema, value, *tile.dtype);
  if (value.is_error()) return std::nullopt;
  const auto any = convert_explicitly(sema, value, value.dtype);
  if (!any) return std::nullopt;
  const auto* literal = sema.function.def_as<ir::Const>(*any);
  const ir::ValueId patched = literal != nullptr ? *any
                                                 : emit_value(sema, ir::Cast{*any}, value.span,
                                                              ir::ScalarType{value.dtype});
  tile.fill_values.push_back(patched);
  return patched;
}

void resolve_fills(Sema& sema, Tile& tile, DType dtype) {
  for (ir::ValueId value : tile.fill_values) {
    sema.function.values[value].type = ir::ScalarType{dtype};
    auto& data = sema.function.ops[sema.function.values[value].def].data;
    if (auto* constant = std::get_if<ir::Const>(&data)) {
      constant->value = round_to(dtype, constant->value);
    }
  }
  tile.fill_values.clear();
  tile.dtype = dtype;
}

struct Extents {
  std::int64_t free = 0;         // M of A, N of B
  std::int64_t contraction = 0;  // K
};

Extents extents_of(const ir::FragType& type, ir::Major major) {
  return major == ir::Major::kRow ? Extents{type.rows, type.cols} : Extents{type.cols, type.rows};
}

ir::Major major_of(ast::Major major) {
  return major == ast::Major::kRow ? ir::Major::kRow : ir::Major::kCol;
}

// The element type of the view an operand was loaded from: f32 where its tile is tf32.
DType loaded_type(const Sema& sema, const Tile& tile) {
  const auto& load = std::get<ir::Load>(sema.function.ops[tile.load].data);
  return sema.function.view_type(load.view).dtype;
}

// What one `mma` statement asks of the hardware.
struct Request {
  target::Scope scope;
  target::MmaShape shape;
  DType a;
  DType b;
  DType acc;
  bool sparse = false;
};

std::string_view unit_text(target::Scope scope) {
  return scope == target::Scope::kWarpgroup ? "one warpgroup" : "one warp";
}

// What the types and shapes could have been instead; requests that differ in N alone are one item.
std::string legal_text(const Sema& sema, const Request& request) {
  const auto legal =
      target::legal_requests(sema.arch, request.scope, request.a, request.b, request.sparse);
  if (legal.empty()) {
    return format("no {}instruction takes {} and {} in {} of `{}`", request.sparse ? "sparse " : "",
                  name(request.a), name(request.b), unit_text(request.scope), sema.arch.name);
  }
  std::vector<std::string> items;
  for (std::size_t i = 0; i < legal.size();) {
    std::size_t end = i + 1;
    while (end < legal.size() && request.scope == target::Scope::kWarpgroup &&
           legal[end].acc == legal[i].acc && legal[end].tile.k == legal[i].tile.k) {
      ++end;
    }
    const target::MmaShape& tile = legal[i].tile;
    items.push_back(end == i + 1
                        ? format("{}x{}x{} into {}", tile.m, tile.n, tile.k, name(legal[i].acc))
                        : format("{}xNx{} with N from {} to {} into {}", tile.m, tile.k, tile.n,
                                 legal[end - 1].tile.n, name(legal[i].acc)));
    i = end;
  }
  return format("`{}` offers {} for {}", sema.arch.name,
                join(items, ", ", [](const std::string& item) { return item; }), name(request.a));
}

// What to write instead of operands that no instruction of this architecture takes.
std::string other_types_text(target::Scope scope, DType a, DType b, bool sparse) {
  if (const target::Arch* oldest = target::oldest_arch(scope, a, b, sparse)) {
    const std::string types =
        a == b ? format("{} is", name(a)) : format("{} and {} are", name(a), name(b));
    return format("{} multiplied from `{}` on: use `--arch {}`", types, oldest->name, oldest->name);
  }
  const auto has = [&](DType dtype) {
    return target::oldest_arch(scope, dtype, dtype, sparse) != nullptr;
  };
  if (has(a) && has(b)) return format("load both operands as {} or both as {}", name(a), name(b));
  constexpr std::string_view kAll = "f16, bf16, f32 (as tf32), s8, u8, f8_e4m3 and f8_e5m2";
  return format("{} multiplies {}{}", unit_text(scope),
                scope == target::Scope::kWarp && !sparse ? "f64, " : "", kAll);
}

// `mc = mma.fill.s32 0;`
std::string fill_text(const Tile& acc, DType dtype) {
  const std::string_view zero = is_float(dtype) ? (dtype == DType::kF64 ? "0.0" : "0.0f") : "0";
  return format("`{} = mma.fill.{} {};`", acc.name, name(dtype), zero);
}

void report_no_instruction(Sema& sema, Span span, const Tile& acc, const Request& request) {
  const auto& [scope, shape, a, b, acc_type, sparse] = request;
  const auto nearest = target::nearest_request(sema.arch, scope, a, b, acc_type, shape, sparse);
  const bool in_warp = scope == target::Scope::kWarp;
  const target::Scope other = in_warp ? target::Scope::kWarpgroup : target::Scope::kWarp;
  std::string help = other_types_text(scope, a, b, sparse);
  if (target::find_mma(sema.arch, other, a, b, acc_type, shape, sparse) != nullptr) {
    help = format("a tile of this size is for {}: write it under `: {}`", unit_text(other),
                  target::name(other));
  } else if (nearest && nearest->tile == shape) {
    help = format("accumulate in {}: {}", name(nearest->acc), fill_text(acc, nearest->acc));
  } else if (nearest) {
    help = format("use tiles of {}x{}x{} (M x N x K)", nearest->tile.m, nearest->tile.n,
                  nearest->tile.k);
    if (nearest->acc != acc_type) help += format(" and accumulate in {}", name(nearest->acc));
  }
  (void)sema.diags
      .report<diag::MmaNoInstruction>(span, sema.arch.name, shape.m, shape.n, shape.k, name(a),
                                      name(b), name(acc_type))
      .label(span, "{}", legal_text(sema, request))
      .label(acc.span, "the accumulator is {}", name(acc_type))
      .help_if(std::move(help))
      .emit();
}

// Fixes an operand's role, or reports that it already has another.
struct OperandUse {
  ir::ValueId id;
  ir::Role role;
  ir::Major major;
  Span span;
};

bool assign_role(Sema& sema, Tile& tile, const OperandUse& use) {
  const auto& [id, role, major, span] = use;
  auto& type = std::get<ir::FragType>(sema.function.values[id].type);
  constexpr std::string_view kNames[] = {"A", "B", "C", "metadata"};
  const auto spell = [&](ir::Role r, ir::Major m) {
    return format("{} (.{})", kNames[static_cast<std::size_t>(r)],
                  m == ir::Major::kRow ? "row" : "col");
  };
  if (tile.first_use.valid() && (type.role != role || tile.major != major)) {
    (void)sema.diags
        .report<diag::MmaRole>(span, tile.name, spell(type.role, tile.major), spell(role, major))
        .label(tile.first_use, "used as {} here", spell(type.role, tile.major))
        .help("load the tile twice, under two names")
        .emit();
    return false;
  }
  type.role = role;
  tile.major = major;
  if (!tile.first_use.valid()) tile.first_use = span;
  std::get<ir::Load>(sema.function.ops[tile.load].data).major = major;
  return true;
}

// The accumulator takes its shape from this `mma`, or must agree with an earlier one.
bool assign_shape(Sema& sema, Tile& tile, ir::ValueId id, const ir::FragType& wanted, Span span) {
  auto& type = std::get<ir::FragType>(sema.function.values[id].type);
  if (tile.first_use.valid() && !(type == wanted)) {
    (void)sema.diags
        .report<diag::MmaShapeConflict>(span, tile.name, wanted.rows, wanted.cols,
                                        name(wanted.dtype), type.rows, type.cols, name(type.dtype))
        .label(tile.first_use, "{}x{} here", type.rows, type.cols)
        .help("use one accumulator for each tile shape")
        .emit();
    return false;
  }
  type = wanted;
  if (!tile.first_use.valid()) tile.first_use = span;
  resolve_fills(sema, tile, wanted.dtype);
  return true;
}

// An accumulator of a block belongs to each warp or warpgroup that uses it; all other tiles to the
// body they are declared in.
bool check_same_unit(Sema& sema, Tile& tile, Span span) {
  const bool of_block = tile.parallel == sema.place.launch;
  const bool in_block = sema.place.parallel == sema.place.launch;
  const auto matches = [&] { return !tile.unit || in_block || *tile.unit == sema.place.level; };
  if (tile.parallel == sema.place.parallel || (of_block && matches())) {
    if (!tile.unit && !in_block) tile.unit = sema.place.level;
    return true;
  }
  (void)sema.diags.report<diag::MmaUnitChanged>(span, tile.name)
      .label(tile.span, "declared at that level")
      .help("declare it in the same `parallel` body as the `mma` that uses it")
      .emit();
  return false;
}

// The inner axes around the statement, those of `launch` left out, that a view's place depends on
// in one way for each instance.
struct Instances {
  ir::Expr count = 1;      // that run the statement at once
  bool told_apart = true;  // by the view
};

bool depends_on(const ir::ResolvedView& view, ir::VarId var) {
  std::vector<ir::VarId> used;
  for (const ir::Expr& origin : view.origin) origin.collect_vars(used);
  return std::find(used.begin(), used.end(), var) != used.end();
}

// How many warps or warpgroups store to the view, and whether each has a place of its own.
Instances instances_at(const Sema& sema, const Tile& tile, ir::ValueId view) {
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kWarpgroup = 128;
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const std::int64_t unit = tile.unit == ir::Level::kGroup4 ? kWarpgroup : kWarp;
  Instances out;
  if (sema.place.parallel == sema.place.launch) {
    out.count = launch.threads.constant().value_or(unit) / unit;
    out.told_apart = out.count.is(1);
    return out;
  }
  const ir::ResolvedView resolved = ir::resolve_view(sema.function, view);
  const auto& parallel = std::get<ir::Parallel>(sema.function.ops[sema.place.parallel].data);
  for (const ir::VarId var : parallel.vars) {
    const ir::Expr& extent = sema.function.vars[var].extent;
    out.count = out.count * extent;
    if (!extent.is(1) && !depends_on(resolved, var)) out.told_apart = false;
  }
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

// Zeroes the tile's registers; the value takes the accumulator's type with the others.
void fill_zero(Sema& sema, ir::ValueId id, Tile& tile, Span span) {
  const DType dtype = tile.dtype.value_or(DType::kF32);
  const ir::ValueId zero = emit_value(sema, ir::Const{0}, span, ir::ScalarType{dtype});
  if (!tile.dtype) tile.fill_values.push_back(zero);
  emit(sema, ir::Fill{id, zero}, span);
}

// The sum that products on the accumulator go to from here on, until it is scaled.
ir::ValueId open_partial(Sema& sema, ir::ValueId acc, Span span) {
  const Tile of = sema.tiles.at(acc);
  const std::string name = format("{}_part", of.name);
  const ir::ValueId id =
      emit_value(sema, ir::Alloc{.name = name}, span,
                 ir::FragType{ir::Role::kC, of.dtype.value_or(DType::kF32), 0, 0}, name);
  Tile tile;
  tile.name = of.name;
  tile.span = of.span;
  tile.parallel = sema.place.parallel;
  if (sema.place.level != ir::Level::kBlock) tile.unit = sema.place.level;
  tile.is_accumulator = true;
  tile.stored = true;  // it is added to the accumulator
  tile.is_partial = true;
  tile.dtype = of.dtype;
  fill_zero(sema, id, tile, span);
  sema.tiles.emplace(id, std::move(tile));
  return id;
}

void collect(Sema& sema, const std::string& name, ir::ValueId acc, Span span) {
  const auto wanted = sema.scaled.find(name);
  if (wanted == sema.scaled.end()) return;
  sema.partials[acc] = {open_partial(sema, acc, span), wanted->second};
}

}  // namespace

ScaledBlock enter_scaled(Sema& sema, const std::vector<ast::StmtId>& body) {
  ScaledBlock outer{sema.scaled, sema.partials};
  sema.scaled.clear();
  std::map<std::string, Span> first;
  for (ast::StmtId id : body) {
    const auto* scale = sema.ast.as<ast::MmaScaleStmt>(id);
    if (scale == nullptr || !scale->acc.subscripts.empty()) continue;
    ++sema.scaled[scale->acc.name.text];
    first.try_emplace(scale->acc.name.text, scale->word_span);
  }
  for (const auto& [name, count] : sema.scaled) {
    const Symbol* symbol = sema.scopes.find(name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::kAccumulator) continue;
    collect(sema, name, symbol->operand.id, first.at(name));
  }
  return outer;
}

void leave_scaled(Sema& sema, ScaledBlock outer) {
  sema.scaled = std::move(outer.scaled);
  sema.partials = std::move(outer.partials);
}

void analyse_fill(Sema& sema, const ast::MmaFillStmt& stmt, Span span) {
  const auto fail = [&] {
    if (stmt.declares && sema.scopes.find(stmt.target.name.text) == nullptr) {
      declare(sema, stmt.target.name, {});
    }
  };
  if (!check_place(sema, stmt.word_span, Where::kUnitOrBlock)) return fail();
  const Operand value = evaluate(sema, stmt.value);
  const Symbol* symbol = sema.scopes.find(stmt.target.name.text);
  const bool refill = symbol != nullptr && symbol->kind == Symbol::Kind::kAccumulator;
  ir::ValueId id;
  if (!stmt.declares || refill) {
    Tile* tile = find_tile(sema, stmt.target, true, id);
    if (tile == nullptr || !check_same_unit(sema, *tile, stmt.target.span)) return;
    if (const auto converted = fill_value(sema, *tile, value)) {
      emit(sema, ir::Fill{id, *converted}, span);
    }
    if (const auto partial = sema.partials.find(id); partial != sema.partials.end()) {
      fill_zero(sema, partial->second.sum, sema.tiles.at(partial->second.sum), span);
    }
    return;
  }
  if (!stmt.target.subscripts.empty()) {
    refuse(sema, stmt.target.span, "an array of accumulators");
    return fail();
  }
  const std::string& name = stmt.target.name.text;
  id = emit_value(sema, ir::Alloc{.name = name}, span,
                  ir::FragType{ir::Role::kC, stmt.type.value_or(DType::kF32), 0, 0}, name);
  Tile tile;
  tile.name = name;
  tile.span = stmt.target.name.span;
  tile.parallel = sema.place.parallel;
  if (sema.place.level != ir::Level::kBlock) tile.unit = sema.place.level;
  tile.is_accumulator = true;
  tile.dtype = stmt.type;
  if (const auto converted = fill_value(sema, tile, value)) {
    emit(sema, ir::Fill{id, *converted}, span);
  }
  sema.tiles.emplace(id, std::move(tile));
  Operand operand;
  operand.kind = Operand::Kind::kFragment;
  operand.id = id;
  declare(sema, stmt.target.name, {Symbol::Kind::kAccumulator, operand, {}});
  collect(sema, name, id, span);
}

namespace {

// The view that a register tile is loaded from: constant and of rank 2. Nothing after a report.
std::optional<Operand> tile_view(Sema& sema, ast::ExprId expr) {
  const Operand source = evaluate_view(sema, expr);
  if (source.is_error()) return std::nullopt;
  const ir::ViewType& type = sema.function.view_type(source.id);
  if (type.shape.size() != 2) {
    (void)sema.diags.report<diag::MmaRank>(source.span, type.shape.size())
        .help("take a rank-2 view of it")
        .emit();
    return std::nullopt;
  }
  for (const ir::Expr& extent : type.shape) {
    if (extent.constant()) continue;
    (void)sema.diags
        .report<diag::ExtentNotConstant>(source.span, "an `mma` tile", text(sema, extent))
        .help("take a tile of constant extents with `.subspan(...).at(...)`")
        .emit();
    return std::nullopt;
  }
  return source;
}

// Declares a tile loaded from the view. It is operand A until an `mma` says otherwise.
ir::ValueId load_tile(Sema& sema, const ast::Name& name, const Operand& source, bool to_registers) {
  constexpr std::string_view kUnnamed = "tile";
  const std::string& text = name.text;
  const bool named = text.find_first_of(".([") == std::string::npos;
  const ir::ViewType type = sema.function.view_type(source.id);
  const ir::ValueId id = emit_value(
      sema, ir::Alloc{.name = named ? text : std::string(kUnnamed)}, source.span,
      ir::FragType{ir::Role::kA, type.dtype, *type.shape[0].constant(), *type.shape[1].constant()},
      named ? text : std::string(kUnnamed));
  Tile tile;
  tile.name = text;
  tile.span = name.span;
  tile.parallel = sema.place.parallel;
  tile.unit = sema.place.level;
  tile.load = emit(sema, ir::Load{.frag = id, .view = source.id, .to_registers = to_registers},
                   source.span);
  sema.tiles.emplace(id, std::move(tile));
  return id;
}

}  // namespace

void analyse_load(Sema& sema, const ast::MmaLoadStmt& stmt, Span span) {
  const auto fail = [&] {
    if (stmt.declares) declare(sema, stmt.target.name, {});
  };
  if (!check_place(sema, stmt.word_span, Where::kUnit)) return fail();
  if (!stmt.declares) return refuse(sema, span, "loading into an existing register tile");
  if (stmt.is_async) {
    refuse(sema, stmt.word_span, "`.async` on `mma.load`");
    return fail();
  }
  std::optional<Operand> source = tile_view(sema, stmt.source);
  if (!source) return fail();
  const auto bytes = swizzle_bytes(sema, stmt.swizzle);
  if (bytes && stmt.swizzle) wish_swizzle(sema, source->id, *bytes, stmt.swizzle->span);
  source->span = span;
  Operand operand;
  operand.kind = Operand::Kind::kFragment;
  operand.id = load_tile(sema, stmt.target.name, *source, stmt.to_registers);
  declare(sema, stmt.target.name, {Symbol::Kind::kTile, operand, {}});
}

namespace {

// The operand's tile; a view written in its place is a tile of a warpgroup, read where it lies.
Tile* find_operand(Sema& sema, ast::ExprId expr, ir::ValueId& id) {
  const Span span = sema.ast[expr].span;
  const auto* named = sema.ast.as<ast::NameExpr>(expr);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  const bool is_view =
      named == nullptr || (symbol != nullptr && symbol->operand.kind == Operand::Kind::kView);
  if (!is_view) return find_tile(sema, {{named->name, span}, {}, span}, false, id);
  if (sema.ast.as<ast::ErrorExpr>(expr) != nullptr) return nullptr;
  if (sema.place.level == ir::Level::kGroup4) {
    const std::optional<Operand> source = tile_view(sema, expr);
    if (!source) return nullptr;
    id = load_tile(sema, {std::string(sema.sources.text(span)), span}, *source, false);
    return &sema.tiles.at(id);
  }
  (void)sema.diags
      .report<diag::MmaNotFragment>(span, sema.sources.text(span), "a view",
                                    "a tile loaded by `mma.load`")
      .help("load it first: `name = mma.load {};`", sema.sources.text(span))
      .emit();
  return nullptr;
}

bool refuse_exec_forms(Sema& sema, const ast::MmaExecStmt& stmt) {
  const std::string word = format("mma.{}.{}", spelling(stmt.a_major), spelling(stmt.b_major));
  std::string form;
  if (stmt.scaled && stmt.sparse) form = format("`{}.sp.scale`", word);
  if (stmt.sparse && !stmt.metadata.valid()) form = format("`{}.sp` without metadata", word);
  if (!stmt.attributes.empty()) form = format("an attribute on `{}`", word);
  if (!form.empty()) refuse(sema, stmt.word_span, form);
  return !form.empty();
}

// One operand of a product, once its instruction is known.
struct OperandPlace {
  Tile& tile;
  ir::ValueId id;
  Span span;
  DType dtype;  // that the instruction takes
};

// Whether the instruction can read the operand where it is: a warpgroup's takes B, and A unless it
// was loaded into registers, from shared memory as they lie.
bool check_source(Sema& sema, const target::Mma& row, const OperandPlace& operand) {
  const auto& load = std::get<ir::Load>(sema.function.ops[operand.tile.load].data);
  auto& type = std::get<ir::FragType>(sema.function.values[operand.id].type);
  const bool is_a = type.role == ir::Role::kA;
  if (!row.reads_shared || (is_a && load.to_registers)) {
    type.dtype = operand.dtype;  // f32 becomes tf32 on the way into the registers
    return true;
  }
  const ir::ViewType& view = sema.function.view_type(load.view);
  if (view.space != ir::Space::kShared || load.to_registers) {
    (void)sema.diags
        .report<diag::MmaOperandPlace>(operand.span, is_a ? "A" : "B", operand.tile.name,
                                       load.to_registers ? "in registers" : "in global memory")
        .label(operand.tile.span, "loaded here")
        .help("{}", is_a ? "copy the tile to shared memory first, or load it with `mma.load.frag`"
                         : "copy the tile to shared memory first, and leave out `.frag`")
        .emit();
    return false;
  }
  if (load.major == ir::Major::kRow || row.transposes) return true;
  (void)sema.diags
      .report<diag::MmaMajorUnsupported>(operand.span, name(operand.dtype), operand.tile.name,
                                         is_a ? "A" : "B")
      .help("{}", is_a ? "load it with `mma.load.frag`, or copy it with `dma.transp` and use `row`"
                       : "copy it with `dma.transp` and use `row`")
      .emit();
  return false;
}

// How much metadata a row of A needs: elements of K for each byte or word.
std::int64_t columns_of_metadata(DType metadata, DType a) {
  constexpr std::int64_t kBytesOfWord = 4;
  const auto pattern =
      info(a).bits == 32 ? kiln::sparse::Pattern::k1of2 : kiln::sparse::Pattern::k2of4;
  return kiln::sparse::columns_of_byte(pattern) * (metadata == DType::kU32 ? kBytesOfWord : 1);
}

// Metadata is u8 [M, K/8] or prepacked u32 [M, K/32] (tf32: twice as much), in registers.
bool check_metadata(Sema& sema, const Tile& tile, ir::ValueId id, const Request& request,
                    Span span) {
  const ir::FragType& type = sema.function.frag_type(id);
  const bool whole_words = request.shape.k % columns_of_metadata(DType::kU32, request.a) == 0;
  const bool known = type.dtype == DType::kU8 || (type.dtype == DType::kU32 && whole_words);
  const DType form = known ? type.dtype : DType::kU8;
  const std::int64_t cols = request.shape.k / columns_of_metadata(form, request.a);
  if (known && type.rows == request.shape.m && type.cols == cols) return true;
  (void)sema.diags
      .report<diag::MmaMetadata>(span, tile.name, name(type.dtype), type.rows, type.cols,
                                 request.shape.m, cols, name(form))
      .label(tile.span, "loaded here")
      .help(
          "metadata is u8 with a byte for each {} columns of K, or u32 as `kiln prune --form u32` "
          "writes it, with a word for each {}",
          columns_of_metadata(DType::kU8, request.a), columns_of_metadata(DType::kU32, request.a))
      .emit();
  return false;
}

// The future of an asynchronous product: `wait` takes it.
void declare_future(Sema& sema, const ast::MmaExecStmt& stmt, Span span) {
  emit(sema, ir::MmaCommit{true}, span);
  if (!stmt.future.valid()) return;
  declare(sema, stmt.future, {Symbol::Kind::kMmaFuture, {}, {}});
}

}  // namespace

namespace {

struct ScaleRequest {
  ir::ValueId acc;
  ir::ValueId partial;
  ast::ExprId factors;
  ast::ExprId factor;
  Span acc_span;
};

// acc += factors[m] * factor * partial.
void add_scaled(Sema& sema, const ScaleRequest& request, Span span) {
  const ir::FragType& type = sema.function.frag_type(request.acc);
  const Operand factors = evaluate_view(sema, request.factors);
  const Operand factor = evaluate(sema, request.factor);
  if (factors.is_error() || factor.is_error()) return;
  const ir::ViewType& view = sema.function.view_type(factors.id);
  const auto has = [&](std::int64_t rows, std::int64_t cols) {
    return view.shape.size() == 2 && view.shape[0].is(rows) && view.shape[1].is(cols);
  };
  if (view.dtype != DType::kF32 || (!has(type.rows, 1) && !has(1, type.rows))) {
    (void)sema.diags
        .report<diag::MmaScaleFactors>(
            factors.span, name(view.dtype),
            join(view.shape, ", ", [&](const ir::Expr& e) { return text(sema, e); }), type.rows)
        .label(request.acc_span, "{} rows", type.rows)
        .help("take `.subspan({}, 1).at(...)` of an f32 tensor: one factor for each row", type.rows)
        .emit();
    return;
  }
  if (type.dtype != DType::kF32) {
    refuse(sema, request.acc_span, "scaling an accumulator that is not f32");
    return;
  }
  const auto scalar = convert(sema, factor, DType::kF32);
  if (!scalar) return;
  emit(sema, ir::Scale{request.acc, request.partial, factors.id, *scalar, {}}, span);
}

Tile* find_metadata(Sema& sema, ast::ExprId expr, ir::ValueId& id) {
  const Span span = sema.ast[expr].span;
  if (const auto* named = sema.ast.as<ast::NameExpr>(expr)) {
    return find_tile(sema, {{named->name, span}, {}, span}, false, id);
  }
  if (sema.ast.as<ast::ErrorExpr>(expr) != nullptr) return nullptr;
  (void)sema.diags
      .report<diag::MmaNotFragment>(span, sema.sources.text(span), "a view",
                                    "metadata loaded by `mma.load`")
      .help("load it first: `name = mma.load {};`", sema.sources.text(span))
      .emit();
  return nullptr;
}

}  // namespace

void analyse_exec(Sema& sema, const ast::MmaExecStmt& stmt, Span span) {
  const bool refused =
      !check_place(sema, stmt.word_span, Where::kUnit) || refuse_exec_forms(sema, stmt);
  if (refused) return mark_named_broken(sema, stmt);
  ir::Mma mma;
  mma.a_major = major_of(stmt.a_major);
  mma.b_major = major_of(stmt.b_major);
  mma.unit = sema.place.level;
  Tile* c = find_tile(sema, stmt.acc, true, mma.c);
  Tile* a = find_operand(sema, stmt.a, mma.a);
  Tile* b = find_operand(sema, stmt.b, mma.b);
  Tile* e = stmt.sparse ? find_metadata(sema, stmt.metadata, mma.metadata) : nullptr;
  if (c == nullptr || a == nullptr || b == nullptr || (stmt.sparse && e == nullptr)) {
    mark_broken({c, a, b, e});
    return;
  }
  const Span a_span = sema.ast[stmt.a].span;
  const Span b_span = sema.ast[stmt.b].span;
  const bool together = check_same_unit(sema, *c, stmt.acc.span) &&
                        check_same_unit(sema, *a, a_span) && check_same_unit(sema, *b, b_span);
  if (!together || !assign_role(sema, *a, {mma.a, ir::Role::kA, mma.a_major, a_span}) ||
      !assign_role(sema, *b, {mma.b, ir::Role::kB, mma.b_major, b_span})) {
    return mark_broken({c, a, b, e});
  }
  const ir::FragType& a_type = sema.function.frag_type(mma.a);
  const ir::FragType& b_type = sema.function.frag_type(mma.b);
  const Extents a_extents = extents_of(a_type, mma.a_major);
  const Extents b_extents = extents_of(b_type, mma.b_major);
  const std::int64_t a_depth = a_extents.contraction * (stmt.sparse ? 2 : 1);
  if (a_depth != b_extents.contraction) {
    (void)sema.diags.report<diag::MmaContraction>(stmt.word_span, a_depth, b_extents.contraction)
        .label(a_span, "`{}` is {}x{}", a->name, a_type.rows, a_type.cols)
        .label(b_span, "`{}` is {}x{}", b->name, b_type.rows, b_type.cols)
        .help("{}", stmt.sparse ? "the view of a sparse A has half the contraction extent of B's"
                                : "`row` contracts the last dimension of a view, `col` the first")
        .emit();
    return mark_broken({c, a, b, e});
  }
  const target::MmaShape shape{static_cast<int>(a_extents.free), static_cast<int>(b_extents.free),
                               static_cast<int>(b_extents.contraction)};
  const bool group4 = mma.unit == ir::Level::kGroup4;
  const Request request{group4 ? target::Scope::kWarpgroup : target::Scope::kWarp,
                        shape,
                        loaded_type(sema, *a),
                        loaded_type(sema, *b),
                        c->dtype.value_or(loaded_type(sema, *a)),
                        stmt.sparse};
  // The buffers of such elements have been refused.
  if (is_sub_byte(request.a) || is_sub_byte(request.b)) return mark_broken({c, a, b, e});
  const target::Mma* row = target::find_mma(sema.arch, request.scope, request.a, request.b,
                                            request.acc, shape, request.sparse);
  if (row == nullptr) {
    report_no_instruction(sema, stmt.word_span, *c, request);
    return mark_broken({c, a, b, e});
  }
  if (e != nullptr) {
    const Span e_span = sema.ast[stmt.metadata].span;
    if (!check_same_unit(sema, *e, e_span) ||
        !assign_role(sema, *e, {mma.metadata, ir::Role::kMetadata, ir::Major::kRow, e_span}) ||
        !check_metadata(sema, *e, mma.metadata, request, e_span)) {
      return mark_broken({c, a, b, e});
    }
  }
  if (!check_source(sema, *row, {*a, mma.a, a_span, row->a}) ||
      !check_source(sema, *row, {*b, mma.b, b_span, row->b})) {
    return mark_broken({c, a, b, e});
  }
  const ir::FragType wanted{ir::Role::kC, request.acc, shape.m, shape.n};
  if (!assign_shape(sema, *c, mma.c, wanted, stmt.acc.span)) return;
  const ir::ValueId acc = mma.c;
  const auto collecting = sema.partials.find(acc);
  if (stmt.scaled) {
    mma.c = open_partial(sema, acc, span);
  } else if (collecting != sema.partials.end() && collecting->second.scales_left > 0) {
    mma.c = collecting->second.sum;
  }
  const ir::ValueId partial = mma.c;
  if (partial != acc &&
      !assign_shape(sema, sema.tiles.at(partial), partial, wanted, stmt.acc.span)) {
    return;
  }
  emit(sema, std::move(mma), span);
  if (stmt.scaled) {
    add_scaled(sema, {acc, partial, stmt.a_scale, stmt.b_scale, stmt.acc.span}, span);
  }
  if (stmt.is_async) declare_future(sema, stmt, span);
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

}  // namespace

void analyse_store(Sema& sema, const ast::MmaStoreStmt& stmt, Span span) {
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.acc, true, id);
  if (tile != nullptr) tile->stored = true;
  if (!check_place(sema, stmt.word_span, Where::kUnitOrBlock)) return mark_broken({tile});
  if (stmt.is_async) return refuse(sema, stmt.word_span, "`mma.store.async`");
  if (tile != nullptr && tile->broken) return;
  const Operand target = evaluate_view(sema, stmt.target);
  if (tile == nullptr || target.is_error() || !check_same_unit(sema, *tile, stmt.acc.span)) return;
  const ir::FragType& type = sema.function.frag_type(id);
  if (type.rows == 0) {
    tile->stored_early = stmt.acc.span;
    return;
  }
  const std::vector<ir::Expr> shape = sema.function.view_type(target.id).shape;
  if (shape.size() != 2) {
    (void)sema.diags.report<diag::MmaRank>(target.span, shape.size())
        .help("take a rank-2 view of it")
        .emit();
    return;
  }
  const std::vector<std::int64_t> extents =
      stmt.transp ? std::vector{type.cols, type.rows} : std::vector{type.rows, type.cols};
  for (std::size_t d = 0; d < 2; ++d) {
    const auto extent = shape[d].constant();
    if (!extent || *extent <= extents[d]) continue;
    (void)sema.diags.report<diag::MmaStoreShape>(target.span, d, *extent, extents[d])
        .label(stmt.acc.span, "`{}` is {}x{}", tile->name, type.rows, type.cols)
        .help("store into `.subspan({}, {}).at(...)`", extents[0], extents[1])
        .emit();
    return;
  }
  ir::ValueId view = target.id;
  if (!check_one_writer(sema, *tile, view, stmt.word_span)) return;
  const std::vector<ir::Expr> wanted{extents[0], extents[1]};
  if (stmt.masked) {
    const auto masked = mask_view(sema, view, stmt);
    if (!masked) return;
    view = *masked;
  }
  if (!(sema.function.view_type(view).shape == wanted))
    view = widen_view(sema, view, wanted, target.span);
  emit(sema, ir::Store{.frag = id, .view = view, .transposed = stmt.transp, .masked = stmt.masked},
       span);
}

void analyse_scale(Sema& sema, const ast::MmaScaleStmt& stmt, Span span) {
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.acc, true, id);
  if (!check_place(sema, stmt.word_span, Where::kUnit) || tile == nullptr) {
    return mark_broken({tile});
  }
  if (tile->broken || !check_same_unit(sema, *tile, stmt.acc.span)) return;
  const auto found = sema.partials.find(id);
  const bool used =
      found != sema.partials.end() && sema.tiles.at(found->second.sum).first_use.valid();
  if (!used) {
    (void)sema.diags.report<diag::MmaScaleNothing>(stmt.word_span, tile->name)
        .help("write the products in the same block, in front of `mma.scale`")
        .emit();
    return mark_broken({tile});
  }
  Partial& partial = found->second;
  add_scaled(sema, {id, partial.sum, stmt.a_scale, stmt.b_scale, stmt.acc.span}, span);
  --partial.scales_left;
  if (partial.scales_left > 0) {
    fill_zero(sema, partial.sum, sema.tiles.at(partial.sum), span);
  }
}

// Products of warp instructions are complete when the statement ends; a pass drops these operations
// where there is nothing in flight.
void analyse_commit(Sema& sema, Span span) {
  if (check_collective(sema, span, "`mma.commit`", ir::Level::kGroup)) {
    emit(sema, ir::MmaCommit{true}, span);
  }
}

void analyse_mma_wait(Sema& sema, const ast::MmaWaitStmt& stmt, Span span) {
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

void analyse_wait(Sema& sema, const ast::WaitStmt& stmt, Span span) {
  for (ast::ExprId ref : stmt.refs) {
    const auto* named = sema.ast.as<ast::NameExpr>(ref);
    const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::kMmaFuture) {
      if (symbol == nullptr || !symbol->operand.is_error()) refuse(sema, span, "`wait`");
      return;
    }
  }
  if (!check_collective(sema, span, "`wait`", ir::Level::kGroup)) return;
  emit(sema, ir::MmaWait{0, true}, span);
}

void check_tiles(Sema& sema) {
  for (const auto& [id, tile] : sema.tiles) {
    if (tile.broken || (tile.is_partial && !tile.first_use.valid())) continue;
    if (!tile.first_use.valid()) {
      (void)sema.diags.report<diag::MmaUnused>(tile.span, tile.name)
          .help("{}", tile.is_accumulator ? "accumulate into it with `mma.row.row`, or remove it"
                                          : "use it in an `mma`, or remove it")
          .emit();
    } else if (tile.stored_early.valid()) {
      refuse(sema, tile.stored_early, "storing an accumulator before its first `mma`");
    } else if (tile.is_accumulator && !tile.stored) {
      (void)sema.diags.report<diag::MmaNeverStored>(tile.span, tile.name)
          .help("write it: `mma.store {}, view;`", tile.name)
          .emit();
    }
  }
}

}  // namespace kiln::sema
