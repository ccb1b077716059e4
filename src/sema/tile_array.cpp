#include "sema/tile_array.h"

#include <algorithm>
#include <set>

#include "sema/expression.h"
#include "syntax/parse.h"

namespace kiln::sema {

namespace {

// How often a body is written out, loops in each other multiplied.
constexpr std::int64_t kCopiesMax = 1024;

const Symbol* symbol_of(const Sema& sema, ast::ExprId id) {
  const auto* named = sema.ast.as<ast::NameExpr>(id);
  return named == nullptr ? nullptr : sema.scopes.find(named->name);
}

bool is_array(const Symbol* symbol) {
  return symbol != nullptr && symbol->kind == Symbol::Kind::kTileArray;
}

std::string first_element(const Symbol& array, std::string_view name) {
  const auto zero = [](std::int64_t) { return std::string("[0]"); };
  return format("name one of them: `{}{}`", name, join(array.extents, "", zero));
}

// The loop or the value that the subscript comes from, for a label.
struct Origin {
  Span span;
  std::string text;
};

Origin origin_of(const Sema& sema, const ir::Expr& index) {
  std::vector<ir::VarId> vars;
  index.collect_vars(vars);
  for (const ir::VarId var : vars) {
    const auto obstacle = sema.obstacles.find(var);
    if (obstacle != sema.obstacles.end()) return {sema.function.vars[var].span, obstacle->second};
  }
  return {};
}

void report_undecided(Sema& sema, const ir::Expr& index, std::string_view array, Span span) {
  const Origin origin = origin_of(sema, index);
  auto report = sema.diags.report<diag::TileSubscript>(span, sema.sources.text(span), array);
  if (origin.span.valid()) std::move(report).label(origin.span, "{}", origin.text);
  std::move(report)
      .help(
          "take a constant, or the variable of a `foreach` over constant bounds: such a loop is "
          "written out")
      .emit();
}

// The number of the element among all, row by row.
std::optional<std::size_t> element_number(Sema& sema, const Symbol& array, std::string_view name,
                                          const std::vector<ast::ExprId>& subscripts, Span span) {
  const auto items = evaluate_list(sema, subscripts, "a subscript");
  if (!items) return std::nullopt;
  if (items->size() != array.extents.size()) {
    (void)sema.diags
        .report<diag::TileSubscripts>(span, name, extents_text(array.extents), array.extents.size(),
                                      items->size())
        .label(array.span, "declared here")
        .help("{}", first_element(array, name))
        .emit();
    return std::nullopt;
  }
  std::int64_t number = 0;
  for (std::size_t d = 0; d < items->size(); ++d) {
    const IndexItem& item = (*items)[d];
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return std::nullopt;
    }
    const auto index = chosen_value(sema, item.element->value);
    if (!index) {
      report_undecided(sema, item.element->value, name, item.span);
      return std::nullopt;
    }
    const std::int64_t extent = array.extents[d];
    if (*index < 0 || *index >= extent) {
      (void)sema.diags.report<diag::IndexOutOfRange>(item.span, "subscript", *index, d, extent)
          .label(array.span, "`{}` is an array of {} tiles", name, extents_text(array.extents))
          .help("subscripts of `{}` go from 0 to {} here", name, extent - 1)
          .emit();
      return std::nullopt;
    }
    number = number * extent + *index;
  }
  return static_cast<std::size_t>(number);
}

// The element; null after a report, and then no more is said about any of them.
const Symbol* element_of(Sema& sema, const Symbol& array, std::string_view name,
                         const std::vector<ast::ExprId>& subscripts, Span span) {
  const auto number = element_number(sema, array, name, subscripts, span);
  const std::vector<Symbol>& elements =
      is_operand_array(array) ? sema.operand_arrays[array.handle].elements : array.elements;
  const auto say_no_more = [&] {
    for (const Symbol& each : elements) {
      const auto tile = sema.tiles.find(each.operand.id);
      if (tile != sema.tiles.end()) tile->second.broken = true;
    }
  };
  if (!number) {
    say_no_more();
    return nullptr;
  }
  const Symbol& element = elements[*number];
  if (element.kind == Symbol::Kind::kOperand) return nullptr;  // its load has been reported
  if (element.operand.id.valid()) return &element;
  if (sema.stopped_early) return nullptr;  // the load may stand in what was not written out
  const std::string& text = sema.operand_arrays[array.handle].texts[*number];
  (void)sema.diags.report<diag::TileNotLoaded>(span, text)
      .label(array.span, "declared here")
      .help("load it first: `{} = mma.load view;`", text)
      .emit();
  say_no_more();
  return nullptr;
}

}  // namespace

