#include "ir/verify.h"

#include "ir/rules.h"

namespace kiln::ir {

const Parallel* innermost_parallel(const Function& function, const std::vector<OpId>& enclosing) {
  for (auto id = enclosing.rbegin(); id != enclosing.rend(); ++id) {
    if (const Parallel* found = std::get_if<Parallel>(&function.ops[*id].data)) return found;
  }
  return nullptr;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    for (const auto part : {structure_rules(), memory_rules(), scalar_rules(), decided_rules(),
                            register_rules(), meeting_rules(), launch_rules()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

std::vector<std::string> verify(const Module& module) {
  std::vector<std::string> broken;
  for (const Function& function : module.functions) {
    for (const Rule& rule : rules()) {
      if (module.form < rule.from) continue;
      Mistakes mistakes;
      rule.check(module, function, mistakes);
      for (const std::string& mistake : mistakes) {
        broken.push_back(format("{}: @{}: {}", rule.name, function.name, mistake));
      }
    }
  }
  return broken;
}

}  // namespace kiln::ir
