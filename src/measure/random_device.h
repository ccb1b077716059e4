// The GPU's part of `kiln bench random` besides the library's kernels: operands with gaps and red
// zones, values for them, and the checks, all of which only add to reports until they are read at
// once.
//
//   auto device = RandomDevice::open(gpu);
//   device->place(operand, wanted);   device->fill(operand, how);
//   device->check(slot, problem);
//   device->reports();                          waits
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "measure/bench_sample.h"
#include "runtime/gpu.h"

namespace kiln::measure {

inline constexpr std::size_t kRedZone = 4096;  // bytes before and after an operand

// Memory of one operand, used again for each problem: red zones, gaps and elements.
struct Operand {
  std::optional<runtime::DeviceBuffer> memory = std::nullopt;
  bench::Matrices elements = {};
  std::size_t bytes = 0;        // with both zones, from the memory's beginning
  std::size_t before = 0;       // from there to the first element
  unsigned char poison = 0xff;  // in zones and gaps, and where nobody wrote yet

  [[nodiscard]] runtime::cuda::DevicePtr address() const;  // of the first element; 0: there is none
};

struct Values {
  bench::Filling filling = bench::Filling::kNormal;
  float extent = 0;  // density of integers; how many groups there are; tiles of one
  std::uint64_t seed = 0;
};

class RandomDevice {
 public:
  static constexpr std::size_t kReports = 32;

  // `gpu` must outlive it. Errors: no NVRTC; what the driver says.
  static Result<RandomDevice> open(runtime::Gpu& gpu);

  // Gives the operand a place: `elements` says everything but where. Its first element is at a
  // multiple of `alignment` bytes and, below 256, of no larger power of two. Allocates where what
  // the operand has is too small. Without elements there is no operand. Errors: what the driver
  // says.
  [[nodiscard]] Result<void> place(Operand& operand, const bench::Matrices& elements,
                                   int alignment);
  // All of these only start something. Errors: what the driver says.
  [[nodiscard]] Result<void> poison(const Operand& operand);
  [[nodiscard]] Result<void> fill(const Operand& operand, const Values& values);
  [[nodiscard]] Result<void> copy(const bench::Matrices& from, const bench::Matrices& to);
  [[nodiscard]] Result<void> clear_reports();
  // Of slot `report`: bytes that are no elements and not poison any more.
  [[nodiscard]] Result<void> check_untouched(std::size_t report, const Operand& operand);
  // Elements of `one` whose bits are not those of `other`.
  [[nodiscard]] Result<void> check_same(std::size_t report, const bench::Matrices& one,
                                        const bench::Matrices& other);
  [[nodiscard]] Result<void> check(std::size_t report, const bench::Problem& problem);

  // What the checks found since clear_reports(). Waits.
  [[nodiscard]] Result<std::vector<bench::Report>> reports();

 private:
  enum class Kernel : std::uint8_t {
    kFill,
    kCopy,
    kClear,
    kUntouched,
    kSame,
    kDescribeSame,
    kCheck,
    kDescribe,
  };
  static constexpr std::size_t kKernels = 8;

  RandomDevice(runtime::DeviceModule module, runtime::DeviceBuffer reports, runtime::Gpu& gpu)
      : gpu_(&gpu), module_(std::move(module)), reports_(std::move(reports)) {}
  template <class... Arguments>
  Result<void> start(Kernel kernel, std::int64_t threads, Arguments... arguments);
  [[nodiscard]] runtime::cuda::DevicePtr report_at(std::size_t report) const;

  runtime::Gpu* gpu_;
  runtime::DeviceModule module_;
  runtime::DeviceBuffer reports_;
  std::array<runtime::Launch, kKernels> launches_ = {};
};

// How many elements there are.
[[nodiscard]] std::int64_t element_count(const bench::Matrices& matrices);

}  // namespace kiln::measure
