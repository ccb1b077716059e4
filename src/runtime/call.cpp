#include "runtime/call.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "emit/cuda/emit.h"
#include "runtime/carried_code.h"

namespace kiln::runtime {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr unsigned char kPoison = 0xff;

template <class T>
bool contains(const std::vector<T>& items, const T& item) {
  return std::ranges::find(items, item) != items.end();
}

std::size_t tensor_bytes(DType dtype, const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(Tensor{dtype, shape, {}}.elements() * size_bytes(dtype));
}

}  // namespace

std::string file_name_of(const ir::Function& function) { return format("{}.cu", function.name); }

Result<Compiled> warm_kernels(const ir::Module& module, const ir::Function& function,
                              const Sources& sources, const Cache& cache) {
  const std::string file_name = file_name_of(function);
  std::string text = emit::emit(module, sources, {.file_name = file_name});
  return compile_cached(compile_request(std::move(text), *module.arch, file_name), cache,
                        CacheUse::kFindAndStore);
}

namespace {

// What a program carries for this GPU: made for it, or for the architecture of the module.
std::optional<std::string> carried_for(const Gpu& gpu, const ir::Module& module,
                                       const CompileRequest& request) {
  auto code = find_carried(request);
  if (code || !target::runs_code_of(gpu.arch(), *module.arch)) return code;
  return find_carried(compile_request(request.text, *module.arch, request.file_name));
}

// Nothing where the program carries nothing, or what a driver does not take that is older than the
// compiler which made it.
std::optional<Kernels> load_carried(Gpu& gpu, const ir::Module& module,
                                    const CompileRequest& request) {
  const Clock::time_point start = Clock::now();
  const auto code = carried_for(gpu, module, request);
  if (!code) return std::nullopt;
  Result<DeviceModule> loaded = gpu.load(*code);
  if (!loaded) return std::nullopt;
  return Kernels{.module = std::move(*loaded),
                 .nvrtc_version = {},
                 .load_seconds = seconds_since(start),
                 .cached = true,
                 .cache_note = {}};
}

Result<Kernels> load_compiled(Gpu& gpu, const CompileRequest& request, CacheUse use) {
  Clock::time_point start = Clock::now();
  const Result<CacheSettings> settings = cache_settings();
  if (!settings) return Unexpected{settings.error()};
  const Result<Compiled> compiled = compile_cached(request, Cache(*settings), use);
  if (!compiled) return Unexpected{compiled.error()};
  const double compile_seconds = seconds_since(start);

  start = Clock::now();
  Result<DeviceModule> loaded = gpu.load(compiled->cubin.bytes);
  if (!loaded) return Unexpected{loaded.error()};
  return Kernels{.module = std::move(*loaded),
                 .nvrtc_version = compiled->cubin.version,
                 .compile_seconds = compile_seconds,
                 .load_seconds = seconds_since(start),
                 .cached = compiled->cached,
                 .kept = compiled->kept,
                 .cache_note = compiled->note};
}

}  // namespace

Result<Kernels> load_kernels(Gpu& gpu, const ir::Module& module, const ir::Function& function,
                             const Sources& sources, CacheUse use) {
  // What was decided for an older architecture is compiled for the one at hand: instructions stay.
  if (module.arch->capability > gpu.arch().capability) {
    return Unexpected{
        Error{"cannot run on", gpu.name(),
              format("the kernel is for {}, the GPU is {}", module.arch->name, gpu.arch().name)}};
  }
  const std::string file_name = file_name_of(function);
  const Clock::time_point start = Clock::now();
  std::string text = emit::emit(module, sources, {.file_name = file_name});
  const double emit_seconds = seconds_since(start);
  const CompileRequest request = compile_request(std::move(text), gpu.arch(), file_name);
  std::optional<Kernels> carried;
  if (use == CacheUse::kFindAndStore) carried = load_carried(gpu, module, request);
  Result<Kernels> kernels =
      carried ? Result<Kernels>(std::move(*carried)) : load_compiled(gpu, request, use);
  if (kernels) kernels->emit_seconds = emit_seconds;
  return kernels;
}

Result<Kernels> load_text(Gpu& gpu, std::string text, std::string file_name) {
  return load_compiled(gpu, compile_request(std::move(text), gpu.arch(), std::move(file_name)),
                       CacheUse::kFindAndStore);
}

