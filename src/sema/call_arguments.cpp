// The parameters of a function, in place of which the caller's numbers, views, tiles and events are
// put.
//
//   template <int R, int C>
//   __co_device__ void leave(frag f32 [R, C] sum, shared bf16 [R, C] out, event done)
//
//   leave(acc, c_s[1], full[0]);   R and C are the extents of `acc`, and `c_s[1]` must have them too
#include <algorithm>
#include <set>
#include <utility>

#include "sema/call.h"
#include "sema/event.h"
#include "sema/expression.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

using ParamKind = ast::ParamType::Kind;

std::string kind_text(const ast::Param& param) {
  const bool is_array = !param.extents.empty();
  switch (param.type.kind) {
    case ParamKind::kScalar: return "a number";
    case ParamKind::kSpanned: return is_array ? "an array of buffers" : "a buffer or a view";
    case ParamKind::kFragment: return is_array ? "an array of register tiles" : "a register tile";
    case ParamKind::kEvent: return is_array ? "an array of events" : "an event";
    case ParamKind::kStream: break;
  }
  return "a stream";
}

// ---- In the scope of the caller ----

class ArgumentReader {
 public:
  ArgumentReader(Sema& sema, const CallSite& site) : sema_(sema), site_(site) {}

  std::optional<Argument> read(const ast::Param& param, ast::ExprId expr) {
    const Span span = sema_.ast[expr].span;
    std::optional<Symbol> symbol;
    switch (param.type.kind) {
      case ParamKind::kScalar: symbol = number(param, expr); break;
      case ParamKind::kSpanned: symbol = view(param, expr); break;
      case ParamKind::kFragment: symbol = tile(param, expr); break;
      case ParamKind::kEvent: symbol = event(param, expr); break;
      case ParamKind::kStream: refuse(sema_, param.span, "a `stream` parameter"); break;
    }
    if (!symbol) return std::nullopt;
    return Argument{span, *std::move(symbol)};
  }

 private:
  std::optional<Symbol> mismatch(const ast::Param& param, ast::ExprId expr,
                                 const std::string& found) {
    (void)sema_.diags
        .report<diag::ArgumentKind>(sema_.ast[expr].span, param.name.text, site_.function.name.text,
                                    kind_text(param), found)
        .label(param.span, "the parameter")
        .emit();
    return std::nullopt;
  }

  std::optional<Symbol> number(const ast::Param& param, ast::ExprId expr) {
    const bool in_element = sema_.apply && sema_.apply->is_expression;
    if (!in_element && is_tile_expression(sema_, expr)) {
      return mismatch(param, expr, "a register tile");
    }
    const Operand operand = evaluate(sema_, expr);
    if (operand.is_error()) return std::nullopt;
    if (!operand.is_number()) return mismatch(param, expr, describe(operand, sema_.function));
    return Symbol{Symbol::Kind::kOperand, operand, {}};
  }

  std::optional<Symbol> view(const ast::Param& param, ast::ExprId expr) {
    if (is_tile_expression(sema_, expr)) return mismatch(param, expr, "a register tile");
    const Operand operand = evaluate(sema_, expr);
    if (operand.is_error()) return std::nullopt;
    const bool is_array = operand.kind == Operand::Kind::kArray;
    if (is_array == !param.extents.empty() && (is_array || operand.kind == Operand::Kind::kView)) {
      return Symbol{Symbol::Kind::kOperand, operand, {}};
    }
    return mismatch(param, expr, describe(operand, sema_.function));
  }

