#include "passes/marked_loops.h"

#include <algorithm>

#include "passes/choose_stages.h"
#include "passes/division.h"
#include "passes/for_each_launch.h"
#include "target/arch.h"
#include "target/registers.h"

namespace kiln::passes {

namespace {

using ir::Expr;
using ir::OpId;
using ir::ValueId;

// What a thread has beside its register tiles: addresses, counters, what is on its way. An estimate.
constexpr std::int64_t kOtherRegisters = 48;

struct Bytes {
  std::int64_t stage = 0;
  std::int64_t others = 0;
  bool bulk = false;
};

Bytes shared_bytes(const ir::Function& function, OpId launch, const LoopCopies& found) {
  Bytes out;
  ir::walk(function, body_of(function, launch), [&](OpId id) {
    const ir::Op& op = function.ops[id];
    if (const auto* event = std::get_if<ir::EventType>(
            op.kind() == ir::OpKind::kEvent ? &function.type(op.result) : nullptr)) {
      out.others += ir::kEventBytes * event->slots;
    }
    const auto* type = op.kind() == ir::OpKind::kAlloc
                           ? std::get_if<ir::ViewType>(&function.type(op.result))
                           : nullptr;
    if (type == nullptr || type->space != ir::Space::kShared) return;
    const bool ringed = std::ranges::any_of(
        found.copies, [&](const auto& each) { return each.buffer == op.result; });
    (ringed ? out.stage : out.others) += buffer_bytes(function, op.result);
  });
  const bool bulk = std::ranges::any_of(found.copies, [&](const auto& each) {
    return std::get<ir::Copy>(function.ops[each.copy].data).bulk;
  });
  if (bulk) out.stage += ir::kEventBytes;
  out.bulk = bulk;
  return out;
}

LoopCosts costs_of(const ir::Module& module, const ir::Function& function, const Marked& marked,
                   const Bytes& bytes) {
  const auto& parallel = std::get<ir::Parallel>(function.ops[marked.launch].data);
  const bool producer = std::get<ir::For>(function.ops[marked.loop].data).producer;
  Division division;
  const bool divided = producer && !division_of(module, function, marked.launch, division);
  const std::int64_t threads = std::max<std::int64_t>(parallel.threads.constant().value_or(1), 1);
  return {.stage_bytes = bytes.stage,
          .other_bytes = bytes.others,
          .threads = threads + (divided ? division.unit() : 0),
          .multiplied = cycles_multiplied(*module.arch, function, marked.loop),
          .registers = std::min(registers_wanted(function, marked.launch),
                                module.arch->registers_per_thread_max),
          .alone = divided && consumer_registers(*module.arch, parallel, division) != 0,
          .bulk = bytes.bulk,
          .producer = producer};
}

void find_marked(const ir::Function& function, OpId launch, ir::RegionId region,
                 std::vector<Marked>& out) {
  for (const OpId id : function.regions[region].ops) {
    for (const ir::RegionId inner : ir::regions_of(function.ops[id])) {
      find_marked(function, launch, inner, out);
    }
    const auto* loop = std::get_if<ir::For>(&function.ops[id].data);
    if (loop != nullptr && loop->stages != 0) out.push_back({launch, id, region});
  }
}

}  // namespace

Checked<std::int64_t> stages_for(const ir::Module& module, const ir::Function& function,
                                 const Marked& marked, const LoopCopies& found,
                                 Diagnostics& diags) {
  const std::int64_t asked = std::get<ir::For>(function.ops[marked.loop].data).stages;
  const std::int64_t limit = module.arch->smem_per_block_max;
  Bytes bytes = shared_bytes(function, marked.launch, found);
  bytes.others += marked.taken;
  // A producer meets the others at two events, each way one.
  if (std::get<ir::For>(function.ops[marked.loop].data).producer)
    bytes.stage += 2 * ir::kEventBytes;
  const std::int64_t fit = (limit - bytes.others) / std::max<std::int64_t>(bytes.stage, 1);
  const std::int64_t stages =
      asked == ir::kStagesChosen
          ? stages_worth_having(*module.arch, costs_of(module, function, marked, bytes), fit)
          : asked;
  if (stages <= fit) return stages;
  return diags
      .report<diag::PipelineMemory>(function.ops[marked.loop].span, stages, bytes.stage,
                                    bytes.others, limit, module.arch->name)
      .help("{}", fit >= 2 ? format("`[[pipeline({})]]` fits", fit)
                           : std::string("copy smaller tiles: not even two stages fit"))
      .emit();
}

int registers_wanted(const ir::Function& function, OpId launch) {
  const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
  std::int64_t tile_bytes = 0;
  ir::walk(function, parallel.body, [&](OpId id) {
    const ir::Op& op = function.ops[id];
    const auto* frag = op.kind() == ir::OpKind::kAlloc
                           ? std::get_if<ir::FragType>(&function.type(op.result))
                           : nullptr;
    if (frag != nullptr) tile_bytes += frag->rows * frag->cols * size_bytes(frag->dtype);
  });
  const std::int64_t threads =
      std::max<std::int64_t>(parallel.threads.constant().value_or(1), target::kWarpLanes);
  return static_cast<int>(kOtherRegisters + tile_bytes / target::kRegisterBytes / threads);
}

std::int64_t buffer_bytes(const ir::Function& function, ValueId buffer) {
  const ir::ViewType& type = function.view_type(buffer);
  std::int64_t bytes = size_bytes(type.dtype);
  for (const Expr& extent : type.shape) bytes *= extent.constant().value_or(1);
  return bytes;
}

std::int64_t stage_bytes(const ir::Function& function, ir::OpId launch, const LoopCopies& found) {
  return shared_bytes(function, launch, found).stage + 2 * ir::kEventBytes;
}

std::vector<Marked> marked_loops(const ir::Function& function, ir::OpId launch) {
  std::vector<Marked> out;
  find_marked(function, launch, body_of(function, launch), out);
  return out;
}

std::vector<Marked> loops_with_producer(const ir::Function& function, ir::OpId launch) {
  std::vector<Marked> out = marked_loops(function, launch);
  std::erase_if(out, [&](const Marked& each) {
    return !std::get<ir::For>(function.ops[each.loop].data).producer;
  });
  return out;
}

}  // namespace kiln::passes
