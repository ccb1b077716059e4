// What a program says in CUDA: `call` of device functions, `__cpp__` and inline assembly become
// operations of their own, which nobody looks into.
//
//   call f<4>(x, n);   ->   cuda what="`call f`" text="f<4>(%_, %#);" passed=[%x] numbers=[%n]
//
// Internal to this folder.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// The call that the expression is, of a function in CUDA; null: it is none.
[[nodiscard]] const ast::DeviceCallExpr* cuda_call(const Sema& sema, ast::ExprId expr);

// The operation of a call. Where it gives a value, that has the first place, whose value is missing:
// emit_cuda is told. Nothing after a report.
[[nodiscard]] std::optional<ir::Cuda> cuda_of_call(Sema& sema, const ast::DeviceCallExpr& call,
                                                   Span span, bool gives_value);
// `result` is the cell that takes the value, invalid where there is none.
void emit_cuda(Sema& sema, ir::Cuda cuda, ir::ValueId result, Span span);

// The value of a call, which has the type.
[[nodiscard]] Operand evaluate_cuda_call(Sema& sema, const ast::DeviceCallExpr& call, DType dtype,
                                         Span span);
// An expression, or a call whose type the place where it stands says.
[[nodiscard]] Operand evaluate_as(Sema& sema, ast::ExprId expr, DType dtype);

// A call where nothing says what type it gives.
void report_cuda_result(Sema& sema, const ast::DeviceCallExpr& call, Span span);

}  // namespace kiln::sema
