#include "driver/header_text.h"

#include <algorithm>
#include <optional>

#include "emit/cuda/names.h"
#include "reference/outputs.h"
#include "support/dtype.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::driver {

namespace {

// A parameter of the functions, or what they return.
struct Argument {
  std::string name;   // in C
  std::string shown;  // in the language
  DType dtype = DType::kS32;
  const ir::ViewType* view = nullptr;  // of a tensor
  bool is_written = false;
  bool is_returned = false;
};

struct Dimension {
  std::string name;
  std::string shown;
  std::string extent;  // "x.extent(0)"; "": no tensor says it
};

// One kernel's functions. Their first parameter is called `stream`, which is no name of the NameTable's.
struct Wrapper {
  const ir::Function& function;
  std::string name;    // in C++
  std::string c_name;  // in C: with the name space
  std::string place;
  std::vector<Argument> arguments;
  std::vector<Dimension> dimensions;
};

void set_type(Argument& argument, const ir::Type& type) {
  argument.view = std::get_if<ir::ViewType>(&type);
  if (argument.view != nullptr) argument.dtype = argument.view->dtype;
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) argument.dtype = scalar->dtype;
}

void add_arguments(Wrapper& wrapper, emit::NameTable& names) {
  const ir::Function& function = wrapper.function;
  const std::vector<reference::OutputSlot> slots = reference::output_slots(function);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    Argument argument{.name = names.claim(param.name), .shown = param.name};
    if (param.value.valid()) set_type(argument, function.type(param.value));
    argument.is_written =
        std::ranges::any_of(slots, [&](const auto& slot) { return slot.param == i; });
    wrapper.arguments.push_back(std::move(argument));
  }
  for (const reference::OutputSlot& slot : slots) {
    if (slot.param) continue;
    const std::string shown = slot.name.empty() ? "result" : slot.name;
    Argument argument{.name = names.claim(shown), .shown = shown};
    set_type(argument, function.type(slot.value));
    argument.is_written = argument.is_returned = true;
    wrapper.arguments.push_back(std::move(argument));
  }
}

std::string extent_of(const Wrapper& wrapper, ir::VarId var) {
  for (const Argument& argument : wrapper.arguments) {
    if (argument.view == nullptr || argument.is_returned) continue;
    for (std::size_t dim = 0; dim < argument.view->shape.size(); ++dim) {
      if (argument.view->shape[dim].as_var() == var) {
        return format("{}.extent({})", argument.name, dim);
      }
    }
  }
  return "";
}

// "my_norm_" of the name space `my::norm`.
std::string prefix_of(const CarriedFile& file) {
  std::string out;
  for (const char c : file.name_space) {
    if (c != ':' || !out.ends_with('_')) out += c == ':' ? '_' : c;
  }
  return out.empty() ? "" : out + "_";
}

Wrapper wrapper_of(const CarriedFile& file, std::size_t index, emit::NameTable& kernels) {
  const ir::Function& function = *file.kernels[index];
  emit::NameTable names;
  const std::string name = kernels.claim_kernel(function.name);
  Wrapper out{.function = function,
              .name = name,
              .c_name = emit::launcher_name(prefix_of(file) + name),
              .place = index < file.places.size() ? file.places[index] : "",
              .arguments = {},
              .dimensions = {}};
  for (const char* own : {"kiln_arguments", "kiln_dimensions", "kiln_call"}) names.claim(own);
  add_arguments(out, names);
  for (std::uint32_t i = 0; i < function.vars.size(); ++i) {
    const ir::VarId var{i};
    if (function.vars[var].kind != ir::VarKind::kDim) continue;
    const std::string& shown = function.vars[var].name;
    out.dimensions.push_back({names.claim(shown), shown, extent_of(out, var)});
  }
  return out;
}

std::vector<Wrapper> wrappers_of(const CarriedFile& file) {
  emit::NameTable names;
  std::vector<Wrapper> out;
  for (std::size_t i = 0; i < file.kernels.size(); ++i) out.push_back(wrapper_of(file, i, names));
  return out;
}

// The type of C and C++ with the same values; "" where there is none.
std::string plain_type(DType dtype) {
  if (dtype == DType::kF64) return "double";
  if (dtype == DType::kF32 || dtype == DType::kTF32) return "float";
  if (dtype == DType::kBool) return "bool";
  if (!is_integer(dtype)) return "";
  // Of fewer than 8 bits each has a byte.
  return format("{}int{}_t", info(dtype).kind == NumberKind::kSigned ? "" : "u",
                8 * size_bytes(dtype));
}

std::string number_type(DType dtype) {
  const std::string plain = plain_type(dtype);
  return plain.empty() ? "float" : plain;
}

