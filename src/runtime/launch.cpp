#include "runtime/launch.h"

namespace kiln::runtime {

namespace {

Result<void> check_coordinates(const emit::LaunchPlan& plan,
                               const std::vector<std::int64_t>& vars) {
  for (const emit::ParamSlot& slot : plan.slots) {
    if (slot.kind != emit::SlotKind::kVar || info(slot.dtype).bits > 32) continue;
    const std::int64_t value = vars[slot.var.index];
    if (value <= kCoordinateMax && value >= -kCoordinateMax) continue;
    return Unexpected{
        Error{"cannot launch", plan.kernel_name,
              format("{} is {}, at most {} is possible", slot.name, value, kCoordinateMax)}};
  }
  return {};
}

}  // namespace

// Grid and block, compared with what the device takes.
Result<Launch> sized_launch(const emit::LaunchPlan& plan, const std::vector<std::int64_t>& vars,
                            const target::Arch& arch) {
  if (auto fit = check_coordinates(plan, vars); !fit) return Unexpected{fit.error()};
  constexpr const char* kAxes = "xyz";
  Launch launch{.kernel = plan.kernel_name,
                .shared_bytes = static_cast<unsigned>(plan.shared_bytes.evaluate(vars)),
                .overlaps = plan.overlaps,
                .cooperative = plan.cooperative,
                .parameters = {}};
  for (std::size_t axis = 0; axis < plan.grid.size(); ++axis) {
    const std::int64_t blocks = plan.grid[axis].evaluate(vars);
    const std::int64_t most = target::blocks_along(arch, axis);
    if (blocks < 1 || blocks > most) {
      return Unexpected{Error{
          "cannot launch", plan.kernel_name,
          format("{} blocks along {}, {} allows 1 to {}", blocks, kAxes[axis], arch.name, most)}};
    }
    const std::int64_t together = plan.cluster.empty() ? 1 : plan.cluster[axis];
    if (blocks % together != 0) {
      return Unexpected{Error{"cannot launch", plan.kernel_name,
                              format("{} blocks along {} are no multiple of the cluster's {}",
                                     blocks, kAxes[axis], together)}};
    }
    launch.grid[axis] = static_cast<unsigned>(blocks);
  }
  const std::int64_t threads = plan.threads.evaluate(vars);
  if (threads < 1 || threads > arch.threads_per_block_max) {
    return Unexpected{Error{"cannot launch", plan.kernel_name,
                            format("{} threads in a block, {} allows 1 to {}", threads, arch.name,
                                   arch.threads_per_block_max)}};
  }
  launch.threads = static_cast<unsigned>(threads);
  return launch;
}

std::uint64_t value_bits(const emit::ParamSlot& slot, const HostProgram& host) {
  if (slot.kind == emit::SlotKind::kVar) {
    return static_cast<std::uint64_t>(host.vars()[slot.var.index]);
  }
  KILN_CHECK(slot.kind == emit::SlotKind::kScalar, "`{}` is no value", slot.name);
  return encode(slot.dtype, host.scalar(slot.value));
}

TensorMapRequest map_request(const emit::MapPlan& plan, const std::vector<std::int64_t>& vars) {
  TensorMapRequest request{.name = plan.array.name,
                           .box = plan.map.box,
                           .swizzle = plan.map.swizzle,
                           .promotion = plan.map.promotion};
  for (const ir::Expr& extent : plan.map.shape) request.shape.push_back(extent.evaluate(vars));
  for (const ir::Expr& extent : plan.map.extents) request.extents.push_back(extent.evaluate(vars));
  return request;
}

}  // namespace kiln::runtime
