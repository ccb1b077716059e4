#include "host/wrapper.h"

#include "reference/outputs.h"
#include "support/dtype.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::host {

namespace {

// The parameter that the function returns, or what it makes; nothing for void.
struct Returned {
  ir::Type type;
  const ir::Param* param = nullptr;
  std::size_t index = 0;
};

std::optional<Returned> returned_of(const ir::Function& function) {
  ir::ValueId value;
  ir::walk(function, function.body, [&](ir::OpId id) {
    const auto* op = std::get_if<ir::Return>(&function.ops[id].data);
    if (op != nullptr && op->value.valid()) value = op->value;
  });
  if (!value.valid()) return std::nullopt;
  Returned out{function.type(value)};
  if (!std::holds_alternative<ir::ViewType>(out.type)) return out;
  const ir::ValueId root = ir::root_of(function, value);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (function.params[i].value != root) continue;
    out.param = &function.params[i];
    out.index = i;
  }
  return out;
}

std::string cpp_name(DType dtype) {
  return dtype == DType::kBool ? "bool" : format("::choreo::{}", name(dtype));
}

// "<::choreo::f16, 2>" of a tensor.
std::string tensor_arguments(const ir::ViewType& view) {
  return format("<{}, {}>", cpp_name(view.dtype), view.shape.size());
}

const ir::ViewType* view_of(const ir::Function& function, const ir::Param& param) {
  return param.value.valid() ? std::get_if<ir::ViewType>(&function.type(param.value)) : nullptr;
}

std::string number_type(const ir::Function& function, const ir::Param& param) {
  if (!param.value.valid()) return "::choreo::s32";
  const auto* scalar = std::get_if<ir::ScalarType>(&function.type(param.value));
  return scalar == nullptr ? "::choreo::s32" : cpp_name(scalar->dtype);
}

std::string result_type(const std::optional<Returned>& returned) {
  if (!returned) return "void";
  if (const auto* view = std::get_if<ir::ViewType>(&returned->type)) {
    return "::choreo::spanned_data" + tensor_arguments(*view);
  }
  const auto* scalar = std::get_if<ir::ScalarType>(&returned->type);
  return scalar == nullptr ? "::choreo::s32" : cpp_name(scalar->dtype);
}

std::string return_statement(const Returned& returned) {
  const auto* view = std::get_if<ir::ViewType>(&returned.type);
  if (view == nullptr) {
    return format(" return kiln_call.scalar<{}>();", result_type(returned));
  }
  if (returned.param != nullptr) {
    return format(" return kiln_call.copy_of(kiln_{}, {});", returned.index,
                  returned.param->is_global);
  }
  return format(" return kiln_call.result{}();", tensor_arguments(*view));
}

}  // namespace

std::string wrapper(const TileFunction& tile, std::size_t index) {
  const ir::Function& function = *tile.function;
  const std::optional<Returned> returned = returned_of(function);
  std::string params;
  std::string body;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    const std::string quoted = escape_for(Medium::kString, param.name);
    if (const ir::ViewType* view = view_of(function, param)) {
      params += format("const ::choreo::spanned_view{}& kiln_{}, ", tensor_arguments(*view), i);
      body += format(" kiln_call.tensor(\"{}\", kiln_{}, {});", quoted, i, param.is_global);
    } else {
      params += format("{} kiln_{}, ", number_type(function, param), i);
      body += format(" kiln_call.number(\"{}\", kiln_{});", quoted, i);
    }
  }
  std::string text = format(
      "inline {} {}({}const char* kiln_file = __builtin_FILE(), int kiln_line = __builtin_LINE()) "
      "{{",
      result_type(returned), function.name, params);
  text +=
      format(" ::kiln::host::Call kiln_call(kiln_function_{}, {{kiln_file, kiln_line}});", index);
  text += body + " kiln_call.run();";
  if (returned) text += return_statement(*returned);
  return text + " }";
}

}  // namespace kiln::host
