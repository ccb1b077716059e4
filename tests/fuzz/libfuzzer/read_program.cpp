// Texts of programs: tokens, directives, syntax trees.
#include <algorithm>

#include "diag/render.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"
#include "syntax/print.h"
#include "targets.h"

namespace kiln::fuzz {

namespace {

// What `check` does with mistakes: both ways of showing them.
void show(const Diagnostics& diags, const Sources& sources) {
  (void)render_all(diags, sources);
  (void)render_json(diags, sources);
}

}  // namespace

void read_lexer(std::string_view bytes) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("lexer.co", std::string(bytes));
  syntax::Lexer lexer(sources, file, 0, bytes.size(), &diags);
  std::size_t before = 0;
  while (lexer.next().kind != syntax::TokenKind::kEnd) {
    KILN_CHECK(lexer.position() > before, "no byte was taken at {}", before);
    before = lexer.position();
  }
  show(diags, sources);
}

// The first line is a macro of the command line; a text after `---` is the file `a.co`.
void read_preprocessor(std::string_view bytes) {
  constexpr std::string_view kDivider = "\n---\n";
  const std::string_view definition = bytes.substr(0, bytes.find('\n'));
  bytes.remove_prefix(std::min(definition.size() + 1, bytes.size()));
  const std::size_t at = bytes.find(kDivider);
  const std::string included(at == std::string_view::npos ? ""
                                                          : bytes.substr(at + kDivider.size()));
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("main.co", std::string(bytes.substr(0, at)));
  const auto read = [&](std::string_view, std::string_view name) -> Result<IncludedFile> {
    if (name != "a.co") return Unexpected{Error{"no such file", std::string(name), ""}};
    return IncludedFile{"a.co", included};
  };
  const ast::Ast tree =
      parse_file(sources, file,
                 {.definitions = {{"D", std::string(definition)}}, .read_included = read}, diags);
  (void)tree;
  show(diags, sources);
}

// The tree of any text can be printed; what the printer wrote of a right one is right again.
void read_parser(std::string_view bytes) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("parser.co", std::string(bytes));
  const ast::Ast tree = parse_file(sources, file, {}, diags);
  (void)ast::print(tree);
  show(diags, sources);
}

}  // namespace kiln::fuzz
