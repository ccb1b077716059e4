// The blocks of a launch on all cores.
//
// Each worker has a machine and an era of its own, and its own shadows of global memory on top of
// those from before the launch. Blocks of one launch have nothing to say to each other, so when all
// is well the result is the same in any order. When anything was found, a limit was reached or two
// workers touched the same bytes, one of them writing, everything is put back and the blocks run in
// turn: what is reported, and what a wrong program computes, is the same on every machine.
#include <algorithm>
#include <atomic>

#include "sim/grid.h"
#include "sim/run.h"
#include "support/parallel.h"

namespace kiln::sim {

// What one worker runs blocks with.
struct Run::Worker {
  Worker(const Run& run, const Machine& like)
      : reporter(run.options_, found),
        tally(run.tally_.fresh()),
        era(run.era_),
        machine(like.function, like.program, reporter, tally, like.checks) {
    machine.random = like.random;
    machine.agents = like.agents;
    machine.steps_max = like.steps_max;
    machine.steps_left = like.steps_left;
    machine.registers_at_start = like.registers_at_start;
    machine.era = &era;
    run.equip(machine);
    for (const Shadow* below : like.global_shadows) {
      shadows.push_back(below->overlay(&era));
      machine.global_shadows.push_back(shadows.back().get());
    }
  }

  Outcome found;
  Reporter reporter;
  Tally tally;
  Era era;
  std::vector<std::unique_ptr<Shadow>> shadows;
  Machine machine;
};

namespace {

// The contents of memory, to be put back.
class Saved {
 public:
  void keep(const Buffer& buffer) {
    copies_.push_back({buffer.data, {buffer.data, buffer.data + buffer.bytes}});
  }
  void put_back() const {
    for (const Copy& copy : copies_) std::copy(copy.bytes.begin(), copy.bytes.end(), copy.to);
  }

 private:
  struct Copy {
    std::byte* to;
    std::vector<std::byte> bytes;
  };
  std::vector<Copy> copies_;
};

// Right blocks may update the same elements of global memory, and get to see in which order.
bool updates_global(const Program& program) {
  return std::ranges::any_of(program.bulk_copies, &BulkPlan::adds) ||
         std::ranges::any_of(program.atomics, [](const AtomicPlan& plan) {
           return plan.element.view.buffer->space == ir::Space::kGlobal;
         });
}

}  // namespace

std::size_t Run::workers(const GridPlan& plan, const Program& program) const {
  // Without checks nobody would notice blocks that depend on each other; accounts and traces belong
  // to the order of execution.
  const bool any_order = options_.checks && !options_.by_operation && !options_.trace &&
                         !options_.representative_blocks;
  if (!any_order || updates_global(program) || !program.prints.empty() || !program.dumps.empty()) {
    return 1;
  }
  const std::size_t cores = options_.cores == 0 ? core_count() : options_.cores;
  return std::min(cores,
                  static_cast<std::size_t>(std::max<std::int64_t>(plan.clusters.count(), 1)));
}

bool Run::run_on_cores(const GridPlan& plan, Machine& machine, const Warp& host,
                       double machine_bytes) {
  const std::size_t count = workers(plan, machine.program);
  if (count < 2) return false;
  double bytes = machine_bytes;
  double saved_bytes = 0;
  for (const auto& global : globals_) {
    if (global == nullptr || global->buffer.watched == Buffer::kUnwatched) continue;
    bytes += static_cast<double>(global->hold.bytes());
    saved_bytes += static_cast<double>(global->buffer.bytes);
  }
  MemoryHold hold;
  if (hold.take(options_.memory, static_cast<double>(count) * bytes + saved_bytes, ""))
    return false;
  Saved saved;
  for (const auto& global : globals_) {
    if (global != nullptr && global->buffer.watched != Buffer::kUnwatched) {
      saved.keep(global->buffer);
    }
  }
  std::vector<std::unique_ptr<Worker>> all;
  for (std::size_t w = 0; w < count; ++w) all.push_back(std::make_unique<Worker>(*this, machine));
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::uint64_t> steps = 0;
  std::atomic<bool> stop = false;
  const auto work = [&](std::size_t w) {
    Worker& worker = *all[w];
    Machine& own = worker.machine;
    for (std::int64_t i = next++; i < plan.clusters.count() && !stop; i = next++) {
      if (w == 0) show_progress(own, i, plan.clusters.count());
      const std::uint64_t before = own.steps_left;
      (void)start_cluster(own, host, plan, i);
      run_block(own);
      steps += before - own.steps_left;
      if (worker.reporter.any() || own.gave_up || steps > machine.steps_left) stop = true;
    }
  };
  for_each_index(count, work, count);
  for (std::size_t s = 0; s < machine.global_shadows.size() && !stop; ++s) {
    std::vector<const Shadow*> overlays;
    for (const auto& worker : all) overlays.push_back(worker->shadows[s].get());
    stop = !Shadow::are_apart(overlays);
  }
  if (stop) {
    saved.put_back();
    return false;
  }
  for (const auto& worker : all) {
    for (std::size_t s = 0; s < machine.global_shadows.size(); ++s) {
      machine.global_shadows[s]->absorb(*worker->shadows[s]);
    }
    tally_.add(worker->tally);
    era_.block_start = std::max(era_.block_start, latest_clock(worker->machine));
  }
  machine.steps_left -= steps;
  return true;
}

}  // namespace kiln::sim
