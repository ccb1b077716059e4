#include "sema/call.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sema/expression.h"
#include "sema/future.h"
#include "sema/statement.h"
#include "sema/tile.h"
#include "sema/tile_array.h"
#include "syntax/foreign.h"

namespace kiln::sema {

namespace {

std::string_view result_text(const ast::TileFunction& function) {
  switch (function.result.kind) {
    case ast::ReturnType::Kind::kVoid: return "nothing";
    case ast::ReturnType::Kind::kScalar: return "a number";
    case ast::ReturnType::Kind::kFragment: return "a register tile";
    case ast::ReturnType::Kind::kAuto:
    case ast::ReturnType::Kind::kSpanned: break;
  }
  return "a buffer";
}

struct Callee {
  std::string name;
  Span span;
};

std::vector<Callee> callees_of(const ast::Ast& ast, Span part) {
  std::vector<Callee> out;
  for (const ast::Expr& expr : ast.exprs) {
    const auto* call = std::get_if<ast::FunctionCallExpr>(&expr.node);
    if (call != nullptr && lies_in(expr.span, part)) out.push_back({call->name.text, expr.span});
  }
  return out;
}

// Goes along calls from one function, and finds a way back to it.
class Recursion {
 public:
  Recursion(const ast::Ast& ast, const Functions& functions) : ast_(ast), functions_(functions) {}

  // The calls of such a way; none when there is none.
  std::vector<Callee> find(const std::string& name) {
    seen_.clear();
    way_.clear();
    return leads_to(name, name) ? way_ : std::vector<Callee>{};
  }

 private:
  bool leads_to(const std::string& from, const std::string& name) {
    const auto found = functions_.find(from);
    if (found == functions_.end() || !seen_.insert(from).second) return false;
    for (const Callee& callee : callees_of(ast_, found->second->span)) {
      way_.push_back(callee);
      if (callee.name == name || leads_to(callee.name, name)) return true;
      way_.pop_back();
    }
    return false;
  }

  const ast::Ast& ast_;
  const Functions& functions_;
  std::set<std::string> seen_;
  std::vector<Callee> way_;
};

bool is_supported(const ast::TileFunction& function, Diagnostics& diags) {
  const auto kind = function.result.kind;
  if (kind != ast::ReturnType::Kind::kAuto && kind != ast::ReturnType::Kind::kSpanned) return true;
  (void)diags
      .report<diag::NotSupportedYet>(function.result.span,
                                     kind == ast::ReturnType::Kind::kAuto
                                         ? "`auto` as the result of a `__co_device__` function"
                                         : "a buffer as the result of a `__co_device__` function")
      .help("take the buffer as a parameter, which is the caller's own")
      .emit();
  return false;
}

}  // namespace

Functions functions_of(const ast::Ast& ast, Diagnostics& diags) {
  Functions all;
  for (const ast::Region& region : ast.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || !function->is_device || !function->name.valid()) continue;
    const auto [earlier, first] = all.try_emplace(function->name.text, function);
    if (!first) {
      (void)diags.report<diag::FunctionRedeclared>(function->name.span, function->name.text)
          .label(earlier->second->name.span, "defined here first")
          .help("choose another name")
          .emit();
    }
  }
  Functions out;
  std::set<std::string> reported;
  Recursion recursion(ast, all);
  for (const auto& [name, function] : all) {
    const std::vector<Callee> way = recursion.find(name);
    if (way.empty() && is_supported(*function, diags)) out.emplace(name, function);
    if (way.empty() || reported.contains(name)) continue;
    auto report = diags.report<diag::FunctionRecursive>(way[0].span, name);
    for (std::size_t i = 0; i < way.size(); ++i) {
      reported.insert(way[i].name);
      if (i > 0) (void)std::move(report).label(way[i].span, "which calls `{}`", way[i].name);
    }
    (void)std::move(report).help("write a loop, `foreach`").emit();
  }
  return out;
}

const ast::TileFunction* find_function(const Sema& sema, const std::string& name) {
  if (sema.functions == nullptr) return nullptr;
  const auto found = sema.functions->find(name);
  return found == sema.functions->end() ? nullptr : found->second;
}

bool calls_functions(const ast::Ast& ast, Span part) { return !callees_of(ast, part).empty(); }

