#include "measure/cusparselt.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "measure/cublaslt_api.h"
#include "measure/cusparselt_api.h"
#include "runtime/library.h"

namespace kiln::measure {

namespace cusparselt {

Result<void> Api::check(Status status, const char* what, const std::string& subject) const {
  if (status == kSuccess) return {};
  return Unexpected{Error{what, subject, format("cuSPARSELt's status {}", status)}};
}

Result<Api> open_api() {
  const Result<runtime::Library> library = runtime::Library::open(
      "cuSPARSELt", runtime::file_names({.name = "cusparseLt", .versions = {"0"}}));
  if (!library) return Unexpected{library.error()};
  Api api;
#define KILN_SPARSE(member, name, parameters)                      \
  {                                                                \
    const Result<void*> address = library->symbol(name);           \
    if (!address) return Unexpected{address.error()};              \
    api.member = reinterpret_cast<decltype(api.member)>(*address); \
  }
  KILN_SPARSE_FUNCTIONS(KILN_SPARSE)
#undef KILN_SPARSE
  return api;
}

}  // namespace cusparselt

namespace {

constexpr const char* kWhat = "cuSPARSELt cannot multiply";

std::optional<int> sparse_data_type(DType dtype) {
  constexpr std::pair<DType, int> kNumbers[] = {
      {DType::kF16, cublaslt::kF16},   {DType::kBF16, cublaslt::kBF16},
      {DType::kF32, cublaslt::kF32},   {DType::kE4M3, cublaslt::kE4M3},
      {DType::kE5M2, cublaslt::kE5M2}, {DType::kS8, cublaslt::kS8},
      {DType::kS32, cublaslt::kS32}};
  const auto found = std::ranges::find(kNumbers, dtype, &std::pair<DType, int>::first);
  if (found == std::end(kNumbers)) return std::nullopt;
  return found->second;
}

}  // namespace

struct SparseVendorProduct::State {
  cusparselt::Api api;
  cusparselt::Handle handle;
  cusparselt::Matrix a;
  cusparselt::Matrix b;
  cusparselt::Matrix c;
  cusparselt::Description description;
  cusparselt::Selection selection;
  cusparselt::Plan plan;
  bool initialised = false;
  bool planned = false;
  std::optional<runtime::DeviceBuffer> workspace;
  std::optional<runtime::DeviceBuffer> scratch;
  std::vector<runtime::DeviceBuffer> compressed;  // A of each set
  std::vector<ProductBuffers> buffers;
  float scale = 1;
  std::string library;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Result<void> open();
  Result<void> describe(const gemm::Problem& product);
  Result<void> allocate(runtime::Gpu& gpu);
  Result<void> compress(std::size_t set);
  Result<void> search();
};

SparseVendorProduct::State::~State() {
  if (planned) api.plan_destroy(&plan);
  if (initialised) api.destroy(&handle);
}

Result<void> SparseVendorProduct::State::open() {
  Result<cusparselt::Api> opened = cusparselt::open_api();
  if (!opened) return Unexpected{opened.error()};
  api = *opened;
  auto made = api.check(api.init(&handle), "cannot start", "cuSPARSELt");
  if (!made) return made;
  initialised = true;
  int version = 0;
  auto asked = api.check(api.version(&handle, &version), "cannot ask the version of", "cuSPARSELt");
  if (!asked) return asked;
  library = format("cuSPARSELt {}.{}.{}", version / 1000, version / 100 % 10, version % 100);
  if (version >= cusparselt::kVersionMin) return {};
  return Unexpected{Error{"cannot use", library, "0.6.0 is the oldest that will do"}};
}

Result<void> SparseVendorProduct::State::describe(const gemm::Problem& product) {
  const auto in = sparse_data_type(product.a);
  const auto out = sparse_data_type(product.c);
  const bool fits = in && out && product.a == product.b && product.a_along_k && product.b_along_k;
  if (!fits) return Unexpected{Error{kWhat, std::string(name(product.a)), "not measured there"}};
  const auto& [m, n, k] = std::tuple{product.m, product.n, product.k};
  constexpr int kRow = cusparselt::kOrderRow;
  constexpr std::uint32_t kAlign = cusparselt::kAlignment;
  const int sums = is_float(product.c) ? cusparselt::kComputeF32 : cusparselt::kComputeS32;
  const cusparselt::Status steps[] = {
      api.sparse_init(&handle, &a, m, k, k, kAlign, *in, kRow, cusparselt::kHalf),
      api.dense_init(&handle, &b, n, k, k, kAlign, *in, kRow),
      api.dense_init(&handle, &c, m, n, n, kAlign, *out, kRow),
      api.description_init(&handle, &description, cusparselt::kAsItIs, cusparselt::kTransposed, &a,
                           &b, &c, &c, sums),
      api.selection_init(&handle, &selection, &description, cusparselt::kDefault),
      api.plan_init(&handle, &plan, &description, &selection)};
  for (const cusparselt::Status status : steps) {
    auto done = api.check(status, kWhat, format("{} x {} x {}", m, n, k));
    if (!done) return done;
  }
  planned = true;
  return {};
}

Result<void> SparseVendorProduct::State::allocate(runtime::Gpu& gpu) {
  std::size_t bytes = 0;
  std::size_t scratch_bytes = 0;
  std::size_t workspace_bytes = 0;
  auto sized = api.check(api.compressed_size(&handle, &plan, &bytes, &scratch_bytes), kWhat);
  if (!sized) return sized;
  sized = api.check(api.workspace(&handle, &plan, &workspace_bytes), kWhat);
  if (!sized) return sized;
  for (const auto& [to, size] :
       {std::pair{&scratch, scratch_bytes}, std::pair{&workspace, workspace_bytes}}) {
    auto memory = gpu.allocate(size);
    if (!memory) return Unexpected{memory.error()};
    to->emplace(std::move(*memory));
  }
  for (std::size_t set = 0; set < buffers.size(); ++set) {
    auto memory = gpu.allocate(bytes);
    if (!memory) return Unexpected{memory.error()};
    compressed.push_back(std::move(*memory));
    if (auto done = compress(set); !done) return done;
  }
  return gpu.synchronize();
}

Result<void> SparseVendorProduct::State::compress(std::size_t set) {
  return api.check(api.compress(&handle, &plan, buffers[set].a, compressed[set].address(),
                                scratch->address(), nullptr),
                   "cannot compress a matrix with", library);
}

Result<void> SparseVendorProduct::State::search() {
  const float none = 0;
  const ProductBuffers& first = buffers.front();
  return api.check(api.search(&handle, &plan, &scale, compressed.front().address(), first.b, &none,
                              first.c, first.c, workspace->address(), nullptr, 0),
                   kWhat, "the search of an algorithm");
}

SparseVendorProduct::SparseVendorProduct(std::unique_ptr<State> state) : state_(std::move(state)) {}
SparseVendorProduct::SparseVendorProduct(SparseVendorProduct&& other) noexcept = default;
SparseVendorProduct::~SparseVendorProduct() = default;

Result<SparseVendorProduct> SparseVendorProduct::prepare(runtime::Gpu& gpu,
                                                         const gemm::Problem& problem, double scale,
                                                         std::span<const ProductBuffers> buffers) {
  KILN_CHECK(!buffers.empty(), "no buffers to search on");
  auto state = std::make_unique<State>();
  state->scale = static_cast<float>(scale);
  state->buffers.assign(buffers.begin(), buffers.end());
  if (auto opened = state->open(); !opened) return Unexpected{opened.error()};
  if (auto described = state->describe(problem); !described) return Unexpected{described.error()};
  if (auto allocated = state->allocate(gpu); !allocated) return Unexpected{allocated.error()};
  if (auto searched = state->search(); !searched) return Unexpected{searched.error()};
  return SparseVendorProduct(std::move(state));
}

Result<void> SparseVendorProduct::compress(std::size_t set) { return state_->compress(set); }

Result<void> SparseVendorProduct::start(std::size_t set, runtime::cuda::Stream stream) const {
  const float none = 0;
  const bool given = stream != nullptr;
  const ProductBuffers& on = state_->buffers[set];
  return state_->api.check(
      state_->api.matmul(&state_->handle, &state_->plan, &state_->scale,
                         state_->compressed[set].address(), on.b, &none, on.c, on.c,
                         state_->workspace->address(), given ? &stream : nullptr, given ? 1 : 0),
      "cannot start a product of", state_->library);
}

const std::string& SparseVendorProduct::library() const { return state_->library; }

}  // namespace kiln::measure
