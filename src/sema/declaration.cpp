// Declarations and assignments.
#include <algorithm>

#include "sema/constant.h"
#include "sema/cuda.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/launch_value.h"
#include "sema/literal.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

// Of a variable, a number or their product no name makes the text shorter.
bool is_formula(const ir::Expr& expr) {
  if (expr.constant() || expr.overflowed()) return false;
  const auto is_var = [](const ir::Atom& atom) { return atom.kind == ir::AtomKind::kVar; };
  return expr.terms().size() > 1 || !std::ranges::all_of(expr.terms()[0].atoms, is_var);
}

// What the program calls an index; emitted text calls it so too.
void keep_name(Sema& sema, const std::string& name, const Operand& value) {
  constexpr std::size_t kNamesMax = 200;  // they are compared with each other
  std::vector<ir::NamedIndex>& named = sema.function.named;
  if (value.kind != Operand::Kind::kInt || !is_formula(value.integer.value)) return;
  const bool is_known = std::ranges::any_of(
      named, [&](const ir::NamedIndex& one) { return one.value == value.integer.value; });
  if (!is_known && named.size() < kNamesMax) named.push_back({name, value.integer.value});
}

// The function whose text it is a part of; null for what is between functions.
const ast::TileFunction* function_around(const Sema& sema, Span text) {
  for (const ast::Region& region : sema.ast.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function != nullptr && lies_in(text, function->span)) return function;
  }
  return nullptr;
}

// Whether the function assigns to the name behind the place that declares it.
bool is_assigned_again(const Sema& sema, const ast::Name& name) {
  const ast::TileFunction* around = function_around(sema, name.span);
  if (around == nullptr) return false;
  const Span function = around->span;
  return std::ranges::any_of(sema.ast.stmts, [&](const ast::Stmt& stmt) {
    const auto* assignment = std::get_if<ast::AssignStmt>(&stmt.node);
    if (assignment == nullptr) return false;
    const auto* target = sema.ast.as<ast::NameExpr>(assignment->target);
    const Span at = sema.ast[assignment->target].span;
    return target != nullptr && target->name == name.text && at.begin > name.span.begin &&
           lies_in(at, function);
  });
}

// The first `=` of an unknown name declares it, with the kind its value has. An integer from memory
// can change, as floating numbers can; where nothing changes it, it is a variable that can index.
void declare_from(Sema& sema, const ast::Name& name, const Operand& value) {
  Symbol symbol{Symbol::Kind::kOperand, value, name.span};
  const bool is_float_number = value.is_number() && is_float(value.dtype);
  const bool is_read_integer = value.kind == Operand::Kind::kScalar && is_integer(value.dtype);
  if (is_read_integer && !(sema.place.in_kernel && is_assigned_again(sema, name))) {
    const ir::VarId var = add_var(sema, name.text, ir::VarKind::kBound, ir::Expr(0), name.span);
    emit(sema, ir::Bind{var, value.id}, name.span);
    symbol.operand = make_int(ir::Expr::var(var), name.span);
    symbol.operand.dtype = value.dtype;
  } else if (is_read_integer || is_float_number) {
    const auto initial = convert(sema, value, value.dtype);
    if (!initial) return;
    symbol.kind = Symbol::Kind::kCell;
    symbol.operand = make_scalar(emit_value(sema, ir::Alloc{.name = name.text, .initial = *initial},
                                            name.span, ir::CellType{value.dtype}, name.text),
                                 value.dtype, name.span);
  } else if (value.kind == Operand::Kind::kString) {
    refuse(sema, name.span, "a string variable");
    return;
  }
  declare(sema, name, std::move(symbol));
}

// Whether it counts its operand up or down.
bool steps(ast::UnaryOp op) {
  return op == ast::UnaryOp::kPreIncrement || op == ast::UnaryOp::kPreDecrement ||
         op == ast::UnaryOp::kPostIncrement || op == ast::UnaryOp::kPostDecrement;
}

bool is_assigned(const Sema& sema, const std::string& name) {
  const auto names_it = [&](ast::ExprId target) {
    const auto* named = sema.ast.as<ast::NameExpr>(target);
    return named != nullptr && named->name == name;
  };
  const bool by_statement = std::ranges::any_of(sema.ast.stmts, [&](const ast::Stmt& stmt) {
    const auto* assignment = std::get_if<ast::AssignStmt>(&stmt.node);
    return assignment != nullptr && names_it(assignment->target);
  });
  return by_statement || std::ranges::any_of(sema.ast.exprs, [&](const ast::Expr& expr) {
           const auto* unary = std::get_if<ast::UnaryExpr>(&expr.node);
           return unary != nullptr && steps(unary->op) && names_it(unary->operand);
         });
}

