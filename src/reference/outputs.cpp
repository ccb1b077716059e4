#include "reference/outputs.h"

#include <algorithm>

#include "ir/arguments.h"

namespace kiln::reference {

namespace {

constexpr std::string_view kNameless = "result";

// The value of the function's `return`; invalid when it has none.
ir::ValueId returned_value(const ir::Function& function) {
  ir::ValueId value;
  ir::walk(function, function.body, [&](ir::OpId id) {
    const auto* op = std::get_if<ir::Return>(&function.ops[id].data);
    if (op != nullptr && op->value.valid()) value = op->value;
  });
  if (!value.valid() || !std::holds_alternative<ir::ViewType>(function.type(value))) return value;
  return ir::root_of(function, value);
}

std::string name_of(const ir::Function& function, ir::ValueId value) {
  for (const ir::Param& param : function.params) {
    if (param.value == value) return param.name;
  }
  if (const auto* alloc = function.def_as<ir::Alloc>(value); alloc != nullptr) {
    if (!alloc->name.empty()) return alloc->name;
  }
  // A number has the name of what it was computed for, if any.
  if (!std::holds_alternative<ir::ViewType>(function.type(value))) return std::string(kNameless);
  const std::string& name = function.values[value].name;
  return name.empty() ? std::string(kNameless) : name;
}

}  // namespace

std::vector<OutputSlot> output_slots(const ir::Function& function) {
  std::vector<OutputSlot> out;
  for (const std::size_t index : ir::written_params(function)) {
    const ir::Param& param = function.params[index];
    if (param.is_global || param.is_reference) out.push_back({param.name, param.value, index});
  }
  const ir::ValueId returned = returned_value(function);
  const bool listed = std::any_of(out.begin(), out.end(),
                                  [&](const OutputSlot& slot) { return slot.value == returned; });
  if (returned.valid() && !listed) out.push_back({name_of(function, returned), returned, {}});
  return out;
}

}  // namespace kiln::reference
