#include "syntax/parser.h"

#include <utility>

#include "syntax/lexer.h"
#include "syntax/parse.h"
#include "syntax/preprocessor.h"
#include "syntax/regions.h"

namespace kiln {

namespace {

// "#define N 4" for each definition, as a file of its own. Empty when there is none.
FileId add_definitions(Sources& sources, const ParseOptions& options) {
  if (options.definitions.empty()) return {};
  std::string text;
  for (const Definition& definition : options.definitions) {
    std::string line = "#define " + definition.name + " " + definition.text;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += line + "\n";
  }
  return sources.add("<command line>", std::move(text));
}

struct Surroundings {
  const Sources& sources;
  const syntax::FileNames& names;
};

ast::Region parse_tile(const Surroundings& around, const syntax::TileText& tile, ast::Ast& tree,
                       Diagnostics& diags) {
  const auto& [sources, names] = around;
  if (tile.kind == syntax::TileText::Kind::kConstant) {
    ast::Constant constant;
    constant.span = tile.span;
    if (!tile.unreadable) {
      constant.statement = syntax::Parser(sources, tile, names, tree, diags).constant_region();
    }
    return constant;
  }
  syntax::Parser::Bound bound;
  for (const syntax::BoundText& text : tile.bound) {
    const syntax::TileText value{.tokens = text.tokens};
    bound[text.name] = syntax::Parser(sources, value, names, tree, diags).bound_value();
  }
  ast::TileFunction function;
  if (!tile.unreadable) {
    function = syntax::Parser(sources, tile, names, tree, diags).function(bound);
  }
  function.is_device = tile.kind == syntax::TileText::Kind::kFunction;
  function.span = tile.span;
  function.has_syntax_errors = function.has_syntax_errors || tile.has_errors;
  return function;
}

// A file with templates says what can be defined: another name was misspelt.
void report_unknown_definitions(const ast::Ast& tree, const syntax::MacroTable& macros,
                                const Sources& sources, Diagnostics& diags) {
  std::vector<std::string> names;
  for (const ast::Region& region : tree.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || function->is_device) continue;
    for (const ast::TemplateParam& param : function->templ.params) names.push_back(param.name.text);
  }
  if (names.empty()) return;
  const std::string list = join(names, ", ", [](const auto& name) { return format("`{}`", name); });
  for (const syntax::Macro* macro : macros.never_asked_for()) {
    const std::string guess = did_you_mean(macro->name, names);
    diags.report<diag::DefinitionUnknown>(macro->definition, macro->name, sources.name(tree.file))
        .help_if(guess.empty() ? format("the template parameters are {}", list) : guess)
        .emit();
  }
}

}  // namespace

ast::Ast parse_file(Sources& sources, FileId file, const ParseOptions& options,
                    Diagnostics& diags) {
  ast::Ast tree;
  tree.file = file;
  const FileId definitions = add_definitions(sources, options);
  if (!syntax::check_text(sources, file, diags)) return tree;
  syntax::Preprocessor preprocessor(sources, file, options.read_included, diags);
  if (definitions.valid()) preprocessor.predefine(definitions);
  syntax::SplitFile split = syntax::split_regions(sources, file, preprocessor, diags);
  tree.expansions = std::move(split.expansions);
  for (const syntax::Token& token : split.pragmas) {
    const auto pragma = syntax::Parser::pragma(sources, token, diags);
    if (pragma) tree.pragmas.push_back(*pragma);
  }
  const syntax::FileNames names = syntax::names_of(split);
  for (const syntax::TextRegion& region : split.regions) {
    if (const auto* tile = std::get_if<syntax::TileText>(&region)) {
      tree.regions.push_back(parse_tile({sources, names}, *tile, tree, diags));
    } else if (const auto* host = std::get_if<ast::HostText>(&region)) {
      tree.regions.emplace_back(*host);
    } else if (const auto* device = std::get_if<ast::DeviceText>(&region)) {
      tree.regions.emplace_back(*device);
    } else if (const auto* kernel = std::get_if<ast::KernelBlock>(&region)) {
      tree.regions.emplace_back(*kernel);
    }
  }
  for (const syntax::Macro* macro : preprocessor.macros().all()) {
    const Span text{macro->definition.file, macro->definition.begin, macro->body_span.end};
    tree.macros.push_back({macro->name, format("#define {}", sources.text(text))});
  }
  if (!preprocessor.stopped()) {
    report_unknown_definitions(tree, preprocessor.macros(), sources, diags);
  }
  return tree;
}

}  // namespace kiln