void declare_cell(Sema& sema, const ast::Declarator& item, std::optional<ir::ValueId> initial,
                  DType dtype) {
  const ir::ValueId cell = emit_value(
      sema, ir::Alloc{.name = item.name.text, .initial = initial.value_or(ir::ValueId{})},
      item.span, ir::CellType{dtype}, item.name.text);
  declare(sema, item.name, {Symbol::Kind::kCell, make_scalar(cell, dtype, item.span), {}});
}

// `f32 scale = 2.0f;` in the host part: a value, where nobody changes it.
void declare_host_scalar(Sema& sema, const ast::Declarator& item,
                         std::optional<ir::ValueId> initial, DType dtype) {
  if (!initial || is_assigned(sema, item.name.text))
    return declare_cell(sema, item, initial, dtype);
  declare(sema, item.name, {Symbol::Kind::kOperand, make_scalar(*initial, dtype, item.span), {}});
}

// `f32 x = call f(y);`: a variable that the call sets. What stands in for the call may name it.
void declare_from_cuda(Sema& sema, const ast::DeviceCallExpr& call, const ast::Declarator& item,
                       DType dtype) {
  auto cuda = cuda_of_call(sema, call, item.span, true);
  if (!cuda) return declare(sema, item.name, {});
  declare_cell(sema, item, {}, dtype);
  const ir::ValueId cell = sema.scopes.find(item.name.text)->operand.id;
  emit_cuda(sema, std::move(*cuda), cell, item.span);
}

void declare_scalar(Sema& sema, const ast::ScalarDeclStmt& stmt, const ast::Declarator& item) {
  if (!item.extents.empty()) {
    refuse(sema, item.span, "an array of scalars");
    return;
  }
  if (stmt.is_mutable && !stmt.type && is_tile_expression(sema, item.init)) {
    return declare_tile_value(sema, item.name, item.init, item.span);
  }
  const std::optional<DType> written = type_of(sema, stmt.type);
  const bool fixed_kind = stmt.is_int || written == DType::kBool;
  const bool is_cell = stmt.is_mutable || (written && !fixed_kind);
  if (!item.init.valid() && !is_cell) {
    (void)sema.diags.report<diag::UninitialisedDeclaration>(item.name.span, item.name.text)
        .help("`int {} = ...;`, or `mutable int {};` to set it later", item.name.text,
              item.name.text)
        .emit();
    declare(sema, item.name, {});
    return;
  }
  const auto* call = cuda_call(sema, item.init);
  if (call != nullptr && written && is_cell) return declare_from_cuda(sema, *call, item, *written);
  const Operand value = !item.init.valid() ? Operand{}
                        : written          ? evaluate_as(sema, item.init, *written)
                                           : evaluate(sema, item.init);
  if (item.init.valid() && value.is_error()) {
    declare(sema, item.name, {});
    return;
  }
  const DType dtype = written.value_or(value.dtype);
  if (written && !check_literal(sema, value, dtype)) {
    declare(sema, item.name, {});
    return;
  }
  if (!is_cell && value.kind == Operand::Kind::kInt &&
      (dtype == DType::kBool) == (value.dtype == DType::kBool)) {
    keep_name(sema, item.name.text, value);
    declare(sema, item.name, {Symbol::Kind::kOperand, value, {}});
    return;
  }
  std::optional<ir::ValueId> initial;
  if (item.init.valid()) {
    initial = convert(sema, value, dtype);
    if (!initial) {
      declare(sema, item.name, {});
      return;
    }
  }
  if (!is_cell) {
    declare_from(sema, item.name, make_scalar(*initial, dtype, value.span));
    return;
  }
  if (!sema.place.in_kernel) {
    declare_host_scalar(sema, item, initial, dtype);
    return;
  }
  declare_cell(sema, item, initial, dtype);
}

}  // namespace

// Whether the launch names the variable, or has a text that may.
bool may_name(const Sema& sema, Span launch, const std::string& name) {
  const auto is_it = [&](const ast::Expr& expr) {
    const auto* named = std::get_if<ast::NameExpr>(&expr.node);
    return named != nullptr && named->name == name && lies_in(expr.span, launch);
  };
  return sema.sources.text(launch).find(name) != std::string_view::npos ||
         std::ranges::any_of(sema.ast.exprs, is_it);
}