  std::optional<Symbol> tile(const ast::Param& param, ast::ExprId expr) {
    const auto* named = sema_.ast.as<ast::NameExpr>(expr);
    const Symbol* symbol = named == nullptr ? nullptr : sema_.scopes.find(named->name);
    const bool is_array = symbol != nullptr && symbol->kind == Symbol::Kind::kTileArray;
    if (is_array != !param.extents.empty()) {
      return mismatch(param, expr, is_array ? "an array of register tiles" : "something else");
    }
    if (is_array && is_operand_array(*symbol)) {
      refuse(sema_, sema_.ast[expr].span, "an array of what `mma.load` gives as an argument");
      return std::nullopt;
    }
    if (is_array) return *symbol;
    if (is_tile_name(sema_, expr)) {
      const Symbol* tile = named_tile(sema_, expr);
      if (tile == nullptr) return std::nullopt;
      return *tile;
    }
    if (!is_tile_expression(sema_, expr)) {
      const Operand operand = evaluate(sema_, expr);
      if (operand.is_error()) return std::nullopt;
      return mismatch(param, expr, describe(operand, sema_.function));
    }
    const auto frag = evaluate_tile(sema_, expr, param.name.text);
    if (!frag) return std::nullopt;
    Operand operand;
    operand.kind = Operand::Kind::kFragment;
    operand.id = *frag;
    return Symbol{Symbol::Kind::kAccumulator, operand, {}};
  }

  // A whole event or array of events, or one slot of it.
  std::optional<Symbol> event(const ast::Param& param, ast::ExprId expr) {
    if (!names_event(sema_, expr)) {
      const Operand operand = evaluate(sema_, expr);
      if (operand.is_error()) return std::nullopt;
      return mismatch(param, expr, describe(operand, sema_.function));
    }
    const auto* named = sema_.ast.as<ast::NameExpr>(expr);
    if (named != nullptr) {
      Symbol symbol = *sema_.scopes.find(named->name);
      symbol.operand.id = event_value(sema_, symbol);
      const std::size_t rank = symbol.kind == Symbol::Kind::kSlot
                                   ? 0
                                   : sema_.events.at(symbol.operand.id).extents.size();
      if (rank == param.extents.size()) return symbol;
      return mismatch(
          param, expr,
          rank == 0 ? "one event" : format("an array of events, of {} dimension(s)", rank));
    }
    if (!param.extents.empty()) return mismatch(param, expr, "one event");
    const auto slot = slot_ref(sema_, expr, "a parameter");
    if (!slot) return std::nullopt;
    Symbol symbol{Symbol::Kind::kSlot, {}, {}};
    symbol.operand.kind = Operand::Kind::kEvent;
    symbol.operand.id = slot->event;
    symbol.operand.integer.value = slot->slot;
    if (slot->generation) symbol.operand.elements.push_back({*slot->generation, std::nullopt});
    return symbol;
  }

  Sema& sema_;
  const CallSite& site_;
};

// ---- In the scope of the function ----

bool is_assigned_in(const ast::Ast& ast, Span function, const std::string& name) {
  return std::ranges::any_of(ast.stmts, [&](const ast::Stmt& stmt) {
    const auto* assignment = std::get_if<ast::AssignStmt>(&stmt.node);
    const auto* target =
        assignment == nullptr ? nullptr : ast.as<ast::NameExpr>(assignment->target);
    return target != nullptr && target->name == name && lies_in(stmt.span, function);
  });
}

class Binder {
 public:
  Binder(Sema& sema, const CallSite& site) : sema_(sema), site_(site) {}

