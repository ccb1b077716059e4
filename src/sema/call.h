// Calls of functions of the language: a function is put in place of its call.
//
//   leave(sum, out, done);
//   =>
//   the body of `leave`, in a scope where its parameters stand for the caller's tile, view and event
//
// Nothing later knows of functions. Internal to this folder.
#pragma once

#include <optional>
#include <string>

#include "sema/constant.h"
#include "sema/state.h"

namespace kiln::sema {

using Functions = std::map<std::string, const ast::TileFunction*>;

// The functions of the file by name. Reports those of one name, and those that call themselves,
// which are left out.
[[nodiscard]] Functions functions_of(const ast::Ast& ast, Diagnostics& diags);

// Null when there is none.
[[nodiscard]] const ast::TileFunction* find_function(const Sema& sema, const std::string& name);

// Whether a part of the text calls a function.
[[nodiscard]] bool calls_functions(const ast::Ast& ast, Span part);

// Reports a call of what is no function.
void report_unknown_function(Sema& sema, const ast::Name& name,
                             const std::vector<ast::ExprId>& args);

// `leave(sum, out, done);`
void run_call(Sema& sema, const ast::FunctionCallExpr& call, Span span);
// The number that the call gives; an error operand after a report.
[[nodiscard]] Operand evaluate_call(Sema& sema, const ast::FunctionCallExpr& call, Span span);

// Whether the call gives a register tile, or a number for each element of its operands.
[[nodiscard]] bool gives_tile(const Sema& sema, const ast::FunctionCallExpr& call);
[[nodiscard]] bool is_elementwise_call(const Sema& sema, const ast::FunctionCallExpr& call);
// The tile that it gives, called `name`. Nothing after a report.
[[nodiscard]] std::optional<ir::ValueId> evaluate_tile_call(Sema& sema,
                                                            const ast::FunctionCallExpr& call,
                                                            Span span, const std::string& name);

// `return e;` in a function under way.
void return_from_call(Sema& sema, const ast::ReturnStmt& stmt, Span span);

// call_arguments.cpp
struct CallSite {
  const ast::FunctionCallExpr& call;
  const ast::TileFunction& function;
  Span span;
};
struct Argument {
  Span span;
  Symbol symbol;  // that the parameter becomes: a number, a view, a tile, an event
};
struct Arguments {
  std::vector<std::optional<Constant>> of_template = {};  // those that are written
  std::vector<bool> exists = {};                          // by parameter: what its condition says
  std::vector<std::optional<Argument>> values = {};  // nothing for a parameter that does not exist
};
// What is written for the template, in the scope of the caller. Nothing after a report.
[[nodiscard]] std::optional<Arguments> evaluate_template_arguments(Sema& sema,
                                                                   const CallSite& site);
// Which parameters exist, in the scope of the function, which is open. False after a report.
[[nodiscard]] bool find_existing(Sema& sema, const CallSite& site, Arguments& arguments);
// What the arguments are, in the scope of the caller; that of a parameter that does not exist is not
// looked at. False after a report.
[[nodiscard]] bool evaluate_arguments(Sema& sema, const CallSite& site, Arguments& arguments);
// Declares the parameters in the scope of the function, which is open. False after a report.
[[nodiscard]] bool bind_arguments(Sema& sema, const CallSite& site, const Arguments& arguments);

}  // namespace kiln::sema