namespace {

// What of the caller the body of a function does not see, while it is analysed.
class CalleeScope {
 public:
  CalleeScope(Sema& sema, const CallSite& site)
      : sema_(sema),
        scopes_(std::exchange(sema.scopes, sema.globals)),
        plan_(std::exchange(sema.plan, plan_names(sema.ast, site.function.span))),
        parts_(std::exchange(sema.tile_parts, {})),
        indices_(std::exchange(sema.tile_indices, {})),
        absent_(std::exchange(sema.absent, {})) {
    sema_.scopes.push();
    sema_.diags.begin_call({site.function.span, site.span, site.function.name.text});
  }
  ~CalleeScope() {
    sema_.diags.end_call();
    sema_.scopes = std::move(scopes_);
    sema_.plan = std::move(plan_);
    sema_.tile_parts = std::move(parts_);
    sema_.tile_indices = std::move(indices_);
    sema_.absent = std::move(absent_);
  }
  CalleeScope(const CalleeScope&) = delete;
  CalleeScope& operator=(const CalleeScope&) = delete;

 private:
  Sema& sema_;
  Scopes scopes_;
  NamePlan plan_;
  std::map<ast::ExprId, ir::ValueId> parts_;
  std::map<ast::ExprId, int> indices_;
  std::map<std::string, std::string> absent_;
};

// After a mistake with a call: what it was given may be used in it.
void forgive_arguments(Sema& sema, const std::vector<ast::ExprId>& args) {
  for (const ast::ExprId arg : args) {
    std::vector<ast::ExprId> subscripts;
    const auto* named = sema.ast.as<ast::NameExpr>(without_subscripts(sema, arg, subscripts));
    const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
    if (symbol == nullptr) continue;
    std::vector<Symbol> symbols = symbol->elements;
    symbols.push_back(*symbol);
    for (const Symbol& each : symbols) {
      const auto tile = sema.tiles.find(each.operand.id);
      if (tile != sema.tiles.end()) tile->second.broken = true;
      const auto event = sema.events.find(each.operand.id);
      if (event != sema.events.end()) event->second.broken = true;
    }
  }
}

bool report_count(Sema& sema, const CallSite& site, std::size_t wanted) {
  (void)sema.diags
      .report<diag::FunctionArguments>(site.span, site.function.name.text,
                                       format("{} argument{}", wanted, wanted == 1 ? "" : "s"),
                                       site.call.args.size())
      .label(site.function.signature_span, "defined here")
      .emit();
  return false;
}

// At the end, what may not exist may be left out.
bool check_arguments(Sema& sema, const CallSite& site) {
  const auto& [call, function, span] = site;
  const auto& params = function.params;
  std::size_t least = params.size();
  while (least > 0 && params[least - 1].condition.valid()) --least;
  if (call.args.size() > params.size()) return report_count(sema, site, params.size());
  if (call.args.size() < least) return report_count(sema, site, least);
  if (call.template_args.size() <= function.templ.params.size()) return true;
  (void)sema.diags
      .report<diag::TemplateArguments>(span, function.name.text, function.templ.params.size(),
                                       call.template_args.size())
      .label(function.signature_span, "defined here")
      .emit();
  return false;
}

// Nothing after a report.
std::optional<Arguments> arguments_of(Sema& sema, const CallSite& site) {
  auto out = evaluate_template_arguments(sema, site);
  if (!out) return std::nullopt;
  const bool has_conditions = std::ranges::any_of(
      site.function.params, [](const ast::Param& param) { return param.condition.valid(); });
  out->exists.resize(site.function.params.size(), true);
  if (has_conditions) {
    const CalleeScope scope(sema, site);
    if (!find_existing(sema, site, *out)) return std::nullopt;
  }
  const auto last = std::ranges::find(out->exists.rbegin(), out->exists.rend(), true);
  const auto wanted = static_cast<std::size_t>(out->exists.rend() - last);
  if (site.call.args.size() < wanted) {
    (void)report_count(sema, site, wanted);
    return std::nullopt;
  }
  if (!evaluate_arguments(sema, site, *out)) return std::nullopt;
  return out;
}

// Puts the function in place of the call; nothing after a report.
std::optional<OpenCall> put(Sema& sema, const ast::FunctionCallExpr& call, Span span,
                            const std::string& tile_name) {
  const ast::TileFunction* function = find_function(sema, call.name.text);
  const auto give_up = [&] {
    forgive_arguments(sema, call.args);
    return std::nullopt;
  };
  if (function == nullptr || !function->body.valid()) return give_up();  // reported before
  const CallSite site{call, *function, span};
  if (!check_arguments(sema, site)) return give_up();
  const auto arguments = arguments_of(sema, site);
  if (!arguments) return give_up();
  std::optional<CalleeScope> scope(std::in_place, sema, site);
  if (!bind_arguments(sema, site, *arguments)) {
    scope.reset();
    return give_up();
  }
  sema.calls.push_back({.function = function,
                        .region = sema.regions.back(),
                        .loops = sema.loops.size(),
                        .tile_name = tile_name});
  sema.has_syntax_errors = sema.has_syntax_errors || function->has_syntax_errors;
  analyse_body(sema, function->body);
  OpenCall done = std::move(sema.calls.back());
  sema.calls.pop_back();
  const bool is_void = function->result.kind == ast::ReturnType::Kind::kVoid;
  if (!done.returned && !is_void && !sema.has_syntax_errors) {
    (void)sema.diags
        .report<diag::FunctionReturnMissing>(function->name.span, function->name.text,
                                             result_text(*function))
        .help("end with `return ...;`")
        .emit();
  }
  return done;
}

// Reports a result that is not what is needed; false then.
bool check_gives(Sema& sema, const ast::FunctionCallExpr& call, Span span,
                 ast::ReturnType::Kind wanted) {
  const ast::TileFunction* function = find_function(sema, call.name.text);
  if (function == nullptr) return false;
  if (function->result.kind == wanted) return true;
  (void)sema.diags
      .report<diag::FunctionNoValue>(
          span, function->name.text, result_text(*function),
          wanted == ast::ReturnType::Kind::kScalar ? "a number" : "a register tile")
      .label(function->signature_span, "defined here")
      .help("{}", function->result.kind == ast::ReturnType::Kind::kFragment
                      ? "give the tile a name first: `x = ...;`"
                      : "call it in a statement of its own")
      .emit();
  return false;
}

}  // namespace

