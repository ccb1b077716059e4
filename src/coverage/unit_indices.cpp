#include "coverage/unit_indices.h"

namespace kiln::coverage {

// An instance's number counts its axes, the last one fastest.
void set_unit_indices(const ir::Function& function, const std::vector<ir::OpId>& nest,
                      std::int64_t block_threads, std::int64_t thread,
                      std::vector<std::int64_t>& values) {
  std::int64_t around = block_threads;
  for (const ir::OpId id : nest) {
    const auto& parallel = std::get<ir::Parallel>(function.ops[id].data);
    std::int64_t instance = thread % around / parallel.unit;
    for (auto var = parallel.vars.rbegin(); var != parallel.vars.rend(); ++var) {
      const std::int64_t extent = function.vars[*var].extent.constant().value_or(1);
      values[var->index] = instance % extent;
      instance /= extent;
    }
    around = parallel.unit;
  }
}

}  // namespace kiln::coverage
