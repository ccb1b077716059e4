#include "measure/bench_sets.h"

#include <algorithm>
#include <array>

#include "measure/timing.h"
#include "support/check.h"

namespace kiln::measure {

namespace {

using runtime::DeviceBuffer;
using runtime::cuda::DevicePtr;

// A buffer that a problem has.
struct Wanted {
  const char* name;
  std::int64_t elements;
  DType dtype;
};

std::vector<Wanted> wanted_of(const gemm::Problem& problem) {
  const auto [m, n, k] = std::array{problem.m, problem.n, problem.k};
  const std::int64_t groups = std::max<std::int64_t>(1, problem.groups);
  std::vector<Wanted> out = {{"a", m * k, problem.a},
                             {"b", groups * n * k, problem.b},
                             {"c", m * n, problem.c},
                             {"the baseline's c", m * n, problem.c}};
  if (problem.block_scales) {
    out.push_back({"a_scale", m * gemm::scale_blocks(k), DType::kF32});
    out.push_back({"b_scale", groups * gemm::scale_blocks(n) * gemm::scale_blocks(k), DType::kF32});
  }
  if (problem.groups > 0) out.push_back({"rows_of_group", groups, DType::kS32});
  if (problem.a_sparse) {
    out.push_back({"packed", m * k / 2, problem.a});
    out.push_back({"metadata", m * k / 8, DType::kU8});
    out.push_back({"words", m * k / 32, DType::kU32});
  }
  return out;
}

}  // namespace

double scale_of(const gemm::Problem& problem) {
  return problem.epilogue.has_alpha ? kTensorScale : 1;
}

DeviceBuffer& SuiteSets::Set::memory(std::string_view name) {
  const auto found = std::ranges::find(buffers, name, &Buffer::name);
  KILN_CHECK(found != buffers.end(), "no buffer `{}`", name);
  return found->memory;
}

DevicePtr SuiteSets::Set::address(std::string_view name) const {
  const auto found = std::ranges::find(buffers, name, &Buffer::name);
  return found == buffers.end() ? 0 : found->memory.address();
}

Result<SuiteSets> SuiteSets::make(runtime::Gpu& gpu, BenchDevice& device,
                                  const gemm::Problem& problem, std::uint64_t seed) {
  SuiteSets out(problem);
  std::int64_t bytes = 0;
  // What a launch touches: one of both results.
  for (const Wanted& wanted : wanted_of(problem)) {
    const bool theirs = std::string_view(wanted.name) == "the baseline's c";
    if (!theirs) bytes += wanted.elements * size_bytes(wanted.dtype);
  }
  const std::size_t count = rotating_sets(bytes, gpu.arch().l2_bytes);
  for (std::size_t set = 0; set < count; ++set) {
    if (auto added = out.add(gpu, device, seed + 1000003 * set); !added) {
      return Unexpected{added.error()};
    }
  }
  return out;
}

Result<void> SuiteSets::add(runtime::Gpu& gpu, BenchDevice& device, std::uint64_t seed) {
  Set& set = sets_.emplace_back();
  for (const Wanted& wanted : wanted_of(problem_)) {
    const std::int64_t bytes = wanted.elements * size_bytes(wanted.dtype);
    auto memory = gpu.allocate(static_cast<std::size_t>(bytes));
    if (!memory) return Unexpected{memory.error()};
    set.buffers.push_back({wanted.name, std::move(*memory)});
  }
  return fill(device, set, false, seed);
}

// Each buffer gets values of its own; "a" and "words" follow from those of a sparse problem.
Result<void> SuiteSets::fill(BenchDevice& device, Set& set, bool exactly,
                             std::uint64_t seed) const {
  std::uint64_t own = 8 * seed;
  const auto fill_factor = [&](DeviceBuffer& to) {
    return exactly ? device.fill_integers(to, problem_.a, problem_.k, own)
                   : device.fill_normal(to, problem_.a, own);
  };
  const bool sparse = problem_.a_sparse;
  for (Buffer& buffer : set.buffers) {
    const std::string_view name = buffer.name;
    ++own;
    Result<void> filled;
    if ((name == "a" && !sparse) || name == "b" || name == "packed") {
      filled = fill_factor(buffer.memory);
    } else if (name == "c" || name == "the baseline's c") {
      filled = buffer.memory.fill(0xff);
    } else if (name == "metadata") {
      filled = device.fill_metadata(buffer.memory, own);
    } else if (name == "rows_of_group") {
      filled = fill_rows(buffer.memory);
    } else if (name != "a" && name != "words") {
      filled = device.fill_scales(buffer.memory, exactly, own);
    }
    if (!filled) return filled;
  }
  if (!sparse) return {};
  const DeviceBuffer& metadata = set.memory("metadata");
  auto packed = device.pack_words(metadata, set.memory("words"), problem_.a, problem_.k);
  if (!packed) return packed;
  return device.expand(set.memory("packed"), metadata, set.memory("a"), problem_.a);
}

Result<void> SuiteSets::fill_rows(DeviceBuffer& to) const {
  const std::vector<std::int32_t> rows(static_cast<std::size_t>(problem_.groups),
                                       static_cast<std::int32_t>(rows_of_each(problem_)));
  return to.copy_in(std::as_bytes(std::span(rows)));
}

Result<void> SuiteSets::fill_exactly(BenchDevice& device, std::size_t set, std::uint64_t seed) {
  return fill(device, sets_[set], true, seed);
}

Result<void> SuiteSets::clear_result(std::size_t set) {
  for (Buffer& buffer : sets_[set].buffers) {
    if (std::string_view(buffer.name) == "c") return buffer.memory.fill(0xff);
  }
  return {};
}

gemm::Operands SuiteSets::operands(std::size_t set) const {
  const Set& from = sets_[set];
  gemm::Operands out;
  const bool sparse = problem_.a_sparse;
  out.a = from.address(sparse ? "packed" : "a");
  out.b = from.address("b");
  out.c = from.address("c");
  out.metadata = from.address("words");
  out.a_scale = from.address("a_scale");
  out.b_scale = from.address("b_scale");
  out.rows_of_group = from.address("rows_of_group");
  out.alpha = scale_of(problem_);
  return out;
}

std::vector<ProductBuffers> SuiteSets::vendor() const {
  std::vector<ProductBuffers> out;
  for (std::size_t set = 0; set < sets_.size(); ++set) out.push_back(vendor_of_group(set, 0));
  return out;
}

namespace {

// Bytes from one group's part to the next one's.
struct GroupSteps {
  DevicePtr a;
  DevicePtr b;
  DevicePtr c;
  DevicePtr b_scale;
};

GroupSteps group_steps(const gemm::Problem& problem) {
  const std::int64_t room = problem.m / std::max<std::int64_t>(1, problem.groups);
  const auto bytes = [](DType dtype, std::int64_t elements) {
    return static_cast<DevicePtr>(elements * size_bytes(dtype));
  };
  const std::int64_t scales = gemm::scale_blocks(problem.n) * gemm::scale_blocks(problem.k);
  return {.a = bytes(problem.a, room * problem.k),
          .b = bytes(problem.b, problem.n * problem.k),
          .c = bytes(problem.c, room * problem.n),
          .b_scale = bytes(DType::kF32, scales)};
}

}  // namespace

// It wants rows of A's scales without gaps: those of a group lie behind each other for it.
ProductBuffers SuiteSets::vendor_of_group(std::size_t set, std::int64_t group) const {
  const Set& from = sets_[set];
  const GroupSteps step = group_steps(problem_);
  const auto at = static_cast<DevicePtr>(group);
  ProductBuffers out{.a = from.address("a") + at * step.a,
                     .b = from.address("b") + at * step.b,
                     .c = from.address("the baseline's c") + at * step.c};
  if (!problem_.block_scales) return out;
  const std::int64_t room = problem_.m / std::max<std::int64_t>(1, problem_.groups);
  const auto a_scales = static_cast<DevicePtr>(room * gemm::scale_blocks(problem_.k));
  out.a_scale = from.address("a_scale") + at * a_scales * sizeof(float);
  out.b_scale = from.address("b_scale") + at * step.b_scale;
  return out;
}

CheckRequest SuiteSets::request_of_group(std::size_t set, std::int64_t group) const {
  CheckRequest out = request(set, false);
  const GroupSteps step = group_steps(problem_);
  const auto at = static_cast<DevicePtr>(group);
  const auto room = static_cast<DevicePtr>(problem_.m / problem_.groups);
  out.problem = of_one_group(problem_);
  out.a += at * step.a;
  out.b += at * step.b;
  out.c += at * step.c;
  if (!problem_.block_scales) return out;
  out.a_scale += at * room * sizeof(float);
  out.a_scale_step = problem_.m;
  out.b_scale += at * step.b_scale;
  return out;
}

CheckRequest SuiteSets::request(std::size_t set, bool with_vendor) const {
  const Set& from = sets_[set];
  return {.problem = problem_,
          .scale = scale_of(problem_),
          .a = from.address("a"),
          .b = from.address("b"),
          .c = from.address("c"),
          .vendor = with_vendor ? from.address("the baseline's c") : 0,
          .a_scale = from.address("a_scale"),
          .b_scale = from.address("b_scale")};
}

Result<std::vector<std::string>> SuiteSets::overrun() const {
  std::vector<std::string> names;
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    const auto more = overrun(set);
    if (!more) return more;
    names.insert(names.end(), more->begin(), more->end());
  }
  return names;
}

Result<std::vector<std::string>> SuiteSets::overrun(std::size_t set) const {
  std::vector<std::string> names;
  for (const Buffer& buffer : sets_[set].buffers) {
    const auto intact = buffer.memory.zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (!*intact) names.emplace_back(buffer.name);
  }
  return names;
}

}  // namespace kiln::measure
