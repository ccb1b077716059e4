#include "measure/cublaslt.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "measure/cublaslt_api.h"
#include "measure/timing.h"
#include "runtime/library.h"

namespace kiln::measure {

namespace cublaslt {

Result<void> Api::check(Status status, const char* what, const std::string& subject) const {
  if (status == kSuccess) return {};
  const char* name = status_name(status);
  return Unexpected{Error{
      what, subject, format("{} (number {})", name == nullptr ? "unknown status" : name, status)}};
}

Result<Api> open_api() {
  const Result<runtime::Library> library = runtime::Library::open(
      "cuBLASLt", runtime::file_names({.name = "cublasLt", .versions = {"13", "12"}}));
  if (!library) return Unexpected{library.error()};
  Api api;
#define KILN_LT(member, name, parameters)                          \
  {                                                                \
    const Result<void*> address = library->symbol(name);           \
    if (!address) return Unexpected{address.error()};              \
    api.member = reinterpret_cast<decltype(api.member)>(*address); \
  }
  KILN_LT_FUNCTIONS(KILN_LT)
  KILN_LT(version, "cublasLtGetVersion", ())
  KILN_LT(status_name, "cublasLtGetStatusName", ())
#undef KILN_LT
  return api;
}

}  // namespace cublaslt

namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kAlgorithmsMax = 8;
constexpr int kRounds = 2;  // of timing, for each algorithm
constexpr double kRoundSeconds = 0.003;
constexpr int kRoundLaunchesMax = 200;
constexpr double kHopeless = 1.4;
constexpr std::size_t kScaleModesSince = 120900;

std::optional<int> data_type(DType dtype) {
  constexpr std::pair<DType, int> kTypes[] = {
      {DType::kF32, cublaslt::kF32},   {DType::kTF32, cublaslt::kF32},
      {DType::kF16, cublaslt::kF16},   {DType::kBF16, cublaslt::kBF16},
      {DType::kE4M3, cublaslt::kE4M3}, {DType::kE5M2, cublaslt::kE5M2}};
  const auto found = std::ranges::find(kTypes, dtype, &std::pair<DType, int>::first);
  if (found == std::end(kTypes)) return std::nullopt;
  return found->second;
}

std::string vendor_types_text(const gemm::Problem& product) {
  return format("{} * {} -> {}", name(product.a), name(product.b), name(product.c));
}

}  // namespace

// The library counts matrices by columns. Our C, by rows, is its transpose there: an N x M matrix
// that is B times A, so its first factor is our B.
struct VendorProduct::State {
  cublaslt::Api api;
  cublaslt::Handle handle = nullptr;
  cublaslt::Description description = nullptr;
  cublaslt::Layout first = nullptr;
  cublaslt::Layout second = nullptr;
  cublaslt::Layout result = nullptr;
  cublaslt::Preference preference = nullptr;
  std::optional<runtime::DeviceBuffer> workspace;
  cublaslt::Heuristic chosen;
  int algorithms = 0;
  float scale = 1;
  bool scaled = false;  // by blocks
  std::string library;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Result<void> open(runtime::Gpu& gpu);
  Result<void> describe(const gemm::Problem& product);
  Result<void> choose(runtime::Gpu& gpu, const gemm::Problem& product,
                      std::span<const ProductBuffers> buffers);
  Result<void> set_scales(const ProductBuffers& buffers) const;
  Result<void> start(const cublaslt::Heuristic& how, const ProductBuffers& buffers,
                     runtime::cuda::Stream stream) const;
  Result<double> seconds_of(runtime::Gpu& gpu, const cublaslt::Heuristic& how,
                            std::span<const ProductBuffers> buffers, int launches) const;
  Result<double> best_seconds(runtime::Gpu& gpu, const cublaslt::Heuristic& how,
                              std::span<const ProductBuffers> buffers, double to_beat) const;
};

VendorProduct::State::~State() {
  if (preference != nullptr) api.preference_destroy(preference);
  for (const cublaslt::Layout layout : {first, second, result}) {
    if (layout != nullptr) api.layout_destroy(layout);
  }
  if (description != nullptr) api.description_destroy(description);
  if (handle != nullptr) api.destroy(handle);
}

