#include "runtime/run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>

#include "emit/cuda/emit.h"
#include "emit/cuda/launch_plan.h"
#include "runtime/host_program.h"

namespace kiln::runtime {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr unsigned char kPoison = 0xff;
constexpr std::size_t kValueBytes = 8;  // of the largest kernel parameter

template <class T>
bool contains(const std::vector<T>& items, const T& item) {
  return std::ranges::find(items, item) != items.end();
}

// One call of a function: its buffers on the device and how its launches go.
class Run {
 public:
  Run(Gpu& gpu, const DeviceModule& kernels, const ir::Module& module, const ir::Function& function,
      ir::Arguments& arguments)
      : gpu_(gpu),
        kernels_(kernels),
        function_(function),
        arguments_(arguments),
        plans_(emit::plan_launches(module, function)),
        host_(function, arguments) {}

  Result<void> copy_in();
  // Launches everything once, in order, and waits. Returns the seconds between the events around
  // it.
  Result<double> launch_all();
  Result<void> copy_out();
  Result<std::vector<std::string>> overrun() const;
  [[nodiscard]] std::int64_t launches() const { return launches_; }

 private:
  Result<void> allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                        std::optional<double> initial);
  Result<void> launch(ir::OpId op);
  Result<Launch> sized(const emit::LaunchPlan& plan) const;
  Result<std::vector<cuda::TensorMap>> maps_of(const emit::LaunchPlan& plan) const;
  std::array<std::byte, kValueBytes> slot_value(const emit::ParamSlot& slot) const;
  Result<void> copy_out_returned();

  struct Buffer {
    DeviceBuffer memory;
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape;
  };

  Gpu& gpu_;
  const DeviceModule& kernels_;
  const ir::Function& function_;
  ir::Arguments& arguments_;
  std::vector<emit::LaunchPlan> plans_;
  HostProgram host_;
  std::map<std::uint32_t, Buffer> buffers_;  // by index of the root's ValueId
  std::int64_t launches_ = 0;
};

Result<void> Run::copy_in() {
  const std::vector<std::size_t> read = ir::read_params(function_);
  const std::vector<std::size_t> written = ir::written_params(function_);
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const ir::ValueId value = function_.params[i].value;
    if (!std::holds_alternative<ir::ViewType>(function_.type(value))) continue;
    const Tensor& tensor = arguments_.params[i].tensor;
    Result<DeviceBuffer> memory = gpu_.allocate(tensor.bytes.size());
    if (!memory) return Unexpected{memory.error()};
    const bool only_written = contains(written, i) && !contains(read, i);
    auto filled = only_written ? memory->fill(kPoison) : memory->copy_in(tensor.bytes);
    if (!filled) return filled;
    buffers_.emplace(value.index, Buffer{std::move(*memory), tensor.dtype, tensor.shape});
  }
  return {};
}

Result<void> Run::allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                           std::optional<double> initial) {
  const DType dtype = function_.view_type(value).dtype;
  if (!elements_fit(dtype, shape)) {
    return Unexpected{Error{"cannot allocate", function_.values[value].name,
                            format("a shape of {}", shape_text(shape))}};
  }
  Tensor tensor = Tensor::zeros(dtype, shape);
  const auto found = buffers_.find(value.index);
  if (found == buffers_.end() || found->second.shape != shape) {
    Result<DeviceBuffer> memory = gpu_.allocate(tensor.bytes.size());
    if (!memory) return Unexpected{memory.error()};
    buffers_.insert_or_assign(value.index, Buffer{std::move(*memory), dtype, shape});
  }
  DeviceBuffer& memory = buffers_.at(value.index).memory;
  if (!initial) return memory.fill(kPoison);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set(static_cast<std::size_t>(i), *initial);
  }
  return memory.copy_in(tensor.bytes);
}

std::array<std::byte, kValueBytes> Run::slot_value(const emit::ParamSlot& slot) const {
  std::uint64_t bits = 0;
  switch (slot.kind) {
    case emit::SlotKind::kParam:
    case emit::SlotKind::kAlloc: bits = buffers_.at(slot.value.index).memory.address(); break;
    case emit::SlotKind::kVar:
      bits = static_cast<std::uint64_t>(host_.vars()[slot.var.index]);
      break;
    case emit::SlotKind::kScalar: bits = encode(slot.dtype, host_.scalar(slot.value)); break;
    case emit::SlotKind::kMap: KILN_UNREACHABLE("a tensor map as a number");
  }
  std::array<std::byte, kValueBytes> bytes{};
  std::memcpy(bytes.data(), &bits, kValueBytes);
  return bytes;
}

