#include "emit/co/co.h"

#include "emit/co/say.h"

namespace kiln::emit_co {

namespace {

// Buffers of which elements are picked by their leading indices alone.
void find_arrays(Co& co) {
  for (const ir::Op& op : co.function.ops) {
    const auto* subview = std::get_if<ir::Subview>(&op.data);
    if (subview == nullptr || subview->drop == 0) continue;
    const auto* alloc = co.function.def_as<ir::Alloc>(subview->base);
    if (alloc == nullptr) continue;
    if (co.function.view_type(subview->base).space == ir::Space::kGlobal) continue;
    co.arrays[subview->base] = static_cast<std::size_t>(subview->drop);
  }
  // One that is used as a whole, too, is none.
  for (std::uint32_t v = 0; v < co.function.values.size(); ++v) {
    const ir::ValueId value{v};
    const auto found = co.arrays.find(value);
    if (found == co.arrays.end()) continue;
    for (const ir::OpId user : co.users[v]) {
      const auto* subview = std::get_if<ir::Subview>(&co.function.ops[user].data);
      const bool picks = subview != nullptr && subview->base == value &&
                         subview->drop == static_cast<std::int64_t>(found->second);
      if (!picks) {
        co.arrays.erase(found);
        break;
      }
    }
  }
}

void name_everything(Co& co) {
  co.value_names.resize(co.function.values.size());
  co.var_names.resize(co.function.vars.size());
  co.taken.insert(co.function.name);
  for (const ir::Param& param : co.function.params) {
    const std::string name = fresh_name(co, param.name.empty() ? "unnamed" : param.name);
    co.value_names[param.value.index] = name;
    if (param.var.valid()) co.var_names[param.var.index] = name;
  }
  for (std::uint32_t v = 0; v < co.function.vars.size(); ++v) {
    if (co.var_names[v].empty())
      co.var_names[v] = fresh_name(co, co.function.vars[ir::VarId{v}].name);
  }
}

std::string param_text(Co& co, const ir::Param& param) {
  const ir::Type& type = co.function.type(param.value);
  const std::string& name = co.value_names[param.value.index];
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) {
    return format("{} {}", type_name(scalar->dtype), name);
  }
  const auto& buffer = std::get<ir::ViewType>(type);
  return format("{}{} [{}]{} {}", param.is_global ? "global " : "", type_name(buffer.dtype),
                list(co, buffer.shape), param.is_reference ? "&" : "", name);
}

std::string result_text(Co& co) {
  for (const ir::Op& op : co.function.ops) {
    const auto* result = std::get_if<ir::Return>(&op.data);
    if (result == nullptr || !result->value.valid()) continue;
    const ir::Type& type = co.function.type(result->value);
    if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) return type_name(scalar->dtype);
    const auto& buffer = std::get<ir::ViewType>(type);
    return format("{} [{}]", type_name(buffer.dtype), list(co, buffer.shape));
  }
  return "void";
}

// Conditions that a grid or a bulk copy asks for follow from the text; the others are said.
void say_checks(Co& co) {
  for (const ir::EntryCheck& check : co.function.checks) {
    if (check.relation != ir::Relation::kDivides || check.left.constant()) continue;
    line(co, format("assert({} % {} == 0, {});", bracketed(spell(co, check.right), Binding::kUnary),
                    bracketed(spell(co, check.left), Binding::kUnary), quoted(check.message)));
  }
}

std::string function_text(const ir::Function& function, Diagnostics& diags, bool& failed) {
  Co co{.function = function, .diags = diags};
  plan_inlining(co);
  find_rotations(co);
  find_arrays(co);
  name_everything(co);
  const std::string params =
      join(function.params, ", ", [&](const ir::Param& param) { return param_text(co, param); });
  line(co, format("__co__ {} {}({}) {{", result_text(co), function.name, params));
  ++co.depth;
  say_checks(co);
  say_region(co, function.body);
  --co.depth;
  line(co, "}");
  failed = failed || co.failed;
  return std::move(co.out);
}

}  // namespace

Checked<std::string> co_text(const ir::Module& module, Diagnostics& diags) {
  std::string out;
  bool failed = false;
  for (const ir::CudaPart& part : module.cuda) out += part.text + "\n";
  for (const ir::Function& function : module.functions) {
    if (!out.empty()) out += "\n";
    out += function_text(function, diags, failed);
  }
  if (failed) return diags.failed();
  return out;
}

}  // namespace kiln::emit_co
