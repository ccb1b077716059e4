// What the program says in CUDA itself: its texts go into the kernel as they are.
#include <algorithm>

#include "emit/cuda/emit_op.h"
#include "ir/cuda_text.h"

namespace kiln::emit {

using ir::Op;
using ir::ValueId;

namespace {

// The pointer to a view's first element.
std::string pointer(Kernel& kernel, ValueId view) {
  const ir::ResolvedView resolved = ir::resolve_view(kernel.function, view);
  const std::size_t rank = kernel.function.view_type(view).shape.size();
  return "&" + element(kernel, resolved, std::vector<ir::Expr>(rank, ir::Expr(0)));
}

// What a text is passed: the variable of a cell, the array of a register tile, a pointer.
std::string passed_text(Kernel& kernel, ValueId value) {
  const bool is_view = std::holds_alternative<ir::ViewType>(kernel.function.type(value));
  const std::string* variable = kernel.variable_of(value);
  return variable != nullptr || !is_view ? kernel.name(value) : pointer(kernel, value);
}

std::string number_text(Kernel& kernel, ValueId value) { return scalar(kernel, value).text; }

DType scalar_type(const Kernel& kernel, ValueId value) {
  return std::get<ir::ScalarType>(kernel.function.type(value)).dtype;
}

// Declares what the text calls by another name than the kernel, unless that is known here.
void declare(Kernel& kernel, const std::string& name, const std::string& type,
             const std::string& value) {
  if (value == name) return;
  std::vector<Writer::Block>& blocks = kernel.declared[name + " = " + value];
  if (std::ranges::any_of(blocks, [&](Writer::Block b) { return kernel.out.is_open(b); })) return;
  blocks.push_back(kernel.out.block());
  kernel.out.line(format("{} {} = {};", type, name, value));
}

void declare_names(Kernel& kernel, const ir::Cuda& cuda) {
  for (std::size_t i = 0; i < cuda.names.size(); ++i) {
    const std::string& name = cuda.names[i];
    if (i < cuda.passed.size()) {
      const ValueId value = cuda.passed[i];
      const bool is_view = std::holds_alternative<ir::ViewType>(kernel.function.type(value));
      declare(kernel, name, is_view ? "auto* const" : "auto&", passed_text(kernel, value));
    } else {
      const ValueId value = cuda.numbers[i - cuda.passed.size()];
      const std::string* variable = kernel.variable_of(value);
      if (variable != nullptr && *variable == name) continue;
      declare(kernel, name, format("const {}", type_name(scalar_type(kernel, value))),
              number_text(kernel, value));
    }
  }
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::Cuda& cuda) {
  kernel.requirements.headers.insert("foreign.cuh");
  declare_names(kernel, cuda);
  kernel.out.splice(ir::fill_in_cuda(
      cuda.text, [&](std::size_t i) { return passed_text(kernel, cuda.passed[i]); },
      [&](std::size_t i) { return number_text(kernel, cuda.numbers[i]); }));
}

}  // namespace kiln::emit
