#include "sema/sema.h"

#include <algorithm>
#include <map>
#include <set>

#include "coverage/coverage.h"
#include "ir/arguments.h"
#include "ir/effects.h"
#include "sema/call.h"
#include "sema/constant.h"
#include "sema/device_text.h"
#include "sema/event.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/launch_value.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "syntax/parse.h"

namespace kiln::sema {

namespace {

// The extents of a parameter that one item says: a constant, a dimension seen before, or a new one; those of a shape.
std::optional<std::vector<ir::Expr>> parameter_extents(Sema& sema, const ast::Dim& dim,
                                                       const std::string& what, std::size_t index) {
  switch (dim.kind) {
    case ast::Dim::Kind::kUnbounded:
      refuse(sema, dim.span, "the unbounded dimension `??`");
      return {};
    case ast::Dim::Kind::kAnonymous:
      return std::vector{ir::Expr::var(
          add_var(sema, format("{}_{}", what, index), ir::VarKind::kDim, 0, dim.span))};
    case ast::Dim::Kind::kExpr: break;
  }
  const auto* named = sema.ast.as<ast::NameExpr>(dim.value);
  if (named != nullptr && sema.scopes.find(named->name) == nullptr) {
    const ir::VarId var = add_var(sema, named->name, ir::VarKind::kDim, 0, dim.span);
    sema.scopes.declare(named->name,
                        {Symbol::Kind::kOperand, make_int(ir::Expr::var(var), dim.span), dim.span});
    return std::vector{ir::Expr::var(var)};
  }
  const auto extents = evaluate_extents(sema, {dim.value}, format("an extent of `{}`", what));
  if (!extents) return {};
  const Span span = sema.ast[dim.value].span;
  std::vector<ir::Expr> out;
  for (const Element& extent : *extents) {
    const auto known = launch_value(sema, extent.value, span);
    if (!known) {
      (void)sema.diags.report<diag::ParameterExtent>(span, what, sema.sources.text(span))
          .help(
              "it may be a dimension, an integer parameter, or an `int` that is computed of these "
              "by "
              "`+ - * / %`, `cdiv`, `__min` and `__max`")
          .emit();
      return {};
    }
    out.push_back(*known);
  }
  return out;
}

std::optional<ir::ViewType> spanned_type(Sema& sema, const ast::Type& element,
                                         const ast::ShapeDecl& shape, const std::string& owner) {
  ir::ViewType type{type_of(sema, element), ir::Space::kGlobal, {}};
  std::vector<ast::Dim> dims = shape.dims;
  if (shape.mdspan_rank.valid()) {
    const auto rank = evaluate_constant(sema, shape.mdspan_rank, "the rank");
    constexpr std::int64_t kRankMax = 8;
    if (!rank) return {};
    if (*rank < 1 || *rank > kRankMax) {
      (void)sema.diags.report<diag::RankRange>(shape.span, *rank, kRankMax).emit();
      return {};
    }
    dims.assign(static_cast<std::size_t>(*rank), {ast::Dim::Kind::kAnonymous, {}, shape.span});
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto extents = parameter_extents(sema, dims[i], owner, i);
    if (!extents) return {};
    type.shape.insert(type.shape.end(), extents->begin(), extents->end());
  }
  return type;
}

void analyse_scalar_param(Sema& sema, const ast::Param& param, ir::Param out) {
  const ast::Name& name = param.name;
  const DType dtype = type_of(sema, *param.type.dtype);
  if (param.reference) {
    (void)sema.diags.report<diag::ParamReference>(param.reference_span, "a scalar")
        .help("return the value, or pass a buffer of one element")
        .emit();
  }
  if (!is_stored(dtype)) {
    refuse_sub_byte(sema, param.type.span, "a scalar parameter", dtype);
    declare(sema, name, {});
    return;
  }
  out.value =
      sema.function.values.push({unique_name(sema, out.name), ir::ScalarType{dtype}, ir::OpId{}});
  Operand operand = make_scalar(out.value, dtype, name.span);
  if (is_integer(dtype)) {
    // The variable carries the parameter's own name: it is what the caller binds.
    out.var = sema.function.vars.push({out.name, ir::VarKind::kScalar, 0, name.span});
    operand = make_int(ir::Expr::var(out.var), name.span);
    operand.dtype = dtype;
  }
  sema.function.params.push_back(std::move(out));
  declare(sema, name, {Symbol::Kind::kOperand, operand, {}});
}

void analyse_spanned_param(Sema& sema, const ast::Param& param, ir::Param out) {
  const auto type = spanned_type(sema, *param.type.dtype, *param.type.shape, out.name);
  if (param.reference && out.is_global) {
    (void)sema.diags.report<diag::ParamReference>(param.reference_span, "a `global` parameter")
        .help("`global` buffers are written in place: remove `&`")
        .emit();
  }
  out.is_reference = param.reference;
  if (!type) {
    declare(sema, param.name, {});
    return;
  }
  out.value = sema.function.values.push({unique_name(sema, out.name), *type, ir::OpId{}});
  Operand operand;
  operand.kind = Operand::Kind::kView;
  operand.id = out.value;
  sema.function.params.push_back(std::move(out));
  declare(sema, param.name, {Symbol::Kind::kOperand, operand, {}});
}

// Each launch gets its stream from the caller by itself: nothing is passed to kernels.
void analyse_stream_param(Sema& sema, const ast::Param& param) {
  Operand operand;
  operand.kind = Operand::Kind::kStream;
  operand.span = param.name.span;
  declare(sema, param.name, {Symbol::Kind::kOperand, operand, {}});
}

void analyse_param(Sema& sema, const ast::Param& param, std::size_t index) {
  if (param.condition.valid()) {
    const auto exists = condition_of(sema, param.condition, "the condition of a parameter");
    if (!exists) return declare(sema, param.name, {});
    if (!*exists) {
      note_absent(sema, param);
      return;
    }
  }
  ir::Param out;
  out.name = param.name.valid() ? param.name.text : format("arg{}", index);
  out.span = param.name.valid() ? param.name.span : param.span;
  out.is_global = param.storage == ast::Storage::kGlobal;
  if (param.storage == ast::Storage::kShared || param.storage == ast::Storage::kLocal) {
    (void)sema.diags.report<diag::ParamStorage>(param.storage_span, spelling(param.storage))
        .help("write `global`, or leave it out for host memory")
        .emit();
  }
  switch (param.type.kind) {
    case ast::ParamType::Kind::kStream: analyse_stream_param(sema, param); return;
    case ast::ParamType::Kind::kScalar: analyse_scalar_param(sema, param, std::move(out)); return;
    case ast::ParamType::Kind::kSpanned: analyse_spanned_param(sema, param, std::move(out)); return;
    case ast::ParamType::Kind::kFragment:
    case ast::ParamType::Kind::kEvent: KILN_UNREACHABLE("the parser reads them in functions alone");
  }
}

void analyse_result(Sema& sema, const ast::TileFunction& function) {
  const ast::ReturnType& result = function.result;
  if (result.kind == ast::ReturnType::Kind::kSpanned) {
    sema.declared_result = spanned_type(sema, result.dtype, result.shape, "result");
  }
  if (result.kind == ast::ReturnType::Kind::kScalar) {
    sema.declared_number = type_of(sema, result.dtype);
    if (!is_stored(*sema.declared_number)) {
      refuse_sub_byte(sema, result.span, "a result", *sema.declared_number);
    }
  }
  sema.returns_nothing = result.kind == ast::ReturnType::Kind::kVoid;
}

// Whether something writes the buffer for certain: CUDA may, where it is passed.
bool is_written_by_program(const ir::Function& function, ir::ValueId buffer) {
  return std::ranges::any_of(function.ops, [&](const ir::Op& op) {
    return op.kind() != ir::OpKind::kCuda &&
           std::ranges::any_of(ir::memory_touched(function, op), [&](const ir::Touch& touch) {
             return touch.writes() && ir::root_of(function, touch.value) == buffer;
           });
  });
}

// Host memory that the kernel writes but nobody copies back.
void warn_of_lost_writes(const ir::Function& function, Diagnostics& diags) {
  for (std::size_t index : ir::written_params(function)) {
    const ir::Param& param = function.params[index];
    const bool returned =
        std::any_of(function.ops.begin(), function.ops.end(), [&](const ir::Op& op) {
          const auto* result = std::get_if<ir::Return>(&op.data);
          return result != nullptr && result->value == param.value;
        });
    if (param.is_global || param.is_reference || returned) continue;
    if (!is_written_by_program(function, param.value)) continue;
    (void)diags.report<diag::HostParamWritten>(param.span, param.name)
        .help("write `&` before the name, or make it `global`")
        .emit();
  }
}

// The accumulators that a statement computes with which is no `mma`: it may stand in front of the
// `mma` that says their shape.
bool computes_with_accumulators(const ast::Ast& ast, Span function) {
  std::set<std::string> names;
  for (const ast::Stmt& stmt : ast.stmts) {
    if (!lies_in(stmt.span, function)) continue;
    const auto* fill = std::get_if<ast::MmaFillStmt>(&stmt.node);
    if (fill != nullptr) names.insert(fill->target.name.text);
    const auto* tiles = std::get_if<ast::FragDeclStmt>(&stmt.node);
    if (tiles == nullptr || !tiles->accumulator) continue;
    for (const ast::Declarator& item : tiles->declarators) names.insert(item.name.text);
  }
  const auto mentions = [&](auto&& self, ast::ExprId id) -> bool {
    if (!id.valid()) return false;
    const auto* named = ast.as<ast::NameExpr>(id);
    if (named != nullptr && names.contains(named->name)) return true;
    return std::ranges::any_of(syntax::children(ast[id].node),
                               [&](ast::ExprId inner) { return self(self, inner); });
  };
  return !names.empty() && std::ranges::any_of(ast.stmts, [&](const ast::Stmt& stmt) {
    const auto* assignment = std::get_if<ast::AssignStmt>(&stmt.node);
    return assignment != nullptr && lies_in(stmt.span, function) &&
           (mentions(mentions, assignment->target) || mentions(mentions, assignment->value));
  });
}

// What a function is read with.
struct Reading {
  const ast::Ast& ast;
  const target::Arch& arch;
  const Sources& sources;
  const Functions& functions;
  bool looks_ahead = false;
};

// Whether the function, or one that it may call, has that in its text.
bool may_have(const Reading& reading, const ast::TileFunction& function,
              FunctionRef<bool(Span)> has) {
  return has(function.span) || std::ranges::any_of(reading.functions, [&](const auto& each) {
           return has(each.second->span);
         });
}

// What loops may be written out for.
void find_what_is_written_out(Sema& sema, const Reading& reading,
                              const ast::TileFunction& function) {
  sema.has_tile_arrays = may_have(
      reading, function, [&](Span span) { return declares_tile_array(reading.ast, span); });
  sema.stores_parts =
      may_have(reading, function, [&](Span span) { return stores_a_part(reading.ast, span); });
}

// What a legal function does wrong.
void check_meaning(const ir::Function& function, Diagnostics& diags) {
  warn_of_lost_writes(function, diags);
  coverage::check_multicasts(function, diags);
  coverage::check_unit_places(function, diags);
  coverage::check_products(function, diags);
  if (!diags.has_errors()) coverage::check_coverage(function, diags);
}

ir::Function analyse_once(const Reading& reading, const ast::TileFunction& tile_function,
                          Diagnostics& diags, Shapes& shapes) {
  const auto& [ast, arch, sources, functions, looks_ahead] = reading;
  ir::Function function;
  function.name = tile_function.name.text;
  function.span = tile_function.name.span;
  Sema sema{.ast = ast,
            .arch = arch,
            .sources = sources,
            .diags = diags,
            .function = function,
            .scopes = {},
            .regions = {},
            .place = {},
            .tiles = {},
            .swizzles = {},
            .levels = {},
            .threads_from = {},
            .names_used = {},
            .declared_result = {},
            .declared_number = {},
            .returns_nothing = false,
            .has_syntax_errors = tile_function.has_syntax_errors,
            .returned = false};
  const Shapes foreseen = shapes;
  sema.shapes = &foreseen;
  sema.looks_ahead = looks_ahead;
  sema.plan = plan_names(ast, tile_function.span);
  sema.functions = &functions;
  find_what_is_written_out(sema, reading, tile_function);
  declare_file_constants(sema);
  bool bound = false;
  function.body = in_region(sema, [&] {
    bound = bind_template(sema, tile_function);
    if (!bound) return;
    for (std::size_t i = 0; i < tile_function.params.size(); ++i) {
      analyse_param(sema, tile_function.params[i], i);
    }
    analyse_result(sema, tile_function);
    analyse_body(sema, tile_function.body);
  });
  for (const auto& [id, tile] : sema.tiles) {
    const ir::FragType& type = function.frag_type(id);
    if (tile.is_accumulator && !tile.is_value && type.rows > 0) {
      shapes[{tile.span, tile.before}] = type;
    }
  }
  if (!bound) return function;
  // Where statements could not be read, what looks unused may be used there.
  if (!tile_function.has_syntax_errors && !sema.stopped_early) {
    check_tiles(sema);
    check_events(sema);
    check_handles(sema);
  }
  const bool needs_return = tile_function.result.kind == ast::ReturnType::Kind::kSpanned ||
                            tile_function.result.kind == ast::ReturnType::Kind::kScalar;
  if (needs_return && !tile_function.has_syntax_errors && !sema.returned &&
      tile_function.body.valid()) {
    const std::string type(sources.text(tile_function.result.span));
    (void)diags.report<diag::ReturnMissing>(tile_function.name.span, function.name, type)
        .help("end with `return {};`, or declare it `__co__ void`",
              sema.declared_number ? "number" : "buffer")
        .emit();
  }
  if (diags.has_errors() || !check_votes(sema)) return function;
  check_meaning(function, diags);
  return function;
}

// An accumulator may be used in front of the `mma` that says its shape: then the function is read
// once more, knowing what was found. Each reading may make one more tile's shape known.
ir::Function analyse_function(Reading reading, const ast::TileFunction& tile_function,
                              Diagnostics& diags) {
  Shapes shapes;
  std::size_t known = SIZE_MAX;
  reading.looks_ahead = computes_with_accumulators(reading.ast, tile_function.span) ||
                        calls_functions(reading.ast, tile_function.span);
  while (reading.looks_ahead && known != shapes.size()) {
    known = shapes.size();
    Diagnostics unheard;
    (void)analyse_once(reading, tile_function, unheard, shapes);
  }
  reading.looks_ahead = false;
  return analyse_once(reading, tile_function, diags, shapes);
}

Span start_of(Span span) { return {span.file, span.begin, std::min(span.end, span.begin + 1)}; }

// Whether nothing stands in the text but preprocessor lines, blanks and comments of a line.
bool has_only_directives(std::string_view text) {
  bool goes_on = false;  // a directive, from the line before
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_directive =
        goes_on ||
        line.substr(std::min(line.find_first_not_of(" \t"), line.size())).starts_with('#');
    goes_on = is_directive && line.ends_with('\\');
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (!is_directive && !line.empty() && !line.starts_with("//")) return false;
  }
  return true;
}

// What is between tile functions belongs to the C++ compiler: said once.
void warn_of_host_code(const ast::Ast& ast, const Sources& sources, Diagnostics& diags) {
  for (const ast::Region& region : ast.regions) {
    const auto* text = std::get_if<ast::HostText>(&region);
    if (text == nullptr || has_only_directives(sources.text(text->span))) continue;
    (void)diags.report<diag::HostCodeLeft>(start_of(text->span))
        .help("`kiln run` calls a tile function by itself; `kiln emit` writes no host code")
        .emit();
    return;
  }
}

}  // namespace

Checked<ir::Module> analyse(const ast::Ast& ast, const target::Arch& arch, const Sources& sources,
                            Diagnostics& diags) {
  ir::Module module;
  module.arch = &arch;
  std::map<std::string, Span> seen;
  warn_of_host_code(ast, sources, diags);
  const Functions functions = functions_of(ast, diags);
  for (const ast::Region& region : ast.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || function->is_device) continue;
    const auto [earlier, first] = seen.try_emplace(function->name.text, function->name.span);
    if (!first && function->name.valid()) {
      (void)diags.report<diag::FunctionRedeclared>(function->name.span, function->name.text)
          .label(earlier->second, "defined here first")
          .help("choose another name")
          .emit();
    }
    if (function->body.valid()) {
      module.functions.push_back(
          analyse_function({ast, arch, sources, functions}, *function, diags));
    }
  }
  if (seen.empty() && !diags.has_errors()) {
    return diags.report<diag::NoTileFunction>({ast.file, 0, 0})
        .help("a kernel is written `__co__ void name(global f16 [M, K] x, ...) {{ ... }}`")
        .emit();
  }
  if (diags.has_errors()) return diags.failed();
  module.cuda = cuda_parts(ast, sources, module.functions);
  return module;
}

}  // namespace kiln::sema
