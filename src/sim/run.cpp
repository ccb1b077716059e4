#include "sim/run.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "sim/blocks.h"
#include "sim/counting.h"
#include "sim/grid.h"
#include "sim/scalar.h"
#include "sim/tracer.h"
#include "target/occupancy.h"
#include "target/registers.h"

namespace kiln::sim {

namespace {

// Shared memory starts as NaNs of every float type, so that what nobody wrote shows in the result.
constexpr std::byte kGarbage{0xff};
constexpr std::uint32_t kThreadsMax = 1024;

// By ValueId: the roots that a launch reads and writes.
struct Touched {
  std::vector<bool> read;
  std::vector<bool> written;
  std::vector<bool> loaded;   // read by bulk copies
  std::vector<bool> updated;  // by atomic operations
  std::vector<bool> added;    // by bulk copies that add
};

Touched touched_by(const ir::Function& function, ir::RegionId body) {
  const std::vector<bool> none(function.values.size());
  Touched out{none, none, none, none, none};
  ir::walk(function, body, [&](ir::OpId id) {
    for (const ir::Touch& touch : ir::memory_touched(function, function.ops[id])) {
      const std::size_t root = ir::root_of(function, touch.value).index;
      if (touch.reads()) out.read[root] = true;
      if (touch.writes()) out.written[root] = true;
      const bool bulk = touch.proxy == ir::Proxy::kAsync;
      if (touch.reads() && bulk && !touch.atomic) out.loaded[root] = true;
      if (touch.atomic) out.updated[root] = true;
      if (touch.atomic && bulk) out.added[root] = true;
    }
  });
  return out;
}

// Bytes of a Shadow of so many bytes of memory.
double shadow_bytes(double bytes, unsigned granule_bits, const Shadow::Readers& readers) {
  const double slots = readers.slots ? readers.all.blocks * readers.all.slots : 0;
  const double readers_each = static_cast<double>(readers.blocks) * readers.agents + slots;
  return Shadow::size_in_bytes(bytes, granule_bits, readers_each == 0 ? 0 : readers_each + 1,
                               readers.updates);
}

unsigned bits_of_size(std::int64_t size) {
  return static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(size)));
}

// The least element of the block's shared buffers: no access is smaller.
unsigned shared_granule(const Program& program) {
  unsigned bits = 4;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.space == ir::Space::kShared) bits = std::min(bits, bits_of_size(buffer.size));
  }
  return bits;
}

bool has_bulk(const Program& program, bool loads) {
  return std::any_of(program.bulk_copies.begin(), program.bulk_copies.end(),
                     [&](const BulkPlan& plan) { return plan.loads == loads; });
}

// Of a block's agents those that read its shared memory, in the order of Agents: warps, then their
// products, then their bulk stores.
std::uint32_t readers_each(const Program& program) {
  if (has_bulk(program, false)) return 3 * program.warps();  // their writes go to global memory
  return program.products.empty() ? program.warps() : 2 * program.warps();
}

}  // namespace

Run::Run(const Setting& setting, ir::Arguments& arguments, Reporter& reporter)
    : module_(setting.module),
      function_(setting.function),
      arguments_(arguments),
      options_(setting.options),
      seed_(setting.seed),
      reporter_(reporter),
      globals_(setting.function.values.size()),
      steps_max_(setting.options.steps_max),
      steps_left_(setting.options.steps_max) {
  VarFacts& facts = host_.facts;
  facts.known.resize(function_.vars.size());
  facts.values = arguments.vars;
  facts.values.resize(function_.vars.size());
  facts.uniform.resize(function_.vars.size());
  std::size_t i = 0;
  for (const ir::Var& var : function_.vars) {
    facts.known[i++] = ir::known_at_launch(var.kind);
  }
  host_.globals.resize(function_.values.size());
  if (seed_ == options_.seed) host_.dumps = options_.dumps;
}

void Run::add_global(ir::ValueId value, Tensor& tensor, const std::string& name, bool initialised) {
  auto global = std::make_unique<Global>();
  global->buffer = make_buffer(name, function_.view_type(value), tensor.shape);
  global->buffer.data = tensor.bytes.data();
  global->initialised = initialised;
  host_.globals[value.index] = &global->buffer;
  globals_[value.index] = std::move(global);
}

