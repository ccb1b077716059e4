#include "host/program_text.h"

#include <algorithm>
#include <cctype>

#include "host/wrapper.h"
#include "support/check.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::host {

namespace {

// What stands in the place of a region; "" leaves only its lines.
struct Replacement {
  Span span;
  std::string text;
};

// A constant of a type that C++ has too stays as it is.
bool is_cpp(std::string_view constant) {
  for (const std::string_view begin : {"constexpr int ", "constexpr bool "}) {
    if (constant.starts_with(begin)) return true;
  }
  return false;
}

// `__host__ __device__ float scaled(float x) ...`
bool is_of_host(std::string_view device_text) {
  const std::size_t body = std::min(device_text.find('{'), device_text.size());
  return device_text.substr(0, body).find("__host__") != std::string_view::npos;
}

std::vector<Replacement> replacements(const HostProgram& program) {
  std::vector<Replacement> out;
  for (const ast::Region& region : program.tree.regions) {
    if (const auto* constant = std::get_if<ast::Constant>(&region)) {
      const std::string_view text = program.sources.text(constant->span);
      if (!is_cpp(text)) out.push_back({constant->span, ""});
    }
    // Kernels are compiled elsewhere, with the text as it stands. What the host may call stays here too.
    const auto* device = std::get_if<ast::DeviceText>(&region);
    const auto* block = std::get_if<ast::KernelBlock>(&region);
    if (device != nullptr && !is_of_host(program.sources.text(device->span))) {
      out.push_back({device->span, ""});
    }
    if (block != nullptr) out.push_back({block->span, ""});
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr) continue;
    out.push_back({function->span, ""});
    for (std::size_t i = 0; !function->is_device && i < program.functions.size(); ++i) {
      const TileFunction& tile = program.functions[i];
      if (tile.function->name == function->name.text) {
        out.back().text = wrapper(tile, program.tree, *function, i);
      }
    }
  }
  std::erase_if(out, [&](const auto& r) { return r.span.file != program.tree.file; });
  std::ranges::sort(out, {}, [](const auto& r) { return r.span.begin; });
  return out;
}

// What stops the host compiler where host code has another value of a constant than tile functions,
// as with a macro that only one of the two compilers was told. At the end of the file, which every
// `#if` reaches.
std::string checks(const HostProgram& program) {
  std::string out;
  if (program.functions.empty()) return out;
  for (const ir::FileConstant& shared : program.functions[0].function->file_constants) {
    const bool is_seen = std::ranges::any_of(program.tree.regions, [&](const ast::Region& region) {
      const auto* constant = std::get_if<ast::Constant>(&region);
      return constant != nullptr && constant->span.file == program.tree.file &&
             is_cpp(program.sources.text(constant->span)) &&
             std::ranges::any_of(program.tree.as<ast::ConstantStmt>(constant->statement)->items,
                                 [&](const auto& item) { return item.name.text == shared.name; });
    });
    if (!is_seen) continue;
    out += format(
        "static_assert({0} == {1}, \"tile functions were compiled with {0} = {1}: say macros "
        "with -D before `--`\");\n",
        shared.name, shared.value);
  }
  return out;
}

// Host code as it stands, but for the `#define`s that `-D` beats.
std::string host_code(const HostProgram& program, std::string_view text) {
  std::string out;
  bool goes_on = false;  // a definition that is left out
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    const auto is_beaten = [&](const std::string& define) {
      const std::string begin = "#define " + define.substr(0, define.find('='));
      return line.starts_with(begin) &&
             (line.size() == begin.size() || std::isspace(line[begin.size()]) != 0);
    };
    const bool left_out = goes_on || std::ranges::any_of(program.defines, is_beaten);
    goes_on = left_out && line.ends_with("\\\n");
    if (!left_out) out += line;
    if (left_out && line.ends_with('\n')) out += '\n';
  }
  return out;
}

std::string newlines_of(std::string_view text) {
  return std::string(static_cast<std::size_t>(std::ranges::count(text, '\n')), '\n');
}

// The text as string literals, one for each line.
std::string literal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out += format("    \"{}\"\n", escape_for(Medium::kString, text.substr(0, end)));
    text.remove_prefix(end);
  }
  return out.empty() ? "    \"\"\n" : out;
}

