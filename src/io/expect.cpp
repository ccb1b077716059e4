#include "io/expect.h"

#include <algorithm>

#include "io/assignments.h"
#include "ir/functions.h"
#include "reference/outputs.h"

namespace kiln::io {

std::vector<std::string> output_names(const ir::Function& function) {
  std::vector<std::string> names;
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    names.push_back(slot.name);
  }
  return names;
}

std::string output_help(const ir::Function& function, const std::string& name) {
  for (const std::size_t written : ir::written_params(function)) {
    if (function.params[written].name != name) continue;
    return "a host parameter is copied back only when it is declared with `&`";
  }
  return name_help(name, output_names(function), "it gives back");
}

reference::Accumulation accumulation_of(const target::Mma& atom) {
  return {.roundoff = atom.acc_roundoff,
          .depth = extents(atom, target::Operand::kA).cols,
          .exact_integers = atom.exact_integers};
}

reference::EinsumNumerics weakest(const ir::Function& decided) {
  reference::EinsumNumerics out;
  const target::Mma* weakest = nullptr;
  ir::walk(decided, decided.body, [&](ir::OpId id) {
    const auto* mma = std::get_if<ir::Mma>(&decided.ops[id].data);
    if (mma == nullptr || mma->atom == nullptr) return;
    if (weakest == nullptr || mma->atom->acc_roundoff > weakest->acc_roundoff) weakest = mma->atom;
  });
  if (weakest == nullptr) return out;
  out.accumulation = accumulation_of(*weakest);
  out.accumulator = weakest->acc;
  // Operands of one type are held as they are.
  if (weakest->a == weakest->b) out.operand = weakest->a;
  out.cut_off = weakest->reads_shared;
  return out;
}

namespace {

// Where the kernel puts what it has computed.
std::vector<ir::ValueId> computed_storage(const ir::Function& function) {
  std::vector<ir::ValueId> out;
  const auto add = [&](ir::ValueId view) { out.push_back(ir::root_of(function, view)); };
  ir::walk(function, function.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (const auto* write = std::get_if<ir::Write>(&op.data)) add(write->view);
    if (const auto* store = std::get_if<ir::Store>(&op.data)) add(store->view);
    if (const auto* atomic = std::get_if<ir::Atomic>(&op.data)) add(atomic->view);
  });
  return out;
}

// Whether an operand of a product is not simply an input.
bool multiplies_computed(const ir::Function& function) {
  const std::vector<ir::ValueId> computed = computed_storage(function);
  bool found = false;
  ir::walk(function, function.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    const auto is_operand = [&](ir::ValueId frag) {
      const auto* type = std::get_if<ir::FragType>(&function.type(frag));
      return type != nullptr && type->role != ir::Role::kC;
    };
    if (const auto* set = std::get_if<ir::SetElement>(&op.data)) {
      found = found || is_operand(set->frag);
    }
    if (const auto* unary = std::get_if<ir::Unary>(&op.data)) {
      found = found || (ir::is_function(unary->kind) && !ir::is_exact(unary->kind));
    }
    const auto* load = std::get_if<ir::Load>(&op.data);
    if (load == nullptr || !is_operand(load->frag)) return;
    const ir::ValueId root = ir::root_of(function, load->view);
    found = found || std::find(computed.begin(), computed.end(), root) != computed.end();
  });
  return found;
}

}  // namespace

namespace {

// The types that memories and matrix operands have, or whose bits are read.
std::vector<DType> types_in_use(const ir::Function& function) {
  std::vector<DType> out;
  for (std::uint32_t v = 0; v < function.values.size(); ++v) {
    const auto& type = function.type(ir::ValueId{v});
    if (const auto* view = std::get_if<ir::ViewType>(&type)) out.push_back(view->dtype);
    const auto* frag = std::get_if<ir::FragType>(&type);
    if (frag != nullptr && frag->role != ir::Role::kTile) out.push_back(frag->dtype);
  }
  ir::walk(function, function.body, [&](ir::OpId id) {
    if (const auto* tile = std::get_if<ir::Recast>(&function.ops[id].data)) {
      out.push_back(function.frag_type(tile->source).dtype);
    }
    const auto* bits = std::get_if<ir::Bitcast>(&function.ops[id].data);
    if (bits == nullptr) return;
    if (const auto* type = std::get_if<ir::ScalarType>(&function.type(bits->operand))) {
      out.push_back(type->dtype);
    }
  });
  return out;
}

bool states_conversion(const reference::Formula& formula, DType to) {
  return std::ranges::any_of(formula.nodes, [&](const reference::FormulaNode& node) {
    return node.kind == reference::NodeKind::kConvert && node.dtype == to;
  });
}

}  // namespace

