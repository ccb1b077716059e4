#include "sema/scope.h"

#include <algorithm>

namespace kiln::sema {

const Symbol* Scopes::find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found != scope->end()) return &found->second;
  }
  return nullptr;
}

std::size_t Scopes::depth_of(const std::string& name) const {
  for (std::size_t depth = scopes_.size(); depth-- > 0;) {
    if (scopes_[depth].contains(name)) return depth;
  }
  return 0;
}

const Symbol* Scopes::find_here(const std::string& name) const {
  const auto found = scopes_.back().find(name);
  return found == scopes_.back().end() ? nullptr : &found->second;
}

void Scopes::declare(const std::string& name, Symbol symbol) {
  scopes_.back().insert_or_assign(name, std::move(symbol));
}

void Scopes::replace(const std::string& name, Symbol symbol) {
  scopes_[depth_of(name)].at(name) = std::move(symbol);
}

void Scopes::declare_outermost(const std::string& name, Symbol symbol) {
  scopes_.front().insert_or_assign(name, std::move(symbol));
}

std::vector<std::string> Scopes::names() const {
  std::vector<std::string> out;
  for (const auto& scope : scopes_) {
    for (const auto& [name, symbol] : scope) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace kiln::sema
