#include "passes/division.h"

#include <algorithm>

#include "ir/effects.h"
#include "target/arch.h"
#include "target/registers.h"

namespace kiln::passes {

namespace {

using ir::Level;
using ir::OpId;

// What is enough for any consumer.
constexpr std::int64_t kMostRegisters = 240;

// Whether the kernel can be divided, and how.
class Divider {
 public:
  Divider(const ir::Module& module, const ir::Function& function, OpId launch)
      : module_(module),
        function_(function),
        launch_(std::get<ir::Parallel>(function.ops[launch].data)),
        span_(function.ops[launch].span) {}

  std::optional<Obstacle> run(Division& out) {
    const auto threads = launch_.threads.constant();
    if (!threads) return Obstacle{"how many threads the block has is only known at launch", span_};
    out.level = module_.arch->has(target::Feature::kSetmaxnreg) ? Level::kGroup4 : Level::kGroup;
    look_for_level(launch_.body, out);
    if (obstacle_) return obstacle_;
    if (*threads % out.unit() != 0) {
      return Obstacle{format("a block of {} threads is no number of whole {}", *threads,
                             out.level == Level::kGroup4 ? "warpgroups" : "warps"),
                      span_};
    }
    out.units = *threads / out.unit();
    const std::int64_t all = *threads + out.unit();
    if (all > module_.arch->threads_per_block_max) {
      return Obstacle{format("with a producer the block has {} threads, and `{}` allows {}", all,
                             module_.arch->name, module_.arch->threads_per_block_max),
                      span_};
    }
    if (launch_.threads_bound != 0 && launch_.threads_bound < all) {
      return Obstacle{
          format("with a producer the block has {} threads, and `[[launch_bounds]]` says {}", all,
                 launch_.threads_bound),
          span_};
    }
    if (out.units > 1) look_at_whole_block(launch_.body, false);
    return obstacle_;
  }

 private:
  void refuse(OpId id, std::string why) {
    if (!obstacle_) obstacle_ = Obstacle{std::move(why), function_.ops[id].span};
  }

  void look_for_level(ir::RegionId region, Division& out) {
    for (const OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      const auto* inner = std::get_if<ir::Parallel>(&op.data);
      if (inner != nullptr) {
        if (inner->level == Level::kThread) refuse(id, "the kernel speaks of single threads");
        if (seen_ && out.level != inner->level) {
          refuse(id, "the kernel speaks of warps and of warpgroups");
        }
        seen_ = true;
        out.level = inner->level;
      }
      if (op.kind() == ir::OpKind::kInthreads)
        refuse(id, "the kernel divides its threads by itself");
      const auto* barrier = std::get_if<ir::Barrier>(&op.data);
      if (barrier != nullptr && (barrier->cluster || barrier->grid)) {
        refuse(id, "the kernel's blocks meet");
      }
      if (ir::reads_other_block(op)) refuse(id, "the kernel's blocks read each other's memory");
      if (op.kind() == ir::OpKind::kCuda)
        refuse(id, "the kernel contains CUDA or a fence of its own");
      if (op.kind() == ir::OpKind::kRegisters) refuse(id, "the kernel moves registers by itself");
      for (const ir::RegionId next : ir::regions_of(op)) look_for_level(next, out);
    }
  }

  // Beside a producer a block has no place of its own: everything is inside the level of warps or warpgroups. With
  // several of them, what they do together must stay so.
  void look_at_whole_block(ir::RegionId region, bool in_unit) {
    for (const OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (!in_unit && op.kind() == ir::OpKind::kOnce) {
        refuse(id, "one thread of the block does this");
      }
      if (!in_unit && touches_tile_of_block(op)) {
        refuse(id, "this register tile is spread over the whole block");
      }
      const bool enters = op.kind() == ir::OpKind::kParallel;
      for (const ir::RegionId next : ir::regions_of(op))
        look_at_whole_block(next, in_unit || enters);
    }
  }

  // Accumulators belong to the warps' products wherever they are filled.
  [[nodiscard]] bool touches_tile_of_block(const ir::Op& op) const {
    if (op.kind() == ir::OpKind::kFill || op.kind() == ir::OpKind::kMma) return false;
    bool found = false;
    ir::for_each_touch(op, [&](const ir::Touch& touch) {
      found = found || (touch.value.valid() &&
                        std::holds_alternative<ir::FragType>(function_.type(touch.value)));
    });
    return found;
  }

  const ir::Module& module_;
  const ir::Function& function_;
  const ir::Parallel& launch_;
  Span span_;
  bool seen_ = false;  // a level inside of the block
  std::optional<Obstacle> obstacle_;
};

}  // namespace

// What each consumer can have when the producer keeps few; 0: nothing is to be gained.
std::int64_t consumer_registers(const target::Arch& arch, const ir::Parallel& launch,
                                const Division& division) {
  // Blocks that are to run beside each other share what there is.
  if (launch.blocks_min > 1 || launch.registers_max != 0) return 0;
  const bool can = arch.has(target::Feature::kSetmaxnreg) && division.level == Level::kGroup4;
  if (!can) return 0;
  const std::int64_t each = target::registers_at_start(
      arch, std::max(launch.threads_bound, division.consumers() + division.unit()));
  if (each >= kMostRegisters) return 0;
  const std::int64_t left = each * (division.units + 1) - kProducerRegisters;
  return std::min(kMostRegisters, left / division.units / target::kRegisterCounts.step *
                                      target::kRegisterCounts.step);
}

std::optional<Obstacle> division_of(const ir::Module& module, const ir::Function& function,
                                    ir::OpId launch, Division& out) {
  return Divider(module, function, launch).run(out);
}

}  // namespace kiln::passes
