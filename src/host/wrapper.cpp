#include "host/wrapper.h"

#include "reference/outputs.h"
#include "support/dtype.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::host {

namespace {

// What the function returns; nothing for void.
struct Returned {
  ir::Type type;
  const ir::Param* param = nullptr;  // one that the caller's memory holds
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
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    if (!slot.param || slot.value != root) continue;
    out.param = &function.params[*slot.param];
    out.index = *slot.param;
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

// Whether nobody waits for any launch of it.
bool is_asynchronous(const ast::Ast& tree, const ast::TileFunction& function) {
  if (!function.body.valid()) return false;
  const auto* block = tree.as<ast::BlockStmt>(function.body);
  if (block == nullptr) return false;
  bool out = false;
  for (const ast::StmtId id : block->body) {
    const auto* parallel = tree.as<ast::ParallelStmt>(id);
    if (parallel == nullptr) continue;
    if (!parallel->is_async) return false;
    out = true;
  }
  return out;
}

// A parameter's declaration, what is done with it, and how it is handed on.
struct Part {
  std::string param;
  std::string statement;
  std::string argument;
};

Part part_of(const ir::Function& function, std::size_t index) {
  const ir::Param& param = function.params[index];
  const std::string quoted = escape_for(Medium::kString, param.name);
  if (const ir::ViewType* view = view_of(function, param)) {
    return {format("const ::choreo::spanned_view{}& kiln_{}, ", tensor_arguments(*view), index),
            format(" kiln_call.tensor(\"{}\", kiln_{}, {});", quoted, index, param.is_global),
            format("kiln_{}", index)};
  }
  return {format("{} kiln_{}, ", number_type(function, param), index),
          format(" kiln_call.number(\"{}\", kiln_{});", quoted, index), format("kiln_{}", index)};
}

// Streams are parameters in host code alone; all launches are on the first one.
std::vector<Part> parts_of(const ir::Function& function, const ast::TileFunction& written) {
  std::vector<Part> out;
  std::size_t next = 0;
  std::size_t streams = 0;
  for (const ast::Param& param : written.params) {
    if (param.type.kind == ast::ParamType::Kind::kStream) {
      out.push_back({format("cudaStream_t kiln_stream_{}, ", streams),
                     streams == 0 ? " kiln_call.stream(kiln_stream_0);" : "",
                     format("kiln_stream_{}", streams)});
      ++streams;
      continue;
    }
    // One whose condition does not hold is none of the function's.
    const bool exists = next < function.params.size() &&
                        (!param.name.valid() || function.params[next].name == param.name.text);
    if (exists) out.push_back(part_of(function, next++));
  }
  return out;
}

// The same function without the parameters for the place of the call: what a pointer to it points to.
// A call by name prefers the other one, which is no template. Its calls are placed at the function.
std::string without_place(const std::string& result, const std::string& name,
                          const std::vector<Part>& parts) {
  std::string params = join(parts, "", [](const Part& part) { return part.param; });
  if (!params.empty()) params.resize(params.size() - 2);
  return format(" template <class = void> inline {} {}({}) {{ return {}({}__FILE__, __LINE__); }}",
                result, name, params, name,
                join(parts, "", [](const Part& part) { return part.argument + ", "; }));
}

}  // namespace

std::string wrapper(const TileFunction& tile, const ast::Ast& tree,
                    const ast::TileFunction& written, std::size_t index) {
  const ir::Function& function = *tile.function;
  const std::optional<Returned> returned = returned_of(function);
  const std::vector<Part> parts = parts_of(function, written);
  std::string params;
  std::string body;
  for (const Part& part : parts) {
    params += part.param;
    body += part.statement;
  }
  if (is_asynchronous(tree, written)) body += " kiln_call.asynchronous();";
  std::string text = format(
      "inline {} {}({}const char* kiln_file = __builtin_FILE(), int kiln_line = __builtin_LINE()) "
      "{{",
      result_type(returned), function.name, params);
  text +=
      format(" ::kiln::host::Call kiln_call(kiln_function_{}, {{kiln_file, kiln_line}});", index);
  text += body + " kiln_call.run();";
  if (returned) text += return_statement(*returned);
  return text + " }" + without_place(result_type(returned), function.name, parts);
}

}  // namespace kiln::host