std::optional<Error> Run::bind_params() {
  if (arguments_.params.size() != function_.params.size()) {
    return Error{
        format("{} arguments for {} parameters", arguments_.params.size(), function_.params.size()),
        function_.name, ""};
  }
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const ir::Param& param = function_.params[i];
    const auto* type = std::get_if<ir::ViewType>(&function_.type(param.value));
    if (type == nullptr) continue;
    Tensor& tensor = arguments_.params[i].tensor;
    std::vector<std::int64_t> shape;
    for (const ir::Expr& extent : type->shape) {
      shape.push_back(extent.evaluate(host_.facts.values));
    }
    if (tensor.dtype != type->dtype || tensor.shape != shape) {
      return Error{
          format("the argument is {} of {}, the parameter {} of {}", shape_text(tensor.shape),
                 kiln::name(tensor.dtype), shape_text(shape), kiln::name(type->dtype)),
          param.name, ""};
    }
    add_global(param.value, tensor, param.name, true);
  }
  return std::nullopt;
}

std::optional<Error> Run::allocate(ir::ValueId value, const ir::Alloc& alloc) {
  const ir::ViewType& type = function_.view_type(value);
  const std::string& name = alloc.name.empty() ? function_.values[value].name : alloc.name;
  std::vector<std::int64_t> shape;
  for (const ir::Expr& extent : type.shape) {
    const IndexExpr known(extent, host_.facts);
    if (!known.constant()) {
      return Error{
          format("extent {} is not known before the function runs", function_.text(extent)), name,
          ""};
    }
    shape.push_back(known.evaluate(nullptr, 0));
  }
  const bool negative = std::any_of(shape.begin(), shape.end(), [](auto e) { return e < 0; });
  if (negative || !elements_fit(type.dtype, shape)) {
    return Error{format("a buffer of {} cannot be allocated", shape_text(shape)), name, ""};
  }
  double bytes = size_bytes(type.dtype);
  for (const std::int64_t extent : shape) bytes *= static_cast<double>(extent);
  if (auto error = hold_.take(options_.memory, bytes, format("`{}`", name))) return error;
  Tensor tensor = Tensor::zeros(type.dtype, shape);
  add_global(value, tensor, name, alloc.initial.valid());
  globals_[value.index]->owned = std::move(tensor);  // its bytes stay where they are
  return std::nullopt;
}

std::optional<Error> Run::allocate_globals(ir::RegionId region) {
  std::optional<Error> error;
  ir::walk(function_, region, [&](ir::OpId id) {
    const ir::Op& op = function_.ops[id];
    const auto* alloc = std::get_if<ir::Alloc>(&op.data);
    if (alloc == nullptr || error) return;
    const auto* type = std::get_if<ir::ViewType>(&function_.type(op.result));
    if (type == nullptr || type->space != ir::Space::kGlobal) return;
    error = allocate(op.result, *alloc);
  });
  return error;
}

void Run::note_host_vars(ir::RegionId region) {
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    if (op.kind() == ir::OpKind::kParallel) continue;
    ir::for_each_var_set(op, [&](ir::VarId var) { host_vars_.push_back(var); });
    for (const ir::RegionId inner : ir::regions_of(op)) note_host_vars(inner);
  }
}

void Run::read_host_vars(const Warp& host) {
  for (const ir::VarId var : host_vars_) {
    host_.facts.known[var.index] = true;
    host_.facts.values[var.index] = host.vars[std::size_t{var.index} * kLanes];
  }
}

Warp Run::host_warp(const Program& program) const {
  Warp host;
  host.exists = host.mask = 1;
  host.vars.resize(program.vars * kLanes);
  for (std::size_t v = 0; v < program.vars; ++v) {
    if (host_.facts.known[v]) host.vars[v * kLanes] = host_.facts.values[v];
  }
  host.values.resize(program.values * kLanes);
  host.cell_set.resize(program.values);
  host.loop_upper.resize(program.loops.size() * kLanes);
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const ir::Param& param = function_.params[i];
    const auto* type = std::get_if<ir::ScalarType>(&function_.type(param.value));
    if (type == nullptr) continue;
    Scalar& value = host.value(param.value.index, 0);
    if (param.var.valid()) {
      value.i = host_.facts.values[param.var.index];
    } else if (is_float(type->dtype)) {
      value.f = round_to(type->dtype, arguments_.params[i].scalar);
    } else {
      value.i = static_cast<std::int64_t>(arguments_.params[i].scalar);
    }
  }
  return host;
}