void take_variables_along(Sema& sema, Span word, Span launch) {
  for (const std::string& name : sema.scopes.names()) {
    const Symbol* symbol = sema.scopes.find(name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::kCell) continue;
    if (!may_name(sema, launch, name)) continue;
    const Span declared = symbol->span;
    const DType dtype = symbol->operand.dtype;
    const ir::ValueId now =
        emit_value(sema, ir::Get{symbol->operand.id}, word, ir::ScalarType{dtype}, name);
    sema.scopes.declare(name,
                        {Symbol::Kind::kOperand, make_scalar(now, dtype, declared), declared});
  }
}

void declare_mutable_params(Sema& sema) {
  for (const ir::Param& param : sema.function.params) {
    const auto* type = std::get_if<ir::ScalarType>(&sema.function.type(param.value));
    if (type == nullptr || param.var.valid() || !is_assigned(sema, param.name)) continue;
    const DType dtype = type->dtype;
    const ir::ValueId cell = emit_value(sema, ir::Alloc{.name = param.name, .initial = param.value},
                                        param.span, ir::CellType{dtype}, param.name);
    sema.scopes.declare(param.name,
                        {Symbol::Kind::kCell, make_scalar(cell, dtype, param.span), param.span});
  }
}

void analyse(Sema& sema, const ast::ScalarDeclStmt& stmt, ast::StmtId) {
  if (stmt.storage != ast::Storage::kNone) {
    (void)sema.diags.report<diag::StorageOnScalar>(stmt.storage_span, spelling(stmt.storage))
        .help("remove it, or declare a buffer of one element: `[1]`")
        .emit();
  }
  for (const ast::Declarator& item : stmt.declarators) declare_scalar(sema, stmt, item);
}

namespace {

// A shape or a tuple that has been declared with a number of elements.
struct Counted {
  const ast::Name& name;
  ast::ExprId value;
  std::string_view word;
  std::int64_t count = 0;
};

// `mdspan<2>` and `ituple<2>` have as many elements as they say.
void check_rank(Sema& sema, ast::ExprId rank, const Counted& made) {
  const auto wanted = evaluate_constant(sema, rank, "the rank");
  if (!wanted || *wanted == made.count) return;
  (void)sema.diags
      .report<diag::IndexCount>(sema.ast[made.value].span, made.name.text, *wanted,
                                made.word == "mdspan" ? "extents" : "values", made.count)
      .help("write `{}<{}>`, or leave the number out", made.word, made.count)
      .emit();
}

}  // namespace

void analyse(Sema& sema, const ast::MdspanDeclStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const Operand shape = evaluate(sema, stmt.shape);
  Symbol symbol{Symbol::Kind::kOperand, {}, {}};
  if (shape.kind == Operand::Kind::kShape) {
    symbol.operand = shape;
    const auto count = static_cast<std::int64_t>(shape.elements.size());
    if (stmt.rank.valid()) check_rank(sema, stmt.rank, {stmt.name, stmt.shape, "mdspan", count});
  } else if (!shape.is_error()) {
    (void)sema.diags.report<diag::NotAValue>(span, stmt.name.text, describe(shape, sema.function))
        .help("an mdspan is declared with `: [extent, ...]`")
        .emit();
  }
  declare(sema, stmt.name, std::move(symbol));
}

void analyse(Sema& sema, const ast::ItupleDeclStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  Operand value = evaluate(sema, stmt.value);
  Symbol symbol{Symbol::Kind::kOperand, {}, {}};
  if (value.kind == Operand::Kind::kTuple) {
    symbol.operand = value;
    const auto count = static_cast<std::int64_t>(value.elements.size());
    if (stmt.rank.valid()) check_rank(sema, stmt.rank, {stmt.name, stmt.value, "ituple", count});
  } else if (!value.is_error()) {
    (void)sema.diags.report<diag::NotAValue>(span, stmt.name.text, describe(value, sema.function))
        .help("an ituple is declared with `= {{value, ...}}`")
        .emit();
  }
  declare(sema, stmt.name, std::move(symbol));
}

