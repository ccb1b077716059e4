#include "attention/needs.h"

#include <utility>

#include "support/format.h"

namespace kiln::attention {

namespace {

constexpr std::int64_t kStepUnit = 16;  // bytes; what a tensor map steps by is a multiple

}  // namespace

std::string missing(const target::Arch& arch) {
  if (arch.features.include({target::Feature::kWgmma, target::Feature::kTma})) return {};
  return format("{} has no matrix units of warpgroups or no bulk copies, as sm_90a has them",
                arch.name);
}

std::string missing(const target::Arch& arch, DType dtype) {
  if (std::string needed = missing(arch); !needed.empty()) return needed;
  if (dtype == DType::kBF16 || dtype == DType::kF16) return {};
  return format("tensors of {}, it takes bf16 and f16", name(dtype));
}

std::string unaligned_step(std::string_view tensor, const Spacing& spacing, DType dtype,
                           std::string_view outermost) {
  const std::pair<std::string_view, std::int64_t> steps[] = {
      {outermost, spacing.batch}, {"rows", spacing.row}, {"heads", spacing.head}};
  for (const auto& [what, elements] : steps) {
    const std::int64_t bytes = elements * size_bytes(dtype);
    if (bytes % kStepUnit == 0) continue;
    return format("{} of {} lie {} bytes apart, it needs multiples of {}", what, tensor, bytes,
                  kStepUnit);
  }
  return {};
}

}  // namespace kiln::attention
