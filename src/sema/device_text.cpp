#include "sema/device_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "ir/cpp_declarations.h"
#include "ir/cuda_text.h"

namespace kiln::sema {

namespace {

// Headers of the toolkit that device code is written with.
constexpr std::array<std::string_view, 4> kHeaders = {"cuda", "cooperative_groups", "mma.h",
                                                      "cub/"};

// `#include <cuda_fp16.h>` and its like in the host text.
std::string toolkit_includes(const ast::Ast& ast, const Sources& sources) {
  std::string out;
  for (const ast::Region& region : ast.regions) {
    const auto* host = std::get_if<ast::HostText>(&region);
    std::string_view text = host == nullptr ? std::string_view() : sources.text(host->span);
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      constexpr std::string_view kInclude = "#include <";
      const bool is_toolkit =
          line.starts_with(kInclude) && std::ranges::any_of(kHeaders, [&](std::string_view header) {
            return line.substr(kInclude.size()).starts_with(header);
          });
      if (is_toolkit) out += std::string(line.substr(0, line.find('>') + 1)) + "\n";
    }
  }
  return out;
}

// A type or a constant that stands between tile functions.
struct HostDeclaration {
  std::vector<std::string> names;
  ir::CudaPart part;
};

std::vector<HostDeclaration> host_declarations(const ast::Ast& ast, const Sources& sources) {
  std::vector<HostDeclaration> out;
  for (const ast::Region& region : ast.regions) {
    const auto* host = std::get_if<ast::HostText>(&region);
    const auto* constant = std::get_if<ast::Constant>(&region);
    if (host == nullptr && constant == nullptr) continue;
    const Span whole = host != nullptr ? host->span : constant->span;
    for (ir::CppDeclaration& one : ir::declarations_in_cpp(sources.text(whole))) {
      const Span span{whole.file, whole.begin + static_cast<std::uint32_t>(one.begin),
                      whole.begin + static_cast<std::uint32_t>(one.end)};
      out.push_back({std::move(one.names), {std::string(sources.text(span)), span}});
    }
  }
  return out;
}

// The macros, types and constants that texts name, and those that these name.
class UsedNames {
 public:
  UsedNames(const ast::Ast& ast, const Sources& sources)
      : ast_(ast), declarations_(host_declarations(ast, sources)) {}

  void look_at(std::string_view text) {
    for (const std::string& name : ir::names_in_cpp(text)) {
      if (!seen_.insert(name).second) continue;
      for (const ast::MacroText& macro : ast_.macros) {
        if (macro.name == name) look_at(std::string_view(macro.text).substr(sizeof "#define"));
      }
    }
    for (const std::string& word : ir::words_in_cpp(text)) {
      if (!words_.insert(word).second) continue;
      for (const HostDeclaration& declaration : declarations_) {
        if (std::ranges::find(declaration.names, word) == declaration.names.end()) continue;
        look_at(declaration.part.text);
      }
    }
  }

  // The declarations, of those that stand in several branches of `#if` the first.
  [[nodiscard]] std::vector<ir::CudaPart> declarations() const {
    std::vector<ir::CudaPart> out;
    std::set<std::string> made;
    for (const HostDeclaration& declaration : declarations_) {
      const auto is_used = [&](const std::string& name) {
        return words_.contains(name) && !hidden_.contains(name);
      };
      if (std::ranges::none_of(declaration.names, is_used)) continue;
      if (!made.insert(declaration.names.front()).second) continue;
      out.push_back(declaration.part);
    }
    return out;
  }

  [[nodiscard]] std::string macros() const {
    std::string out;
    for (const ast::MacroText& macro : ast_.macros) {
      if (seen_.contains(macro.name) && !hidden_.contains(macro.name)) out += macro.text + "\n";
    }
    return out;
  }

  // What the program calls so is no macro in its texts.
  void hide(const std::vector<std::string>& names) {
    seen_.insert(names.begin(), names.end());
    words_.insert(names.begin(), names.end());
    hidden_.insert(names.begin(), names.end());
  }

 private:
  const ast::Ast& ast_;
  std::vector<HostDeclaration> declarations_;
  std::set<std::string> seen_;
  std::set<std::string> words_;
  std::set<std::string> hidden_;
};

template <class Visit>
void for_each_cuda(const std::vector<ir::Function>& functions, Visit&& visit) {
  for (const ir::Function& function : functions) {
    for (const ir::Op& op : function.ops) {
      if (const auto* cuda = std::get_if<ir::Cuda>(&op.data)) visit(*cuda);
    }
  }
}

}  // namespace

std::vector<ir::CudaPart> cuda_parts(const ast::Ast& ast, const Sources& sources,
                                     const std::vector<ir::Function>& functions) {
  std::vector<ir::CudaPart> parts;
  UsedNames used(ast, sources);
  for_each_cuda(functions, [&](const ir::Cuda& cuda) { used.hide(cuda.names); });
  for_each_cuda(functions, [&](const ir::Cuda& cuda) { used.look_at(cuda.text); });
  for (const ast::Region& region : ast.regions) {
    const auto* device = std::get_if<ast::DeviceText>(&region);
    const auto* block = std::get_if<ast::KernelBlock>(&region);
    if (device == nullptr && block == nullptr) continue;
    const Span span = device != nullptr ? device->span : block->content;
    parts.push_back({std::string(sources.text(span)), span});
    used.look_at(parts.back().text);
  }
  const std::string head =
      (parts.empty() ? std::string() : toolkit_includes(ast, sources)) + used.macros();
  const std::vector<ir::CudaPart> declarations = used.declarations();
  parts.insert(parts.end(), declarations.begin(), declarations.end());
  // As the file has them, behind what it includes.
  std::ranges::stable_sort(parts, {}, [&](const ir::CudaPart& part) {
    return std::pair(part.span.file == ast.file, part.span.begin);
  });
  if (!head.empty()) parts.insert(parts.begin(), {head, {}});
  return parts;
}

}  // namespace kiln::sema