namespace {

bool check_placement(Sema& sema, const ast::BufferDeclStmt& stmt, ir::Space space, Span span) {
  const bool on_chip = space != ir::Space::kGlobal;
  if (on_chip == sema.place.in_kernel) return true;
  const Span where = stmt.storage_span.valid() ? stmt.storage_span : span;
  const std::string_view word = on_chip ? spelling(stmt.storage) : "global";
  (void)sema.diags
      .report<diag::StoragePlacement>(where, word,
                                      on_chip ? "outside `parallel`" : "inside `parallel`")
      .help("{}", on_chip ? "move it into the body of the `parallel ... : block`"
                          : "declare it `shared` or `local`, or move it in front of the `parallel`")
      .emit();
  return false;
}

void declare_buffer(Sema& sema, const ast::BufferDeclStmt& stmt, const ast::Declarator& item,
                    ir::Space space, const std::vector<Element>& shape) {
  ir::ViewType type{type_of(sema, stmt.type), space, {}};
  const auto stages = evaluate_extents(sema, item.extents, "the extent of the array");
  if (!stages) {
    declare(sema, item.name, {});
    return;
  }
  for (const Element& stage : *stages) type.shape.push_back(stage.value);
  for (const Element& extent : shape) type.shape.push_back(extent.value);
  if (!settle_extents(sema, type, stmt.shape_span, format("`{}`", item.name.text))) {
    declare(sema, item.name, {});
    return;
  }
  ir::Alloc alloc{.name = item.name.text};
  if (item.init.valid()) {
    const auto value = convert(sema, evaluate(sema, item.init), type.dtype);
    alloc.initial = value.value_or(ir::ValueId{});
  }
  if (!check_size(sema, type, item.name.span, format("`{}`", item.name.text))) {
    declare(sema, item.name, {});
    return;
  }
  const bool may_share = space != ir::Space::kGlobal && stages->empty() && !item.init.valid();
  const auto shared_place =
      may_share ? selected_buffer(sema, item.name.text, type, item.span) : std::nullopt;
  const ir::ValueId id =
      shared_place ? *shared_place : emit_value(sema, alloc, item.span, type, item.name.text);
  Operand operand;
  operand.kind = stages->empty() ? Operand::Kind::kView : Operand::Kind::kArray;
  operand.span = item.span;
  operand.id = id;
  operand.array_rank = static_cast<std::int64_t>(stages->size());
  declare(sema, item.name, {Symbol::Kind::kOperand, operand, {}});
}

ir::Space space_of(ast::Storage storage) {
  switch (storage) {
    case ast::Storage::kShared: return ir::Space::kShared;
    case ast::Storage::kLocal: return ir::Space::kLocal;
    case ast::Storage::kNone:
    case ast::Storage::kGlobal: break;
  }
  return ir::Space::kGlobal;
}

}  // namespace

void analyse(Sema& sema, const ast::BufferDeclStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const ir::Space space = space_of(stmt.storage);
  const bool placed = check_placement(sema, stmt, space, span);
  auto shape = evaluate_extents(sema, stmt.shape, "the extent of a buffer");
  if (shape && space == ir::Space::kGlobal) {
    for (Element& extent : *shape) {
      if (const auto known = launch_value(sema, extent.value, span)) extent.value = *known;
    }
  }
  for (const ast::Declarator& item : stmt.declarators) {
    if (shape && placed) {
      declare_buffer(sema, stmt, item, space, *shape);
    } else {
      declare(sema, item.name, {});
    }
  }
}