std::optional<Error> Run::execute() {
  if (auto error = bind_params()) return error;
  if (auto error = allocate_globals(function_.body)) return error;
  if (auto error = track_host(function_.body)) return error;
  note_host_vars(function_.body);
  const Program program = flatten_host(function_, host_, tally_);
  Tally host_tally;
  Machine machine(function_, program, reporter_, host_tally, options_.checks);
  machine.steps_max = steps_max_;
  printing_.most = options_.prints_max;
  machine.printing = &printing_;
  Warp host = host_warp(program);
  const HostState entry = host_;
  while (true) {
    machine.steps_left = steps_left_;
    run_warp(machine, host);
    steps_left_ = machine.steps_left;
    gave_up_ = gave_up_ || machine.gave_up;
    if (host.state == WarpState::kFinished) return std::nullopt;
    const Instruction& at = program.code[host.pc - 1];
    if (at.code == Code::kReturn) {
      finish(program.returns[at.plan], host);
      return std::nullopt;
    }
    read_host_vars(host);
    ++printing_.phase;
    if (auto error = launch(at.op, host)) return error;
    ++printing_.phase;
    if (gave_up_) return std::nullopt;
    host_.facts = entry.facts;
  }
}

void Run::finish(ir::ValueId value, const Warp& host) {
  if (!value.valid()) return;
  if (const auto* type = std::get_if<ir::ScalarType>(&function_.type(value))) {
    arguments_.returned.scalar =
        as_number(type->dtype, host.values[std::size_t{value.index} * kLanes]);
    return;
  }
  const ir::ValueId root = ir::root_of(function_, value);
  const Global& global = *globals_[root.index];
  Tensor out = Tensor::zeros(
      global.buffer.dtype,
      {global.buffer.extents.begin(),
       global.buffer.extents.begin() + static_cast<std::ptrdiff_t>(global.buffer.rank)});
  std::copy_n(global.buffer.data, global.buffer.bytes, out.bytes.begin());
  arguments_.returned.tensor = std::move(out);
}

std::optional<Error> Run::give_shadow(Global& global, const Shadow::Readers& readers) {
  const unsigned granule = bits_of_size(global.buffer.size);
  const double bytes = shadow_bytes(static_cast<double>(global.buffer.bytes), granule, readers);
  const double more = bytes - static_cast<double>(global.hold.bytes());
  if (auto error = global.hold.take(options_.memory, more,
                                    format("what is known of `{}`", global.buffer.name))) {
    return error;
  }
  if (global.shadow == nullptr) {
    global.shadow = std::make_unique<Shadow>(static_cast<std::size_t>(global.buffer.bytes), granule,
                                             false, global.initialised);
  }
  return std::nullopt;
}

std::optional<Error> Run::track_host(ir::RegionId region) {
  if (!options_.checks) return std::nullopt;
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    if (op.kind() == ir::OpKind::kParallel) continue;
    for (const ir::RegionId inner : ir::regions_of(op)) {
      if (auto error = track_host(inner)) return error;
    }
    if (op.kind() != ir::OpKind::kRead && op.kind() != ir::OpKind::kWrite) continue;
    for (const ir::Touch& touch : ir::memory_touched(function_, op)) {
      Global& global = *globals_[ir::root_of(function_, touch.value).index];
      if (auto error = give_shadow(global, {})) return error;
      global.buffer.of_host = global.shadow.get();
    }
  }
  return std::nullopt;
}

// Shadows only what the launch can get wrong: buffers it writes, and those nobody has filled.
std::optional<Error> Run::track_globals(ir::RegionId body, const Agents& agents,
                                        std::vector<Shadow*>& shadows) {
  const Touched touched = touched_by(function_, body);
  for (std::size_t v = 0; v < globals_.size(); ++v) {
    if (globals_[v] == nullptr) continue;
    Global& global = *globals_[v];
    global.buffer.watched = Buffer::kUnwatched;
    const bool relevant = touched.written[v] || (touched.read[v] && !global.initialised);
    if (!options_.checks || !relevant) continue;
    const bool both = touched.read[v] && touched.written[v];
    const Shadow::Readers readers{.all = agents,
                                  .first = 0,
                                  .blocks = agents.blocks,
                                  .agents = !both              ? 0
                                            : touched.added[v] ? agents.each()
                                                               : agents.warps,
                                  .slots = both && touched.loaded[v],
                                  .updates = touched.updated[v]};
    if (auto error = give_shadow(global, readers)) return error;
    global.shadow->begin_launch(&era_, readers);
    global.buffer.watched = static_cast<std::uint32_t>(shadows.size());
    shadows.push_back(global.shadow.get());
  }
  return std::nullopt;
}

