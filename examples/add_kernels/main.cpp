// Calls kernels of kernels.co: in the simulator, then on the GPU if there is one.
//
// Exit: 0 all elements are right, 1 some are not, 3 this machine has no GPU (stderr says so).
#include <cstdio>
#include <vector>

#include "../find_package/device.h"
#include "kernels.co.h"

namespace {

constexpr std::int64_t kN = 100;

bool is_right(const std::vector<float>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] != static_cast<float>(i) * 2 + 1) return false;
  }
  return true;
}

int say(const kiln::Failure& failed) {
  std::fprintf(stderr, "%s\n", failed.text.c_str());
  return failed.status == KILN_NO_GPU ? 3 : 1;
}

}  // namespace

int main() {
  std::vector<float> x(kN);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);

  const kiln::Result<kiln::Program> program = kiln::compile(kiln_embedded_kernels);
  if (!program) return say(program.error());
  std::vector<float> y(kN);
  kiln::Arguments arguments("scale");
  arguments.tensor("x", x.data(), "f32", {kN})
      .tensor("y", y.data(), "f32", {kN})
      .number("factor", 2.0);
  const kiln::Result<kiln::Report> report = program->simulate(arguments);
  if (!report) return say(report.error());
  std::printf("simulated for %s: %s\n", program->arch(), is_right(y) ? "right" : "wrong");

  Device memory;
  if (!memory.error().empty()) return say({KILN_NO_GPU, memory.error()});
  auto* x_there = static_cast<float*>(memory.allocate(x.size() * sizeof(float)));
  auto* y_there = static_cast<float*>(memory.allocate(y.size() * sizeof(float)));
  memory.copy_in(x_there, x.data(), x.size() * sizeof(float));
  if (const kiln::Failure failed = scale(nullptr, {x_there, kN}, 2.0F, {y_there, kN})) {
    return say(failed);
  }
  void* matrix = memory.allocate(4 * 8 * 2);
  if (const kiln::Failure failed = sums_of_rows(nullptr, {matrix, 4, 8}, {y_there, 4})) {
    return say(failed);
  }
  if (const kiln::Failure failed = scale(nullptr, {x_there, kN}, 2.0F, {y_there, kN})) {
    return say(failed);
  }
  memory.copy_out(y.data(), y_there, y.size() * sizeof(float));
  std::printf("on the GPU: %s\n", is_right(y) ? "right" : "wrong");
  return is_right(y) ? 0 : 1;
}
