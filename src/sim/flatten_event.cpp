// Events, regions of threads and bulk copies, flattened.
#include "ir/tensor_map.h"
#include "sim/flatten.h"

namespace kiln::sim {

void Flattener::op(const ir::Inthreads& data) {
  const Participants outer = region_;
  region_ = {static_cast<std::uint32_t>(data.first), static_cast<std::uint32_t>(data.threads)};
  program_.regions.push_back({region_.first, data.single ? 1 : region_.threads});
  const ir::OpId id = current_;
  const std::size_t begin = emit(Code::kInthreads, program_.regions.size() - 1);
  begin_body(false);
  region(data.body);
  current_ = id;
  end_body();
  program_.code[begin].target = here();
  emit(Code::kEnd, 0);
  rejoin();
  region_ = outer;
}

// An event is there from the block's start; the operation itself does nothing.
void Flattener::op(const ir::Event& data) {
  const auto slots =
      static_cast<std::uint32_t>(std::get<ir::EventType>(function_.type(result())).slots);
  const bool each = data.grid && data.stated == 0;  // block has so many arrivals
  const bool by_warps = !data.grid && data.stated == data.arrivals * target::kWarpLanes;
  event_of_[result().index] = static_cast<std::uint32_t>(program_.events.size());
  program_.events.push_back({.name = data.name,
                             .first_slot = program_.slots,
                             .slots = slots,
                             .ready = data.ready,
                             .grid = data.grid,
                             .arrivals = data.arrivals * (each ? program_.blocks : 1),
                             .threads_each = by_warps ? target::kWarpLanes : 1,
                             .op = current_});
  program_.slots += slots;
  program_.of_grid.resize(program_.slots, data.grid);
}

void Flattener::op(const ir::Trigger& data) {
  emit_plan(Code::kTrigger, program_.triggers,
            TriggerPlan{.event = event_of_[data.event.index],
                        .slot = IndexExpr(data.slot, facts_),
                        .cluster = data.cluster,
                        .arrival = data.arrival,
                        .unit = static_cast<std::uint32_t>(data.unit),
                        .bytes = data.bytes,
                        .tracks = data.tracks,
                        .who = region_});
}

void Flattener::op(const ir::EventWait& data) {
  emit_plan(Code::kEventWait, program_.event_waits,
            EventWaitPlan{.event = event_of_[data.event.index],
                          .slot = IndexExpr(data.slot, facts_),
                          .tracked = data.tracked,
                          .generation = IndexExpr(data.generation, facts_)});
}

void Flattener::op(const ir::BulkWait& data) {
  emit_plan(Code::kBulkWait, program_.bulk_waits, BulkWaitPlan{data.pending, data.landed});
}

void Flattener::bulk_copy(const ir::Copy& data) {
  const ir::TensorMap map = ir::tensor_map_of(function_, data);
  BulkPlan plan;
  plan.loads = function_.view_type(data.dst).space != ir::Space::kGlobal;
  plan.global = view(plan.loads ? data.src : data.dst);
  plan.shared = view(plan.loads ? data.dst : data.src);
  for (std::size_t d = 0; d < map.extents.size(); ++d) {
    plan.extents[d] = IndexExpr(map.extents[d], facts_).evaluate(nullptr, 0);
  }
  plan.swizzle = map.swizzle;
  const std::size_t rank = plan.shared.rank;
  KILN_CHECK(data.box.size() == rank, "a box of rank {} for a tile of rank {}", data.box.size(),
             rank);
  std::int64_t count = 1;
  Coordinates along = {};
  const std::vector<ir::Expr>& shape = function_.view_type(plan.loads ? data.dst : data.src).shape;
  for (std::size_t d = 0; d < rank; ++d) {
    plan.box[d] = data.box[d];
    along[d] = shape[d].constant().value_or(0) / data.box[d];
    count *= along[d];
  }
  for (std::int64_t b = 0; b < count; ++b) {
    Coordinates begin = {};
    std::int64_t rest = b;
    for (std::size_t d = rank; d-- > 0;) {
      begin[d] = rest % along[d] * plan.box[d];
      rest /= along[d];
    }
    plan.boxes.push_back(begin);
  }
  plan.unit = static_cast<std::uint32_t>(data.unit);
  plan.who = region_;
  if (data.event.valid()) {
    plan.event = event_of_[data.event.index];
    plan.slot = IndexExpr(data.slot, facts_);
  }
  plan.announces = data.announces;
  plan.multicast = data.multicast;
  plan.adds = data.adds;
  plan.interned = tally_.intern(plan.loads ? "bulk.load" : plan.adds ? "bulk.add" : "bulk.store");
  plan.op = current_;
  emit_plan(Code::kBulkCopy, program_.bulk_copies, std::move(plan));
}

}  // namespace kiln::sim