std::string c_parameter(const Argument& argument) {
  if (argument.view == nullptr) {
    return format("{}{}{}", number_type(argument.dtype), argument.is_returned ? "* " : " ",
                  argument.name);
  }
  const std::string plain = plain_type(argument.dtype);
  return format("{}{}* {}", argument.is_written ? "" : "const ", plain.empty() ? "void" : plain,
                argument.name);
}

std::string cpp_parameter(const Argument& argument) {
  if (argument.view == nullptr) return c_parameter(argument);
  const std::string plain = plain_type(argument.dtype);
  return format("const kiln::DeviceTensor<{}{}, {}>& {}", argument.is_written ? "" : "const ",
                plain.empty() ? format("kiln::dtypes::{}", name(argument.dtype)) : plain,
                argument.view->shape.size(), argument.name);
}

std::string c_declaration(const Wrapper& wrapper) {
  std::string out = format("kiln_status {}(void* stream", wrapper.c_name);
  for (const Argument& argument : wrapper.arguments) out += ", " + c_parameter(argument);
  for (const Dimension& dimension : wrapper.dimensions) out += ", int64_t " + dimension.name;
  return out + ")";
}

std::string cpp_declaration(const Wrapper& wrapper) {
  std::string out = format("[[nodiscard]] inline kiln::Failure {}(void* stream", wrapper.name);
  for (const Argument& argument : wrapper.arguments) out += ", " + cpp_parameter(argument);
  for (const Dimension& dimension : wrapper.dimensions) {
    if (dimension.extent.empty()) out += ", std::int64_t " + dimension.name;
  }
  return out + ")";
}

// The kernel with its place, which kilnCheckNames.cmake reads, and its arguments, one on each line.
std::string comment_on(const Wrapper& wrapper) {
  const ir::Function& function = wrapper.function;
  std::string out =
      format("\n// {}{}{}\n", escape_for(Medium::kComment, function.name),
             wrapper.place.empty() ? "" : " of ", escape_for(Medium::kComment, wrapper.place));
  for (const Argument& argument : wrapper.arguments) {
    std::string text = format("{}: {}", argument.name, name(argument.dtype));
    if (argument.view != nullptr) {
      text += format(" [{}]", join(argument.view->shape, ", ",
                                   [&](const ir::Expr& extent) { return function.text(extent); }));
      text += argument.is_returned ? ", returned" : argument.is_written ? ", written" : "";
    } else if (argument.is_returned) {
      text += ", returned: in host memory, or null";
    }
    out += format("//   {}\n", escape_for(Medium::kComment, text));
  }
  return out;
}

std::string argument_text(const Argument& argument, bool in_cpp) {
  if (argument.view != nullptr && in_cpp) return format("{}.argument()", argument.name);
  if (argument.view != nullptr || argument.is_returned) {
    return format("kiln_tensor_argument({}, NULL)", argument.name);
  }
  if (is_float(argument.dtype)) return format("kiln_real_argument({})", argument.name);
  return format("kiln_integer_argument((int64_t){})", argument.name);
}

// `name`, its elements and their number as an array and what initialises a pointer and a count.
std::string array_text(const std::string& type, const std::string& name,
                       const std::vector<std::string>& items) {
  if (items.empty()) return "";
  return format("  const {} {}[] = {{{}}};\n", type, name,
                join(items, ", ", [](const std::string& item) { return item; }));
}
std::string use_text(const std::string& name, const std::vector<std::string>& items) {
  return items.empty() ? "NULL, 0" : format("{}, {}", name, items.size());
}

std::string call_text(const Wrapper& wrapper, bool in_cpp) {
  std::vector<std::string> arguments;
  std::vector<std::string> dimensions;
  for (const Argument& argument : wrapper.arguments) {
    arguments.push_back(argument_text(argument, in_cpp));
  }
  for (const Dimension& dimension : wrapper.dimensions) {
    const bool by_tensor = in_cpp && !dimension.extent.empty();
    dimensions.push_back(by_tensor ? dimension.extent : dimension.name);
  }
  std::string out = array_text("kiln_embedded_argument", "kiln_arguments", arguments);
  out += array_text("int64_t", "kiln_dimensions", dimensions);
  return out + format("  const kiln_embedded_call kiln_call = {{\"{}\", {}, {}, stream}};\n",
                      escape_for(Medium::kString, wrapper.function.name),
                      use_text("kiln_arguments", arguments),
                      use_text("kiln_dimensions", dimensions));
}

// Of the variable that holds what is carried.
std::string variable_name(const CarriedFile& file) {
  return "kiln_embedded_" + prefix_of(file) +
         emit::word_of(file.name.substr(0, file.name.rfind(".co")));
}

