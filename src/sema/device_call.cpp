// `call` as a statement: the register counts of warp-specialised kernels, functions of this language, and
// those of CUDA (cuda.h).
//
//   call croq::cuda::setreg_dec(40);                                     ->  registers count=40
//   __cpp__("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");");   ->  the same
#include <algorithm>
#include <utility>

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

// Whether the statement begins an `inthreads` region of a part of a warpgroup, to which all threads of
// the block come: what it says is then for that warpgroup, and can stand in front of the region.
bool begins_part_of_a_warpgroup(const Sema& sema) {
  const auto run = enclosing_region(sema);
  if (!run || run->first / kWarpgroup != (run->first + run->threads - 1) / kWarpgroup) return false;
  if (run->first % kWarpgroup == 0 && run->threads == kWarpgroup) return false;
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  if (launch.threads.constant().value_or(0) % kWarpgroup != 0) return false;
  if (!sema.function.regions[sema.regions.back()].ops.empty()) return false;
  const std::size_t around = sema.regions.size() - 2;
  for (std::size_t i = 0; i <= around; ++i) {
    const std::vector<ir::OpId>& ops = sema.function.regions[sema.regions[i]].ops;
    if (ops.empty()) return false;
    const ir::OpId inner = ops.back();
    const bool is_region = sema.function.ops[inner].kind() == ir::OpKind::kInthreads;
    if (is_region != (i == around) || (is_region && inner != sema.place.inthreads)) return false;
  }
  return true;
}

// The warpgroup's threads set their registers in front of the region.
void set_in_front(Sema& sema, const std::string& name, std::int64_t count, Span span) {
  const std::int64_t first = enclosing_region(sema)->first / kWarpgroup * kWarpgroup;
  (void)sema.diags.report<diag::RegistersOfWarpgroup>(span, name, first, first + kWarpgroup - 1)
      .label(sema.function.ops[sema.place.inthreads].span, "the region")
      .help("put it into an `inthreads` of its own, which chooses all of them")
      .emit();
  if (!sema.arch.has(target::Feature::kSetmaxnreg)) return;
  const ir::RegionId around = sema.regions[sema.regions.size() - 2];
  sema.regions.push_back(around);
  const ir::OpId op = emit(
      sema, ir::Inthreads{.first = first, .threads = kWarpgroup, .async = true, .body = {}}, span);
  const ir::RegionId body = in_region(sema, [&] {
    emit(sema, ir::Registers{count, name.ends_with("inc")}, span);
  });
  sema.regions.pop_back();
  std::get<ir::Inthreads>(sema.function.ops[op].data).body = body;
  std::vector<ir::OpId>& ops = sema.function.regions[around].ops;
  std::swap(ops[ops.size() - 2], ops.back());
}

// `shown` is where the number stands.
void set_registers(Sema& sema, const std::string& name, std::int64_t count, Span span, Span shown) {
  if (count < kLeast || count > kMost || count % kStep != 0) {
    const std::int64_t near = std::clamp((count + kStep / 2) / kStep * kStep, kLeast, kMost);
    (void)sema.diags.report<diag::RegistersCount>(shown, name, count, kStep, kLeast, kMost)
        .help("use {}", near)
        .emit();
    return;
  }
  if (begins_part_of_a_warpgroup(sema)) return set_in_front(sema, name, count, span);
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