namespace {

// Whether a `__device__` function is called so, as far as its text tells.
bool is_cuda_function(const Sema& sema, const std::string& name) {
  return std::ranges::any_of(sema.ast.regions, [&](const ast::Region& region) {
    const auto* device = std::get_if<ast::DeviceText>(&region);
    const std::string_view text =
        device == nullptr ? std::string_view() : sema.sources.text(device->span);
    return text.find(" " + name + "(") != std::string_view::npos;
  });
}

}  // namespace

void report_unknown_function(Sema& sema, const ast::Name& name,
                             const std::vector<ast::ExprId>& args) {
  std::vector<std::string> names = {
#define KILN_BUILTIN(Name, text, args_min, args_max) text,
#include "syntax/builtin.def"
#undef KILN_BUILTIN
  };
  if (sema.functions != nullptr) {
    for (const auto& [known, function] : *sema.functions) names.push_back(known);
  }
  std::string guess = syntax::foreign_help(name.text);
  if (is_cuda_function(sema, name.text) || name.text.find("::") != std::string::npos) {
    guess = format(
        "`call {}(...)` calls a function in CUDA; one of this language is a "
        "`__co_device__` function",
        name.text);
  }
  if (guess.empty()) guess = did_you_mean(name.text, names);
  (void)sema.diags.report<diag::FunctionUnknown>(name.span, name.text)
      .help_if(guess.empty() ? format("define it: `__co_device__ void {}(...) {{ ... }}`; a "
                                      "`__device__` function is called with `call {}(...)`",
                                      name.text, name.text)
                             : guess)
      .emit();
  forgive_arguments(sema, args);
}

void run_call(Sema& sema, const ast::FunctionCallExpr& call, Span span) {
  (void)put(sema, call, span, call.name.text);
}

Operand evaluate_call(Sema& sema, const ast::FunctionCallExpr& call, Span span) {
  Operand error;
  error.span = span;
  if (!check_gives(sema, call, span, ast::ReturnType::Kind::kScalar)) return error;
  auto done = put(sema, call, span, "");
  if (!done) return error;
  done->result.span = span;
  return std::move(done->result);
}

bool gives_tile(const Sema& sema, const ast::FunctionCallExpr& call) {
  const ast::TileFunction* function = find_function(sema, call.name.text);
  return function != nullptr && function->result.kind == ast::ReturnType::Kind::kFragment;
}