  bool run(const Arguments& arguments) {
    bind_written(arguments);
    find_deducible();
    bind_defaults(false);
    const auto& params = site_.function.params;
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!arguments.exists[i]) note_absent(sema_, params[i]);
    }
    // A tile whose shape is not known yet says nothing: the others come first.
    for (const bool unknown : {false, true}) {
      for (std::size_t i = 0; i < params.size(); ++i) {
        const auto& argument = arguments.values[i];
        if (argument && is_unshaped(*argument) == unknown) bind(params[i], *argument);
      }
    }
    bind_defaults(true);
    if (fine_) {
      for (const Pending& check : pending_) fine_ = check_extent(check) && fine_;
    }
    return fine_ && check_requires(sema_, site_.function, site_.span);
  }

 private:
  [[nodiscard]] const std::string& callee() const { return site_.function.name.text; }

  void bind_written(const Arguments& arguments) {
    for (std::size_t i = 0; i < arguments.of_template.size(); ++i) {
      const ast::TemplateParam& param = site_.function.templ.params[i];
      const auto& value = arguments.of_template[i];
      declare(sema_, param.name, value ? symbol_of(*value, param.name.span) : Symbol{});
      fine_ = fine_ && value;
      said_at_[param.name.text] = site_.span;
    }
  }

  void find_deducible() {
    for (const ast::Param& param : site_.function.params) {
      if (param.type.dtype) deducible_.insert(param.type.dtype->name);
      for (const ast::ExprId extent : param.extents) note_name(extent);
      if (!param.type.shape) continue;
      for (const ast::Dim& dim : param.type.shape->dims) note_name(dim.value);
    }
  }
  void note_name(ast::ExprId id) {
    const auto* named = sema_.ast.as<ast::NameExpr>(id);
    if (named != nullptr) deducible_.insert(named->name);
  }

  // Of the parameters that no argument can say, or that none has said.
  void bind_defaults(bool all) {
    for (const ast::TemplateParam& param : site_.function.templ.params) {
      const bool known = sema_.scopes.find_here(param.name.text) != nullptr;
      if (known || (!all && deducible_.contains(param.name.text))) continue;
      std::optional<Constant> value;
      if (param.fallback.valid()) {
        value = constant_of_kind(sema_, param.fallback, param.name, param.kind);
      } else if (fine_) {
        (void)sema_.diags.report<diag::TemplateUnbound>(site_.span, param.name.text, callee())
            .label(param.span, "no argument says it")
            .help("write it: `{}<...>(...)`", callee())
            .emit();
      }
      declare(sema_, param.name, value ? symbol_of(*value, param.name.span) : Symbol{});
      fine_ = fine_ && value;
    }
  }

  [[nodiscard]] static std::optional<ir::ValueId> fragment_of(const Symbol& symbol) {
    if (symbol.kind == Symbol::Kind::kTileArray) return symbol.elements[0].operand.id;
    const bool is_tile =
        symbol.kind == Symbol::Kind::kAccumulator || symbol.kind == Symbol::Kind::kTile;
    return is_tile ? std::optional(symbol.operand.id) : std::nullopt;
  }
  [[nodiscard]] bool is_unshaped(const Argument& argument) const {
    const auto frag = fragment_of(argument.symbol);
    return frag && sema_.function.frag_type(*frag).rows == 0;
  }

  void bind(const ast::Param& param, const Argument& argument) {
    bool fine = true;
    Symbol symbol = argument.symbol;
    switch (param.type.kind) {
      case ParamKind::kScalar: fine = bind_number(param, argument, symbol); break;
      case ParamKind::kSpanned: fine = bind_view(param, argument); break;
      case ParamKind::kFragment: fine = bind_tile(param, argument); break;
      case ParamKind::kEvent: fine = bind_events(param, argument); break;
      case ParamKind::kStream: return;
    }
    fine_ = fine_ && fine;
    declare(sema_, param.name, fine ? std::move(symbol) : Symbol{});
  }

  // The type of elements: what the parameter's is, or becomes.
  bool bind_type(const ast::Param& param, DType found, Span span) {
    if (!param.type.dtype) return true;
    const ast::Type& type = *param.type.dtype;
    if (!type.name.empty() && sema_.scopes.find(type.name) == nullptr) {
      sema_.scopes.declare(type.name, symbol_of({Constant::Kind::kType, 0, found}, type.span));
      said_at_[type.name] = span;
      return true;
    }
    const DType wanted = type_of(sema_, type);
    if (wanted == found) return true;
    auto report = sema_.diags.report<diag::ArgumentType>(span, param.name.text, callee(),
                                                         name(wanted), name(found));
    if (const auto said = said_at_.find(type.name); said != said_at_.end()) {
      (void)std::move(report).label(said->second, "`{}` is {} by this", type.name, name(wanted));
    }
    (void)std::move(report).label(param.span, "the parameter").emit();
    return false;
  }

  // An extent: what the parameter's is, or becomes.
  bool bind_extent(const ast::Param& param, ast::ExprId expr, const ir::Expr& found,
                   std::size_t dimension, Span span) {
    const auto* named = sema_.ast.as<ast::NameExpr>(expr);
    if (named != nullptr && sema_.scopes.find(named->name) == nullptr) {
      return become(*named, expr, found, span);
    }
    pending_.push_back({&param, expr, found, dimension, span});
    return true;
  }

  // When all arguments have said what they say.
  struct Pending {
    const ast::Param* param;
    ast::ExprId expr;
    ir::Expr found;
    std::size_t dimension;
    Span span;
  };
  bool check_extent(const Pending& check) {
    const auto& [at, expr, found, dimension, span] = check;
    const ast::Param& param = *at;
    const auto* named = sema_.ast.as<ast::NameExpr>(expr);
    const auto extents =
        evaluate_extents(sema_, {expr}, format("an extent of `{}`", param.name.text));
    // What an accumulator without a shape says is known in the next reading.
    if (!extents) return sema_.looks_ahead;
    if (extents->size() != 1) {
      (void)sema_.diags
          .report<diag::ParameterExtents>(sema_.ast[expr].span, param.name.text, extents->size(),
                                          sema_.sources.text(sema_.ast[expr].span))
          .help("write an extent for each dimension: `{}(0)`",
                sema_.sources.text(sema_.ast[expr].span))
          .emit();
      return false;
    }
    const ir::Expr& wanted = (*extents)[0].value;
    if (wanted == found) return true;
    auto report = sema_.diags.report<diag::ArgumentExtent>(
        span, dimension, param.name.text, callee(), text(sema_, wanted), text(sema_, found));
    if (named != nullptr && said_at_.contains(named->name)) {
      (void)std::move(report).label(said_at_[named->name], "`{}` is {} by this", named->name,
                                    text(sema_, wanted));
    }
    (void)std::move(report).label(param.span, "the parameter").emit();
    return false;
  }

  bool become(const ast::NameExpr& named, ast::ExprId expr, const ir::Expr& found, Span span) {
    const auto& templ = site_.function.templ.params;
    const bool is_template = std::ranges::any_of(
        templ, [&](const ast::TemplateParam& param) { return param.name.text == named.name; });
    if (is_template && !found.constant()) {
      (void)sema_.diags
          .report<diag::ConstantNeeded>(span, format("`{}`", named.name),
                                        format("`{}`", text(sema_, found)))
          .label(sema_.ast[expr].span, "a template parameter of `{}`", callee())
          .help("leave `{}` out of the `template`: extents of parameters need not be constants",
                named.name)
          .emit();
      return false;
    }
    const Span where = sema_.ast[expr].span;
    sema_.scopes.declare(named.name, {Symbol::Kind::kOperand, make_int(found, where), where});
    said_at_[named.name] = span;
    return true;
  }

  bool report_rank(const ast::Param& param, std::size_t wanted, std::size_t found, Span span) {
    (void)sema_.diags.report<diag::ArgumentRank>(span, param.name.text, callee(), wanted, found)
        .label(param.span, "the parameter")
        .emit();
    return false;
  }

  bool bind_view(const ast::Param& param, const Argument& argument) {
    const ir::ViewType type = sema_.function.view_type(argument.symbol.operand.id);
    if (!check_space(param, type.space, argument.span) ||
        !bind_type(param, type.dtype, argument.span)) {
      return false;
    }
    const ast::ShapeDecl& shape = *param.type.shape;
    std::vector<ast::Dim> dims;
    for (const ast::ExprId extent : param.extents) {
      dims.push_back({ast::Dim::Kind::kExpr, extent, sema_.ast[extent].span});
    }
    dims.insert(dims.end(), shape.dims.begin(), shape.dims.end());
    std::size_t rank = dims.size();
    if (shape.mdspan_rank.valid()) {
      const auto written = evaluate_constant(sema_, shape.mdspan_rank, "the rank");
      if (!written) return false;
      rank += static_cast<std::size_t>(std::max<std::int64_t>(*written, 0));
    }
    if (rank != type.shape.size()) {
      return report_rank(param, rank, type.shape.size(), argument.span);
    }
    bool fine = true;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].kind != ast::Dim::Kind::kExpr) continue;
      fine = bind_extent(param, dims[d].value, type.shape[d], d, argument.span) && fine;
    }
    return fine;
  }

  bool check_space(const ast::Param& param, ir::Space space, Span span) {
    const bool fits = param.storage == ast::Storage::kNone ||
                      (param.storage == ast::Storage::kGlobal && space == ir::Space::kGlobal) ||
                      (param.storage == ast::Storage::kShared && space == ir::Space::kShared) ||
                      (param.storage == ast::Storage::kLocal && space == ir::Space::kLocal);
    if (fits) return true;
    const std::string_view found = space == ir::Space::kGlobal   ? "global"
                                   : space == ir::Space::kShared ? "shared"
                                                                 : "local";
    (void)sema_.diags
        .report<diag::ArgumentKind>(span, param.name.text, callee(),
                                    format("{} memory", spelling(param.storage)),
                                    format("{} memory", found))
        .label(param.storage_span, "the parameter")
        .help("without a storage word a parameter takes all of them")
        .emit();
    return false;
  }

  bool bind_tile(const ast::Param& param, const Argument& argument) {
    const ir::ValueId id = *fragment_of(argument.symbol);
    const ir::FragType type = sema_.function.frag_type(id);
    Tile& tile = sema_.tiles.at(id);
    if (tile.broken) return false;
    const bool is_typed = !tile.is_accumulator || tile.dtype;
    if (is_typed && !bind_type(param, type.dtype, argument.span)) return false;
    bool fine = true;
    for (std::size_t d = 0; d < param.extents.size(); ++d) {
      const auto& extents = argument.symbol.extents;
      if (extents.size() != param.extents.size()) {
        return report_rank(param, param.extents.size(), extents.size(), argument.span);
      }
      fine = bind_extent(param, param.extents[d], extents[d], d, argument.span) && fine;
    }
    if (!param.type.shape) return fine;
    const auto& dims = param.type.shape->dims;
    if (type.rows == 0) return bind_unshaped(param, dims, tile, argument.span) && fine;
    const std::int64_t extents[] = {type.rows, type.cols};
    const bool is_vector = dims.size() == 1 && type.cols == 1;
    if (dims.size() != std::size(extents) && !is_vector) {
      return report_rank(param, dims.size(), std::size(extents), argument.span);
    }
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].kind != ast::Dim::Kind::kExpr) continue;
      fine = bind_extent(param, dims[d].value, extents[d], d, argument.span) && fine;
    }
    return fine;
  }

  // An accumulator whose `mma` stands further down, or in the function.
  bool bind_unshaped(const ast::Param& param, const std::vector<ast::Dim>& dims, Tile& tile,
                     Span span) {
    for (const ast::Dim& dim : dims) {
      const auto* named = sema_.ast.as<ast::NameExpr>(dim.value);
      if (named == nullptr || sema_.scopes.find(named->name) != nullptr) continue;
      if (!sema_.looks_ahead) {
        (void)sema_.diags
            .report<diag::ArgumentShapeUnknown>(span, tile.name, param.name.text, callee())
            .label(tile.span, "declared here, and no `mma` says its shape")
            .help("leave the extents out: `frag {}`", param.name.text)
            .emit();
        tile.broken = true;
        return false;
      }
      const Span where = sema_.ast[dim.value].span;
      sema_.scopes.declare(named->name, {Symbol::Kind::kOperand, {}, where});
    }
    return true;
  }

  bool bind_events(const ast::Param& param, const Argument& argument) {
    bool fine = true;
    for (std::size_t d = 0; d < param.extents.size(); ++d) {
      const std::int64_t extent = sema_.events.at(argument.symbol.operand.id).extents[d];
      fine = bind_extent(param, param.extents[d], extent, d, argument.span) && fine;
    }
    return fine;
  }

  // By value: an integer that can index stays one, a float that the function assigns is its own.
  bool bind_number(const ast::Param& param, const Argument& argument, Symbol& symbol) {
    const Operand& operand = argument.symbol.operand;
    const ast::Type& type = *param.type.dtype;
    if (!type.name.empty() && sema_.scopes.find(type.name) == nullptr) {
      (void)bind_type(param, operand.dtype, argument.span);
    }
    const DType dtype = type_of(sema_, type);
    const bool is_assigned = is_assigned_in(sema_.ast, site_.function.span, param.name.text);
    const bool stays = is_integer(dtype) && !is_assigned && operand.dtype != DType::kBool;
    if (stays && (operand.kind == Operand::Kind::kInt || is_integer(operand.dtype))) {
      const auto element = to_index(sema_, operand, format("`{}`", param.name.text));
      if (!element) return false;
      symbol.operand = make_int(element->value, argument.span);
      symbol.operand.integer = *element;
      symbol.operand.written_as = operand.written_as;
      symbol.operand.dtype = dtype;
      return true;
    }
    const bool is_flag = operand.kind == Operand::Kind::kInt && operand.dtype == DType::kBool;
    if (is_flag && dtype == DType::kBool && !is_assigned) return true;
    const auto value = convert(sema_, operand, dtype);
    if (!value) return false;
    symbol.operand = make_scalar(*value, dtype, argument.span);
    if (!is_assigned || param.type.is_int || dtype == DType::kBool) return true;
    symbol.kind = Symbol::Kind::kCell;
    symbol.operand.id = emit_value(sema_, ir::Alloc{.name = param.name.text, .initial = *value},
                                   argument.span, ir::CellType{dtype}, param.name.text);
    return true;
  }

  Sema& sema_;
  const CallSite& site_;
  std::set<std::string> deducible_;
  std::vector<Pending> pending_;
  std::map<std::string, Span> said_at_;  // the argument that says what a name is
  bool fine_ = true;
};

}  // namespace