// Those of all kernels but one; functions that kernels call stay.
std::string others(const HostProgram& program, const std::string& name, std::size_t& count) {
  std::string out;
  for (const ast::Region& region : program.tree.regions) {
    const auto* function = std::get_if<ast::TileFunction>(&region);
    if (function == nullptr || function->is_device || function->name.text == name) continue;
    if (function->span.file != program.tree.file) continue;
    out += format("{{{}, {}}}, ", function->span.begin, function->span.end);
    ++count;
  }
  return out;
}

std::string function_rows(const HostProgram& program) {
  std::string out;
  for (std::size_t i = 0; i < program.functions.size(); ++i) {
    const TileFunction& tile = program.functions[i];
    std::size_t count = 0;
    const std::string stretches = others(program, tile.function->name, count);
    const std::string constants = join(tile.constants, ", ", [](const Constant& constant) {
      return format("{{\"{}\", {}, {}}}", escape_for(Medium::kString, constant.name),
                    constant.tensor, constant.dim);
    });
    // An array has at least one element.
    out += format("const ::kiln::host::Stretch kiln_others_{}[] = {{{}{{0, 0}}}};\n", i, stretches);
    out += format("const ::kiln::host::Constant kiln_constants_{}[] = {{{}{}{{\"\", 0, 0}}}};\n", i,
                  constants, constants.empty() ? "" : ", ");
    out += format(
        "const ::kiln::host::Function kiln_function_{} = {{&kiln_source, \"{}\", kiln_others_{}, "
        "{}, "
        "kiln_constants_{}, {}}};\n",
        i, escape_for(Medium::kString, tile.function->name), i, count, i, tile.constants.size());
  }
  return out;
}

std::string_view name_of(On on) {
  switch (on) {
    case On::kAuto: return "kAuto";
    case On::kSim: return "kSim";
    case On::kGpu: return "kGpu";
  }
  KILN_UNREACHABLE("on {}", static_cast<int>(on));
}

std::string head(const HostProgram& program) {
  const FileId file = program.tree.file;
  const std::string name = escape_for(Medium::kString, program.sources.name(file));
  std::string defines = join(program.defines, ", ", [](const std::string& define) {
    return format("\"{}\"", escape_for(Medium::kString, define));
  });
  if (defines.empty()) defines = "nullptr";
  std::string out = "#include \"kiln/co.h\"\nnamespace {\n";
  out += "const char kiln_text[] =\n" + literal(program.sources.text(file)) + ";\n";
  out += format("const char* const kiln_defines[] = {{{}}};\n", defines);
  out += format(
      "const ::kiln::host::Source kiln_source = {{\"{}\", kiln_text, \"{}\", kiln_defines, {}}};\n",
      name, program.arch, program.defines.size());
  out += function_rows(program) + "}  // namespace\n";
  out += format("::kiln::host::Target kiln::host::target() {{ return {{On::{}, \"{}\"}}; }}\n",
                name_of(program.on), program.arch);
  return out + format("#line 1 \"{}\"\n", name);
}

// `main` as a word of its own that a `(` follows.
bool names_main(std::string_view text) {
  constexpr std::string_view kMain = "main";
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t at = text.find(kMain); at != std::string_view::npos;
       at = text.find(kMain, at + 1)) {
    if (at != 0 && is_word(text[at - 1])) continue;
    const std::size_t after = text.find_first_not_of(" \t\r\n", at + kMain.size());
    if (after != std::string_view::npos && text[after] == '(') return true;
  }
  return false;
}

}  // namespace

std::string program_text(const HostProgram& program) {
  const std::string_view text = program.sources.text(program.tree.file);
  std::string out = head(program);
  std::size_t at = 0;
  for (const Replacement& replacement : replacements(program)) {
    if (replacement.span.begin < at) continue;
    out += host_code(program, text.substr(at, replacement.span.begin - at));
    out += replacement.text + newlines_of(program.sources.text(replacement.span));
    at = replacement.span.end;
  }
  return out + host_code(program, text.substr(at)) + "\n" + checks(program);
}

bool has_main(const ast::Ast& tree, const Sources& sources) {
  return std::ranges::any_of(tree.regions, [&](const ast::Region& region) {
    const auto* host = std::get_if<ast::HostText>(&region);
    return host != nullptr && names_main(sources.text(host->span));
  });
}

}  // namespace kiln::host