// Each buffer's map, as the buffer is now.
Result<std::vector<cuda::TensorMap>> Run::maps_of(const emit::LaunchPlan& plan) const {
  std::vector<cuda::TensorMap> maps;
  for (const emit::MapPlan& each : plan.maps) {
    const Buffer& buffer = buffers_.at(each.map.root.index);
    TensorMapRequest request{.name = each.array.name,
                             .dtype = buffer.dtype,
                             .address = buffer.memory.address(),
                             .shape = buffer.shape,
                             .box = each.map.box,
                             .swizzle = each.map.swizzle,
                             .promotion = each.map.promotion};
    for (const ir::Expr& extent : each.map.extents) {
      request.extents.push_back(extent.evaluate(host_.vars()));
    }
    auto made = gpu_.tensor_map(request, maps.emplace_back());
    if (!made) return Unexpected{made.error()};
  }
  return maps;
}

// Grid and block, compared with what the device takes.
Result<Launch> Run::sized(const emit::LaunchPlan& plan) const {
  const target::Arch& arch = gpu_.arch();
  const std::int64_t most[] = {arch.grid_x_max, arch.grid_y_max, arch.grid_z_max};
  constexpr const char* kAxes = "xyz";
  Launch launch{.kernel = plan.kernel_name,
                .shared_bytes = static_cast<unsigned>(plan.shared_bytes),
                .parameters = {}};
  for (std::size_t axis = 0; axis < plan.grid.size(); ++axis) {
    const std::int64_t blocks = plan.grid[axis].evaluate(host_.vars());
    if (blocks < 1 || blocks > most[axis]) {
      return Unexpected{Error{"cannot launch", plan.kernel_name,
                              format("{} blocks along {}, {} allows 1 to {}", blocks, kAxes[axis],
                                     arch.name, most[axis])}};
    }
    const std::int64_t together = plan.cluster.empty() ? 1 : plan.cluster[axis];
    if (blocks % together != 0) {
      return Unexpected{Error{"cannot launch", plan.kernel_name,
                              format("{} blocks along {} are no multiple of the cluster's {}",
                                     blocks, kAxes[axis], together)}};
    }
    launch.grid[axis] = static_cast<unsigned>(blocks);
  }
  const std::int64_t threads = plan.threads.evaluate(host_.vars());
  if (threads < 1 || threads > arch.threads_per_block_max) {
    return Unexpected{Error{"cannot launch", plan.kernel_name,
                            format("{} threads in a block, {} allows 1 to {}", threads, arch.name,
                                   arch.threads_per_block_max)}};
  }
  launch.threads = static_cast<unsigned>(threads);
  return launch;
}

Result<void> Run::launch(ir::OpId op) {
  const auto plan = std::ranges::find(plans_, op, &emit::LaunchPlan::op);
  KILN_CHECK(plan != plans_.end(), "operation {} has no launch plan", op.index);
  for (const emit::ParamSlot& slot : plan->slots) {
    // Kernels compute coordinates in 32 bits; a little room is left for tiles that overhang.
    constexpr std::int64_t kMost = INT32_MAX - (1 << 20);
    if (slot.kind != emit::SlotKind::kVar || info(slot.dtype).bits > 32) continue;
    const std::int64_t value = host_.vars()[slot.var.index];
    if (value > kMost || value < -kMost) {
      return Unexpected{Error{"cannot launch", plan->kernel_name,
                              format("{} is {}, at most {} is possible", slot.name, value, kMost)}};
    }
  }
  Result<Launch> launch = sized(*plan);
  if (!launch) return Unexpected{launch.error()};
  Result<std::vector<cuda::TensorMap>> maps = maps_of(*plan);
  if (!maps) return Unexpected{maps.error()};
  std::vector<std::array<std::byte, kValueBytes>> values;
  values.reserve(plan->slots.size());  // parameters point into it
  for (const emit::ParamSlot& slot : plan->slots) {
    const bool map = slot.kind == emit::SlotKind::kMap;
    if (!map) values.push_back(slot_value(slot));
    launch->parameters.push_back(map ? (*maps)[slot.map].bytes.data() : values.back().data());
  }
  ++launches_;
  return kernels_.launch(*launch);
}

