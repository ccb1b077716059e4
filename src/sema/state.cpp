#include "sema/state.h"

#include "ir/prove.h"

namespace kiln::sema {

std::string unique_name(Sema& sema, const std::string& wanted) {
  int& count = sema.names_used[wanted];
  ++count;
  if (count == 1) return wanted;
  const std::string candidate = format("{}_{}", wanted, count - 1);
  return sema.names_used.contains(candidate) ? unique_name(sema, wanted)
                                             : unique_name(sema, candidate);
}

ir::OpId emit(Sema& sema, ir::OpData data, Span span) {
  const ir::OpId id = sema.function.ops.push({span, std::move(data), {}});
  sema.function.regions[sema.regions.back()].ops.push_back(id);
  return id;
}

ir::ValueId emit_value(Sema& sema, ir::OpData data, Span span, ir::Type type,
                       const std::string& name) {
  const ir::OpId op = emit(sema, std::move(data), span);
  const std::string unique =
      name.empty() ? format("{}", sema.function.values.size()) : unique_name(sema, name);
  const ir::ValueId value = sema.function.values.push({unique, std::move(type), op});
  sema.function.ops[op].result = value;
  return value;
}

ir::VarId add_var(Sema& sema, const std::string& name, ir::VarKind kind, ir::Expr extent,
                  Span span) {
  return sema.function.vars.push({unique_name(sema, name), kind, std::move(extent), span});
}

void refuse(Sema& sema, Span span, std::string_view construct) {
  (void)sema.diags.report<diag::NotSupportedYet>(span, construct).emit();
}

void refuse_packing(Sema& sema, Span span, std::string_view what) {
  (void)sema.diags.report<diag::SparseCopy>(span, what)
      .help(
          "pack the tensor before the call, with `kiln prune` or `kiln/sparse.h`; copy its kept "
          "values "
          "[M, K / 2] and its metadata, u8 [M, K / 8], and `mma.load` both")
      .emit();
}

void refuse_sub_byte(Sema& sema, Span span, std::string_view holder, DType dtype) {
  const bool is_signed = info(dtype).kind == NumberKind::kSigned;
  (void)sema.diags.report<diag::NotSupportedYet>(span, format("{} of {}", holder, name(dtype)))
      .help("widen it to {}", is_signed ? "s8" : "u8")
      .emit();
}

void declare(Sema& sema, const ast::Name& name, Symbol symbol) {
  if (!name.valid()) return;
  const Symbol* earlier = sema.scopes.find_here(name.text);
  if (earlier != nullptr && !earlier->operand.is_error()) {  // else reported, where it was used
    (void)sema.diags.report<diag::RedeclaredName>(name.span, name.text)
        .label(earlier->span, "declared here first")
        .help("choose another name")
        .emit();
  }
  symbol.span = name.span;
  sema.scopes.declare(name.text, std::move(symbol));
}

void note_absent(Sema& sema, const ast::Param& param) {
  const Span condition = sema.ast[param.condition].span;
  sema.absent[param.name.text] = std::string(sema.sources.text(condition));
}

std::string text(const Sema& sema, const ir::Expr& expr) { return sema.function.text(expr); }

namespace {

// Why not all threads of the unit get here; invalid when they do, as far as is known.
Span divergence(const Sema& sema, bool block) {
  const Span here = block ? sema.place.divergent_in_block : sema.place.divergent_in_warp;
  if (here.valid()) return here;
  const auto of = [block](const Leaving& leaving) {
    return block ? leaving.in_block : leaving.in_warp;
  };
  for (const OpenLoop& loop : sema.loops) {
    if (of(loop.leaving).valid()) return of(loop.leaving);
  }
  return sema.yielding == sema.place.launch ? of(sema.yielded) : Span{};
}

}  // namespace

std::string type_text(const Sema& sema, const ir::ViewType& type) {
  return format("{} [{}]", name(type.dtype),
                join(type.shape, ", ", [&](const ir::Expr& e) { return text(sema, e); }));
}

bool check_collective(Sema& sema, Span span, std::string_view what, ir::Level unit) {
  if (!check_in_kernel(sema, span, what)) return false;
  const bool block = unit == ir::Level::kBlock;
  const Span where = divergence(sema, block);
  if (!where.valid()) return true;
  const std::string_view name = block ? "block" : "warp";
  (void)sema.diags.report<diag::CollectiveDivergent>(span, what, name)
      .label(where, "this differs between the threads of a {}", name)
      .help("move the statement out, or make this the same for all threads of the {}", name)
      .emit();
  return false;
}

bool check_in_kernel(Sema& sema, Span span, std::string_view what) {
  if (sema.place.in_kernel) return true;
  (void)sema.diags.report<diag::OutsideParallel>(span, what)
      .help("put it inside the body of a `parallel ... : block`")
      .emit();
  return false;
}

}  // namespace kiln::sema
