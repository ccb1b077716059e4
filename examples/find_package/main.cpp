// C = A * B^T in bf16 with kiln, compared with the same product on the CPU.
//
// Exit: 0 all elements are right, 1 some are not, 3 this machine cannot run it (stderr says why).
#include <kiln/gemm.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "device.h"

namespace {

constexpr std::int64_t kM = 300;
constexpr std::int64_t kN = 520;
constexpr std::int64_t kK = 256;

// bf16 is the upper half of an f32. Small integers lose nothing.
std::uint16_t to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

float from_bf16(std::uint16_t value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float out = 0;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

std::vector<std::uint16_t> small_integers(std::int64_t count, std::int64_t step) {
  std::vector<std::uint16_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(to_bf16(static_cast<float>((i * step + i / 7) % 5 - 2)));
  }
  return out;
}

// Elements whose error is more than the rounding to bf16.
std::int64_t count_wrong(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
                         const std::vector<std::uint16_t>& c) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < kK; ++l) {
        sum += from_bf16(a[static_cast<std::size_t>(i * kK + l)]) *
               from_bf16(b[static_cast<std::size_t>(j * kK + l)]);
      }
      const float found = from_bf16(c[static_cast<std::size_t>(i * kN + j)]);
      const bool right = std::fabs(found - sum) <= std::fabs(sum) / 256;  // false for NaN
      wrong += right ? 0 : 1;
    }
  }
  return wrong;
}

int cannot_run(const char* reason) {
  std::fprintf(stderr, "this machine cannot run the example: %s\n", reason);
  return 3;
}

kiln::GemmProblem bf16_problem() {
  kiln::GemmProblem problem = {};
  problem.m = kM;
  problem.n = kN;
  problem.k = kK;
  problem.type_a = problem.type_b = problem.type_c = KILN_BF16;
  return problem;
}

}  // namespace

int main() {
  const kiln::GemmProblem problem = bf16_problem();
  std::size_t workspace_bytes = 0;
  const kiln::Status ready = kiln::gemm_workspace(problem, workspace_bytes);
  if (!ready.ok()) return cannot_run(ready.message());

  Device device;
  const auto a = small_integers(kM * kK, 3);
  const auto b = small_integers(kN * kK, 2);
  std::vector<std::uint16_t> c(static_cast<std::size_t>(kM * kN), 0xffff);  // NaN
  kiln::GemmOperands operands = {};
  void* a_memory = device.allocate(a.size() * 2);
  void* b_memory = device.allocate(b.size() * 2);
  operands.c = device.allocate(c.size() * 2);
  device.copy_in(a_memory, a.data(), a.size() * 2);
  device.copy_in(b_memory, b.data(), b.size() * 2);
  device.copy_in(operands.c, c.data(), c.size() * 2);
  operands.a = a_memory;
  operands.b = b_memory;
  kiln::Workspace workspace = {nullptr, workspace_bytes};
  if (workspace_bytes > 0) workspace.address = device.allocate(workspace_bytes);
  if (!device.error().empty()) return cannot_run(device.error().c_str());

  const kiln::Status started = kiln::gemm(problem, operands, workspace);
  if (!started.ok()) {
    std::fprintf(stderr, "%s\n", started.message());
    return 1;
  }
  device.copy_out(c.data(), operands.c, c.size() * 2);
  if (!device.error().empty()) return cannot_run(device.error().c_str());
  const std::int64_t wrong = count_wrong(a, b, c);
  std::printf("%s: %lld of %lld elements are wrong\n", kiln_gemm_kernel(&problem, nullptr),
              static_cast<long long>(wrong), static_cast<long long>(kM * kN));
  return wrong == 0 ? 0 : 1;
}
