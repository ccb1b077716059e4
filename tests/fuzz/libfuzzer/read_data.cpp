// Files and options that are no programs: arrays, formulas, tables, layouts, assignments.
#include "gemm/tuned.h"
#include "io/assignments.h"
#include "io/npy.h"
#include "layout/print.h"
#include "reference/formula.h"
#include "targets.h"

namespace kiln::fuzz {

// What was read is written, read and the same.
void read_npy(std::string_view bytes) {
  const auto array = io::parse_npy(bytes, "fuzz.npy");
  if (!array) return;
  const auto again = io::parse_npy(io::npy_bytes(array->tensor), "again.npy");
  KILN_CHECK(again.has_value(), "what was written is refused: {}", again.error().text());
  KILN_CHECK(again->tensor.elements() == array->tensor.elements(), "{} elements became {}",
             array->tensor.elements(), again->tensor.elements());
}

// The formula alone, then against three small tensors.
void read_einsum(std::string_view bytes) {
  Sources sources;
  Diagnostics diags;
  auto formula = reference::parse_formula(std::string(bytes), sources, diags);
  if (!formula) return;
  const Tensor x = Tensor::zeros(DType::kF16, {3, 4});
  const Tensor y = Tensor::zeros(DType::kS8, {5, 4});
  const Tensor z = Tensor::zeros(DType::kF32, {3, 5});
  const std::vector<reference::Named> tensors = {{"x", &x}, {"y", &y}, {"z", &z}};
  const auto bound = reference::bind(std::move(*formula),
                                     {tensors, {{"alpha", {0.5, 0}, DType::kF32}}, {"z"}}, diags);
  if (bound) (void)reference::evaluate(*bound, {});
}

// A table that is accepted is the same when it is written and read again.
void read_tuned(std::string_view bytes) {
  const auto table = gemm::parse_table(bytes, "fuzz.json");
  if (!table) return;
  const std::string text = gemm::table_text(*table);
  const auto again = gemm::parse_table(text, "again.json");
  KILN_CHECK(again.has_value(), "{} of\n{}", again.error().text(), text);
  const std::string second = gemm::table_text(*again);
  KILN_CHECK(second == text, "written\n{}then\n{}", text, second);
}

void read_layout(std::string_view bytes) {
  const auto layout = parse_swizzled(bytes);
  if (!layout) return;
  const std::string text = to_text(*layout);
  const auto again = parse_swizzled(text);
  KILN_CHECK(again.has_value() && to_text(*again) == text, "`{}` is not read back", text);
}

// Lines that follow `-D`, `--shape` and `--in`, in turn.
void read_options(std::string_view bytes) {
  std::vector<std::string> lists[3];
  for (std::size_t turn = 0; !bytes.empty(); ++turn) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    lists[turn % 3].emplace_back(line);
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  }
  Diagnostics diags;
  (void)io::parse_definitions(lists[0], diags);
  (void)io::parse_assignments("--shape", lists[1], io::ListForm::kCommaSeparated, diags);
  (void)io::parse_assignments("--in", lists[2], io::ListForm::kSingle, diags);
}

}  // namespace kiln::fuzz
