// A picture as text, JSON, SVG, HTML or LaTeX. The printers spell; picture.h has what was decided.
//
//   to_text(picture)     aligned columns, for a terminal
//   to_json(picture)     the cells' facts
//   to_svg(picture)      one drawing; each cell says its facts on hover
//   to_html(picture)     one page that needs nothing else: picking a cell picks its owner's cells
//   to_latex(picture)    a standalone TikZ document
//
// The same picture gives the same text, everywhere.
#pragma once

#include <string>

#include "explain/draw/picture.h"

namespace kiln::explain {

[[nodiscard]] std::string to_text(const Picture& picture);
[[nodiscard]] std::string to_json(const Picture& picture);
[[nodiscard]] std::string to_svg(const Picture& picture);
[[nodiscard]] std::string to_html(const Picture& picture);
[[nodiscard]] std::string to_latex(const Picture& picture);

}  // namespace kiln::explain
