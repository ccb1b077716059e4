// The decided modules in testdata/, for tests that emit, compile and run them.
//
//   Sources sources;
//   ir::Module module = load_sample(KILN_EMIT_TESTDATA "/memories.kir", sources);
#pragma once

#include <string>

#include "ir/print.h"
#include "support/check.h"
#include "support/file.h"

namespace kiln::emit {

inline ir::Module load_sample(const std::string& path, Sources& sources) {
  Diagnostics diags;
  const auto text = read_file(path);
  KILN_CHECK(text.has_value(), "{}", text.error().text());
  auto module = ir::parse(sources, sources.add(path.substr(path.rfind('/') + 1), *text), diags);
  KILN_CHECK(module.has_value(), "{}", diags.all().empty() ? "" : diags.all()[0].message);
  return std::move(*module);
}

// The sample as if it had been decided for this architecture: samples are of sm_90a mostly, and what
// only its launches can do is left out for others.
inline ir::Module load_sample(const std::string& path, const target::Arch& arch, Sources& sources) {
  ir::Module module = load_sample(path, sources);
  module.arch = &arch;
  for (ir::Function& function : module.functions) {
    for (const ir::OpId id : ir::launches(function)) {
      auto& launch = std::get<ir::Parallel>(function.ops[id].data);
      launch.overlaps = launch.overlaps && arch.has(target::Feature::kGriddepcontrol);
    }
  }
  return module;
}

}  // namespace kiln::emit