Result<LoadTimes> measure_loads(Gpu& gpu, const ir::Module& module, const ir::Function& function,
                                const Sources& sources) {
  const auto seconds = [](const Kernels& kernels) {
    return kernels.emit_seconds + kernels.compile_seconds + kernels.load_seconds;
  };
  const auto cold = load_kernels(gpu, module, function, sources, CacheUse::kStoreOnly);
  if (!cold) return Unexpected{cold.error()};
  LoadTimes out{.cold = seconds(*cold), .warm = {}};
  if (!cold->kept) return out;
  const auto warm = load_kernels(gpu, module, function, sources);
  if (!warm) return Unexpected{warm.error()};
  if (warm->cached) out.warm = seconds(*warm);
  return out;
}

Call::Call(Gpu& gpu, const DeviceModule& kernels, const ir::Module& module,
           const ir::Function& function, const ir::Arguments& arguments)
    : gpu_(gpu),
      kernels_(kernels),
      function_(function),
      arguments_(arguments),
      plans_(emit::plan_launches(module, function)),
      host_(function, arguments) {}

// With the argument, or with poison when the function only writes it.
Result<void> Call::fill(std::size_t param, DeviceBuffer& memory) const {
  return contains(ir::given_params(function_), param)
             ? memory.copy_in(arguments_.params[param].tensor.bytes)
             : memory.fill(kPoison);
}

Result<void> Call::copy_in() {
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const ir::ValueId value = function_.params[i].value;
    if (!std::holds_alternative<ir::ViewType>(function_.type(value))) continue;
    const Tensor& tensor = arguments_.params[i].tensor;
    Result<DeviceBuffer> memory = gpu_.allocate(tensor_bytes(tensor.dtype, tensor.shape));
    if (!memory) return Unexpected{memory.error()};
    if (auto filled = fill(i, *memory); !filled) return filled;
    buffers_[value.index] =
        std::make_shared<Buffer>(Buffer{std::move(*memory), tensor.dtype, tensor.shape});
  }
  return {};
}

void Call::share(const Call& from) {
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const auto found = from.buffers_.find(from.function_.params[i].value.index);
    if (found != from.buffers_.end()) buffers_[function_.params[i].value.index] = found->second;
  }
}

Result<void> Call::refill() {
  for (const std::size_t i : ir::written_params(function_)) {
    const auto found = buffers_.find(function_.params[i].value.index);
    if (found == buffers_.end()) continue;
    if (auto filled = fill(i, found->second->memory); !filled) return filled;
  }
  return {};
}

Result<void> Call::allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                            std::optional<double> initial) {
  const DType dtype = function_.view_type(value).dtype;
  if (!elements_fit(dtype, shape)) {
    return Unexpected{Error{"cannot allocate", function_.values[value].name,
                            format("a shape of {}", shape_text(shape))}};
  }
  std::shared_ptr<Buffer>& held = buffers_[value.index];
  if (!held || held->shape != shape) {
    Result<DeviceBuffer> memory = gpu_.allocate(tensor_bytes(dtype, shape));
    if (!memory) return Unexpected{memory.error()};
    if (held) retired_.push_back(held);
    held = std::make_shared<Buffer>(Buffer{std::move(*memory), dtype, shape});
  }
  Fill fill{.buffer = held, .bytes = {}};
  if (initial) {
    Tensor tensor = Tensor::zeros(dtype, shape);
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.set(static_cast<std::size_t>(i), *initial);
    }
    fill.bytes = std::move(tensor.bytes);
  }
  steps_.emplace_back(std::move(fill));
  return {};
}

Call::ValueBytes Call::slot_value(const emit::ParamSlot& slot) const {
  const bool pointer = slot.kind == emit::SlotKind::kParam || slot.kind == emit::SlotKind::kAlloc;
  const std::uint64_t bits =
      pointer ? buffers_.at(slot.value.index)->memory.address() : value_bits(slot, host_);
  ValueBytes bytes{};
  std::memcpy(bytes.data(), &bits, kValueBytes);
  return bytes;
}

// Each buffer's map, as the buffer is now.
Result<std::vector<cuda::TensorMap>> Call::maps_of(const emit::LaunchPlan& plan) const {
  std::vector<cuda::TensorMap> maps;
  for (const emit::MapPlan& each : plan.maps) {
    const Buffer& buffer = *buffers_.at(each.map.buffer.index);
    TensorMapRequest request = map_request(each, host_.vars());
    request.dtype = buffer.dtype;
    request.address = buffer.memory.address();
    auto made = gpu_.tensor_map(request, maps.emplace_back());
    if (!made) return Unexpected{made.error()};
  }
  return maps;
}