std::optional<Arguments> evaluate_template_arguments(Sema& sema, const CallSite& site) {
  Arguments out;
  for (std::size_t i = 0; i < site.call.template_args.size(); ++i) {
    const ast::TemplateParam& param = site.function.templ.params[i];
    out.of_template.push_back(
        constant_of_kind(sema, site.call.template_args[i], param.name, param.kind));
    if (!out.of_template.back()) return std::nullopt;
  }
  return out;
}

namespace {

// Whether no template parameter without a value is named by the condition of a parameter, which is asked
// for before arguments say any.
bool check_condition(Sema& sema, const CallSite& site, const Arguments& arguments,
                     ast::ExprId condition) {
  const auto& params = site.function.templ.params;
  for (std::size_t i = arguments.of_template.size(); i < params.size(); ++i) {
    const auto is_named = [&](const ast::Expr& expr) {
      const auto* named = std::get_if<ast::NameExpr>(&expr.node);
      return named != nullptr && named->name == params[i].name.text &&
             lies_in(expr.span, sema.ast[condition].span);
    };
    if (params[i].fallback.valid() || std::ranges::none_of(sema.ast.exprs, is_named)) continue;
    const std::string& callee = site.function.name.text;
    (void)sema.diags.report<diag::TemplateUnbound>(site.span, params[i].name.text, callee)
        .label(sema.ast[condition].span, "says which parameters there are")
        .help("write it: `{}<...>(...)`", callee)
        .emit();
    return false;
  }
  return true;
}

}  // namespace

