// Copies, once their two sides are known. Internal to this folder.
#pragma once

#include <optional>
#include <string>

#include "sema/state.h"

namespace kiln::sema {

// A copy statement whose sides have one shape.
struct Transfer {
  const ast::MoveStmt& stmt;
  Span span;
  std::string word;  // "tma.copy", as written
  ir::Copy copy;
  ir::Level level = ir::Level::kBlock;  // who copies
  std::optional<std::size_t> handle = {};
  ir::ValueId whole = {};  // the destination as the statement names it, padding included
};

// "global", for messages.
[[nodiscard]] std::string_view space_name(ir::Space space);

// bulk.cpp: `tma`. False after a report.
[[nodiscard]] bool check_bulk_forms(Sema& sema, const ast::MoveStmt& stmt, std::string_view word);
[[nodiscard]] bool check_bulk(Sema& sema, const Transfer& transfer);
void emit_bulk(Sema& sema, Transfer transfer);

// transform.cpp: `.transp` and `.pad`.
// Dimension k of the destination is dimension [k] of the source. Nothing after a report.
[[nodiscard]] std::optional<std::vector<std::int64_t>> permutation_of(Sema& sema,
                                                                      const ast::MoveStmt& stmt,
                                                                      std::size_t rank);
struct Padding {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
};
[[nodiscard]] std::optional<Padding> padding_of(Sema& sema, const ast::MoveStmt& stmt,
                                                std::size_t rank);
// Fills the destination with the padding's value, and gives the window that the source goes to.
[[nodiscard]] std::optional<ir::ValueId> fill_border(Sema& sema, const Transfer& transfer,
                                                     const Padding& padding);

}  // namespace kiln::sema
