// The four steps: `mma.fill`, `mma.load`, `mma.row.row`, `mma.store`.
//
// A register tile is declared without a shape. The `mma` that uses it tells: rows and columns come
// from the operands' views, the accumulator's type from the fill or else from A. So Alloc and Fill
// are emitted with placeholders and patched here when the first `mma` is seen.
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

// MMA statements run per warp. False after a report when this is no place for one.
bool check_unit(Sema& sema, Span word_span) {
  const std::string word(sema.sources.text(word_span));
  const ir::Level unit =
      sema.place.level == ir::Level::kGroup ? ir::Level::kGroup : ir::Level::kBlock;
  if (!check_collective(sema, word_span, format("`{}`", word), unit)) return false;
  switch (sema.place.level) {
    case ir::Level::kGroup: return true;
    case ir::Level::kThread:
      (void)sema.diags.report<diag::MmaPlacement>(word_span, word, "inside `: thread`")
          .help("write it in the body of `parallel ... : group`")
          .emit();
      return false;
    case ir::Level::kGroup4:
      if (!sema.arch.has_warpgroup) return false;  // the level itself has been refused
      refuse(sema, word_span, format("`{}` under `: group-4` (WGMMA)", word));
      return false;
    case ir::Level::kBlock:
      refuse(sema, word_span, format("`{}` outside `: group`", word));
      return false;
  }
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

// What the types and shapes could have been instead.
std::string legal_text(const Sema& sema, DType a, DType b) {
  const auto legal = target::legal_requests(sema.arch, target::Scope::kWarp, a, b);
  if (legal.empty()) {
    return format("no instruction takes {} and {} in one warp of `{}`", name(a), name(b),
                  sema.arch.name);
  }
  return format("`{}` offers {} for {}", sema.arch.name,
                join(legal, ", ",
                     [](const target::MmaRequest& request) {
                       return format("{}x{}x{} into {}", request.tile.m, request.tile.n,
                                     request.tile.k, name(request.acc));
                     }),
                name(a));
}

// What one `mma` statement asks of the hardware.
struct Request {
  target::MmaShape shape;
  DType a;
  DType b;
  DType acc;
};

// What to write instead of operands that no instruction of this architecture takes.
std::string other_types_text(DType a, DType b) {
  if (const target::Arch* oldest = target::oldest_arch(target::Scope::kWarp, a, b)) {
    const std::string types =
        a == b ? format("{} is", name(a)) : format("{} and {} are", name(a), name(b));
    return format("{} multiplied from `{}` on: use `--arch {}`", types, oldest->name, oldest->name);
  }
  const auto has = [&](DType dtype) {
    return target::oldest_arch(target::Scope::kWarp, dtype, dtype) != nullptr;
  };
  if (has(a) && has(b)) return format("load both operands as {} or both as {}", name(a), name(b));
  constexpr std::string_view kAll = "f16, bf16, f32 (as tf32), f64, s8, u8, f8_e4m3 and f8_e5m2";
  return format("one warp multiplies {}", kAll);
}

// `mc = mma.fill.s32 0;`
std::string fill_text(const Tile& acc, DType dtype) {
  const std::string_view zero = is_float(dtype) ? (dtype == DType::kF64 ? "0.0" : "0.0f") : "0";
  return format("`{} = mma.fill.{} {};`", acc.name, name(dtype), zero);
}

void report_no_instruction(Sema& sema, Span span, const Tile& acc, const Request& request) {
  const auto& [shape, a, b, acc_type] = request;
  const auto nearest =
      target::nearest_request(sema.arch, target::Scope::kWarp, a, b, acc_type, shape);
  std::string help = other_types_text(a, b);
  if (nearest && nearest->tile == shape) {
    help = format("accumulate in {}: {}", name(nearest->acc), fill_text(acc, nearest->acc));
  } else if (nearest) {
    help = format("use tiles of {}x{}x{} (M x N x K)", nearest->tile.m, nearest->tile.n,
                  nearest->tile.k);
    if (nearest->acc != acc_type) help += format(" and accumulate in {}", name(nearest->acc));
  }
  (void)sema.diags
      .report<diag::MmaNoInstruction>(span, sema.arch.name, shape.m, shape.n, shape.k, name(a),
                                      name(b), name(acc_type))
      .label(span, "{}", legal_text(sema, a, b))
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
  constexpr std::string_view kNames[] = {"A", "B"};
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

bool check_same_unit(Sema& sema, const Tile& tile, Span span) {
  if (tile.parallel == sema.place.parallel) return true;
  (void)sema.diags.report<diag::MmaUnitChanged>(span, tile.name)
      .label(tile.span, "declared at that level")
      .help("declare it in the same `parallel` body as the `mma` that uses it")
      .emit();
  return false;
}

}  // namespace

void analyse_fill(Sema& sema, const ast::MmaFillStmt& stmt, Span span) {
  const auto fail = [&] {
    if (stmt.declares && sema.scopes.find(stmt.target.name.text) == nullptr) {
      declare(sema, stmt.target.name, {});
    }
  };
  if (!check_unit(sema, stmt.word_span)) return fail();
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
}

void analyse_load(Sema& sema, const ast::MmaLoadStmt& stmt, Span span) {
  const auto fail = [&] {
    if (stmt.declares) declare(sema, stmt.target.name, {});
  };
  if (!check_unit(sema, stmt.word_span)) return fail();
  if (!stmt.declares) return refuse(sema, span, "loading into an existing register tile");
  if (stmt.to_registers || stmt.is_async) {
    refuse(sema, stmt.word_span, stmt.is_async ? "`.async` on `mma.load`" : "`mma.load.frag`");
    return fail();
  }
  const Operand source = evaluate_view(sema, stmt.source);
  if (source.is_error()) return fail();
  const ir::ViewType type = sema.function.view_type(source.id);
  if (type.shape.size() != 2) {
    (void)sema.diags.report<diag::MmaRank>(source.span, type.shape.size())
        .help("take a rank-2 view of it")
        .emit();
    return fail();
  }
  for (const ir::Expr& extent : type.shape) {
    if (extent.constant()) continue;
    (void)sema.diags
        .report<diag::ExtentNotConstant>(source.span, "an `mma` tile", text(sema, extent))
        .help("take a tile of constant extents with `.subspan(...).at(...)`")
        .emit();
    return fail();
  }
  const auto bytes = swizzle_bytes(sema, stmt.swizzle);
  if (bytes && stmt.swizzle) wish_swizzle(sema, source.id, *bytes, stmt.swizzle->span);
  const std::string& name = stmt.target.name.text;
  const ir::ValueId id = emit_value(
      sema, ir::Alloc{.name = name}, span,
      ir::FragType{ir::Role::kA, type.dtype, *type.shape[0].constant(), *type.shape[1].constant()},
      name);
  Tile tile;
  tile.name = name;
  tile.span = stmt.target.name.span;
  tile.parallel = sema.place.parallel;
  tile.load = emit(sema, ir::Load{.frag = id, .view = source.id}, span);
  sema.tiles.emplace(id, std::move(tile));
  Operand operand;
  operand.kind = Operand::Kind::kFragment;
  operand.id = id;
  declare(sema, stmt.target.name, {Symbol::Kind::kTile, operand, {}});
}

namespace {

// The operand's tile; a view written directly is the warpgroup form.
Tile* find_operand(Sema& sema, ast::ExprId expr, ir::ValueId& id) {
  const Span span = sema.ast[expr].span;
  if (const auto* named = sema.ast.as<ast::NameExpr>(expr)) {
    return find_tile(sema, {{named->name, span}, {}, span}, false, id);
  }
  if (sema.ast.as<ast::ErrorExpr>(expr) != nullptr) return nullptr;
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
  if (stmt.is_async) form = format("`{}.async`", word);
  if (stmt.scaled) form = format("`{}.scale`", word);
  if (stmt.sparse) form = format("`{}.sp`", word);
  if (!stmt.attributes.empty()) form = format("an attribute on `{}`", word);
  if (!form.empty()) refuse(sema, stmt.word_span, form);
  return !form.empty();
}

}  // namespace

void analyse_exec(Sema& sema, const ast::MmaExecStmt& stmt, Span span) {
  const bool refused = !check_unit(sema, stmt.word_span) || refuse_exec_forms(sema, stmt);
  if (refused) return mark_named_broken(sema, stmt);
  ir::Mma mma;
  mma.a_major = major_of(stmt.a_major);
  mma.b_major = major_of(stmt.b_major);
  Tile* c = find_tile(sema, stmt.acc, true, mma.c);
  Tile* a = find_operand(sema, stmt.a, mma.a);
  Tile* b = find_operand(sema, stmt.b, mma.b);
  if (c == nullptr || a == nullptr || b == nullptr) {
    mark_broken({c, a, b});
    return;
  }
  if (!check_same_unit(sema, *c, stmt.acc.span)) return mark_broken({c, a, b});
  const Span a_span = sema.ast[stmt.a].span;
  const Span b_span = sema.ast[stmt.b].span;
  if (!assign_role(sema, *a, {mma.a, ir::Role::kA, mma.a_major, a_span}) ||
      !assign_role(sema, *b, {mma.b, ir::Role::kB, mma.b_major, b_span})) {
    return mark_broken({c, a, b});
  }
  const ir::FragType& a_type = sema.function.frag_type(mma.a);
  const ir::FragType& b_type = sema.function.frag_type(mma.b);
  const Extents a_extents = extents_of(a_type, mma.a_major);
  const Extents b_extents = extents_of(b_type, mma.b_major);
  if (a_extents.contraction != b_extents.contraction) {
    (void)sema.diags
        .report<diag::MmaContraction>(stmt.word_span, a_extents.contraction, b_extents.contraction)
        .label(a_span, "`{}` is {}x{}", a->name, a_type.rows, a_type.cols)
        .label(b_span, "`{}` is {}x{}", b->name, b_type.rows, b_type.cols)
        .help("`row` contracts the last dimension of a view, `col` the first")
        .emit();
    return mark_broken({c, a, b});
  }
  const target::MmaShape shape{static_cast<int>(a_extents.free), static_cast<int>(b_extents.free),
                               static_cast<int>(a_extents.contraction)};
  const Request request{shape, loaded_type(sema, *a), loaded_type(sema, *b),
                        c->dtype.value_or(loaded_type(sema, *a))};
  // The buffers of such elements have been refused.
  if (is_sub_byte(request.a) || is_sub_byte(request.b)) return mark_broken({c, a, b});
  const DType acc_type = request.acc;
  const target::Mma* row =
      target::find_mma(sema.arch, target::Scope::kWarp, request.a, request.b, acc_type, shape);
  if (row == nullptr) {
    report_no_instruction(sema, stmt.word_span, *c, request);
    return mark_broken({c, a, b});
  }
  // f32 becomes tf32 on the way into the registers.
  std::get<ir::FragType>(sema.function.values[mma.a].type).dtype = row->a;
  std::get<ir::FragType>(sema.function.values[mma.b].type).dtype = row->b;
  const ir::FragType wanted{ir::Role::kC, acc_type, shape.m, shape.n};
  if (assign_shape(sema, *c, mma.c, wanted, stmt.acc.span)) emit(sema, std::move(mma), span);
}

void analyse_store(Sema& sema, const ast::MmaStoreStmt& stmt, Span span) {
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.acc, true, id);
  if (tile != nullptr) tile->stored = true;
  if (!check_unit(sema, stmt.word_span)) return mark_broken({tile});
  if (stmt.masked || stmt.is_async) {
    refuse(sema, stmt.word_span, stmt.masked ? "`mma.store.mask`" : "`mma.store.async`");
    return;
  }
  if (tile != nullptr && tile->broken) return;
  const Operand target = evaluate_view(sema, stmt.target);
  if (tile == nullptr || target.is_error() || !check_same_unit(sema, *tile, stmt.acc.span)) return;
  const ir::FragType& type = sema.function.frag_type(id);
  if (type.rows == 0) {
    if (!sema.has_syntax_errors) {
      refuse(sema, stmt.acc.span, "storing an accumulator before its first `mma`");
    }
    return mark_broken({tile});
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
  const std::vector<ir::Expr> wanted{extents[0], extents[1]};
  if (!(shape == wanted)) view = widen_view(sema, view, wanted, target.span);
  emit(sema, ir::Store{.frag = id, .view = view, .transposed = stmt.transp}, span);
}

void check_tiles(Sema& sema) {
  for (const auto& [id, tile] : sema.tiles) {
    if (tile.broken) continue;
    if (!tile.first_use.valid()) {
      (void)sema.diags.report<diag::MmaUnused>(tile.span, tile.name)
          .help("{}", tile.is_accumulator ? "accumulate into it with `mma.row.row`, or remove it"
                                          : "use it in an `mma`, or remove it")
          .emit();
    } else if (tile.is_accumulator && !tile.stored) {
      (void)sema.diags.report<diag::MmaNeverStored>(tile.span, tile.name)
          .help("write it: `mma.store {}, view;`", tile.name)
          .emit();
    }
  }
}

}  // namespace kiln::sema