namespace {

// Whether the element is of a buffer in local memory.
bool is_own(const Sema& sema, const ast::AtExpr& target) {
  std::vector<ast::ExprId> items;
  const auto* named = sema.ast.as<ast::NameExpr>(without_subscripts(sema, target.base, items));
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  if (symbol == nullptr || symbol->kind != Symbol::Kind::kOperand) return false;
  const Operand& operand = symbol->operand;
  const bool is_buffer =
      operand.kind == Operand::Kind::kView || operand.kind == Operand::Kind::kArray;
  return is_buffer && sema.function.view_type(operand.id).space == ir::Space::kLocal;
}

// An element store. In a kernel, outside the innermost level, one elected thread does it.
void assign_element(Sema& sema, const ast::AtExpr& target, const ast::AssignStmt& stmt, Span span) {
  if (!check_own_block(sema, target)) return;
  if (assign_fragment_element(sema, target, stmt, span)) return;
  const auto body = [&] {
    const Operand base = evaluate_view(sema, target.base);
    const DType element = base.is_error() ? DType::kF32 : sema.function.view_type(base.id).dtype;
    Operand value = evaluate_as(sema, stmt.value, element);
    if (base.is_error()) return;
    const auto index = element_index(sema, base.id, target.indices, sema.ast[stmt.target].span);
    if (!index || value.is_error()) return;
    const DType dtype = sema.function.view_type(base.id).dtype;
    if (stmt.op != ast::AssignOp::kSet) {
      const ir::ValueId old =
          emit_value(sema, ir::Read{base.id, *index}, span, ir::ScalarType{dtype});
      value =
          combine(sema, operator_of(stmt.op), stmt.op_span, make_scalar(old, dtype, span), value);
    }
    value.span = sema.ast[stmt.value].span;
    if (const auto converted = convert(sema, value, dtype)) {
      emit(sema, ir::Write{base.id, *index, *converted}, span);
    }
  };
  // In an `apply` the thread that holds the element does it; and each thread has local memory of its own, which nobody
  // else could write.
  const bool by_each = sema.place.level == ir::Level::kThread || sema.apply || is_own(sema, target);
  if (!sema.place.in_kernel || by_each) {
    body();
    return;
  }
  const ir::OpId once = emit(sema, ir::Once{}, span);
  const ir::RegionId region = in_region(sema, body);
  std::get<ir::Once>(sema.function.ops[once].data).body = region;
}

void assign_cell(Sema& sema, const Symbol& symbol, const ast::AssignStmt& stmt, Span span) {
  const ir::ValueId cell = symbol.operand.id;
  const DType dtype = symbol.operand.dtype;
  if (sema.apply && sema.function.values[cell].def.index < sema.apply->first_op) {
    return refuse(sema, span, "assigning inside `apply` to a variable from outside of it");
  }
  const auto* call = cuda_call(sema, stmt.value);
  if (call != nullptr && stmt.op == ast::AssignOp::kSet) {
    auto cuda = cuda_of_call(sema, *call, span, true);
    if (cuda) emit_cuda(sema, std::move(*cuda), cell, span);
    return;
  }
  Operand value = evaluate_as(sema, stmt.value, dtype);
  if (stmt.op != ast::AssignOp::kSet && !value.is_error()) {
    const ir::ValueId old = emit_value(sema, ir::Get{cell}, span, ir::ScalarType{dtype});
    value = combine(sema, operator_of(stmt.op), stmt.op_span, make_scalar(old, dtype, span), value);
    value.span = sema.ast[stmt.value].span;
  }
  if (const auto converted = convert(sema, value, dtype)) {
    emit(sema, ir::Set{cell, *converted}, span);
  }
}

// In a kernel: what take_variables_along has made.
bool is_taken_along(const Sema& sema, const Symbol& symbol) {
  return sema.place.in_kernel && symbol.kind == Symbol::Kind::kOperand &&
         symbol.operand.kind == Operand::Kind::kScalar &&
         sema.function.def_as<ir::Get>(symbol.operand.id) != nullptr;
}

bool is_in_signature(const Sema& sema, const Symbol& symbol) {
  const ast::TileFunction* function = function_around(sema, symbol.span);
  return function != nullptr && lies_in(symbol.span, function->signature_span);
}

// Whether the statement stands in the body of a function and the symbol in its signature.
bool is_in_body_of(const Sema& sema, ast::StmtId id, const Symbol& symbol) {
  const ast::TileFunction* function = function_around(sema, sema.ast[id].span);
  if (function == nullptr || !function->body.valid()) return false;
  const auto* body = std::get_if<ast::BlockStmt>(&sema.ast[function->body].node);
  return body != nullptr && std::ranges::find(body->body, id) != body->body.end() &&
         lies_in(symbol.span, function->signature_span);
}

// Whether it is an immutable number, tuple or shape of a block around this one: `x = e` in a block of
// its own declares another x. Indices are not: a loop or a level of threads has them once.
bool is_of_outer_block(const Sema& sema, const Symbol& symbol, const std::string& name,
                       ast::StmtId id) {
  if (symbol.kind != Symbol::Kind::kOperand || sema.scopes.find_here(name) != nullptr) return false;
  if (is_taken_along(sema, symbol) || is_in_body_of(sema, id, symbol)) return false;
  const Operand& operand = symbol.operand;
  if (operand.kind == Operand::Kind::kInt) return !operand.integer.bound;
  return operand.is_number() || operand.kind == Operand::Kind::kTuple ||
         operand.kind == Operand::Kind::kShape;
}

void declare_anew(Sema& sema, const Symbol& symbol, const ast::AssignStmt& stmt,
                  const ast::Name& name) {
  const Operand value = evaluate(sema, stmt.value);
  (void)sema.diags.report<diag::ImmutableShadowed>(name.span, name.text)
      .label(symbol.span, "immutable, and keeps its value")
      .help_if(
          symbol.operand.kind == Operand::Kind::kInt && !is_in_signature(sema, symbol)
              ? format("`mutable int {}` where it is declared lets this assign to it", name.text)
              : "")
      .emit();
  keep_name(sema, name.text, value);
  declare_from(sema, name, value);
}

std::string_view immutable_kind(const Symbol& symbol) {
  switch (symbol.kind) {
    case Symbol::Kind::kParallel: return "an axis of a `parallel`";
    case Symbol::Kind::kAccumulator:
    case Symbol::Kind::kTile: return "a register tile";
    case Symbol::Kind::kMmaFuture: return "the future of an `mma`";
    case Symbol::Kind::kHandle: return "the name of a copy";
    case Symbol::Kind::kOperand:
    case Symbol::Kind::kCell:
    case Symbol::Kind::kWith:
    case Symbol::Kind::kTileArray:
    case Symbol::Kind::kSlot: break;
    case Symbol::Kind::kType: return "a type";
  }
  return "immutable";
}

}  // namespace