bool find_existing(Sema& sema, const CallSite& site, Arguments& arguments) {
  const auto& params = site.function.templ.params;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const bool is_written = i < arguments.of_template.size();
    if (!is_written && !params[i].fallback.valid()) continue;  // an argument will say it
    const auto value =
        is_written ? arguments.of_template[i]
                   : constant_of_kind(sema, params[i].fallback, params[i].name, params[i].kind);
    if (!value) return false;
    declare(sema, params[i].name, symbol_of(*value, params[i].name.span));
  }
  bool fine = true;
  for (std::size_t i = 0; i < site.function.params.size(); ++i) {
    const ast::ExprId condition = site.function.params[i].condition;
    if (!condition.valid()) continue;
    if (!check_condition(sema, site, arguments, condition)) return false;
    const auto exists = condition_of(sema, condition, "the condition of a parameter");
    fine = fine && exists;
    arguments.exists[i] = exists.value_or(false);
  }
  return fine;
}

bool evaluate_arguments(Sema& sema, const CallSite& site, Arguments& arguments) {
  ArgumentReader reader(sema, site);
  bool fine = true;
  arguments.values.resize(site.function.params.size());
  for (std::size_t i = 0; i < site.call.args.size(); ++i) {
    if (!arguments.exists[i]) continue;
    arguments.values[i] = reader.read(site.function.params[i], site.call.args[i]);
    fine = fine && arguments.values[i];
  }
  return fine;
}

bool bind_arguments(Sema& sema, const CallSite& site, const Arguments& arguments) {
  return Binder(sema, site).run(arguments);
}

}  // namespace kiln::sema