std::optional<NeedlessRounding> needless_rounding(const ir::Function& decided,
                                                  const reference::BoundFormula& formula) {
  const std::vector<DType> in_use = types_in_use(decided);
  std::optional<NeedlessRounding> out;
  ir::walk(decided, decided.body, [&](ir::OpId id) {
    const ir::Op& op = decided.ops[id];
    if (out || !std::holds_alternative<ir::Cast>(op.data)) return;
    const auto* type = std::get_if<ir::ScalarType>(&decided.type(op.result));
    if (type == nullptr || !is_float(type->dtype) || size_bytes(type->dtype) > 1) return;
    if (std::ranges::find(in_use, type->dtype) != in_use.end()) return;
    if (!states_conversion(formula.formula, type->dtype)) out = {type->dtype, op.span};
  });
  return out;
}

Products products_of(const ir::Function& decided) {
  Products out;
  ir::walk(decided, decided.body, [&](ir::OpId id) {
    const auto* mma = std::get_if<ir::Mma>(&decided.ops[id].data);
    if (mma == nullptr || mma->atom == nullptr) return;
    const target::Mma& atom = *mma->atom;
    const double exact = std::min(atom.exact_integers, integers_exact_up_to(atom.acc));
    out.exact = out.exact == 0 ? exact : std::min(out.exact, exact);
    for (const DType dtype : {atom.a, atom.b}) {
      out.operands.push_back(dtype);
      if (dtype == DType::kTF32) out.operands.push_back(DType::kF32);
    }
    // Metadata are bytes as well, and no numbers.
    if (atom.sparse) std::erase(out.operands, DType::kU8);
  });
  if (out.exact == 0 || multiplies_computed(decided)) return {};
  for (const std::size_t written : ir::written_params(decided)) {
    const auto* view = std::get_if<ir::ViewType>(&decided.type(decided.params[written].value));
    if (view == nullptr || !is_float(view->dtype)) continue;
    const double max = info(view->dtype).max;
    out.largest = out.largest == 0 ? max : std::min(out.largest, max);
  }
  return out;
}

std::vector<reference::Named> named_tensors(const ir::Function& function,
                                            const ir::Arguments& arguments, Tensor& returned) {
  std::vector<reference::Named> tensors;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (!std::holds_alternative<ir::ViewType>(function.type(function.params[i].value))) continue;
    tensors.push_back({function.params[i].name, &arguments.params[i].tensor});
  }
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    const auto* view = std::get_if<ir::ViewType>(&function.type(slot.value));
    const auto* scalar = std::get_if<ir::ScalarType>(&function.type(slot.value));
    const bool listed = std::any_of(tensors.begin(), tensors.end(),
                                    [&](const auto& named) { return named.name == slot.name; });
    if (listed || (view == nullptr && scalar == nullptr)) continue;
    returned = Tensor{view != nullptr ? view->dtype : scalar->dtype, {}, {}};
    for (std::size_t d = 0; view != nullptr && d < view->shape.size(); ++d) {
      returned.shape.push_back(view->shape[d].evaluate(arguments.vars));
    }
    tensors.push_back({slot.name, &returned, false});
  }
  return tensors;
}

reference::Given given_of(const ir::Function& function, const ir::Arguments& arguments,
                          Tensor& returned) {
  reference::Given out;
  out.tensors = named_tensors(function, arguments, returned);
  out.outputs = output_names(function);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (!param.value.valid() || param.var.valid()) continue;
    const auto* type = std::get_if<ir::ScalarType>(&function.type(param.value));
    if (type == nullptr) continue;
    out.scalars.push_back({param.name, {arguments.params[i].scalar, 0}, type->dtype});
  }
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    const ExactInteger value = kiln::split(arguments.vars[v]);
    out.scalars.push_back({var.name, reference::exactly(value), DType::kS64});
  }
  return out;
}

Checked<void> check_output(const ir::Function& function, const reference::EinsumTerm& left,
                           const std::vector<reference::Named>& tensors, Diagnostics& diags) {
  const std::vector<std::string> outputs = output_names(function);
  const std::string& name = left.name;
  const bool known = std::any_of(tensors.begin(), tensors.end(),
                                 [&](const auto& named) { return named.name == name; });
  if (!known || std::find(outputs.begin(), outputs.end(), name) != outputs.end()) return {};
  return diags.report<diag::ExpectOutput>(left.span, function.name, name)
      .help_if(output_help(function, name))
      .emit();
}

}  // namespace kiln::io
