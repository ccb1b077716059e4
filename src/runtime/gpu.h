// One GPU: its memory, modules and launches. Every call to the driver is checked; an error carries
// the driver's own name for what went wrong.
//
//   Result<Gpu> gpu = Gpu::open();
//   gpu->name() == "NVIDIA H200",  gpu->arch().name == "sm_90a"
//   Result<DeviceBuffer> x = gpu->allocate(bytes);
//   Result<DeviceModule> module = gpu->load(cubin);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda_api.h"
#include "runtime/tensor_map.h"
#include "support/result.h"
#include "target/arch.h"

namespace kiln::runtime {

// The driver and the device's primary context, held while anything of theirs is alive.
struct Session {
  cuda::Api api;
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  bool retained = false;

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();
};

// Device memory with a guarded zone of kZone bytes on each side, freed at the end of its life.
class DeviceBuffer {
 public:
  static constexpr std::size_t kZone = 1024;

  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  [[nodiscard]] cuda::DevicePtr address() const { return base_ + kZone; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // `from` and `to` must have bytes() bytes.
  [[nodiscard]] Result<void> copy_in(std::span<const std::byte> from);
  [[nodiscard]] Result<void> copy_out(std::span<std::byte> to) const;
  // Null is the default stream.
  [[nodiscard]] Result<void> fill(unsigned char byte, cuda::Stream stream = nullptr);
  // Starts to copy the other's bytes, as many as this has, and does not wait.
  [[nodiscard]] Result<void> start_copy(const DeviceBuffer& from, cuda::Stream stream = nullptr);
  // Whether nobody wrote into the zones.
  [[nodiscard]] Result<bool> zones_intact() const;

 private:
  friend class Gpu;
  DeviceBuffer(std::shared_ptr<Session> session, cuda::DevicePtr base, std::size_t bytes)
      : session_(std::move(session)), base_(base), bytes_(bytes) {}
  std::shared_ptr<Session> session_;
  cuda::DevicePtr base_ = 0;
  std::size_t bytes_ = 0;
};

// Makes the session's context the calling thread's for the length of a scope. Costs next to nothing
// where it already is.
class ContextScope {
 public:
  explicit ContextScope(const Session& session);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  [[nodiscard]] const Result<void>& entered() const { return entered_; }

 private:
  const Session& session_;
  Result<void> entered_;
  bool pushed_ = false;
};

struct Launch {
  std::string kernel;
  cuda::FunctionHandle function = nullptr;  // of the kernel, once prepared
  unsigned grid[3] = {1, 1, 1};
  unsigned threads = 1;
  unsigned shared_bytes = 0;
  bool overlaps = false;          // may begin before earlier kernels have ended: it waits by itself
  bool cooperative = false;       // all blocks at once
  std::vector<void*> parameters;  // addresses of the values
};

class DeviceModule {
 public:
  DeviceModule(DeviceModule&& other) noexcept;
  DeviceModule& operator=(DeviceModule&& other) noexcept;
  ~DeviceModule();

  // Finds the kernel and lets it have its shared memory: once, however often it is launched.
  [[nodiscard]] Result<void> prepare(Launch& launch) const;
  // Starts a prepared kernel on the stream; does not wait for it. Null is the default stream.
  [[nodiscard]] Result<void> launch(const Launch& launch, cuda::Stream stream = nullptr) const;
  // With these parameters, the addresses of their values, instead of the launch's. Allocates
  // nothing unless it fails.
  [[nodiscard]] Result<void> launch(const Launch& launch, std::span<void* const> parameters,
                                    cuda::Stream stream) const;

 private:
  friend class Gpu;
  DeviceModule(std::shared_ptr<Session> session, cuda::ModuleHandle handle)
      : session_(std::move(session)), handle_(handle) {}
  std::shared_ptr<Session> session_;
  cuda::ModuleHandle handle_ = nullptr;
};

// A point in the device's work, for timing.
class DeviceEvent {
 public:
  DeviceEvent(DeviceEvent&& other) noexcept;
  DeviceEvent& operator=(DeviceEvent&&) = delete;
  ~DeviceEvent();

  [[nodiscard]] Result<void> record();
  // Seconds from `start` to this event; waits for it.
  [[nodiscard]] Result<double> seconds_since(const DeviceEvent& start) const;

 private:
  friend class Gpu;
  DeviceEvent(std::shared_ptr<Session> session, cuda::EventHandle handle)
      : session_(std::move(session)), handle_(handle) {}
  std::shared_ptr<Session> session_;
  cuda::EventHandle handle_ = nullptr;
};

class Gpu {
 public:
  // The machine's GPU of this number, the first by default; its primary context becomes the
  // thread's. Errors: no driver, no such device, or a device older than kiln's oldest architecture.
  static Result<Gpu> open(int ordinal = 0);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int capability() const { return capability_; }  // 90 for 9.0
  [[nodiscard]] const target::Arch& arch() const { return *arch_; }
  // The clock it may reach; 0 when the driver does not say.
  [[nodiscard]] int clock_mhz() const;
  // Where it is on the machine's bus, "0000:3b:00.0"; empty when the driver does not say.
  [[nodiscard]] std::string bus_id() const;
  // The newest CUDA its driver serves: "13.0".
  [[nodiscard]] std::string driver_cuda() const;

  [[nodiscard]] int multiprocessors() const;
  [[nodiscard]] const Session& session() const { return *session_; }

  [[nodiscard]] Result<DeviceBuffer> allocate(std::size_t bytes);
  [[nodiscard]] Result<DeviceModule> load(const std::string& cubin);
  [[nodiscard]] Result<DeviceEvent> event();
  // Fills in `map`; see encode_tensor_map.
  [[nodiscard]] Result<void> tensor_map(const TensorMapRequest& request,
                                        cuda::TensorMap& map) const;
  // Waits for everything started; reports what failed on the way.
  [[nodiscard]] Result<void> synchronize();

 private:
  Gpu() = default;
  Result<void> identify();
  std::shared_ptr<Session> session_;
  std::string name_;
  int capability_ = 0;
  const target::Arch* arch_ = nullptr;
};

}  // namespace kiln::runtime
