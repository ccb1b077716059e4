// One schedule of a whole function: its global memory, its host part and its launches.
#pragma once

#include <memory>
#include <optional>

#include "sim/grid.h"
#include "sim/machine.h"

namespace kiln::sim {

class Run {
 public:
  struct Setting {
    const ir::Module& module;
    const ir::Function& function;
    const Options& options;
    std::uint64_t seed = 0;
  };
  Run(const Setting& setting, ir::Arguments& arguments, Reporter& reporter);

  // Errors as sim::run.
  [[nodiscard]] std::optional<Error> execute();

  // What was counted and launched, into the outcome.
  void report(Outcome& outcome) const;
  // What was printed, which is then gone here.
  void report_printed(Outcome& outcome);
  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  // Of each written parameter the elements that were not; none without shadow memory.
  [[nodiscard]] std::vector<Unwritten> unwritten() const;

 private:
  struct Worker;   // cores.cpp
  struct Global {  // one buffer of global memory
    Buffer buffer;
    std::unique_ptr<Shadow> shadow;
    Tensor owned;     // of an allocation
    MemoryHold hold;  // of the shadow
    bool initialised = true;
  };

  [[nodiscard]] std::optional<Error> bind_params();
  [[nodiscard]] std::optional<Error> allocate(ir::ValueId value, const ir::Alloc& alloc);
  [[nodiscard]] std::optional<Error> allocate_globals(ir::RegionId region);
  void add_global(ir::ValueId value, Tensor& tensor, const std::string& name, bool initialised);
  void note_host_vars(ir::RegionId region);
  void read_host_vars(const Warp& host);
  [[nodiscard]] Warp host_warp(const Program& program) const;
  [[nodiscard]] std::optional<Error> check_resident(const ir::Parallel& launch,
                                                    const Program& program) const;
  [[nodiscard]] std::optional<Error> launch(ir::OpId op, const Warp& host);
  // `shadows` gets those of the launch, by Buffer::watched.
  [[nodiscard]] std::optional<Error> track_globals(ir::RegionId body, const Agents& agents,
                                                   std::vector<Shadow*>& shadows);
  // Its shadow, with room for these readers.
  [[nodiscard]] std::optional<Error> give_shadow(Global& global, const Shadow::Readers& readers);
  // Shadows what the host part touches element by element.
  [[nodiscard]] std::optional<Error> track_host(ir::RegionId region);
  [[nodiscard]] std::optional<Error> charge_warps(const Program& program, MemoryHold& hold) const;
  [[nodiscard]] std::optional<Error> charge_shared(const Program& program, const Agents& agents,
                                                   MemoryHold& hold) const;
  // Gives the machine its shared memory and what is known of it.
  void equip(Machine& machine) const;
  void show_progress(Machine& machine, std::int64_t done, std::int64_t blocks) const;
  void run_blocks(const ir::Parallel& data, Machine& machine, const Warp& host,
                  double machine_bytes);
  // How many clusters have run.
  std::int64_t run_in_turn(const GridPlan& plan, Machine& machine, const Warp& host);
  // Runs all clusters at once on several cores (cores.cpp). False: they are to run in turn, and
  // everything is as it was. `machine_bytes`: what a machine holds.
  [[nodiscard]] bool run_on_cores(const GridPlan& plan, Machine& machine, const Warp& host,
                                  double machine_bytes);
  [[nodiscard]] std::size_t workers(const GridPlan& plan, const Program& program) const;
  void attribute_counts(const Machine& machine);
  [[nodiscard]] bool is_traced(ir::OpId launch, const GridPlan& plan, const Grid& at) const;
  void finish(ir::ValueId value, const Warp& host);

  const ir::Module& module_;
  const ir::Function& function_;
  ir::Arguments& arguments_;
  const Options& options_;
  std::uint64_t seed_;
  Reporter& reporter_;
  Tally tally_;
  HostState host_;
  std::vector<ir::VarId> host_vars_;  // set by the host part
  std::vector<std::unique_ptr<Global>> globals_;
  Era era_;
  Printing printing_;
  Dumping dumping_;
  std::int64_t blocks_ = 0;
  std::vector<Launched> launched_;
  std::vector<BlockTrace> traces_;
  std::uint64_t steps_max_;
  std::uint64_t steps_left_;
  bool gave_up_ = false;
  MemoryHold hold_;  // of allocations
};

}  // namespace kiln::sim
