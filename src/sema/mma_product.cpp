// Products: `mma.row.row` and its variants, and `mma.scale`. They give register tiles their roles
// and shapes, and ask the target for an instruction.
#include <algorithm>
#include <numeric>

#include "ir/effects.h"
#include "kiln/sparse.h"
#include "sema/attribute.h"
#include "sema/entry_check.h"
#include "sema/expression.h"
#include "sema/mma.h"
#include "sema/scaled_block.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

// Marks the register tiles that a refused product names as broken, so that no message follows from
// what it would have made known about them.
void mark_named_broken(Sema& sema, const ast::MmaExecStmt& stmt) {
  std::vector<std::string> names = {stmt.acc.name.text};
  for (ast::ExprId operand : {stmt.a, stmt.b}) {
    if (const auto* named = sema.ast.as<ast::NameExpr>(operand)) names.push_back(named->name);
  }
  const auto mark = [&](const Symbol& symbol) {
    const auto tile = sema.tiles.find(symbol.operand.id);
    if (tile != sema.tiles.end()) tile->second.broken = true;
  };
  for (const std::string& name : names) {
    const Symbol* symbol = sema.scopes.find(name);
    if (symbol == nullptr) continue;
    mark(*symbol);
    for (const Symbol& element : symbol->elements) mark(element);
  }
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
DType loaded_type(const Sema& sema, const Tile& tile, ir::ValueId id) {
  if (!tile.load.valid()) return sema.function.frag_type(id).dtype;
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
      target::legal_requests(sema.arch, {request.scope, request.a, request.b, request.sparse});
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
  if (const target::Arch* oldest = target::oldest_arch({scope, a, b, sparse})) {
    const std::string types =
        a == b ? format("{} is", name(a)) : format("{} and {} are", name(a), name(b));
    return format("{} multiplied from `{}` on: compile for that", types, oldest->name);
  }
  const auto has = [&](DType dtype) {
    return target::oldest_arch({scope, dtype, dtype, sparse}) != nullptr;
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
  const auto nearest = target::nearest_request(sema.arch, {scope, a, b, sparse}, {acc_type, shape});
  const bool in_warp = scope == target::Scope::kWarp;
  const target::Scope other = in_warp ? target::Scope::kWarpgroup : target::Scope::kWarp;
  std::string help = other_types_text(scope, a, b, sparse);
  if (target::find_mma(sema.arch, {other, a, b, sparse}, {acc_type, shape}) != nullptr) {
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
  if (tile.load.valid()) std::get<ir::Load>(sema.function.ops[tile.load].data).major = major;
  return true;
}

// The accumulator takes its shape from this `mma`, or must agree with an earlier one.
bool assign_shape(Sema& sema, Tile& tile, ir::ValueId id, const ir::FragType& wanted, Span span) {
  auto& type = std::get<ir::FragType>(sema.function.values[id].type);
  const bool agrees =
      type.rows == wanted.rows && type.cols == wanted.cols && type.dtype == wanted.dtype;
  if (tile.first_use.valid() && !agrees) {
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

// The one operation that sets the tile, as far as the function has been read, if it fills it with a
// number and no loop comes back to the block's statements.
const ir::Fill* only_fill(const Sema& sema, ir::ValueId id) {
  const auto is_of_block = [&](const OpenLoop& loop) { return loop.parallel == sema.place.launch; };
  if (std::ranges::any_of(sema.loops, is_of_block)) return nullptr;
  const ir::Fill* fill = nullptr;
  for (const ir::Op& op : sema.function.ops) {
    bool sets = false;
    ir::for_each_touch(
        op, [&](const ir::Touch& touch) { sets = sets || (touch.value == id && touch.writes()); });
    if (!sets) continue;
    const auto* one = std::get_if<ir::Fill>(&op.data);
    if (fill != nullptr || one == nullptr) return nullptr;
    fill = one;
  }
  const bool is_number = fill != nullptr && sema.function.def_as<ir::Const>(fill->value) != nullptr;
  return is_number ? fill : nullptr;
}

// A tile of the block that holds one number is a tile of each warp or warpgroup as well.
std::optional<ir::ValueId> filled_in_unit(Sema& sema, ast::ExprId expr, Span span) {
  const Symbol* symbol = is_tile_name(sema, expr) ? named_tile(sema, expr) : nullptr;
  if (symbol == nullptr || sema.place.unit.level == ir::Level::kBlock) return std::nullopt;
  const ir::ValueId whole = symbol->operand.id;
  const Tile& tile = sema.tiles.at(whole);
  const ir::Fill* fill = tile.is_value && tile.unit == ir::Level::kBlock && !tile.broken
                             ? only_fill(sema, whole)
                             : nullptr;
  if (fill == nullptr) return std::nullopt;
  const auto number = *sema.function.def_as<ir::Const>(fill->value);
  const ir::FragType type = sema.function.frag_type(whole);
  const ir::ValueId id = make_tile(sema, tile.name, type, span);
  emit(sema, ir::Fill{id, emit_value(sema, number, span, ir::ScalarType{type.dtype})}, span);
  return id;
}

// A tile expression as an operand: its value goes to the registers that the instruction reads.
Tile* computed_operand(Sema& sema, ast::ExprId expr, ir::ValueId& id) {
  const Span span = sema.ast[expr].span;
  auto source = filled_in_unit(sema, expr, span);
  if (!source) source = evaluate_tile(sema, expr, "operand");
  if (!source) return nullptr;
  ir::FragType type = sema.function.frag_type(*source);
  type.role = ir::Role::kA;
  const std::string name = format("{}_operand", sema.function.values[*source].name);
  id = emit_value(sema, ir::Alloc{.name = name}, span, type, name);
  Tile tile;
  tile.name = std::string(sema.sources.text(span));
  tile.span = span;
  tile.parallel = sema.place.unit.parallel;
  tile.unit = sema.place.unit.level;
  emit(sema, ir::Convert{id, *source}, span);
  return &sema.tiles.emplace(id, std::move(tile)).first->second;
}

// The operand's tile; a view written in its place is a tile of a warpgroup, read where it lies.
Tile* find_operand(Sema& sema, ast::ExprId expr, ir::ValueId& id) {
  const Span span = sema.ast[expr].span;
  const Symbol* operand = nullptr;
  if (is_tile_name(sema, expr)) {
    operand = named_tile(sema, expr);
    if (operand == nullptr) return nullptr;
  }
  const bool is_loaded = operand != nullptr && operand->kind == Symbol::Kind::kTile;
  // An accumulator that no `mma` has given a shape is no value, and was hardly meant.
  const bool is_empty = operand != nullptr && operand->kind == Symbol::Kind::kAccumulator &&
                        sema.function.frag_type(operand->operand.id).rows == 0;
  const bool is_value = !is_loaded && !is_empty && is_tile_expression(sema, expr);
  if (is_value) return computed_operand(sema, expr, id);
  if (is_loaded) {
    id = operand->operand.id;
    return &sema.tiles.at(id);
  }
  const auto* named = sema.ast.as<ast::NameExpr>(expr);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  const bool is_view =
      named == nullptr || (symbol != nullptr && symbol->operand.kind == Operand::Kind::kView);
  if (!is_view) return find_tile(sema, {{named->name, span}, {}, span}, false, id);
  if (sema.ast.as<ast::ErrorExpr>(expr) != nullptr) return nullptr;
  if (sema.place.unit.level == ir::Level::kGroup4) {
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
  if (stmt.sparse && !stmt.metadata.valid()) {
    refuse_packing(sema, stmt.word_span, format("`{}.sp` without metadata", word));
    return true;
  }
  const bool refused = stmt.scaled && stmt.sparse;
  if (refused) refuse(sema, stmt.word_span, format("`{}.sp.scale`", word));
  return refused;
}

// One operand of a product, once its instruction is known.
struct OperandPlace {
  Tile& tile;
  ir::ValueId id;
  Span span;
  DType dtype;  // that the instruction takes
};

std::string_view place_help(bool is_a, bool to_registers) {
  if (is_a) return "copy the tile to shared memory first, or load it with `mma.load.frag`";
  return to_registers ? "leave out `.frag`" : "copy the tile to shared memory first";
}

// Whether the instruction takes a tile that was computed, and is in registers.
bool check_value(Sema& sema, const target::Mma& row, const OperandPlace& operand, bool is_a) {
  auto& type = std::get<ir::FragType>(sema.function.values[operand.id].type);
  if (!row.reads_shared || is_a) {
    type.dtype = operand.dtype;
    return true;
  }
  (void)sema.diags
      .report<diag::MmaOperandPlace>(operand.span, "B", operand.tile.name, "in registers")
      .help("store it to shared memory first: `frag.store {}, buffer;`", operand.tile.name)
      .emit();
  return false;
}

// Whether the instruction can read the operand where it is: a warpgroup's takes B, and A unless it
// was loaded into registers, from shared memory as they lie.
bool check_source(Sema& sema, const target::Mma& row, const OperandPlace& operand) {
  auto& type = std::get<ir::FragType>(sema.function.values[operand.id].type);
  const bool is_a = type.role == ir::Role::kA;
  if (!operand.tile.load.valid()) return check_value(sema, row, operand, is_a);
  const auto& load = std::get<ir::Load>(sema.function.ops[operand.tile.load].data);
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
        .help("{}", place_help(is_a, load.to_registers))
        .emit();
    return false;
  }
  if (load.major == ir::Major::kRow || row.transposes) return true;
  (void)sema.diags
      .report<diag::MmaMajorUnsupported>(operand.span, name(operand.dtype), operand.tile.name,
                                         is_a ? "A" : "B")
      .help("{}", is_a ? "load it with `mma.load.frag`, or keep the tile with K along its rows"
                       : "keep the tile in memory with K along its rows, and use `row`")
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

// Extents of metadata that the launch decides must be those that the product needs: checked at entry.
void close_metadata(Sema& sema, Tile& tile, ir::ValueId id, const Request& request) {
  if (tile.open_extents.empty()) return;
  auto& type = std::get<ir::FragType>(sema.function.values[id].type);
  const std::int64_t columns = request.shape.k / columns_of_metadata(type.dtype, request.a);
  const std::int64_t needed[] = {request.shape.m, std::max<std::int64_t>(columns, 1)};
  const ir::ValueId view = std::get<ir::Load>(sema.function.ops[tile.load].data).view;
  auto& shape = std::get<ir::ViewType>(sema.function.values[view].type).shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (tile.open_extents[d].constant()) continue;
    shape[d] = needed[d];
    (d == 0 ? type.rows : type.cols) = needed[d];
    require(sema,
            {tile.open_extents[d], ir::Relation::kEqual, needed[d],
             format("dimension {} of the metadata `{}` is what its product reads", d, tile.name),
             tile.span});
  }
  tile.open_extents.clear();
}

// Metadata is u8 [M, K/8] or prepacked u32 [M, K/32] (tf32: twice as much), in registers.
bool check_metadata(Sema& sema, Tile& tile, ir::ValueId id, const Request& request, Span span) {
  close_metadata(sema, tile, id, request);
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

struct OperandTile {
  ir::ValueId id;
  Tile& tile;
};

struct ScaleRequest {
  ir::ValueId acc;
  ir::ValueId partial;
  ast::ExprId factors;
  ast::ExprId factor;
  Span acc_span;
};

bool can_be_scaled(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16; }

// acc += factors[m] * factor * partial.
void add_scaled(Sema& sema, const ScaleRequest& request, Span span) {
  const ir::FragType type = sema.function.frag_type(request.acc);  // values may be added below
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
  if (!can_be_scaled(type.dtype)) {
    refuse(sema, request.acc_span, format("scaling an accumulator of {}", name(type.dtype)));
    return;
  }
  const auto scalar = convert(sema, factor, DType::kF32);
  if (!scalar) return;
  emit(sema, ir::Scale{request.acc, request.partial, factors.id, *scalar}, span);
}

Tile* find_metadata(Sema& sema, ast::ExprId expr, ir::ValueId& id) {
  const Span span = sema.ast[expr].span;
  if (const auto* named = sema.ast.as<ast::NameExpr>(expr)) {
    return find_tile(sema, {{named->name, span}, {}, span}, false, id);
  }
  if (sema.ast.as<ast::ErrorExpr>(expr) != nullptr) return nullptr;
  const bool is_element = is_tile_name(sema, expr);
  const Symbol* element = is_element ? named_tile(sema, expr) : nullptr;
  if (is_element && element == nullptr) return nullptr;
  if (is_element && element->kind == Symbol::Kind::kTile) {
    id = element->operand.id;
    return &sema.tiles.at(id);
  }
  (void)sema.diags
      .report<diag::MmaNotFragment>(span, sema.sources.text(span),
                                    is_element ? "an accumulator" : "a view",
                                    "metadata loaded by `mma.load`")
      .help("load it first: `name = mma.load {};`", sema.sources.text(span))
      .emit();
  return nullptr;
}

// A product while it is analysed: the operation to be, and the tiles that the statement names.
struct Product {
  const ast::MmaExecStmt& stmt;
  ir::Mma mma = {};
  Tile* c = nullptr;
  Tile* a = nullptr;
  Tile* b = nullptr;
  Tile* metadata = nullptr;  // of a sparse A
  Span a_span = {};
  Span b_span = {};
};

// Finds the tiles and gives A and B their roles; false after a report.
bool find_tiles(Sema& sema, Product& product) {
  const ast::MmaExecStmt& stmt = product.stmt;
  ir::Mma& mma = product.mma;
  product.c = find_tile(sema, stmt.acc, true, mma.c);
  product.a = find_operand(sema, stmt.a, mma.a);
  product.b = find_operand(sema, stmt.b, mma.b);
  if (stmt.sparse) product.metadata = find_metadata(sema, stmt.metadata, mma.metadata);
  if (product.c == nullptr || product.a == nullptr || product.b == nullptr ||
      (stmt.sparse && product.metadata == nullptr)) {
    return false;
  }
  return check_same_unit(sema, *product.c, stmt.acc.span) &&
         check_same_unit(sema, *product.a, product.a_span) &&
         check_same_unit(sema, *product.b, product.b_span) &&
         assign_role(sema, *product.a, {mma.a, ir::Role::kA, mma.a_major, product.a_span}) &&
         assign_role(sema, *product.b, {mma.b, ir::Role::kB, mma.b_major, product.b_span});
}

// What the operands ask of the hardware; none after a report.
std::optional<Request> request_of(Sema& sema, const Product& product) {
  const auto& [stmt, mma, c, a, b, metadata, a_span, b_span] = product;
  const ir::FragType& a_type = sema.function.frag_type(mma.a);
  const ir::FragType& b_type = sema.function.frag_type(mma.b);
  const Extents a_extents = extents_of(a_type, mma.a_major);
  const Extents b_extents = extents_of(b_type, mma.b_major);
  const std::int64_t a_depth = a_extents.contraction * (stmt.sparse ? 2 : 1);
  for (const Tile* operand : {a, b}) {
    if (operand->open_extents.empty()) continue;
    const auto& extents = operand->open_extents;
    report_open_tile(sema, operand == a ? a_span : b_span,
                     extents[0].constant() ? extents[1] : extents[0]);
    return std::nullopt;
  }
  if (a_depth != b_extents.contraction) {
    (void)sema.diags.report<diag::MmaContraction>(stmt.word_span, a_depth, b_extents.contraction)
        .label(a_span, "`{}` is {}x{}", a->name, a_type.rows, a_type.cols)
        .label(b_span, "`{}` is {}x{}", b->name, b_type.rows, b_type.cols)
        .help("{}", stmt.sparse ? "the view of a sparse A has half the contraction extent of B's"
                                : "`row` contracts the last dimension of a view, `col` the first")
        .emit();
    return std::nullopt;
  }
  const bool group4 = mma.unit == ir::Level::kGroup4;
  const DType a_dtype = loaded_type(sema, *a, mma.a);
  return Request{group4 ? target::Scope::kWarpgroup : target::Scope::kWarp,
                 {static_cast<int>(a_extents.free), static_cast<int>(b_extents.free),
                  static_cast<int>(b_extents.contraction)},
                 a_dtype,
                 loaded_type(sema, *b, mma.b),
                 c->dtype.value_or(a_dtype),
                 stmt.sparse};
}

bool give_metadata(Sema& sema, const Product& product, const Request& request) {
  if (product.metadata == nullptr) return true;
  const Span span = sema.ast[product.stmt.metadata].span;
  const ir::ValueId id = product.mma.metadata;
  return check_same_unit(sema, *product.metadata, span) &&
         assign_role(sema, *product.metadata, {id, ir::Role::kMetadata, ir::Major::kRow, span}) &&
         check_metadata(sema, *product.metadata, id, request, span);
}

// `[[schedule(k_tiles(1, 0))]]`: the order in which the parts of K are multiplied, which is not kept
// where it is the usual one. False after a report.
bool give_order(Sema& sema, Product& product, const ast::Attribute& attribute, std::int64_t parts) {
  std::vector<std::int64_t> order;
  for (const ast::ExprId each : attribute.args) {
    const auto part = evaluate_constant(sema, each, "a K tile");
    if (!part) return false;
    order.push_back(*part);
  }
  std::vector<std::int64_t> usual(static_cast<std::size_t>(parts));
  std::iota(usual.begin(), usual.end(), 0);
  if (!std::ranges::is_permutation(order, usual)) {
    const auto list = [](const std::vector<std::int64_t>& items) {
      return join(items, ", ", [](std::int64_t item) { return format("{}", item); });
    };
    (void)sema.diags
        .report<diag::ScheduleOrder>(
            attribute.span, list(order),
            parts == 1 ? "one K tile, 0" : format("the K tiles 0 to {}", parts - 1))
        .label(product.stmt.word_span, "the product")
        .help("name each K tile once, as in `k_tiles({})`", list(usual))
        .emit();
    return false;
  }
  if (order != usual) product.mma.order = std::move(order);
  return true;
}

bool give_attributes(Sema& sema, Product& product, std::int64_t parts) {
  bool fine = true;
  for (const ast::Attribute& attribute : product.stmt.attributes) {
    if (attribute.kind == ast::Attribute::Kind::kSchedule) {
      fine = give_order(sema, product, attribute, parts) && fine;
      continue;
    }
    fine = false;
    (void)sema.diags
        .report<diag::AttributePlace>(attribute.span, spelling(attribute.kind), "a launch",
                                      "a product")
        .help("write it in front of the outermost `parallel`")
        .emit();
  }
  return fine;
}

// Finds the instruction and checks that it can read the operands where they are.
bool find_instruction(Sema& sema, Product& product, const Request& request) {
  const target::Mma* row =
      target::find_mma(sema.arch, {request.scope, request.a, request.b, request.sparse},
                       {request.acc, request.shape});
  if (row == nullptr) {
    report_no_instruction(sema, product.stmt.word_span, *product.c, request);
    return false;
  }
  return give_metadata(sema, product, request) &&
         give_attributes(sema, product, request.shape.k / row->shape.k) &&
         check_source(sema, *row, {*product.a, product.mma.a, product.a_span, row->a}) &&
         check_source(sema, *row, {*product.b, product.mma.b, product.b_span, row->b});
}

// Emits the product, into a sum of its own where it is to be scaled.
void add_product(Sema& sema, Product& product, const Request& request, Span span) {
  const ast::MmaExecStmt& stmt = product.stmt;
  const ir::FragType wanted{ir::Role::kC, request.acc, request.shape.m, request.shape.n};
  const ir::ValueId acc = product.mma.c;
  if (!assign_shape(sema, *product.c, acc, wanted, stmt.acc.span)) return;
  if (stmt.scaled) product.mma.c = open_partial(sema, acc, span);
  const ir::ValueId sum = product.mma.c;
  const ir::OpId op = emit(sema, std::move(product.mma), span);
  if (stmt.scaled) {
    add_scaled(sema, {acc, sum, stmt.a_scale, stmt.b_scale, stmt.acc.span}, span);
  } else {
    note_product(sema, acc, op);
  }
  if (stmt.is_async) declare_future(sema, stmt, span);
}

// mma.scale acc, source, ...: an accumulator of the program's own is added, scaled.
void scale_source(Sema& sema, const ast::MmaScaleStmt& stmt, const OperandTile& acc, Span span) {
  ir::ValueId id;
  Tile* source = find_tile(sema, *stmt.source, true, id);
  if (source == nullptr || source->broken) return mark_broken({&acc.tile, source});
  source->stored = true;
  if (!check_same_unit(sema, *source, stmt.source->span)) return mark_broken({&acc.tile});
  if (!source->first_use.valid()) {
    (void)sema.diags.report<diag::MmaScaleNothing>(stmt.word_span, source->name)
        .help("write its products in front of `mma.scale`")
        .emit();
    return mark_broken({&acc.tile, source});
  }
  const ir::FragType type = sema.function.frag_type(id);
  if (acc.tile.dtype && *acc.tile.dtype != type.dtype) {
    const std::string_view own = name(*acc.tile.dtype);
    const std::string construct =
        format("scaling products of {} into an accumulator of {}", name(type.dtype), own);
    (void)sema.diags.report<diag::NotSupportedYet>(stmt.source->span, construct)
        .label(stmt.acc.span, "of {}", own)
        .help("collect the products in {} too: `{} = mma.fill.{} 0;`", own, source->name, own)
        .emit();
    return mark_broken({&acc.tile, source});
  }
  if (!assign_shape(sema, acc.tile, acc.id, type, stmt.acc.span)) return;
  add_scaled(sema, {acc.id, id, stmt.a_scale, stmt.b_scale, stmt.acc.span}, span);
}

}  // namespace

void analyse(Sema& sema, const ast::MmaExecStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!check_place(sema, stmt.word_span, Where::kUnit) || refuse_exec_forms(sema, stmt)) {
    if (stmt.is_async) declare(sema, stmt.future, {});
    return mark_named_broken(sema, stmt);
  }
  Product product{.stmt = stmt};
  product.a_span = sema.ast[stmt.a].span;
  product.b_span = sema.ast[stmt.b].span;
  product.mma.a_major = major_of(stmt.a_major);
  product.mma.b_major = major_of(stmt.b_major);
  product.mma.unit = sema.place.unit.level;
  const bool found = find_tiles(sema, product);
  const std::optional<Request> request = found ? request_of(sema, product) : std::nullopt;
  if (!request || !find_instruction(sema, product, *request)) {
    if (stmt.is_async) declare(sema, stmt.future, {});
    return mark_broken({product.c, product.a, product.b, product.metadata});
  }
  add_product(sema, product, *request, span);
}

void analyse(Sema& sema, const ast::MmaScaleStmt& stmt, ast::StmtId statement) {
  const Span span = sema.ast[statement].span;
  ir::ValueId id;
  Tile* tile = find_tile(sema, stmt.acc, true, id);
  if (!check_place(sema, stmt.word_span, Where::kUnitOrBlock) || tile == nullptr) {
    return mark_broken({tile});
  }
  if (tile->broken || !check_same_unit(sema, *tile, stmt.acc.span)) return;
  if (stmt.source) return scale_source(sema, stmt, {id, *tile}, span);
  const auto sum = take_products(sema, id, span);
  if (!sum && sema.stopped_early) return mark_broken({tile});  // products were not written out
  if (!sum) {
    (void)sema.diags.report<diag::MmaScaleNothing>(stmt.word_span, tile->name)
        .help("write the products in the same block, in front of `mma.scale`")
        .emit();
    return mark_broken({tile});
  }
  add_scaled(sema, {id, *sum, stmt.a_scale, stmt.b_scale, stmt.acc.span}, span);
}

}  // namespace kiln::sema
