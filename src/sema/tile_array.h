// Arrays of register tiles: each element is a tile of its own, which a subscript names. Internal to
// this folder.
//
//   sum = mma.fill.f32 0.0f [2, 4];
//   foreach {i, j} in [2, 4]  mma.store sum[i][j], ...;
//   =>
//   %sum_0_0 = alloc : frag<c, ...>    ...    %sum_1_3 = alloc : frag<c, ...>
//   store frag=%sum_0_0 ...            ...    store frag=%sum_1_3 ...
//
// Registers have no addresses, so subscripts are constants: a loop whose variable chooses an element
// is written out, its body analysed once for each value of the variable.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sema/state.h"

namespace kiln::sema {

// Whether the expression is the name of a register tile or an operand of `mma`, or an array of tiles
// with subscripts.
[[nodiscard]] bool is_tile_name(const Sema& sema, ast::ExprId expr);
// The tile that such an expression names; null after a report about its subscripts.
[[nodiscard]] const Symbol* named_tile(Sema& sema, ast::ExprId expr);
// The same of a reference in a statement, whose name is that of an array.
[[nodiscard]] const Symbol* array_element(Sema& sema, const Symbol& array, const ast::FragRef& ref);

// A statement whose subscript of an array is known at launch alone, `mma.row.row sum[n], a, b;` where n
// is a parameter: once for each value, behind an `if`. False: the statement has none.
[[nodiscard]] bool analyse_each_choice(Sema& sema, ast::StmtId id);
// The value of a subscript: a constant, or what the statement is being analysed for.
[[nodiscard]] std::optional<std::int64_t> chosen_value(const Sema& sema, const ir::Expr& index);

// How to declare the tile, or the array that it is an element of, so that the shape is known.
[[nodiscard]] std::string shaped_declaration(const Sema& sema, const Tile& tile);

// A whole array stands where one tile is needed.
void report_whole_array(Sema& sema, const Symbol& array, std::string_view name, Span span);

// The constant extents of an array; nothing after a report.
[[nodiscard]] std::optional<std::vector<std::int64_t>> array_extents(
    Sema& sema, const std::vector<ast::ExprId>& exprs, const ast::Name& name);
// "sum[1][3]" for the user, "sum_1_3" in what is emitted.
struct TileName {
  std::string text;
  std::string identifier;
};
// Declares `name`: an array of what `make` gives for each element, or without extents what it gives
// for the name itself.
void declare_tiles(Sema& sema, const ast::Name& name, std::vector<std::int64_t> extents,
                   const std::function<ir::ValueId(const TileName&)>& make);
// `frag a[2];`: an array of what `mma.load` gives.
void declare_operands(Sema& sema, const ast::Name& name, std::vector<std::int64_t> extents);
[[nodiscard]] bool is_operand_array(const Symbol& symbol);
// The element that a load is to give a tile, and how that is called. Null after a report.
[[nodiscard]] Symbol* element_to_load(Sema& sema, const Symbol& array, const ast::FragRef& ref,
                                      TileName& name);

// "2x4"
[[nodiscard]] std::string extents_text(const std::vector<std::int64_t>& extents);

// Whether that part of the text declares an array of register tiles, of that name or of any.
[[nodiscard]] bool declares_tile_array(const ast::Ast& ast, Span part,
                                       std::optional<std::string_view> name = {});

// Whether it stores columns of an accumulator: `mma.store mc.subspan(_, 64).at(_, i), view;`
[[nodiscard]] bool stores_a_part(const ast::Ast& ast, Span part);

// The values that a loop's variable goes through.
struct LoopValues {
  ir::Expr lower;
  ir::Expr upper;
  std::int64_t step = 1;
};
// Whether a loop is written out: a subscript in `body`, or which part of an accumulator is stored there, depends on one
// of `names`, which the loop gives a value. Where one does and the loop cannot be, `obstacle` is told why.
[[nodiscard]] bool is_written_out(const Sema& sema, const std::vector<std::string>& names,
                                  ast::StmtId body, const LoopValues& values,
                                  std::string& obstacle);

}  // namespace kiln::sema