// What the block's warps, or the cluster's, hold: see reset_warp.
std::optional<Error> Run::charge_warps(const Program& program, MemoryHold& hold) const {
  const double warps = static_cast<double>(program.warps()) * program.blocks;
  const double local = static_cast<double>(program.local_bytes) * kLanes;
  constexpr double kSetBit = 0.125;
  const double checked = (1 + kSetBit) * local * warps;
  if (auto error = hold.take(options_.memory, checked,
                             format("local memory of {} bytes for each of {} threads",
                                    program.local_bytes, program.threads * program.blocks))) {
    return error;
  }
  const auto lane_values =
      static_cast<double>(program.vars + program.values + program.loops.size());
  const double state = (lane_values * kLanes + program.fragment_doubles) * sizeof(double);
  return hold.take(options_.memory, state * warps, "the registers of a block");
}

namespace {

std::size_t shared_bytes(const Program& program) {
  auto shared = static_cast<std::size_t>(program.shared_bytes);
  for (const Buffer& buffer : program.buffers) {
    if (buffer.space != ir::Space::kShared) continue;
    shared = std::max(shared, static_cast<std::size_t>(buffer.offset + buffer.bytes));
  }
  return shared;
}

Shadow::Readers shared_readers(const Program& program, const Agents& agents) {
  return {.all = agents,
          .first = 0,
          .blocks = program.reaches_blocks ? agents.blocks : 1,
          .agents = readers_each(program),
          .slots = false,
          .updates = !program.atomics.empty()};
}

}  // namespace

std::optional<Error> Run::charge_shared(const Program& program, const Agents& agents,
                                        MemoryHold& hold) const {
  const auto shared = static_cast<double>(shared_bytes(program));
  const double shadow = options_.checks ? shadow_bytes(shared, shared_granule(program),
                                                       shared_readers(program, agents))
                                        : 0;
  return hold.take(options_.memory, (shared + shadow) * agents.blocks,
                   "shared memory and what is known of it");
}

void Run::report_printed(Outcome& outcome) {
  outcome.printed = ir::lines_in_order(std::move(printing_.printed));
  outcome.prints_dropped = printing_.dropped;
  outcome.dumped = std::move(dumping_.dumped);
}

void Run::equip(Machine& machine) const {
  const Program& program = machine.program;
  const std::size_t shared = shared_bytes(program);
  machine.shared.assign(machine.agents.blocks, std::vector<std::byte>(shared, kGarbage));
  Shadow::Readers readers = shared_readers(program, machine.agents);
  for (std::uint32_t block = 0; options_.checks && block < machine.agents.blocks; ++block) {
    auto shadow_of_block = std::make_unique<Shadow>(shared, shared_granule(program), true, false);
    readers.first = program.reaches_blocks ? 0 : block;
    shadow_of_block->begin_launch(machine.era, readers);
    machine.shared_shadows.push_back(std::move(shadow_of_block));
  }
}

// All blocks of a cooperative launch are on the device at once.
std::optional<Error> Run::check_resident(const ir::Parallel& launch, const Program& program) const {
  if (!launch.cooperative || module_.arch == nullptr) return std::nullopt;
  const target::BlockNeeds needs{.threads = program.threads,
                                 .shared_bytes = static_cast<std::int64_t>(program.shared_bytes),
                                 .registers = static_cast<int>(launch.registers_max)};
  const std::int64_t most = target::occupancy(*module_.arch, needs).blocks * module_.arch->sms;
  if (program.blocks <= most) return std::nullopt;
  return Error{format("a cooperative grid of {} blocks", program.blocks), launch.name,
               format("{} has room for {} of them at once", module_.arch->name, most)};
}

