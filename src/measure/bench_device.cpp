#include "measure/bench_device.h"

#include <algorithm>
#include <bit>

#include "backends/device.h"
#include "measure/bench_kernels_text.h"

namespace kiln::measure {

namespace {

using runtime::DeviceBuffer;
using runtime::cuda::DevicePtr;

constexpr unsigned kThreads = 256;  // of a block

template <class T>
T* pointer(DevicePtr address) {
  return std::bit_cast<T*>(static_cast<std::uintptr_t>(address));
}

bench::Product product_of(const CheckRequest& request) {
  const gemm::Problem& how = request.problem;
  bench::Product out{.a = factor_a(how, pointer<const void>(request.a)),
                     .b = factor_b(how, pointer<const void>(request.b)),
                     .depth = how.k,
                     .scale = request.scale,
                     .bound = request.exact ? exact_bound(how) : bench_bound(request.ours, how)};
  out.a.scales = pointer<const float>(request.a_scale);
  out.a.scale_k = gemm::kScaleBlock;
  out.a.scale_outer_step = 1;
  out.a.scale_k_step = request.a_scale_step == 0 ? how.m : request.a_scale_step;
  out.b.scales = pointer<const float>(request.b_scale);
  out.b.scale_outer = gemm::kScaleBlock;
  out.b.scale_k = gemm::kScaleBlock;
  out.b.scale_outer_step = gemm::scale_blocks(how.k);
  out.b.scale_k_step = 1;
  return out;
}

std::span<const std::byte> bytes_of(const std::vector<bench::Index>& values) {
  return std::as_bytes(std::span(values));
}

// What a check kernel's report says, without the first element outside.
reference::Comparison comparison_of(const bench::Report& report) {
  reference::Comparison out;
  out.elements = static_cast<std::int64_t>(report.elements);
  out.outside = static_cast<std::int64_t>(report.outside);
  out.worst = std::bit_cast<double>(report.worst_bits);
  return out;
}

reference::Mismatch mismatch_of(const bench::Report& report, std::int64_t element, std::int64_t n) {
  return {.coordinates = {element / n, element % n},
          .expected = report.expected,
          .bound = report.bound,
          .actual = report.actual};
}

}  // namespace

Result<BenchDevice> BenchDevice::open(runtime::Gpu& gpu) {
  auto module = backends::device().compile(gpu, bench_kernels_text(), "bench_kernels.cu");
  if (!module) return Unexpected{module.error()};
  return BenchDevice(gpu, std::move(*module));
}

// Starts the kernel of this name with these parameters, for so many threads that have work.
template <class... Values>
Result<void> BenchDevice::start(const char* kernel, std::int64_t threads, Values... values) {
  runtime::Launch launch;
  launch.kernel = kernel;
  launch.threads = kThreads;
  const std::int64_t blocks = (threads + kThreads - 1) / kThreads;
  launch.grid[0] = static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kBlocksMost));
  launch.parameters = {static_cast<void*>(&values)...};
  if (auto prepared = module_.prepare(launch); !prepared) return prepared;
  return module_.launch(launch);
}

Result<void> BenchDevice::fill_normal(DeviceBuffer& to, DType dtype, std::uint64_t seed) {
  const auto count = static_cast<bench::Index>(to.bytes()) / size_bytes(dtype);
  return start("kiln_fill_normal", count, to.address(), count, bench_format(dtype),
               bench::Word{seed});
}

Result<void> BenchDevice::fill_integers(DeviceBuffer& to, DType dtype, std::int64_t k,
                                        std::uint64_t seed) {
  const auto count = static_cast<bench::Index>(to.bytes()) / size_bytes(dtype);
  return start("kiln_fill_integers", count, to.address(), count, bench_format(dtype),
               bench::Word{seed}, integer_density(k));
}

Result<void> BenchDevice::fill_scales(DeviceBuffer& to, bool exact, std::uint64_t seed) {
  const bench::Index count = static_cast<bench::Index>(to.bytes() / sizeof(float));
  return start("kiln_fill_scales", count, to.address(), count, exact ? 1 : 0, bench::Word{seed});
}

Result<void> BenchDevice::fill_metadata(DeviceBuffer& to, std::uint64_t seed) {
  const auto count = static_cast<bench::Index>(to.bytes());
  return start("kiln_fill_metadata", count, to.address(), count, bench::Word{seed});
}

Result<void> BenchDevice::pack_words(const DeviceBuffer& metadata, DeviceBuffer& words, DType dtype,
                                     std::int64_t k) {
  const auto count = static_cast<bench::Index>(words.bytes() / sizeof(std::uint32_t));
  return start("kiln_pack_words", count, metadata.address(), words.address(), count,
               bench::Index{k / 32}, size_bytes(dtype) == 1 ? 0 : 1);
}

Result<void> BenchDevice::expand(const DeviceBuffer& packed, const DeviceBuffer& metadata,
                                 DeviceBuffer& dense, DType dtype) {
  const auto groups = static_cast<bench::Index>(2 * metadata.bytes());
  return start("kiln_expand", groups, packed.address(), metadata.address(), dense.address(), groups,
               size_bytes(dtype));
}