std::string opening(const CarriedFile& file) {
  std::string out = format("// Made by kiln {} from {} for {}", KILN_VERSION,
                           escape_for(Medium::kComment, file.name),
                           join(file.archs, ", ", [](const auto& arch) { return arch; }));
  for (const std::string& define : file.defines) {
    out += " -D " + escape_for(Medium::kComment, define);
  }
  return out + "; changes belong there.\n";
}

// A literal of C; `??` would begin a trigraph in strict C11.
std::string literal(std::string_view text) {
  std::string out = escape_for(Medium::kString, text);
  for (std::size_t at = out.find("??"); at != std::string::npos; at = out.find("??", at + 2)) {
    out.insert(at + 1, "\\");
  }
  return "\"" + out + "\"";
}

// `static const char* const NAME[] = {...};`; an array has at least one element.
std::string literals(const std::string& name, const std::vector<std::string>& texts) {
  std::string out = format("static const char* const {}[] = {{\n", name);
  for (const std::string& text : texts) out += format("    {},\n", literal(text));
  return out + (texts.empty() ? "    NULL,\n" : "") + "};\n";
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

std::string code_text(const CarriedCode& code, std::size_t index) {
  constexpr std::size_t kPerLine = 24;
  std::string out = format("\n// {} for {}\nstatic const unsigned char kiln_code_{}[] = {{",
                           escape_for(Medium::kComment, code.kernel), code.arch, index);
  for (std::size_t i = 0; i < code.bytes.size(); ++i) {
    out += i % kPerLine == 0 ? "\n    " : "";
    out += format("{},", static_cast<unsigned>(static_cast<unsigned char>(code.bytes[i])));
  }
  return out + "\n};\n";
}

std::string codes_text(const CarriedFile& file) {
  std::string out;
  std::string rows;
  for (std::size_t i = 0; i < file.codes.size(); ++i) {
    out += code_text(file.codes[i], i);
    rows += format("    {{\"{}\", kiln_code_{}, sizeof kiln_code_{}}},\n", file.codes[i].key, i, i);
  }
  if (rows.empty()) return "";
  return out + format("static const kiln_machine_code kiln_codes[] = {{\n{}}};\n", rows);
}

}  // namespace

std::string header_text(const CarriedFile& file) {
  const std::vector<Wrapper> wrappers = wrappers_of(file);
  std::string out = opening(file);
  out +=
      "//\n// The first argument is a cudaStream_t or CUstream; null: the default stream. Tensors "
      "lie on\n"
      "// the device, rows without gaps. kiln/embedded.h says what else there is to know.\n"
      "#pragma once\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
      "#include \"kiln/embedded.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
      "// What the functions call.\n";
  out += format("extern kiln_embedded {};\n", variable_name(file));
  for (const Wrapper& wrapper : wrappers) {
    out += comment_on(wrapper) + c_declaration(wrapper) + ";\n";
  }
  out +=
      "\n#ifdef __cplusplus\n}  // extern \"C\"\n\n#include \"kiln/device_tensor.h\"\n\n"
      "// The same with tensors that know their extents: {pointer, extent, extent...}. What they "
      "return\n"
      "// is true where something is wrong, and says what.\n";
  if (!file.name_space.empty()) out += format("namespace {} {{\n", file.name_space);
  for (const Wrapper& wrapper : wrappers) {
    out += format("\n{} {{\n{}  return kiln::detail::launch({}, kiln_call);\n}}\n",
                  cpp_declaration(wrapper), call_text(wrapper, true), variable_name(file));
  }
  if (!file.name_space.empty()) out += format("\n}}  // namespace {}\n", file.name_space);
  return out + "#endif\n";
}

std::string source_text(const CarriedFile& file, const std::string& header) {
  std::string out = opening(file) + format("#include \"{}\"\n\n#include <stddef.h>\n\n",
                                           escape_for(Medium::kString, header));
  out += literals("kiln_lines", lines_of(file.text));
  out += literals("kiln_defines", file.defines) + literals("kiln_archs", file.archs);
  out += codes_text(file);
  out += format(
      "\nkiln_embedded {} = {{{}, kiln_lines, {}, kiln_defines, {}, kiln_archs, {}, {}, {}, "
      "NULL}};\n",
      variable_name(file), literal(file.name), lines_of(file.text).size(), file.defines.size(),
      file.archs.size(), file.codes.empty() ? "NULL" : "kiln_codes", file.codes.size());
  for (const Wrapper& wrapper : wrappers_of(file)) {
    out += format("\n{} {{\n{}  return kiln_embedded_launch(&{}, &kiln_call);\n}}\n",
                  c_declaration(wrapper), call_text(wrapper, false), variable_name(file));
  }
  return out;
}

}  // namespace kiln::driver