Result<double> Run::launch_all() {
  Result<DeviceEvent> start = gpu_.event();
  if (!start) return Unexpected{start.error()};
  Result<DeviceEvent> end = gpu_.event();
  if (!end) return Unexpected{end.error()};
  const HostProgram::Hooks hooks{
      .allocate = [&](ir::ValueId value, const std::vector<std::int64_t>& shape,
                      std::optional<double> initial) { return allocate(value, shape, initial); },
      .launch = [&](ir::OpId op) { return launch(op); }};
  launches_ = 0;
  if (auto began = start->record(); !began) return Unexpected{began.error()};
  if (auto ran = host_.run(hooks); !ran) return Unexpected{ran.error()};
  if (auto ended = end->record(); !ended) return Unexpected{ended.error()};
  if (auto waited = gpu_.synchronize(); !waited) return Unexpected{waited.error()};
  return end->seconds_since(*start);
}

Result<void> Run::copy_out() {
  for (const std::size_t i : ir::written_params(function_)) {
    const auto found = buffers_.find(function_.params[i].value.index);
    if (found == buffers_.end()) continue;
    auto copied = found->second.memory.copy_out(arguments_.params[i].tensor.bytes);
    if (!copied) return copied;
  }
  return copy_out_returned();
}

Result<void> Run::copy_out_returned() {
  const ir::ValueId value = host_.returned();
  if (!value.valid()) return {};
  const auto found = buffers_.find(value.index);
  if (found == buffers_.end()) {
    arguments_.returned.scalar = host_.scalar(value);
    return {};
  }
  arguments_.returned.tensor = Tensor::zeros(found->second.dtype, found->second.shape);
  return found->second.memory.copy_out(arguments_.returned.tensor.bytes);
}

Result<std::vector<std::string>> Run::overrun() const {
  std::vector<std::string> names;
  for (const auto& [value, buffer] : buffers_) {
    const Result<bool> intact = buffer.memory.zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (!*intact) names.push_back(function_.values[ir::ValueId{value}].name);
  }
  return names;
}

Result<double> median_of_repeats(Run& run, int repeat, double first) {
  if (repeat <= 0) return first;
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const Result<double> one = run.launch_all();
    if (!one) return one;
    seconds.push_back(*one);
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

std::string file_name_of(const ir::Function& function) { return format("{}.cu", function.name); }

}  // namespace

Result<Cubin> compile_to_cubin_only(const ir::Module& module, const Sources& sources) {
  const std::string file_name =
      module.functions.empty() ? "kernel.cu" : file_name_of(module.functions[0]);
  const std::string text = emit::emit(module, sources, {.file_name = file_name});
  return compile(text, *module.arch, file_name);
}

Result<GpuOutcome> run_on_gpu(const ir::Module& module, const ir::Function& function,
                              const Sources& sources, ir::Arguments& arguments,
                              const GpuOptions& options) {
  Result<Gpu> gpu = Gpu::open();
  if (!gpu) return Unexpected{gpu.error()};
  // What was decided for an older architecture is compiled for the one at hand: instructions stay.
  if (module.arch->capability > gpu->arch().capability) {
    return Unexpected{
        Error{"cannot run on", gpu->name(),
              format("the kernel is for {}, the GPU is {}", module.arch->name, gpu->arch().name)}};
  }
  GpuOutcome outcome;
  outcome.device = gpu->name();
  outcome.arch = &gpu->arch();
  const std::string file_name = file_name_of(function);
  Clock::time_point start = Clock::now();
  const std::string text = emit::emit(module, sources, {.file_name = file_name});
  outcome.emit_seconds = seconds_since(start);

  start = Clock::now();
  const Result<Cubin> cubin = compile(text, gpu->arch(), file_name);
  if (!cubin) return Unexpected{cubin.error()};
  outcome.compile_seconds = seconds_since(start);
  outcome.nvrtc_version = cubin->version;

  start = Clock::now();
  const Result<DeviceModule> kernels = gpu->load(cubin->bytes);
  if (!kernels) return Unexpected{kernels.error()};
  outcome.load_seconds = seconds_since(start);

  Run run(*gpu, *kernels, module, function, arguments);
  if (auto copied = run.copy_in(); !copied) return Unexpected{copied.error()};
  const Result<double> first = run.launch_all();
  if (!first) return Unexpected{first.error()};
  outcome.launches = run.launches();
  if (auto copied = run.copy_out(); !copied) return Unexpected{copied.error()};
  Result<std::vector<std::string>> overrun = run.overrun();
  if (!overrun) return Unexpected{overrun.error()};
  outcome.overrun = std::move(*overrun);
  const Result<double> median = median_of_repeats(run, options.repeat, *first);
  if (!median) return Unexpected{median.error()};
  outcome.kernel_seconds = *median;
  return outcome;
}

}  // namespace kiln::runtime
