// `call` as a statement: the register counts of warp-specialised kernels, functions of this language, and
// those of CUDA (cuda.h).
//
//   call croq::cuda::setreg_dec(40);                                     ->  registers count=40
//   __cpp__("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");");   ->  the same
#include <algorithm>

#include "sema/call.h"
#include "sema/cuda.h"
#include "sema/expression.h"
#include "sema/inthreads.h"
#include "sema/statement.h"
#include "target/registers.h"

namespace kiln::sema {

namespace {

constexpr std::int64_t kLeast = target::kRegisterCounts.least;
constexpr std::int64_t kMost = target::kRegisterCounts.most;
constexpr std::int64_t kStep = target::kRegisterCounts.step;

// `shown` is where the number stands.
void set_registers(Sema& sema, const std::string& name, std::int64_t count, Span span, Span shown) {
  if (count < kLeast || count > kMost || count % kStep != 0) {
    const std::int64_t near = std::clamp((count + kStep / 2) / kStep * kStep, kLeast, kMost);
    (void)sema.diags.report<diag::RegistersCount>(shown, name, count, kStep, kLeast, kMost)
        .help("use {}", near)
        .emit();
    return;
  }
  if (!check_collective(sema, span, format("`{}`", name), ir::Level::kGroup) ||
      !check_whole_warpgroups(sema, span, name)) {
    return;
  }
  if (!sema.arch.has(target::Feature::kSetmaxnreg)) return;  // older ones share registers evenly
  emit(sema, ir::Registers{count, name.ends_with("inc")}, span);
}

void analyse_registers(Sema& sema, const ast::DeviceCallExpr& call, Span span) {
  const std::string& name = call.name.text;
  if (call.args.size() != 1 || !call.template_args.empty()) {
    (void)sema.diags.report<diag::RegistersCall>(span, name, call.args.size())
        .help("give the registers of a thread: `call {}(40);`", name)
        .emit();
    return;
  }
  const auto count = evaluate_constant(sema, call.args[0], "the number of registers");
  if (count) set_registers(sema, name, *count, span, sema.ast[call.args[0]].span);
}

}  // namespace

// Blanks apart, `asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");`.
bool set_registers(Sema& sema, const ast::CppStmt& stmt, Span span) {
  std::string text = stmt.text;
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  for (const std::string_view word : {"dec", "inc"}) {
    const std::string begin = format("asmvolatile(\"setmaxnreg.{}.sync.aligned.u32", word);
    constexpr std::string_view kEnd = ";\");";
    if (!text.starts_with(begin) || !text.ends_with(kEnd)) continue;
    const std::string count =
        text.substr(begin.size(), text.size() - std::min(text.size(), begin.size() + kEnd.size()));
    const bool is_number = !count.empty() && count.size() < 5 &&
                           count.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) continue;
    if (!check_in_kernel(sema, span, "`setmaxnreg`")) return true;
    set_registers(sema, format("setreg_{}", word), std::stoi(count), span, stmt.text_span);
    return true;
  }
  return false;
}

void analyse(Sema& sema, const ast::CallStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const auto* call = sema.ast.as<ast::DeviceCallExpr>(stmt.call);
  if (call == nullptr) return;  // reported by the parser
  const std::string& name = call->name.text;
  if (name == "croq::cuda::setreg_inc" || name == "croq::cuda::setreg_dec") {
    return analyse_registers(sema, *call, span);
  }
  if (find_function(sema, name) != nullptr) {
    return run_call(sema, {call->name, call->template_args, call->args}, span);
  }
  if (auto cuda = cuda_of_call(sema, *call, span, false)) {
    emit_cuda(sema, std::move(*cuda), {}, span);
  }
}

}  // namespace kiln::sema