std::string extents_text(const std::vector<std::int64_t>& extents) {
  return join(extents, "x", [](std::int64_t extent) { return format("{}", extent); });
}

void report_whole_array(Sema& sema, const Symbol& array, std::string_view name, Span span) {
  (void)sema.diags.report<diag::TileArrayWhole>(span, name, extents_text(array.extents))
      .label(array.span, "declared here")
      .help("{}", first_element(array, name))
      .emit();
}

bool is_tile_name(const Sema& sema, ast::ExprId expr) {
  std::vector<ast::ExprId> subscripts;
  const Symbol* symbol = symbol_of(sema, without_subscripts(sema, expr, subscripts));
  if (symbol == nullptr) return false;
  if (!subscripts.empty()) return is_array(symbol);
  return symbol->kind == Symbol::Kind::kAccumulator || symbol->kind == Symbol::Kind::kTile;
}

const Symbol* named_tile(Sema& sema, ast::ExprId expr) {
  std::vector<ast::ExprId> subscripts;
  const ast::ExprId base = without_subscripts(sema, expr, subscripts);
  const Symbol* symbol = symbol_of(sema, base);
  if (subscripts.empty()) return symbol;
  return element_of(sema, *symbol, sema.ast.as<ast::NameExpr>(base)->name, subscripts,
                    sema.ast[expr].span);
}

const Symbol* array_element(Sema& sema, const Symbol& array, const ast::FragRef& ref) {
  if (ref.subscripts.empty()) {
    report_whole_array(sema, array, ref.name.text, ref.span);
    return nullptr;
  }
  return element_of(sema, array, ref.name.text, ref.subscripts, ref.span);
}

namespace {

// "a[2][300]"
std::string in_brackets(std::string_view name, const std::vector<std::int64_t>& extents) {
  return format("{}{}", name,
                join(extents, "", [](std::int64_t extent) { return format("[{}]", extent); }));
}

}  // namespace

std::optional<std::vector<std::int64_t>> array_extents(Sema& sema,
                                                       const std::vector<ast::ExprId>& exprs,
                                                       const ast::Name& name) {
  const auto extents = evaluate_extents(sema, exprs, "the extent of an array of register tiles");
  if (!extents) return std::nullopt;
  const std::int64_t most = sema.arch.registers_per_thread_max;  // each tile takes one at least
  std::vector<std::int64_t> out;
  std::int64_t tiles = 1;
  for (std::size_t d = 0; d < extents->size(); ++d) {
    const auto extent = (*extents)[d].value.constant();
    const Span span = sema.ast[exprs[std::min(d, exprs.size() - 1)]].span;
    if (!extent) {
      (void)sema.diags
          .report<diag::ExtentNotConstant>(span, "the extent of an array of register tiles",
                                           text(sema, (*extents)[d].value))
          .emit();
      return std::nullopt;
    }
    if (*extent > most / tiles) {
      out.push_back(*extent);
      (void)sema.diags.report<diag::TileArraySize>(span, in_brackets(name.text, out), most)
          .help("take fewer tiles, or go through them in a loop and use one")
          .emit();
      return std::nullopt;
    }
    tiles *= *extent;
    out.push_back(*extent);
  }
  return out;
}