void analyse(Sema& sema, const ast::AssignStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (const auto* element = sema.ast.as<ast::AtExpr>(stmt.target)) {
    assign_element(sema, *element, stmt, span);
    return;
  }
  const auto* target = sema.ast.as<ast::NameExpr>(stmt.target);
  const Span target_span = sema.ast[stmt.target].span;
  if (target == nullptr && is_tile_name(sema, stmt.target)) return assign_tile(sema, stmt, span);
  if (target == nullptr) {
    if (sema.ast.as<ast::ErrorExpr>(stmt.target) != nullptr) return;
    (void)sema.diags
        .report<diag::ImmutableAssigned>(target_span, sema.sources.text(target_span),
                                         "not a variable")
        .help("elements are assigned with `.at(...)`")
        .emit();
    return;
  }
  const Symbol* symbol = sema.scopes.find(target->name);
  const bool is_tile = symbol != nullptr && symbol->kind == Symbol::Kind::kAccumulator;
  const bool declares = symbol == nullptr && stmt.op == ast::AssignOp::kSet;
  if (is_tile || (declares && is_tile_expression(sema, stmt.value))) {
    return assign_tile(sema, stmt, span);
  }
  if (declares) {
    const Operand value = evaluate(sema, stmt.value);
    keep_name(sema, target->name, value);
    declare_from(sema, {target->name, target_span}, value);
    return;
  }
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(target_span, target->name)
        .help_if(did_you_mean(target->name, sema.scopes.names()))
        .emit();
    return;
  }
  if (symbol->kind == Symbol::Kind::kTileArray) {
    return report_whole_array(sema, *symbol, target->name, target_span);
  }
  if (symbol->kind == Symbol::Kind::kCell) {
    assign_cell(sema, *symbol, stmt, span);
    return;
  }
  if (symbol->kind == Symbol::Kind::kOperand && symbol->operand.is_error()) return;
  if (stmt.op == ast::AssignOp::kSet && is_of_outer_block(sema, *symbol, target->name, id)) {
    return declare_anew(sema, *symbol, stmt, {target->name, target_span});
  }
  if (is_taken_along(sema, *symbol)) {
    (void)sema.diags
        .report<diag::ImmutableAssigned>(target_span, target->name,
                                         "a variable of the host part, which a kernel only reads,")
        .label(symbol->span, "declared here")
        .help("write to an element of a buffer here, and read it in the host part")
        .emit();
    return;
  }
  (void)sema.diags
      .report<diag::ImmutableAssigned>(target_span, target->name, immutable_kind(*symbol))
      .label(symbol->span, "declared here")
      .help_if(symbol->kind == Symbol::Kind::kOperand &&
                       symbol->operand.kind == Operand::Kind::kInt && !symbol->operand.integer.bound
                   ? format("declare a variable of its own: `mutable int next = {};`", target->name)
                   : "")
      .emit();
}

}  // namespace kiln::sema