Result<void> Call::prepare_launch(ir::OpId op) {
  const auto plan = std::ranges::find(plans_, op, &emit::LaunchPlan::op);
  KILN_CHECK(plan != plans_.end(), "operation {} has no launch plan", op.index);
  Result<Launch> launch = sized_launch(*plan, host_.vars(), gpu_.arch());
  if (!launch) return Unexpected{launch.error()};
  Result<std::vector<cuda::TensorMap>> maps = maps_of(*plan);
  if (!maps) return Unexpected{maps.error()};
  Prepared prepared{.launch = std::move(*launch), .values = {}, .maps = std::move(*maps)};
  prepared.values.reserve(plan->slots.size());  // parameters point into it
  for (const emit::ParamSlot& slot : plan->slots) {
    const bool map = slot.kind == emit::SlotKind::kMap;
    if (!map) prepared.values.push_back(slot_value(slot));
    prepared.launch.parameters.push_back(map ? prepared.maps[slot.map].bytes.data()
                                             : prepared.values.back().data());
  }
  if (auto found = kernels_.prepare(prepared.launch); !found) return found;
  steps_.emplace_back(std::move(prepared));
  ++launches_;
  return {};
}

Result<void> Call::prepare(std::uint64_t steps_max) {
  const HostProgram::Hooks hooks{
      .allocate = [&](ir::ValueId value, const std::vector<std::int64_t>& shape,
                      std::optional<double> initial) { return allocate(value, shape, initial); },
      .launch = [&](ir::OpId op) { return prepare_launch(op); }};
  steps_.clear();
  retired_.clear();
  launches_ = 0;
  started_ = false;
  return host_.run(hooks, steps_max);
}

Result<void> Call::take(const Prepared& step, cuda::Stream stream) {
  return kernels_.launch(step.launch, stream);
}

Result<void> Call::take(const Fill& step, cuda::Stream stream) {
  DeviceBuffer& memory = step.buffer->memory;
  if (step.bytes.empty()) return started_ ? Result<void>{} : memory.fill(kPoison);
  const std::byte first = step.bytes.front();
  const bool alike = std::ranges::all_of(step.bytes, [&](std::byte b) { return b == first; });
  if (!alike && stream != nullptr) {
    return Unexpected{Error{"cannot fill a buffer on a stream", format("{} bytes", memory.bytes()),
                            "its first values come from the host's memory at each start"}};
  }
  return alike ? memory.fill(static_cast<unsigned char>(first), stream)
               : memory.copy_in(step.bytes);
}

Result<void> Call::start(cuda::Stream stream) {
  for (const Step& step : steps_) {
    auto done = std::visit([&](const auto& each) { return take(each, stream); }, step);
    if (!done) return done;
  }
  started_ = true;
  return {};
}

const DeviceBuffer* Call::buffer(ir::ValueId value) const {
  const auto found = buffers_.find(value.index);
  return found == buffers_.end() ? nullptr : &found->second->memory;
}

Result<void> Call::copy_out(ir::Arguments& to) const {
  for (const std::size_t i : ir::written_params(function_)) {
    const auto found = buffers_.find(function_.params[i].value.index);
    if (found == buffers_.end()) continue;
    auto copied = found->second->memory.copy_out(to.params[i].tensor.bytes);
    if (!copied) return copied;
  }
  return copy_out_returned(to);
}

Result<void> Call::copy_out_returned(ir::Arguments& to) const {
  const ir::ValueId value = host_.returned();
  if (!value.valid()) return {};
  const auto found = buffers_.find(value.index);
  if (found == buffers_.end()) {
    to.returned.scalar = host_.scalar(value);
    return {};
  }
  to.returned.tensor = Tensor::zeros(found->second->dtype, found->second->shape);
  return found->second->memory.copy_out(to.returned.tensor.bytes);
}

Result<std::vector<std::string>> Call::overrun() const {
  std::vector<std::string> names;
  for (const auto& [value, buffer] : buffers_) {
    const Result<bool> intact = buffer->memory.zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (!*intact) names.push_back(function_.values[ir::ValueId{value}].name);
  }
  return names;
}

}  // namespace kiln::runtime