std::string shaped_declaration(const Sema& sema, const Tile& tile) {
  const std::string base = tile.name.substr(0, tile.name.find('['));
  const Symbol* symbol = sema.scopes.find(base);
  if (!is_array(symbol)) return format("{} = frag.fill.f32 [rows, columns] value;", base);
  return format("frag {} [rows, columns] {} {{value}};", name(tile.dtype.value_or(DType::kF32)),
                in_brackets(base, symbol->extents));
}

namespace {

// Of all tiles of an array, row by row; without extents of the one tile.
std::vector<TileName> names_of_tiles(const std::string& name,
                                     const std::vector<std::int64_t>& extents) {
  std::vector<TileName> tiles = {{name, name}};
  for (const std::int64_t extent : extents) {
    std::vector<TileName> longer;
    for (const auto& [text, identifier] : tiles) {
      for (std::int64_t i = 0; i < extent; ++i) {
        longer.push_back({format("{}[{}]", text, i), format("{}_{}", identifier, i)});
      }
    }
    tiles = std::move(longer);
  }
  return tiles;
}

}  // namespace

void declare_operands(Sema& sema, const ast::Name& name, std::vector<std::int64_t> extents) {
  OperandArray array{sema.regions.back(), {}, {}, {}};
  for (TileName& tile : names_of_tiles(name.text, extents)) {
    array.elements.push_back({Symbol::Kind::kTile, {}, name.span});
    array.texts.push_back(std::move(tile.text));
    array.identifiers.push_back(std::move(tile.identifier));
  }
  Symbol symbol{Symbol::Kind::kTileArray, {}, name.span};
  symbol.handle = sema.operand_arrays.size();
  symbol.extents = std::move(extents);
  sema.operand_arrays.push_back(std::move(array));
  declare(sema, name, std::move(symbol));
}

bool is_operand_array(const Symbol& symbol) { return is_array(&symbol) && symbol.elements.empty(); }

Symbol* element_to_load(Sema& sema, const Symbol& array, const ast::FragRef& ref, TileName& name) {
  const auto number = element_number(sema, array, ref.name.text, ref.subscripts, ref.span);
  OperandArray& all = sema.operand_arrays[array.handle];
  if (!number) {
    for (Symbol& each : all.elements) {
      if (!each.operand.id.valid()) each = {};
    }
    return nullptr;
  }
  name = {all.texts[*number], all.identifiers[*number]};
  Symbol& element = all.elements[*number];
  if (all.region == sema.regions.back()) return &element;
  (void)sema.diags.report<diag::TileLoadElsewhere>(ref.span, name.text, ref.name.text)
      .label(array.span, "declared here")
      .help("declare it in the same body: `frag {};`", in_brackets(ref.name.text, array.extents))
      .emit();
  element = {};
  return nullptr;
}

void declare_tiles(Sema& sema, const ast::Name& name, std::vector<std::int64_t> extents,
                   const std::function<ir::ValueId(const TileName&)>& make) {
  const auto symbol_for = [&](const TileName& tile) {
    Operand operand;
    operand.kind = Operand::Kind::kFragment;
    operand.id = make(tile);
    return Symbol{Symbol::Kind::kAccumulator, operand, name.span};
  };
  const std::vector<TileName> tiles = names_of_tiles(name.text, extents);
  if (extents.empty()) return declare(sema, name, symbol_for(tiles.front()));
  Symbol array{Symbol::Kind::kTileArray, {}, name.span};
  array.extents = std::move(extents);
  for (const TileName& tile : tiles) array.elements.push_back(symbol_for(tile));
  declare(sema, name, std::move(array));
}

namespace {

// What the text of a loop's body says of its variable.
class Body {
 public:
  Body(const Sema& sema, ast::StmtId body, const std::vector<std::string>& names)
      : sema_(sema), span_(sema.ast[body].span), names_(names.begin(), names.end()) {
    for (const ast::Stmt& stmt : sema_.ast.stmts) {
      if (lies_in(stmt.span, span_)) collect(stmt);
    }
    bool settled = false;
    while (!settled) {
      settled = true;
      for (Given& given : given_) {
        if (given.depends ||
            !std::ranges::any_of(given.from, [&](ast::ExprId id) { return mentions(id); }))
          continue;
        given.depends = true;
        settled = false;
      }
    }
  }

