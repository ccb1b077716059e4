#include <algorithm>

#include "backends/backend.h"
#include "support/check.h"
#include "support/format.h"

namespace kiln::backends {

namespace {

// A back end is a row here and the file (or folder) behind it.
constexpr const Backend* kTable[] = {&kSim, &kGpu, &kReference};

constexpr std::string_view kAuto = "auto";

const Backend* preferred(const target::Arch& arch) {
  const Backend* best = nullptr;
  for (const Backend* row : kTable) {
    const int least = best == nullptr ? 0 : best->preference;
    if (row->preference > least && row->serves(arch)) best = row;
  }
  return best;
}

}  // namespace

std::span<const Backend* const> backends() { return kTable; }

std::string backend_names() {
  return format("{}, {}", kAuto,
                join(kTable, ", ", [](const Backend* row) { return std::string(row->name); }));
}

const Backend* choose_backend(std::string_view name, const target::Arch& arch) {
  if (name == kAuto) return preferred(arch);
  const auto found = std::ranges::find(kTable, name, &Backend::name);
  return found == std::end(kTable) ? nullptr : *found;
}

const Backend& counter() {
  const auto found =
      std::ranges::find_if(kTable, [](const Backend* row) { return row->count != nullptr; });
  KILN_CHECK(found != std::end(kTable), "no back end counts");
  return **found;
}

Tensor result_of(const ir::Arguments& arguments, const reference::Output& output) {
  if (output.param) return arguments.params[*output.param].tensor;
  if (!output.shape.empty()) return arguments.returned.tensor;
  Tensor scalar = Tensor::zeros(output.dtype, {});
  scalar.set(0, arguments.returned.scalar);
  return scalar;
}

}  // namespace kiln::backends
