// IR text: what parses and obeys the rules is printed, read and printed the same.
#include "ir/print.h"
#include "ir/verify.h"
#include "targets.h"

namespace kiln::fuzz {

void read_ir(std::string_view bytes) {
  Sources sources;
  Diagnostics diags;
  const auto module = ir::parse(sources, sources.add("fuzz.kir", std::string(bytes)), diags);
  if (!module || !ir::verify(*module).empty()) return;
  const std::string text = ir::print(*module);
  const auto again = ir::parse(sources, sources.add("printed.kir", text), diags);
  KILN_CHECK(again.has_value(), "what was printed does not parse:\n{}", text);
  const std::string second = ir::print(*again);
  KILN_CHECK(second == text, "printed\n{}then\n{}", text, second);
}

}  // namespace kiln::fuzz