  // Whether the variable chooses a tile, or a part of one.
  [[nodiscard]] bool chooses() const {
    const bool stores_part = std::ranges::any_of(sema_.ast.stmts, [&](const ast::Stmt& stmt) {
      const auto* store = std::get_if<ast::MmaStoreStmt>(&stmt.node);
      return store != nullptr && lies_in(stmt.span, span_) && mentions(store->part);
    });
    return stores_part || std::ranges::any_of(sema_.ast.exprs, [&](const ast::Expr& expr) {
             const auto* subscript = std::get_if<ast::SubscriptExpr>(&expr.node);
             return subscript != nullptr && lies_in(expr.span, span_) &&
                    of_tiles(subscript->base) &&
                    std::ranges::any_of(subscript->items,
                                        [&](ast::ExprId id) { return mentions(id); });
           });
  }

  // Whether a `break` or `continue` stands in it.
  [[nodiscard]] bool jumps() const {
    return std::ranges::any_of(sema_.ast.stmts, [&](const ast::Stmt& stmt) {
      return lies_in(stmt.span, span_) && (std::holds_alternative<ast::BreakStmt>(stmt.node) ||
                                           std::holds_alternative<ast::ContinueStmt>(stmt.node));
    });
  }

 private:
  // A name that the body gives a value, where it means that, and what the value is made of.
  struct Given {
    std::string name;
    Span scope;
    std::vector<ast::ExprId> from;
    bool depends = false;  // on the variable
  };

  void collect(const ast::Stmt& stmt) {
    if (const auto* assign = std::get_if<ast::AssignStmt>(&stmt.node)) {
      const auto* target = sema_.ast.as<ast::NameExpr>(assign->target);
      if (target != nullptr)
        given_.push_back({target->name, block_around(stmt.span), {assign->value}});
    }
    if (const auto* scalars = std::get_if<ast::ScalarDeclStmt>(&stmt.node)) {
      for (const ast::Declarator& item : scalars->declarators) {
        given_.push_back({item.name.text, block_around(stmt.span), {item.init}});
      }
    }
    if (const auto* tuple = std::get_if<ast::ItupleDeclStmt>(&stmt.node)) {
      given_.push_back({tuple->name.text, block_around(stmt.span), {tuple->value}});
    }
    if (const auto* shape = std::get_if<ast::MdspanDeclStmt>(&stmt.node)) {
      given_.push_back({shape->name.text, block_around(stmt.span), {shape->shape}});
    }
    if (const auto* with = std::get_if<ast::WithStmt>(&stmt.node)) {
      for (const ast::WithItem& item : with->items) bounded(item, stmt.span);
    }
    if (const auto* loop = std::get_if<ast::ForeachStmt>(&stmt.node)) {
      for (const ast::ForeachItem& item : loop->items) iterated(item, stmt.span);
    }
  }

  void bounded(const ast::WithItem& item, Span scope) {
    given_.push_back({item.name.text, scope, {item.bounds}});
    for (const ast::Name& name : item.elements) given_.push_back({name.text, scope, {item.bounds}});
  }

  void iterated(const ast::ForeachItem& item, Span scope) {
    if (item.declares) return bounded(*item.declares, scope);
    const ast::Name& name = item.local.valid() ? item.local : item.variable;
    given_.push_back({name.text, scope, {item.low, item.high, item.step}});
  }

  // The innermost block of statements that this one stands in.
  [[nodiscard]] Span block_around(Span inner) const {
    Span out = span_;
    for (const ast::Stmt& stmt : sema_.ast.stmts) {
      const bool block = std::holds_alternative<ast::BlockStmt>(stmt.node);
      if (block && stmt.span != inner && lies_in(inner, stmt.span) && lies_in(stmt.span, out)) {
        out = stmt.span;
      }
    }
    return out;
  }

