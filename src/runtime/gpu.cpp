#include "runtime/gpu.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kiln::runtime {

namespace {

constexpr unsigned char kZoneByte = 0xa5;

}  // namespace

Session::~Session() {
  if (retained) api.context_release(device);
}

ContextScope::ContextScope(const Session& session) : session_(session) {
  const cuda::Api& api = session.api;
  cuda::Context current = nullptr;
  if (api.context_current(&current) == cuda::kSuccess && current == session.context) return;
  entered_ = api.check(api.context_push(session.context), "cannot use the GPU");
  pushed_ = entered_.has_value();
}

ContextScope::~ContextScope() {
  cuda::Context popped = nullptr;
  if (pushed_) session_.api.context_pop(&popped);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : session_(std::move(other.session_)),
      base_(std::exchange(other.base_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (base_ != 0) session_->api.memory_free(base_);
}

Result<void> DeviceBuffer::copy_in(std::span<const std::byte> from) {
  KILN_CHECK(from.size() == bytes_, "{} bytes into a buffer of {}", from.size(), bytes_);
  if (bytes_ == 0) return {};
  return session_->api.check(session_->api.copy_in(address(), from.data(), bytes_),
                             "cannot copy to the GPU");
}

Result<void> DeviceBuffer::copy_out(std::span<std::byte> to) const {
  KILN_CHECK(to.size() == bytes_, "{} bytes from a buffer of {}", to.size(), bytes_);
  if (bytes_ == 0) return {};
  return session_->api.check(session_->api.copy_out(to.data(), address(), bytes_),
                             "cannot copy from the GPU");
}

Result<void> DeviceBuffer::start_copy(const DeviceBuffer& from, cuda::Stream stream) {
  KILN_CHECK(from.bytes_ == bytes_, "{} bytes into a buffer of {}", from.bytes_, bytes_);
  if (bytes_ == 0) return {};
  return session_->api.check(session_->api.copy_within(address(), from.address(), bytes_, stream),
                             "cannot copy on the GPU");
}

Result<void> DeviceBuffer::fill(unsigned char byte, cuda::Stream stream) {
  if (bytes_ == 0) return {};
  const cuda::Api& api = session_->api;
  const cuda::Status status = stream == nullptr
                                  ? api.set_bytes(address(), byte, bytes_)
                                  : api.start_set_bytes(address(), byte, bytes_, stream);
  return api.check(status, "cannot fill memory of the GPU");
}

Result<bool> DeviceBuffer::zones_intact() const {
  for (const cuda::DevicePtr zone : {base_, base_ + kZone + bytes_}) {
    std::array<unsigned char, kZone> seen{};
    const auto copied = session_->api.check(session_->api.copy_out(seen.data(), zone, kZone),
                                            "cannot copy from the GPU");
    if (!copied) return Unexpected{copied.error()};
    if (!std::ranges::all_of(seen, [](unsigned char b) { return b == kZoneByte; })) return false;
  }
  return true;
}

DeviceModule::DeviceModule(DeviceModule&& other) noexcept
    : session_(std::move(other.session_)), handle_(std::exchange(other.handle_, nullptr)) {}

DeviceModule& DeviceModule::operator=(DeviceModule&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(handle_, other.handle_);
  return *this;
}

DeviceModule::~DeviceModule() {
  if (handle_ != nullptr) session_->api.module_unload(handle_);
}

Result<void> DeviceModule::prepare(Launch& launch) const {
  const cuda::Api& api = session_->api;
  auto found = api.check(api.module_function(&launch.function, handle_, launch.kernel.c_str()),
                         "cannot find the kernel", launch.kernel);
  if (!found) return found;
  return api.check(api.function_set(launch.function, cuda::kMaxDynamicSharedBytes,
                                    static_cast<int>(launch.shared_bytes)),
                   "cannot give shared memory to the kernel", launch.kernel);
}

Result<void> DeviceModule::launch(const Launch& launch, cuda::Stream stream) const {
  return this->launch(launch, launch.parameters, stream);
}

Result<void> DeviceModule::launch(const Launch& launch, std::span<void* const> parameters,
                                  cuda::Stream stream) const {
  KILN_CHECK(launch.function != nullptr, "`{}` is not prepared", launch.kernel);
  const cuda::Api& api = session_->api;
  // The driver reads the array of addresses and does not write to it.
  auto** addresses = const_cast<void**>(parameters.data());
  if (launch.cooperative && api.launch_configured == nullptr) {
    return Unexpected{Error{"cannot launch the kernel", launch.kernel,
                            "the driver is too old for blocks that meet: CUDA 11.8 is needed"}};
  }
  if ((launch.overlaps || launch.cooperative) && api.launch_configured != nullptr) {
    const int kind = launch.cooperative ? cuda::kAllBlocksAtOnce : cuda::kOverlapsEarlierKernels;
    cuda::LaunchAttribute attribute{.id = kind, .padding = 0, .value = {1}};
    const cuda::LaunchConfig config{.grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                                    .block = {launch.threads, 1, 1},
                                    .shared_bytes = launch.shared_bytes,
                                    .stream = stream,
                                    .attributes = &attribute,
                                    .attribute_count = 1};
    const cuda::Status status = api.launch_configured(&config, launch.function, addresses, nullptr);
    if (status == cuda::kSuccess) return {};
    return api.check(status, "cannot launch the kernel", launch.kernel);
  }
  const cuda::Status status =
      api.launch(launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.threads, 1,
                 1, launch.shared_bytes, stream, addresses, nullptr);
  if (status == cuda::kSuccess) return {};
  return api.check(status, "cannot launch the kernel", launch.kernel);
}

DeviceEvent::DeviceEvent(DeviceEvent&& other) noexcept
    : session_(std::move(other.session_)), handle_(std::exchange(other.handle_, nullptr)) {}

DeviceEvent::~DeviceEvent() {
  if (handle_ != nullptr) session_->api.event_destroy(handle_);
}

Result<void> DeviceEvent::record() {
  return session_->api.check(session_->api.event_record(handle_, nullptr),
                             "cannot record an event");
}

Result<double> DeviceEvent::seconds_since(const DeviceEvent& start) const {
  const cuda::Api& api = session_->api;
  float milliseconds = 0;
  auto done = api.check(api.event_synchronize(handle_), "a kernel failed");
  if (!done) return Unexpected{done.error()};
  auto timed =
      api.check(api.event_elapsed(&milliseconds, start.handle_, handle_), "cannot read an event");
  if (!timed) return Unexpected{timed.error()};
  return static_cast<double>(milliseconds) * 1e-3;
}

Result<Gpu> Gpu::open(int ordinal) {
  Result<cuda::Api> api = cuda::open_api();
  if (!api) return Unexpected{api.error()};
  Gpu gpu;
  gpu.session_ = std::make_shared<Session>();
  gpu.session_->api = *api;
  if (auto started = api->check(api->init(0), "cannot start the CUDA driver"); !started) {
    return Unexpected{started.error()};
  }
  int count = 0;
  if (auto counted = api->check(api->device_count(&count), "cannot count GPUs"); !counted) {
    return Unexpected{counted.error()};
  }
  if (count == 0) return Unexpected{Error{"no GPU on this machine", {}, {}}};
  auto chosen = api->check(api->device_get(&gpu.session_->device, ordinal), "cannot use the GPU",
                           format("number {}", ordinal));
  if (!chosen) return Unexpected{chosen.error()};
  if (auto known = gpu.identify(); !known) return Unexpected{known.error()};
  cuda::Context context = nullptr;
  auto retained = api->check(api->context_retain(&context, gpu.session_->device),
                             "cannot use the GPU", gpu.name_);
  if (!retained) return Unexpected{retained.error()};
  gpu.session_->context = context;
  gpu.session_->retained = true;
  auto current = api->check(api->context_set(context), "cannot use the GPU", gpu.name_);
  if (!current) return Unexpected{current.error()};
  return gpu;
}

Result<void> Gpu::identify() {
  const cuda::Api& api = session_->api;
  const cuda::Device device = session_->device;
  std::array<char, 256> text{};
  auto named = api.check(api.device_name(text.data(), static_cast<int>(text.size()), device),
                         "cannot ask the GPU's name");
  if (!named) return named;
  name_ = text.data();
  int major = 0;
  int minor = 0;
  for (const auto& [value, which] : {std::pair{&major, cuda::kComputeCapabilityMajor},
                                     std::pair{&minor, cuda::kComputeCapabilityMinor}}) {
    auto asked = api.check(api.device_attribute(value, which, device),
                           "cannot ask the compute capability of", name_);
    if (!asked) return asked;
  }
  capability_ = 10 * major + minor;
  arch_ = target::find_arch_for_capability(capability_);
  if (arch_ != nullptr) return {};
  return Unexpected{
      Error{"kiln has no architecture for the GPU", name_,
            format("compute capability {}.{}; kiln knows {}", major, minor, target::arch_names())}};
}

int Gpu::clock_mhz() const {
  int kilohertz = 0;
  const cuda::Status status =
      session_->api.device_attribute(&kilohertz, cuda::kClockKilohertz, session_->device);
  return status == cuda::kSuccess ? kilohertz / 1000 : 0;
}

std::string Gpu::bus_id() const {
  std::array<char, 32> text{};
  const cuda::Status status =
      session_->api.device_bus(text.data(), static_cast<int>(text.size()), session_->device);
  return status == cuda::kSuccess ? text.data() : std::string();
}

int Gpu::multiprocessors() const {
  int count = 0;
  const cuda::Status status =
      session_->api.device_attribute(&count, cuda::kMultiprocessors, session_->device);
  return status == cuda::kSuccess ? count : arch_->sms;
}

std::string Gpu::driver_cuda() const {
  int version = 0;
  if (session_->api.driver_version(&version) != cuda::kSuccess) return {};
  return format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<DeviceBuffer> Gpu::allocate(std::size_t bytes) {
  const cuda::Api& api = session_->api;
  cuda::DevicePtr base = 0;
  const std::size_t whole = bytes + 2 * DeviceBuffer::kZone;
  auto made = api.check(api.memory_alloc(&base, whole), "cannot allocate memory on the GPU",
                        format("{} bytes", bytes));
  if (!made) return Unexpected{made.error()};
  DeviceBuffer buffer(session_, base, bytes);
  auto zoned = api.check(api.set_bytes(base, kZoneByte, whole), "cannot fill memory of the GPU");
  if (!zoned) return Unexpected{zoned.error()};
  return buffer;
}

Result<DeviceModule> Gpu::load(const std::string& cubin) {
  const cuda::Api& api = session_->api;
  cuda::ModuleHandle handle = nullptr;
  auto loaded = api.check(api.module_load(&handle, cubin.data()), "cannot load the kernel");
  if (!loaded) return Unexpected{loaded.error()};
  return DeviceModule(session_, handle);
}

Result<DeviceEvent> Gpu::event() {
  cuda::EventHandle handle = nullptr;
  auto made = session_->api.check(session_->api.event_create(&handle, 0), "cannot make an event");
  if (!made) return Unexpected{made.error()};
  return DeviceEvent(session_, handle);
}

Result<void> Gpu::tensor_map(const TensorMapRequest& request, cuda::TensorMap& map) const {
  return encode_tensor_map(session_->api, request, map);
}

Result<void> Gpu::synchronize() {
  return session_->api.check(session_->api.context_synchronize(), "a kernel failed");
}

}  // namespace kiln::runtime