std::optional<Error> Run::launch(ir::OpId op, const Warp& host) {
  const auto& data = std::get<ir::Parallel>(function_.ops[op].data);
  const std::int64_t threads = data.threads.evaluate(host_.facts.values);
  if (threads < 1 || threads > kThreadsMax) {
    return Error{format("a block of {} threads, there may be 1 to {}", threads, kThreadsMax),
                 data.name, ""};
  }
  const Program program =
      flatten_launch(function_, op, static_cast<std::uint32_t>(threads), host_, tally_);
  const bool stores = has_bulk(program, false);
  const Agents agents{
      .blocks = program.blocks, .warps = program.warps(), .slots = program.slots, .stores = stores};
  if (auto error = check_resident(data, program)) return error;
  constexpr std::uint32_t kAgentsMax = 1000;  // threads of agents are numbered in 15 bits
  if (agents.count() > kAgentsMax) {
    return Error{format("{} of {} blocks of {} threads with {} events, too many to simulate",
                        data.cooperative ? "a cooperative grid" : "a cluster", agents.blocks,
                        threads, agents.slots),
                 data.name, ""};
  }
  // Shadow entries keep an instruction's number in 16 bits.
  constexpr std::size_t kInstructionsMax = 0xfffe;
  if (program.code.size() > kInstructionsMax) {
    return Error{format("a launch of {} instructions, at most {} are simulated",
                        program.code.size(), kInstructionsMax),
                 data.name, ""};
  }
  std::vector<Shadow*> shadows;
  if (auto error = track_globals(data.body, agents, shadows)) return error;
  Machine machine(function_, program, reporter_, tally_, options_.checks);
  machine.random = seed_ != 0;
  machine.random_state = seed_ + 0x100000001ULL * launched_.size();
  machine.agents = agents;
  machine.era = &era_;
  machine.printing = &printing_;
  if (!program.dumps.empty()) machine.dumping = &dumping_;
  machine.global_shadows = std::move(shadows);
  machine.steps_max = steps_max_;
  machine.steps_left = steps_left_;
  MemoryHold hold;
  if (auto error = charge_shared(program, agents, hold)) return error;
  if (auto error = charge_warps(program, hold)) return error;
  std::optional<Counting> counting;
  if (options_.count_only) machine.counting = &counting.emplace(function_, program);
  for (const RegistersPlan& plan : program.registers_set) {
    machine.registers_at_start = std::max(machine.registers_at_start, plan.count);
  }
  if (module_.arch != nullptr && machine.registers_at_start != 0) {
    machine.registers_at_start = std::min<std::int64_t>(
        machine.registers_at_start, target::registers_at_start(*module_.arch, threads));
  }
  launched_.push_back({.op = op, .threads = threads, .blocks = 0, .blocks_run = 0});
  run_blocks(data, machine, host, static_cast<double>(hold.bytes()));
  steps_left_ = machine.steps_left;
  gave_up_ = machine.gave_up;
  return std::nullopt;
}

// What is counted belongs to the operation whose instruction the running warp executes.
void Run::attribute_counts(const Machine& machine) {
  const auto running = [&machine] {
    KILN_CHECK(machine.running != nullptr, "something is counted while none of {} warps runs",
               machine.warps.size());
    return std::size_t{machine.program.code[machine.running->pc].op.index};
  };
  tally_.attribute(running, function_.ops.size());
}

// The middle block of a grid stands for the others: it has no edge where any has none.
bool Run::is_traced(ir::OpId launch, const GridPlan& plan, const Grid& at) const {
  if (!options_.trace) return false;
  for (std::size_t axis = 0; axis < plan.grid.size(); ++axis) {
    if (at[axis] != plan.grid[axis] / plan.cluster[axis] / 2) return false;
  }
  return std::none_of(traces_.begin(), traces_.end(),
                      [&](const BlockTrace& trace) { return trace.launch == launch; });
}

void Run::run_blocks(const ir::Parallel& data, Machine& machine, const Warp& host,
                     double machine_bytes) {
  GridPlan plan = plan_grid(function_, data, host_.facts.values, options_.representative_blocks);
  if (machine.random) plan.clusters.shuffle([&machine] { return machine.next_random(); });
  plan.random_state = machine.random_state;
  // Clocks go on from the last launch, whose accesses all come before.
  era_.launch_start = era_.block_start = era_.block_start + 1;
  const bool done = run_on_cores(plan, machine, host, machine_bytes);
  const std::int64_t clusters = done ? plan.clusters.count() : run_in_turn(plan, machine, host);
  launched_.back().blocks = plan.blocks();
  launched_.back().blocks_run = clusters * static_cast<std::int64_t>(plan.ranks.size());
  blocks_ += launched_.back().blocks_run;
}