bool is_elementwise_call(const Sema& sema, const ast::FunctionCallExpr& call) {
  const ast::TileFunction* function = find_function(sema, call.name.text);
  if (function == nullptr || function->result.kind != ast::ReturnType::Kind::kScalar) return false;
  for (std::size_t i = 0; i < std::min(call.args.size(), function->params.size()); ++i) {
    const bool is_scalar = function->params[i].type.kind == ast::ParamType::Kind::kScalar;
    if (is_scalar && is_tile_expression(sema, call.args[i])) return true;
  }
  return false;
}

std::optional<ir::ValueId> evaluate_tile_call(Sema& sema, const ast::FunctionCallExpr& call,
                                              Span span, const std::string& name) {
  const auto done = put(sema, call, span, name);
  if (!done || done->result.is_error()) return std::nullopt;
  return done->result.id;
}

namespace {

// The returned number, as what the function says it is.
Operand returned_number(Sema& sema, const ast::ReturnType& result, ast::ExprId expr) {
  const DType dtype = type_of(sema, result.dtype);
  const Operand value = evaluate(sema, expr);
  if (value.is_error()) return value;
  const bool is_int = value.kind == Operand::Kind::kInt;
  if (is_int && (dtype == DType::kBool) == (value.dtype == DType::kBool) && !is_float(dtype)) {
    return value;
  }
  const auto converted = convert(sema, value, dtype);
  return converted ? make_scalar(*converted, dtype, value.span) : Operand{};
}

// The returned tile, of its own and of the type and shape that the function says.
Operand returned_tile(Sema& sema, const ast::ReturnType& result, ast::ExprId expr,
                      const std::string& name) {
  const Span span = sema.ast[expr].span;
  const std::string wanted = name.empty() ? "result" : name;
  sema.scopes.push();
  declare_tile_value(sema, {wanted, span}, expr, span, type_of(sema, result.dtype));
  Operand tile = sema.scopes.find(wanted)->operand;
  sema.scopes.pop();
  if (tile.is_error()) return tile;
  const ir::FragType type = sema.function.frag_type(tile.id);
  const std::int64_t extents[] = {type.rows, type.cols};
  for (std::size_t d = 0; d < result.shape.dims.size() && d < std::size(extents); ++d) {
    const ast::Dim& dim = result.shape.dims[d];
    if (dim.kind != ast::Dim::Kind::kExpr) continue;
    const auto extent = evaluate_constant(sema, dim.value, "an extent of the result");
    if (!extent) return {};
    if (*extent == extents[d]) continue;
    (void)sema.diags
        .report<diag::FunctionReturnKind>(span, sema.calls.back().function->name.text,
                                          format("a tile whose dimension {} is {}", d, *extent),
                                          format("{}", extents[d]))
        .label(dim.span, "this is {}", *extent)
        .emit();
    return {};
  }
  return tile;
}

}  // namespace

void return_from_call(Sema& sema, const ast::ReturnStmt& stmt, Span span) {
  const ast::TileFunction& function = *sema.calls.back().function;
  if (sema.regions.back() != sema.calls.back().region) {
    sema.calls.back().returned = true;
    (void)sema.diags.report<diag::FunctionReturn>(span, function.name.text)
        .help(
            "keep the value in a `mutable` variable and return it at the end; `if constexpr` is "
            "no condition in this sense")
        .emit();
    return;
  }
  sema.calls.back().returned = true;
  const bool is_void = function.result.kind == ast::ReturnType::Kind::kVoid;
  if (is_void != !stmt.value.valid()) {
    const std::string found = is_void ? "a value" : "nothing";
    (void)sema.diags
        .report<diag::FunctionReturnKind>(span, function.name.text, result_text(function), found)
        .label(function.result.span, "{}", result_text(function))
        .emit();
    return;
  }
  if (is_void) return;
  const bool is_number = function.result.kind == ast::ReturnType::Kind::kScalar;
  const bool is_tile = is_tile_expression(sema, stmt.value) && !sema.apply;
  if (is_number == is_tile) {
    (void)sema.diags
        .report<diag::FunctionReturnKind>(sema.ast[stmt.value].span, function.name.text,
                                          result_text(function),
                                          is_tile ? "a register tile" : "no tile")
        .label(function.result.span, "{}", result_text(function))
        .emit();
    return;
  }
  const std::string name = sema.calls.back().tile_name;
  Operand result = is_number ? returned_number(sema, function.result, stmt.value)
                             : returned_tile(sema, function.result, stmt.value, name);
  sema.calls.back().result = std::move(result);
}

}  // namespace kiln::sema