// What the kernel that `start` starts, given the report's address, has found.
template <class Start>
Result<bench::Report> BenchDevice::reported(Start&& start) {
  bench::Report report{};
  report.first = ~bench::Word{0};
  auto memory = gpu_->allocate(sizeof report);
  if (!memory) return Unexpected{memory.error()};
  auto cleared = memory->copy_in(std::as_bytes(std::span(&report, 1)));
  if (!cleared) return Unexpected{cleared.error()};
  if (auto started = start(memory->address()); !started) return Unexpected{started.error()};
  if (auto done = gpu_->synchronize(); !done) return Unexpected{done.error()};
  auto read = memory->copy_out(std::as_writable_bytes(std::span(&report, 1)));
  if (!read) return Unexpected{read.error()};
  return report;
}

Result<reference::Comparison> BenchDevice::part_against_fp64(const CheckRequest& request,
                                                             const bench::Product& product,
                                                             const bench::Part& part) {
  const gemm::Problem& how = request.problem;
  const bench::Output c{pointer<const void>(request.c), bench_format(how.c)};
  const auto of = [&](const bench::Product& which, const bench::Part& some) {
    const std::int64_t threads = (some.row_count + 7) / 8 * some.column_count;
    return reported([&](DevicePtr to) { return start("kiln_check", threads, which, c, some, to); });
  };
  const auto report = of(product, part);
  if (!report) return Unexpected{report.error()};
  reference::Comparison out = comparison_of(*report);
  if (out.outside == 0) return out;
  // The check runs once more, for that element alone: this time the kernel writes its values.
  const auto first = static_cast<std::int64_t>(report->first);
  const auto described = of(product_of(request), part_of_element(how, first));
  if (!described) return Unexpected{described.error()};
  out.first = mismatch_of(*described, first, how.n);
  return out;
}

Result<reference::Comparison> BenchDevice::check_sums(const CheckRequest& request) {
  const gemm::Problem& how = request.problem;
  const bench::Product product = product_of(request);
  const Sample sample = choose_sample(how, request.seed);
  if (sample.whole) return part_against_fp64(request, product, part_of_rows(how, nullptr, how.m));
  bench::Product turned = product;
  std::swap(turned.a, turned.b);
  reference::Comparison out;
  for (const bool by_rows : {true, false}) {
    const std::vector<bench::Index>& lines = by_rows ? sample.rows : sample.columns;
    auto memory = gpu_->allocate(bytes_of(lines).size());
    if (!memory) return Unexpected{memory.error()};
    if (auto copied = memory->copy_in(bytes_of(lines)); !copied) return Unexpected{copied.error()};
    const auto* at = pointer<const bench::Index>(memory->address());
    const auto count = static_cast<std::int64_t>(lines.size());
    const auto share =
        part_against_fp64(request, by_rows ? product : turned,
                          by_rows ? part_of_rows(how, at, count) : part_of_columns(how, at, count));
    if (!share) return share;
    reference::add(*share, out);
  }
  return out;
}

Result<FactorNorms> BenchDevice::norms(const CheckRequest& request) {
  const bench::Product product = product_of(request);
  const auto of = [&](const bench::Factor& factor, std::int64_t outer) -> Result<DeviceBuffer> {
    auto memory = gpu_->allocate(static_cast<std::size_t>(outer) * sizeof(double));
    if (!memory) return memory;
    auto started =
        start("kiln_norms", outer, factor, bench::Index{outer}, product.depth, memory->address());
    if (!started) return Unexpected{started.error()};
    return memory;
  };
  auto a = of(product.a, request.problem.m);
  if (!a) return Unexpected{a.error()};
  auto b = of(product.b, request.problem.n);
  if (!b) return Unexpected{b.error()};
  return FactorNorms{.a = std::move(*a), .b = std::move(*b)};
}

Result<reference::Comparison> BenchDevice::check_whole(const CheckRequest& request,
                                                       const FactorNorms& norms) {
  const gemm::Problem& how = request.problem;
  // A result that was compared with fp64 whole needs no comparison with the vendor's, which is less
  // exact.
  const bool judged = choose_sample(how, request.seed).whole;
  const bench::Other other{
      .data = pointer<const void>(judged ? 0 : request.vendor),
      .a_norms = pointer<const double>(norms.a.address()),
      .b_norms = pointer<const double>(norms.b.address()),
      .scale = request.scale,
      .ours = product_of(request).bound,
      .theirs = request.exact ? exact_bound(how) : bench_bound(request.theirs, how)};
  const bench::Output c{pointer<const void>(request.c), bench_format(how.c)};
  const auto of = [&](const bench::Stretch& stretch) {
    return reported(
        [&](DevicePtr to) { return start("kiln_compare", stretch.count, c, stretch, other, to); });
  };
  const auto report = of({.n = how.n, .first = 0, .count = how.m * how.n});
  if (!report) return Unexpected{report.error()};
  reference::Comparison out = comparison_of(*report);
  if (out.outside == 0) return out;
  const auto first = static_cast<std::int64_t>(report->first);
  const auto described = of({.n = how.n, .first = first, .count = 1});
  if (!described) return Unexpected{described.error()};
  out.first = mismatch_of(*described, first, how.n);
  return out;
}

Result<ProductCheck> BenchDevice::check(const CheckRequest& request) {
  const auto sums = check_sums(request);
  if (!sums) return Unexpected{sums.error()};
  const auto factors = norms(request);
  if (!factors) return Unexpected{factors.error()};
  const auto whole = check_whole(request, *factors);
  if (!whole) return Unexpected{whole.error()};
  return ProductCheck{.sums = *sums, .whole = *whole};
}

}  // namespace kiln::measure
