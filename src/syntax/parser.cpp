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
  for (const syntax::TextRegion& region : split.regions) {
    if (const auto* tile = std::get_if<syntax::TileText>(&region)) {
      ast::TileFunction function;
      if (!tile->unreadable) function = syntax::Parser(sources, *tile, tree, diags).function();
      function.span = tile->span;
      function.has_syntax_errors = function.has_syntax_errors || tile->has_errors;
      tree.regions.emplace_back(std::move(function));
    } else if (const auto* host = std::get_if<ast::HostText>(&region)) {
      tree.regions.emplace_back(*host);
    } else if (const auto* device = std::get_if<ast::DeviceText>(&region)) {
      tree.regions.emplace_back(*device);
    } else if (const auto* kernel = std::get_if<ast::KernelBlock>(&region)) {
      tree.regions.emplace_back(*kernel);
    }
  }
  return tree;
}

}  // namespace kiln