Result<void> VendorProduct::State::open(runtime::Gpu& gpu) {
  Result<cublaslt::Api> opened = cublaslt::open_api();
  if (!opened) return Unexpected{opened.error()};
  api = *opened;
  // 130100 is 13.1.0; versions before 12 counted otherwise.
  const std::size_t version = api.version();
  library = format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  if (auto made = api.check(api.create(&handle), "cannot start", library); !made) return made;
  Result<runtime::DeviceBuffer> memory = gpu.allocate(kWorkspaceBytes);
  if (!memory) return Unexpected{memory.error()};
  workspace.emplace(std::move(*memory));
  return {};
}

Result<void> VendorProduct::State::describe(const gemm::Problem& product) {
  const auto a = data_type(product.a);
  const auto b = data_type(product.b);
  const auto c = data_type(product.c);
  const std::string types = vendor_types_text(product);
  constexpr const char* kWhat = "cuBLASLt cannot multiply";
  if (!a || !b || !c) return Unexpected{Error{kWhat, types, "it has no such types"}};
  const bool tf32 = *a == cublaslt::kF32 && *b == cublaslt::kF32;
  const int compute = tf32 ? cublaslt::kComputeTF32 : cublaslt::kComputeF32;
  auto done =
      api.check(api.description_create(&description, compute, cublaslt::kF32), kWhat, types);
  const auto set = [&](int which, const auto& value) {
    if (!done) return;
    done = api.check(api.description_set(description, which, &value, sizeof value), kWhat, types);
  };
  const auto lay_out = [&](cublaslt::Layout& layout, int type, std::int64_t rows,
                           std::int64_t columns) {
    if (!done) return;
    done = api.check(api.layout_create(&layout, type, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), rows),
                     kWhat, types);
  };
  set(cublaslt::kDescriptionTransA, product.b_along_k ? cublaslt::kTransposed : cublaslt::kAsItIs);
  set(cublaslt::kDescriptionTransB, product.a_along_k ? cublaslt::kAsItIs : cublaslt::kTransposed);
  // Sums of 8-bit floats are left in the tensor cores, the faster of the two ways; between blocks
  // with scales they cannot be.
  constexpr std::int8_t kYes = 1;
  if (info(product.a).bits == 8 && !product.block_scales) set(cublaslt::kDescriptionFastSums, kYes);
  scaled = product.block_scales;
  if (scaled && api.version() < kScaleModesSince) {
    return Unexpected{Error{kWhat, types, "block scales need cuBLASLt 12.9, this is " + library}};
  }
  // It wants rows of B's scales at multiples of 16 bytes, ours have no gaps.
  if (scaled && product.k % 512 != 0) {
    return Unexpected{Error{kWhat, types, "with block scales K is a multiple of 512"}};
  }
  if (scaled) {
    set(cublaslt::kDescriptionScaleModeA, cublaslt::kScaleOfBlocks);
    set(cublaslt::kDescriptionScaleModeB, cublaslt::kScaleOf128);
  }
  lay_out(first, *b, product.b_along_k ? product.k : product.n,
          product.b_along_k ? product.n : product.k);
  lay_out(second, *a, product.a_along_k ? product.k : product.m,
          product.a_along_k ? product.m : product.k);
  lay_out(result, *c, product.n, product.m);
  return done;
}

Result<void> VendorProduct::State::set_scales(const ProductBuffers& buffers) const {
  if (!scaled) return {};
  for (const auto& [which, address] : {std::pair{cublaslt::kDescriptionScaleA, buffers.b_scale},
                                       std::pair{cublaslt::kDescriptionScaleB, buffers.a_scale}}) {
    auto set = api.check(api.description_set(description, which, &address, sizeof address),
                         "cannot scale a product of", library);
    if (!set) return set;
  }
  return {};
}

Result<void> VendorProduct::State::start(const cublaslt::Heuristic& how,
                                         const ProductBuffers& buffers,
                                         runtime::cuda::Stream stream) const {
  const float none = 0;
  if (auto set = set_scales(buffers); !set) return set;
  return api.check(api.matmul(handle, description, &scale, buffers.b, first, buffers.a, second,
                              &none, buffers.c, result, buffers.c, result, &how.algorithm,
                              workspace->address(), kWorkspaceBytes, stream),
                   "cannot start a product of", library);
}