  // Whether the name there means the loop's variable, or what is computed from it: the innermost place that gives it a value
  // says so.
  [[nodiscard]] bool depends(const std::string& name, Span at) const {
    Span scope = span_;
    bool found = names_.contains(name);
    for (const Given& given : given_) {
      if (given.name != name || !lies_in(at, given.scope) || !lies_in(given.scope, scope)) continue;
      found = given.scope == scope ? found || given.depends : given.depends;
      scope = given.scope;
    }
    return found;
  }

  [[nodiscard]] bool mentions(ast::ExprId id) const {
    std::vector<ast::ExprId> open = {id};
    while (!open.empty()) {
      const ast::ExprId next = open.back();
      open.pop_back();
      if (!next.valid()) continue;
      const auto* named = sema_.ast.as<ast::NameExpr>(next);
      if (named != nullptr && depends(named->name, sema_.ast[next].span)) return true;
      std::ranges::copy(syntax::children(sema_.ast[next].node), std::back_inserter(open));
    }
    return false;
  }

  // Whether subscripts of the expression choose a tile: the array is visible here, or is declared
  // in the body.
  bool of_tiles(ast::ExprId id) const {
    std::vector<ast::ExprId> subscripts;
    const auto* named = sema_.ast.as<ast::NameExpr>(without_subscripts(sema_, id, subscripts));
    if (named == nullptr) return false;
    return is_array(sema_.scopes.find(named->name)) ||
           declares_tile_array(sema_.ast, span_, named->name);
  }

  const Sema& sema_;
  Span span_;
  std::set<std::string> names_;  // of the loop
  std::vector<Given> given_;
};

}  // namespace

bool declares_tile_array(const ast::Ast& ast, Span part, std::optional<std::string_view> name) {
  const auto is_meant = [&](const ast::Name& declared) { return !name || declared.text == *name; };
  return std::ranges::any_of(ast.stmts, [&](const ast::Stmt& stmt) {
    if (!lies_in(stmt.span, part)) return false;
    if (const auto* fill = std::get_if<ast::MmaFillStmt>(&stmt.node)) {
      return !fill->extents.empty() && is_meant(fill->target.name);
    }
    const auto* tiles = std::get_if<ast::FragDeclStmt>(&stmt.node);
    return tiles != nullptr &&
           std::ranges::any_of(tiles->declarators, [&](const ast::Declarator& item) {
             return !item.extents.empty() && is_meant(item.name);
           });
  });
}

bool stores_a_part(const ast::Ast& ast, Span part) {
  return std::ranges::any_of(ast.stmts, [&](const ast::Stmt& stmt) {
    const auto* store = std::get_if<ast::MmaStoreStmt>(&stmt.node);
    return store != nullptr && lies_in(stmt.span, part) && store->part.valid();
  });
}

bool is_written_out(const Sema& sema, const std::vector<std::string>& names, ast::StmtId body,
                    const LoopValues& values, std::string& obstacle) {
  if (!(sema.has_tile_arrays || sema.stores_parts) || !body.valid()) return false;
  const Body text_of(sema, body, names);
  if (!text_of.chooses()) return false;
  const auto lower = values.lower.constant();
  const auto upper = values.upper.constant();
  if (!lower || !upper) {
    obstacle = format("its values go from {} to below {}, which is known only at run time",
                      text(sema, values.lower), text(sema, values.upper));
    return false;
  }
  if (text_of.jumps()) {
    obstacle = "a loop with `break` or `continue` in it is not written out";
    return false;
  }
  if (*upper <= *lower) return true;
  const auto distance = static_cast<std::uint64_t>(*upper) - static_cast<std::uint64_t>(*lower);
  const std::uint64_t trips = (distance - 1) / static_cast<std::uint64_t>(values.step) + 1;
  if (trips <= static_cast<std::uint64_t>(kCopiesMax / sema.copies)) return true;
  const bool alone = trips > static_cast<std::uint64_t>(kCopiesMax);
  const std::uint64_t all = alone ? trips : trips * static_cast<std::uint64_t>(sema.copies);
  obstacle = format("its body would be written out {} times, more than {}", all, kCopiesMax);
  return false;
}

}  // namespace kiln::sema
