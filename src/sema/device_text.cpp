#include "sema/device_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

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

// The macros that texts name, and those that these name.
class UsedMacros {
 public:
  explicit UsedMacros(const ast::Ast& ast) : ast_(ast) {}

  void look_at(std::string_view text) {
    for (const std::string& name : ir::names_in_cpp(text)) {
      if (!seen_.insert(name).second) continue;
      for (const ast::MacroText& macro : ast_.macros) {
        if (macro.name == name) look_at(std::string_view(macro.text).substr(sizeof "#define"));
      }
    }
  }

  [[nodiscard]] std::string text() const {
    std::string out;
    for (const ast::MacroText& macro : ast_.macros) {
      if (seen_.contains(macro.name) && !hidden_.contains(macro.name)) out += macro.text + "\n";
    }
    return out;
  }

  // What the program calls so is no macro in its texts.
  void hide(const std::vector<std::string>& names) {
    seen_.insert(names.begin(), names.end());
    hidden_.insert(names.begin(), names.end());
  }

 private:
  const ast::Ast& ast_;
  std::set<std::string> seen_;
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
  UsedMacros macros(ast);
  for_each_cuda(functions, [&](const ir::Cuda& cuda) { macros.hide(cuda.names); });
  for_each_cuda(functions, [&](const ir::Cuda& cuda) { macros.look_at(cuda.text); });
  for (const ast::Region& region : ast.regions) {
    const auto* device = std::get_if<ast::DeviceText>(&region);
    const auto* block = std::get_if<ast::KernelBlock>(&region);
    if (device == nullptr && block == nullptr) continue;
    const Span span = device != nullptr ? device->span : block->content;
    parts.push_back({std::string(sources.text(span)), span});
    macros.look_at(parts.back().text);
  }
  const std::string head =
      (parts.empty() ? std::string() : toolkit_includes(ast, sources)) + macros.text();
  if (!head.empty()) parts.insert(parts.begin(), {head, {}});
  return parts;
}

}  // namespace kiln::sema
