// Constants: what `constexpr`, template parameters, `requires` and `if constexpr` are about.
//
//   constexpr int TILE = 64 * WG;      TILE stands for a number
//   constexpr type T = bf16;           T for a type
//   if constexpr (STAGES > 2 && T == bf16) ...
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sema/state.h"

namespace kiln::sema {

struct Constant {
  using Kind = ast::ConstantStmt::Kind;
  Kind kind{};
  std::int64_t value = 0;  // of integers and bools
  DType type{};            // of types
};
[[nodiscard]] std::string_view describe(Constant::Kind kind);  // "an integer"
[[nodiscard]] std::string text(const Constant& constant);

// The expression's value. Nothing after a report; `what` names it in messages.
[[nodiscard]] std::optional<Constant> constant_of(Sema& sema, ast::ExprId id,
                                                  std::string_view what);
// The same of what must be true or false.
[[nodiscard]] std::optional<bool> condition_of(Sema& sema, ast::ExprId id, std::string_view what);
// The same of what must be of a kind; `name` is what has the kind.
[[nodiscard]] std::optional<Constant> constant_of_kind(Sema& sema, ast::ExprId id,
                                                       const ast::Name& name, Constant::Kind kind);

[[nodiscard]] Symbol symbol_of(const Constant& constant, Span span);

// An element type as it was written.
[[nodiscard]] DType type_of(Sema& sema, const ast::Type& type);
[[nodiscard]] std::optional<DType> type_of(Sema& sema, const std::optional<ast::Type>& type);

// Gives the parameters of a kernel's template their values. False after a report.
[[nodiscard]] bool bind_template(Sema& sema, const ast::TileFunction& function);
// Whether what `requires` says holds, of what is in scope; false after a report at `span`.
[[nodiscard]] bool check_requires(Sema& sema, const ast::TileFunction& function, Span span);

// The constants between the functions of the file.
void declare_file_constants(Sema& sema);

}  // namespace kiln::sema