std::int64_t Run::run_in_turn(const GridPlan& plan, Machine& machine, const Warp& host) {
  equip(machine);
  std::int64_t done = 0;
  for (; done < plan.clusters.count() && !machine.gave_up; ++done) {
    show_progress(machine, done, plan.clusters.count());
    const ChosenBlock block = start_cluster(machine, host, plan, done);
    tally_.weigh(block.weight);
    if (options_.by_operation) attribute_counts(machine);
    std::optional<Tracer> tracer;
    if (is_traced(launched_.back().op, plan, block.at)) {
      traces_.emplace_back().launch = launched_.back().op;
      machine.tracer = &tracer.emplace(machine, traces_.back());
    }
    run_block(machine);
    machine.tracer = nullptr;
  }
  tally_.weigh(1);
  tally_.attribute({}, 1);
  era_.block_start = latest_clock(machine);
  return done;
}

// A call costs too much for each block, and a clock's reading for each step.
void Run::show_progress(Machine& machine, std::int64_t done, std::int64_t blocks) const {
  if (!options_.progress) return;
  machine.watch = [this, done, blocks](std::uint64_t steps_left) {
    options_.progress({.schedule = static_cast<std::int64_t>(seed_ - options_.seed),
                       .schedules = std::max<std::int64_t>(options_.schedules, 1),
                       .blocks_done = done,
                       .blocks = blocks,
                       .steps = steps_max_ - steps_left});
  };
}

void Run::report(Outcome& outcome) const {
  outcome.steps = steps_max_ - steps_left_;
  outcome.counters = tally_.counters();
  if (options_.by_operation) {
    outcome.by_operation = tally_.by_account();
    outcome.by_operation.resize(function_.ops.size());  // nothing may have been launched
  }
  outcome.launches = launched_;
  outcome.traces = traces_;
}

std::vector<Unwritten> Run::unwritten() const {
  std::vector<Unwritten> out;
  for (const std::size_t param : ir::written_params(function_)) {
    const auto& global = globals_[function_.params[param].value.index];
    if (global == nullptr || global->shadow == nullptr) continue;
    const auto size = static_cast<std::size_t>(global->buffer.size);
    Unwritten found{param, 0,
                    std::vector<bool>(static_cast<std::size_t>(global->buffer.bytes) / size)};
    for (std::size_t i = 0; i < found.elements.size(); ++i) {
      found.elements[i] = !global->shadow->written(i * size);
      found.count += found.elements[i];
    }
    if (found.count != 0) out.push_back(std::move(found));
  }
  return out;
}

Result<Outcome> run(const ir::Module& module, const ir::Function& function,
                    ir::Arguments& arguments, const Options& options) {
  KILN_CHECK(module.form == ir::Form::kDecided, "`@{}` is simulated before all is decided",
             function.name);
  KILN_CHECK(!options.by_operation || (options.schedules <= 1 && options.seed == 0),
             "counts by operation need schedule 0, alone");
  KILN_CHECK(!options.trace || (options.schedules <= 1 && options.seed == 0),
             "a trace needs schedule 0, alone");
  KILN_CHECK(!options.count_only || !options.checks, "checks of data that is not computed");
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  Reporter reporter(options, outcome);
  const std::int64_t schedules = std::max<std::int64_t>(options.schedules, 1);
  MemoryHold hold;
  if (schedules > 1) {
    constexpr double kCopies = 2;  // as they came, and those of the schedule
    double bytes = 0;
    for (const auto& value : arguments.params) {
      bytes += kCopies * static_cast<double>(value.tensor.bytes.size());
    }
    if (auto error = hold.take(options.memory, bytes, "each schedule's copy of the tensors")) {
      return Unexpected{*std::move(error)};
    }
  }
  const ir::Arguments original = schedules > 1 ? arguments : ir::Arguments{};
  for (std::int64_t schedule = 0; schedule < schedules; ++schedule) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(schedule);
    reporter.begin_schedule(seed);
    ir::Arguments copy = schedule == 0 ? ir::Arguments{} : original;
    Run one({module, function, options, seed}, schedule == 0 ? arguments : copy, reporter);
    if (auto error = one.execute()) return Unexpected{*std::move(error)};
    outcome.gave_up = one.gave_up();
    if (schedule == 0) {
      one.report(outcome);
      one.report_printed(outcome);
      if (!outcome.gave_up) outcome.unwritten = one.unwritten();
    }
    outcome.blocks += one.blocks();
    if (outcome.gave_up) break;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  outcome.seconds = elapsed.count();
  return outcome;
}

}  // namespace kiln::sim