// Seconds of one product among `launches` in a row.
Result<double> VendorProduct::State::seconds_of(runtime::Gpu& gpu, const cublaslt::Heuristic& how,
                                                std::span<const ProductBuffers> buffers,
                                                int launches) const {
  const Start one = [&](std::size_t set, runtime::cuda::Stream stream) {
    return start(how, buffers[set], stream);
  };
  const Result<double> seconds =
      time_batch(gpu, {.start = one, .sets = buffers.size(), .starts = launches});
  if (!seconds) return seconds;
  return *seconds / launches;
}

// Seconds of one product by an algorithm; one that is far from `to_beat` at first sight is not
// looked at again.
Result<double> VendorProduct::State::best_seconds(runtime::Gpu& gpu, const cublaslt::Heuristic& how,
                                                  std::span<const ProductBuffers> buffers,
                                                  double to_beat) const {
  // The first launch loads the kernel.
  if (const auto loaded = seconds_of(gpu, how, buffers, 1); !loaded) return loaded;
  const Result<double> rough = seconds_of(gpu, how, buffers, 2);
  if (!rough || *rough > kHopeless * to_beat) return rough;
  const double wanted = kRoundSeconds / std::max(*rough, 1e-7);
  const int launches = std::clamp(static_cast<int>(wanted), 1, kRoundLaunchesMax);
  double best = *rough;
  for (int round = 0; round < kRounds; ++round) {
    const Result<double> seconds = seconds_of(gpu, how, buffers, launches);
    if (!seconds) return seconds;
    best = std::min(best, *seconds);
  }
  return best;
}

Result<void> VendorProduct::State::choose(runtime::Gpu& gpu, const gemm::Problem& product,
                                          std::span<const ProductBuffers> buffers) {
  constexpr const char* kWhat = "cuBLASLt has no algorithm for";
  const std::string subject =
      format("{}, {} x {} x {}", vendor_types_text(product), product.m, product.n, product.k);
  const std::uint64_t bytes = kWorkspaceBytes;
  auto done = api.check(api.preference_create(&preference), kWhat, subject);
  if (!done) return done;
  done = api.check(
      api.preference_set(preference, cublaslt::kPreferenceWorkspaceMax, &bytes, sizeof bytes),
      kWhat, subject);
  if (!done) return done;
  if (auto set = set_scales(buffers.front()); !set) return set;
  std::array<cublaslt::Heuristic, kAlgorithmsMax> proposed;
  int count = 0;
  done = api.check(api.heuristics(handle, description, first, second, result, result, preference,
                                  kAlgorithmsMax, proposed.data(), &count),
                   kWhat, subject);
  if (!done) return done;
  double best = std::numeric_limits<double>::infinity();
  Error refused{kWhat, subject, "it proposes none"};
  for (const cublaslt::Heuristic& each :
       std::span(proposed).first(static_cast<std::size_t>(count))) {
    if (each.status != cublaslt::kSuccess) continue;
    const Result<double> seconds = best_seconds(gpu, each, buffers, best);
    if (!seconds) refused = seconds.error();
    if (!seconds) continue;
    ++algorithms;
    if (*seconds < best) chosen = each;
    best = std::min(best, *seconds);
  }
  if (algorithms == 0) return Unexpected{refused};
  return {};
}

VendorProduct::VendorProduct(std::unique_ptr<State> state) : state_(std::move(state)) {}
VendorProduct::VendorProduct(VendorProduct&& other) noexcept = default;
VendorProduct::~VendorProduct() = default;

Result<VendorProduct> VendorProduct::prepare(runtime::Gpu& gpu, const gemm::Problem& problem,
                                             double scale,
                                             std::span<const ProductBuffers> buffers) {
  KILN_CHECK(!buffers.empty(), "no buffers to time on");
  auto state = std::make_unique<State>();
  state->scale = static_cast<float>(scale);
  if (auto opened = state->open(gpu); !opened) return Unexpected{opened.error()};
  if (auto described = state->describe(problem); !described) return Unexpected{described.error()};
  if (auto chosen = state->choose(gpu, problem, buffers); !chosen) {
    return Unexpected{chosen.error()};
  }
  return VendorProduct(std::move(state));
}

Result<void> VendorProduct::start(const ProductBuffers& buffers,
                                  runtime::cuda::Stream stream) const {
  return state_->start(state_->chosen, buffers, stream);
}

const std::string& VendorProduct::library() const { return state_->library; }
int VendorProduct::algorithms() const { return state_->algorithms; }

}  // namespace kiln::measure
