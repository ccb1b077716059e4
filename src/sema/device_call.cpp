// `call`: so far the register counts of warp-specialised kernels.
//
//   call croq::cuda::setreg_dec(40);   ->  registers count=40
#include <algorithm>

#include "sema/call.h"
#include "sema/expression.h"
#include "sema/inthreads.h"
#include "sema/statement.h"
#include "target/registers.h"

namespace kiln::sema {

namespace {

constexpr std::int64_t kLeast = target::kRegisterCounts.least;
constexpr std::int64_t kMost = target::kRegisterCounts.most;
constexpr std::int64_t kStep = target::kRegisterCounts.step;

void analyse_registers(Sema& sema, const ast::DeviceCallExpr& call, Span span, bool increases) {
  const std::string& name = call.name.text;
  if (call.args.size() != 1 || !call.template_args.empty()) {
    (void)sema.diags.report<diag::RegistersCall>(span, name, call.args.size())
        .help("give the registers of a thread: `call {}(40);`", name)
        .emit();
    return;
  }
  const auto count = evaluate_constant(sema, call.args[0], "the number of registers");
  if (!count) return;
  if (*count < kLeast || *count > kMost || *count % kStep != 0) {
    const std::int64_t near = std::clamp((*count + kStep / 2) / kStep * kStep, kLeast, kMost);
    (void)sema.diags
        .report<diag::RegistersCount>(sema.ast[call.args[0]].span, name, *count, kStep, kLeast,
                                      kMost)
        .help("use {}", near)
        .emit();
    return;
  }
  if (!check_collective(sema, span, format("`{}`", name), ir::Level::kGroup) ||
      !check_whole_warpgroups(sema, span, name)) {
    return;
  }
  if (!sema.arch.has(target::Feature::kSetmaxnreg)) return;  // older ones share registers evenly
  emit(sema, ir::Registers{*count, increases}, span);
}

}  // namespace

void analyse(Sema& sema, const ast::CallStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const auto* call = sema.ast.as<ast::DeviceCallExpr>(stmt.call);
  if (call == nullptr) return;  // reported by the parser
  const std::string& name = call->name.text;
  const bool increases = name == "croq::cuda::setreg_inc";
  if (increases || name == "croq::cuda::setreg_dec") {
    analyse_registers(sema, *call, span, increases);
    return;
  }
  if (find_function(sema, name) != nullptr) {
    return run_call(sema, {call->name, call->template_args, call->args}, span);
  }
  refuse(sema, span, format("`call {}`", name));
}

}  // namespace kiln::sema
