// From the text of a `.co` file to its syntax tree.
//
//   Diagnostics diags;
//   ast::Ast ast = parse_file(sources, file, {.definitions = {{"M", "512"}}}, diags);
//   if (diags.has_errors()) ...   // `ast` holds what could be read
//
// One run reports every independent mistake: after an error the parser goes on at the next `;`, `}`
// or statement. Nothing in a file can exhaust the stack or the memory: nesting, macro expansion and
// the number of errors are bounded, each with its own diagnostic.
#pragma once

#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "support/source.h"
#include "syntax/ast.h"
#include "syntax/include.h"

namespace kiln {

// A macro defined on the command line. `-D N=4` is {"N", "4"}; `-D F` is {"F", "1"}. It beats every
// `#define` and `#undef` of its name in the file, so that a tile extent can be varied from outside.
struct Definition {
  std::string name;
  std::string text;
};

struct ParseOptions {
  std::vector<Definition> definitions;
  ReadIncluded read_included = {};  // without it every include of a `.co` file is an error
};

// Statements and expressions together may be nested this deep; trees are no higher.
inline constexpr int kNestingMax = 256;

// Adds the definitions to `sources` as a file of their own, and tells it of `#line` directives.
[[nodiscard]] ast::Ast parse_file(Sources& sources, FileId file, const ParseOptions& options,
                                  Diagnostics& diags);

}  // namespace kiln
