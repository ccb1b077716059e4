#include "measure/random_device.h"

#include <algorithm>
#include <bit>

#include "backends/device.h"
#include "measure/bench_kernels_text.h"

namespace kiln::measure {

namespace {

using runtime::DeviceBuffer;
using runtime::cuda::DevicePtr;

constexpr unsigned kThreadsOfBlock = 128;
constexpr std::int64_t kRowsOfThread = 8;  // of kiln_check_problem
constexpr std::size_t kPlaceUnit = 256;    // bytes; every alignment divides it

constexpr const char* kNames[] = {
    "kiln_fill_matrices", "kiln_copy_matrices", "kiln_clear_reports", "kiln_untouched",
    "kiln_same",          "kiln_describe_same", "kiln_check_problem", "kiln_describe_problem"};

// Bytes from the first element to the end of the last.
std::size_t span_bytes(const bench::Matrices& all) {
  const std::int64_t elements =
      (all.count - 1) * all.matrix_step + (all.rows - 1) * all.row_step + all.columns;
  return static_cast<std::size_t>(elements * all.format.bytes);
}

}  // namespace

std::int64_t element_count(const bench::Matrices& matrices) {
  return matrices.count * matrices.rows * matrices.columns;
}

DevicePtr Operand::address() const {
  return element_count(elements) == 0 ? 0 : std::bit_cast<std::uintptr_t>(elements.data);
}

Result<RandomDevice> RandomDevice::open(runtime::Gpu& gpu) {
  auto module = backends::device().compile(gpu, bench_kernels_text(), "bench_kernels.cu");
  if (!module) return Unexpected{module.error()};
  auto reports = gpu.allocate(kReports * sizeof(bench::Report));
  if (!reports) return Unexpected{reports.error()};
  RandomDevice out(std::move(*module), std::move(*reports), gpu);
  for (std::size_t i = 0; i < kKernels; ++i) {
    out.launches_[i].kernel = kNames[i];
    out.launches_[i].threads = kThreadsOfBlock;
    auto found = out.module_.prepare(out.launches_[i]);
    if (!found) return Unexpected{found.error()};
  }
  return out;
}

template <class... Arguments>
Result<void> RandomDevice::start(Kernel kernel, std::int64_t threads, Arguments... arguments) {
  runtime::Launch& launch = launches_[static_cast<std::size_t>(kernel)];
  const std::int64_t blocks = (threads + kThreadsOfBlock - 1) / kThreadsOfBlock;
  launch.grid[0] = static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kBlocksMost));
  void* const parameters[] = {static_cast<void*>(&arguments)...};
  return module_.launch(launch, parameters, nullptr);
}

DevicePtr RandomDevice::report_at(std::size_t report) const {
  KILN_CHECK(report < kReports, "report {} of {}", report, kReports);
  return reports_.address() + report * sizeof(bench::Report);
}

Result<void> RandomDevice::place(Operand& operand, const bench::Matrices& elements, int alignment) {
  operand.elements = elements;
  operand.elements.data = nullptr;
  operand.bytes = 0;
  if (element_count(elements) == 0) return {};
  const std::size_t bytes = span_bytes(elements) + 2 * (kRedZone + kPlaceUnit);
  if (!operand.memory || operand.memory->bytes() < bytes) {
    operand.memory.reset();
    auto memory = gpu_->allocate(bytes + bytes / 2);
    if (!memory) return Unexpected{memory.error()};
    operand.memory.emplace(std::move(*memory));
  }
  const DevicePtr base = operand.memory->address();
  DevicePtr address = (base + kRedZone + kPlaceUnit - 1) / kPlaceUnit * kPlaceUnit;
  if (static_cast<std::size_t>(alignment) < kPlaceUnit) {
    address += static_cast<DevicePtr>(alignment);
  }
  operand.elements.data = std::bit_cast<void*>(static_cast<std::uintptr_t>(address));
  operand.before = address - base;
  operand.bytes = operand.before + span_bytes(elements) + kRedZone;
  // An integer that no sum comes near, and NaN.
  operand.poison = elements.format.up == 0 ? 0x7f : 0xff;
  return {};
}

Result<void> RandomDevice::poison(const Operand& operand) {
  if (operand.bytes == 0) return {};
  const runtime::cuda::Api& api = gpu_->session().api;
  return api.check(api.set_bytes(operand.memory->address(), operand.poison, operand.bytes),
                   "cannot fill memory of the GPU");
}

Result<void> RandomDevice::fill(const Operand& operand, const Values& values) {
  const std::int64_t count = element_count(operand.elements);
  if (count == 0) return {};
  return start(Kernel::kFill, count, operand.elements, values.filling, values.extent,
               bench::Word{values.seed});
}

Result<void> RandomDevice::copy(const bench::Matrices& from, const bench::Matrices& to) {
  return start(Kernel::kCopy, element_count(to), from, to);
}

Result<void> RandomDevice::clear_reports() {
  return start(Kernel::kClear, kReports, reports_.address(), bench::Index{kReports});
}

Result<void> RandomDevice::check_untouched(std::size_t report, const Operand& operand) {
  if (operand.bytes == 0) return {};
  const std::uintptr_t memory = operand.memory->address();
  const bench::Surroundings all = {.memory = std::bit_cast<const unsigned char*>(memory),
                                   .bytes = static_cast<bench::Index>(operand.bytes),
                                   .before = static_cast<bench::Index>(operand.before),
                                   .poison = operand.poison};
  return start(Kernel::kUntouched, all.bytes, all, operand.elements, report_at(report));
}

Result<void> RandomDevice::check_same(std::size_t report, const bench::Matrices& one,
                                      const bench::Matrices& other) {
  auto started = start(Kernel::kSame, element_count(one), one, other, report_at(report));
  if (!started) return started;
  return start(Kernel::kDescribeSame, 1, one, other, report_at(report));
}

Result<void> RandomDevice::check(std::size_t report, const bench::Problem& problem) {
  const bench::Matrices& c = problem.c;
  const std::int64_t tall = (c.rows + kRowsOfThread - 1) / kRowsOfThread;
  auto started = start(Kernel::kCheck, c.count * tall * c.columns, problem, report_at(report));
  if (!started) return started;
  return start(Kernel::kDescribe, 1, problem, report_at(report));
}

Result<std::vector<bench::Report>> RandomDevice::reports() {
  if (auto done = gpu_->synchronize(); !done) return Unexpected{done.error()};
  std::vector<bench::Report> out(kReports);
  auto read = reports_.copy_out(std::as_writable_bytes(std::span(out)));
  if (!read) return Unexpected{read.error()};
  return out;
}

}  // namespace kiln::measure
