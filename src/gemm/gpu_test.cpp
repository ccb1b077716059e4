// The library on a GPU: exact products of ragged shapes, graphs, streams, threads, and rows whose
// bits do not depend on the others. Without a GPU these are skipped.
#define KILN_GEMM_C_ONLY
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "gemm/plan.h"
#include "kiln/gemm.h"
#include "runtime/library.h"
#include "runtime/nvrtc.h"

namespace kiln::gemm {
namespace {

using runtime::DeviceBuffer;
using runtime::Gpu;
using runtime::cuda::Stream;

// What only tests need of the driver.
struct Driver {
  using Graph = void*;
  using GraphExec = void*;
  int (*stream_create)(Stream*, unsigned) = nullptr;
  int (*stream_destroy)(Stream) = nullptr;
  int (*stream_synchronize)(Stream) = nullptr;
  int (*capture_begin)(Stream, int) = nullptr;
  int (*capture_end)(Stream, Graph*) = nullptr;
  int (*instantiate)(GraphExec*, Graph, unsigned long long) = nullptr;
  int (*graph_launch)(GraphExec, Stream) = nullptr;

  template <class Function>
  static void find(const runtime::Library& library, const char* name, Function& function) {
    const auto symbol = library.symbol(name);
    ASSERT_TRUE(symbol) << symbol.error().text();
    function = reinterpret_cast<Function>(*symbol);
  }
  void open() {
    const auto library = runtime::Library::open("the CUDA driver", {"libcuda.so.1"});
    ASSERT_TRUE(library) << library.error().text();
    find(*library, "cuStreamCreate", stream_create);
    find(*library, "cuStreamDestroy_v2", stream_destroy);
    find(*library, "cuStreamSynchronize", stream_synchronize);
    find(*library, "cuStreamBeginCapture_v2", capture_begin);
    find(*library, "cuStreamEndCapture", capture_end);
    find(*library, "cuGraphInstantiateWithFlags", instantiate);
    find(*library, "cuGraphLaunch", graph_launch);
  }
};

constexpr int kNonBlocking = 1;      // CU_STREAM_NON_BLOCKING
constexpr int kCaptureOfThread = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

kiln_gemm_problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  kiln_gemm_problem problem = {};
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.type_a = problem.type_b = problem.type_c = KILN_BF16;
  return problem;
}

// Operands of one bf16 product, on the host and on the GPU.
struct Matrices {
  Tensor a;
  Tensor b;
  Tensor c;
  std::vector<DeviceBuffer> memory;

  // Gaps of C are elements beyond n in a row of `ldc`.
  Matrices(Gpu& gpu, const kiln_gemm_problem& p) {
    a = Tensor::zeros(DType::kBF16, {p.m, p.k});
    b = Tensor::zeros(DType::kBF16, {p.n, p.k});
    c = Tensor::zeros(DType::kBF16, {p.m, p.ldc == 0 ? p.n : p.ldc});
    fill_integers(a, 1);
    fill_integers(b, 2);
    std::ranges::fill(c.bytes, std::byte{0xff});
    for (Tensor* tensor : {&a, &b, &c}) {
      auto buffer = gpu.allocate(tensor->bytes.size());
      KILN_CHECK(buffer.has_value(), "no memory on the GPU");
      KILN_CHECK(buffer->copy_in(tensor->bytes).has_value(), "cannot copy");
      memory.push_back(std::move(*buffer));
    }
  }

  static void fill_integers(Tensor& tensor, unsigned seed) {
    std::minstd_rand random(seed);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
      tensor.set(i, static_cast<double>(random() % 5) - 2);
    }
  }
  void fill_normal(unsigned seed) {
    std::minstd_rand random(seed);
    std::normal_distribution<double> normal;
    for (Tensor* tensor : {&a, &b}) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(tensor->elements()); ++i) {
        tensor->set(i, normal(random));
      }
    }
    upload();
  }
  void upload() {
    ASSERT_TRUE(memory[0].copy_in(a.bytes));
    ASSERT_TRUE(memory[1].copy_in(b.bytes));
  }
  [[nodiscard]] kiln_gemm_operands operands() const {
    kiln_gemm_operands out = {};
    out.a = reinterpret_cast<const void*>(memory[0].address());
    out.b = reinterpret_cast<const void*>(memory[1].address());
    out.c = reinterpret_cast<void*>(memory[2].address());
    return out;
  }
  void download() { ASSERT_TRUE(memory[2].copy_out(c.bytes)); }

  // After download(). Sums of small integers are exact in f32 and rounded once.
  [[nodiscard]] std::int64_t wrong(const kiln_gemm_problem& p) const {
    std::int64_t count = 0;
    const std::int64_t pitch = c.shape[1];
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < pitch; ++j) {
        const double found = c.get(static_cast<std::size_t>(i * pitch + j));
        count += (j < p.n ? found == expected(p, i, j) : found != found) ? 0 : 1;
      }
    }
    return count;
  }
  [[nodiscard]] double expected(const kiln_gemm_problem& p, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t l = 0; l < p.k; ++l) {
      sum += a.get(static_cast<std::size_t>(i * p.k + l)) *
             b.get(static_cast<std::size_t>(j * p.k + l));
    }
    return round_to(DType::kBF16, sum);
  }
  void expect_zones_intact() const {
    for (const DeviceBuffer& buffer : memory) {
      const auto intact = buffer.zones_intact();
      ASSERT_TRUE(intact) << intact.error().text();
      EXPECT_TRUE(*intact);
    }
  }
};

// Skips where there is no GPU that the library has a kernel for.
class GpuGemmTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Gpu::open();
    if (!opened) GTEST_SKIP() << opened.error().text();
    if (const auto found = runtime::find_nvrtc(); !found) GTEST_SKIP() << found.error().text();
    gpu_.emplace(std::move(*opened));
    const kiln_gemm_problem usual = problem_of(128, 128, 64);
    const kiln_status status = kiln_gemm_prepare(&usual, nullptr);
    if (status == KILN_UNSUPPORTED) GTEST_SKIP() << kiln_last_error();
    ASSERT_EQ(status, KILN_OK) << kiln_last_error();
    driver_.open();
  }

  Stream new_stream() {
    Stream stream = nullptr;
    EXPECT_EQ(driver_.stream_create(&stream, kNonBlocking), 0);
    return stream;
  }
  // With a workspace of its own where one is needed. Waits.
  kiln_status multiply(const kiln_gemm_problem& problem, const Matrices& matrices,
                       Stream stream = nullptr) {
    const runtime::ContextScope scope(gpu_->session());
    std::size_t bytes = 0;
    const kiln_status status = kiln_gemm_workspace(&problem, &bytes);
    if (status != KILN_OK) return status;
    auto workspace = gpu_->allocate(bytes);
    // Memory is filled on the default stream, for which this one does not wait.
    if (!workspace || !gpu_->synchronize()) return KILN_DEVICE;
    const kiln_gemm_operands operands = matrices.operands();
    const kiln_status started = kiln_gemm(
        &problem, &operands, reinterpret_cast<void*>(workspace->address()), bytes, stream);
    if (started != KILN_OK) return started;
    return driver_.stream_synchronize(stream) == 0 ? KILN_OK : KILN_DEVICE;
  }

  std::optional<Gpu> gpu_;
  Driver driver_;
};

TEST_F(GpuGemmTest, RaggedShapesAreExact) {
  const std::int64_t shapes[][3] = {{1, 8, 8},       {17, 24, 40},     {129, 264, 72},
                                    {300, 520, 256}, {64, 64, 8},      {1, 4096, 512},
                                    {513, 8, 1000},  {256, 256, 4096}, {777, 1032, 88}};
  for (const auto& shape : shapes) {
    const kiln_gemm_problem problem = problem_of(shape[0], shape[1], shape[2]);
    SCOPED_TRACE(testing::Message() << shape[0] << " x " << shape[1] << " x " << shape[2]);
    Matrices matrices(*gpu_, problem);
    ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
    matrices.download();
    EXPECT_EQ(matrices.wrong(problem), 0);
    matrices.expect_zones_intact();
  }
}

// Rows that begin anywhere: exact where a kernel serves them, refused with words otherwise.
TEST_F(GpuGemmTest, OddShapesAreExact) {
  for (const std::int64_t extent : {1, 7, 131, 521}) {
    for (const std::int64_t gap : {0, 5}) {
      kiln_gemm_problem problem = problem_of(extent, extent + 2, extent + 4);
      problem.ldc = problem.n + gap;
      Matrices matrices(*gpu_, problem);
      ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
      matrices.download();
      EXPECT_EQ(matrices.wrong(problem), 0) << extent << " " << gap;
    }
  }
}

TEST_F(GpuGemmTest, GapsBetweenRowsStayAsTheyAre) {
  kiln_gemm_problem problem = problem_of(200, 264, 128);
  problem.ldc = 320;
  Matrices matrices(*gpu_, problem);
  ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
  matrices.download();
  EXPECT_EQ(matrices.wrong(problem), 0);
}

TEST_F(GpuGemmTest, SeveralProductsAtOnce) {
  kiln_gemm_problem problem = problem_of(3 * 160, 264, 128);
  Matrices matrices(*gpu_, problem);  // all rows as one product
  kiln_gemm_problem parts = problem;
  parts.m = 160;
  parts.batch = 3;
  // Three copies of B: a single one for all would have no distance from one to the next.
  Matrices three(*gpu_, problem_of(3 * 160, 3 * 264, 128));
  std::memcpy(three.a.bytes.data(), matrices.a.bytes.data(), matrices.a.bytes.size());
  for (std::size_t i = 0; i < 3; ++i) {
    std::memcpy(three.b.bytes.data() + i * matrices.b.bytes.size(), matrices.b.bytes.data(),
                matrices.b.bytes.size());
  }
  three.upload();
  ASSERT_EQ(multiply(parts, three), KILN_OK) << kiln_last_error();
  three.download();
  std::memcpy(matrices.c.bytes.data(), three.c.bytes.data(), matrices.c.bytes.size());
  EXPECT_EQ(matrices.wrong(problem), 0);
}

// Operands of one bf16 product with groups, of small integers, C before the product too.
struct Groups {
  kiln_gemm_problem problem;
  std::vector<std::int32_t> of_tile;
  Tensor a;
  Tensor b;
  Tensor bias;
  Tensor c;
  std::vector<DeviceBuffer> memory;  // a, b, bias, c, of_tile

  Groups(Gpu& gpu, const kiln_gemm_problem& p, std::vector<std::int32_t> groups)
      : problem(p), of_tile(std::move(groups)) {
    a = Tensor::zeros(DType::kBF16, {p.m, p.k});
    b = Tensor::zeros(DType::kBF16, {p.groups * p.n, p.k});
    bias = Tensor::zeros(DType::kBF16, {p.groups, p.n});
    c = Tensor::zeros(DType::kBF16, {p.m, p.n});
    unsigned seed = 20;
    for (Tensor* tensor : {&a, &b, &bias, &c}) {
      Matrices::fill_integers(*tensor, ++seed);
      hold(gpu, tensor->bytes);
    }
    hold(gpu, std::as_bytes(std::span(of_tile)));
  }
  void hold(Gpu& gpu, std::span<const std::byte> bytes) {
    auto buffer = gpu.allocate(bytes.size());
    KILN_CHECK(buffer.has_value(), "no memory on the GPU");
    KILN_CHECK(buffer->copy_in(bytes).has_value(), "cannot copy");
    memory.push_back(std::move(*buffer));
  }
  // Other numbers, and C as it was before.
  void set(std::vector<std::int32_t> groups) {
    of_tile = std::move(groups);
    ASSERT_TRUE(memory[3].copy_in(c.bytes));
    ASSERT_TRUE(memory[4].copy_in(std::as_bytes(std::span(of_tile))));
  }
  [[nodiscard]] kiln_gemm_operands operands() const {
    kiln_gemm_operands out = {};
    out.a = reinterpret_cast<const void*>(memory[0].address());
    out.b = reinterpret_cast<const void*>(memory[1].address());
    out.bias = reinterpret_cast<const void*>(memory[2].address());
    out.c = reinterpret_cast<void*>(memory[3].address());
    out.group_of_tile = reinterpret_cast<const std::int32_t*>(memory[4].address());
    return out;
  }
  // Sums of small integers and a bias, or what C was.
  [[nodiscard]] double expected(std::int64_t i, std::int64_t j) const {
    const auto at = [](const Tensor& tensor, std::int64_t row, std::int64_t column) {
      return tensor.get(static_cast<std::size_t>(row * tensor.shape[1] + column));
    };
    const std::int64_t group = of_tile[static_cast<std::size_t>(i / KILN_GEMM_GROUP_ROWS)];
    if (group < 0 || group >= problem.groups) return at(c, i, j);
    double sum = (problem.flags & KILN_GEMM_BIAS) != 0 ? at(bias, group, j) : 0;
    for (std::int64_t l = 0; l < problem.k; ++l) {
      sum += at(a, i, l) * at(b, group * problem.n + j, l);
    }
    return round_to(DType::kBF16, sum);
  }
  // Elements of C that are not as expected now.
  [[nodiscard]] std::int64_t wrong() const {
    Tensor found = c;
    KILN_CHECK(memory[3].copy_out(found.bytes).has_value(), "cannot copy");
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < problem.m * problem.n; ++i) {
      const double wanted = expected(i / problem.n, i % problem.n);
      count += found.get(static_cast<std::size_t>(i)) == wanted ? 0 : 1;
    }
    return count;
  }
};

class GpuGroupsTest : public GpuGemmTest {
 protected:
  void SetUp() override {
    GpuGemmTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    kiln_gemm_problem usual = problem_of(128, 128, 64);
    usual.groups = 1;
    const kiln_status status = kiln_gemm_prepare(&usual, nullptr);
    if (!gpu_->arch().has(target::Feature::kTma)) {
      EXPECT_EQ(status, KILN_UNSUPPORTED);
      GTEST_SKIP() << kiln_last_error();
    }
    ASSERT_EQ(status, KILN_OK) << kiln_last_error();
  }
};

TEST_F(GpuGroupsTest, RowsAreMultipliedWithTheirGroup) {
  // Groups 0 and 2 twice, 1 never; a last tile of 44 rows; numbers that are no group's.
  const std::vector<std::int32_t> of_tile = {2, 0, -1, 3, 2, 4, 0};
  const std::int64_t shapes[][2] = {{136, 72}, {264, 520}, {520, 40}};
  for (const auto& shape : shapes) {
    for (const bool has_bias : {false, true}) {
      kiln_gemm_problem problem = problem_of(6 * KILN_GEMM_GROUP_ROWS + 44, shape[0], shape[1]);
      problem.groups = 4;
      if (has_bias) problem.flags = KILN_GEMM_BIAS;
      Groups groups(*gpu_, problem, of_tile);
      const kiln_gemm_operands operands = groups.operands();
      SCOPED_TRACE(testing::Message()
                   << shape[0] << " columns, k " << shape[1] << ", " << has_bias);
      ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK) << kiln_last_error();
      ASSERT_TRUE(gpu_->synchronize());
      EXPECT_EQ(groups.wrong(), 0);
      for (const DeviceBuffer& buffer : groups.memory) EXPECT_TRUE(*buffer.zones_intact());
    }
  }
}

// The same by numbers of rows, which fill whole tiles here: none before, between and behind others.
TEST_F(GpuGroupsTest, NumbersOfRowsSayItToo) {
  const std::vector<std::int32_t> following = {0, 256, 0, 200, 0};
  const std::vector<std::int32_t> apart = {0, 128, 300, -1, 100};
  for (const bool is_apart : {false, true}) {
    kiln_gemm_problem problem = problem_of(10 * KILN_GEMM_GROUP_ROWS, 264, 136);
    problem.groups = 5;
    problem.flags = is_apart ? KILN_GEMM_GROUPS_APART : KILN_GEMM_ROWS_OF_GROUP;
    const std::vector<std::int32_t>& rows = is_apart ? apart : following;
    Groups groups(*gpu_, problem, std::vector<std::int32_t>(10, -1));
    ASSERT_TRUE(groups.memory[4].copy_in(std::as_bytes(std::span(rows))));
    kiln_gemm_operands operands = groups.operands();
    operands.rows_of_group = operands.group_of_tile;
    operands.group_of_tile = nullptr;
    ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK) << kiln_last_error();
    ASSERT_TRUE(gpu_->synchronize());
    groups.of_tile = is_apart ? std::vector<std::int32_t>{-1, -1, 1, -1, 2, 2, -1, -1, 4, -1}
                              : std::vector<std::int32_t>{1, 1, 3, 3, -1, -1, -1, -1, -1, -1};
    EXPECT_EQ(groups.wrong(), 0);
  }
}

// More tiles than blocks, most of them passed over: the numbers are read when the graph runs.
TEST_F(GpuGroupsTest, AGraphFollowsTheGroupsOfItsRun) {
  constexpr std::size_t kTiles = 32;
  kiln_gemm_problem problem = problem_of(kTiles * KILN_GEMM_GROUP_ROWS, 1288, 24);
  problem.groups = 7;
  Groups groups(*gpu_, problem, std::vector<std::int32_t>(kTiles, -1));
  const kiln_gemm_operands operands = groups.operands();
  ASSERT_EQ(kiln_gemm_prepare(&problem, nullptr), KILN_OK) << kiln_last_error();
  const Stream stream = new_stream();
  ASSERT_EQ(driver_.capture_begin(stream, kCaptureOfThread), 0);
  EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, stream), KILN_OK) << kiln_last_error();
  Driver::Graph graph = nullptr;
  ASSERT_EQ(driver_.capture_end(stream, &graph), 0);
  Driver::GraphExec exec = nullptr;
  ASSERT_EQ(driver_.instantiate(&exec, graph, 0), 0);
  for (const std::size_t live : {0U, 1U, 13U, 32U}) {
    std::vector<std::int32_t> of_tile(kTiles, -1);
    for (std::size_t i = 0; i < live; ++i) of_tile[i] = static_cast<std::int32_t>(i / 5);
    groups.set(of_tile);
    ASSERT_TRUE(gpu_->synchronize());
    ASSERT_EQ(driver_.graph_launch(exec, stream), 0);
    ASSERT_EQ(driver_.stream_synchronize(stream), 0);
    EXPECT_EQ(groups.wrong(), 0) << live << " tiles";
  }
  driver_.stream_destroy(stream);
}

TEST_F(GpuGemmTest, AGraphHoldsTheProduct) {
  const kiln_gemm_problem problem = problem_of(384, 512, 320);
  Matrices matrices(*gpu_, problem);
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_gemm_prepare(&problem, &bytes), KILN_OK) << kiln_last_error();
  auto workspace = gpu_->allocate(bytes);
  ASSERT_TRUE(workspace);
  const kiln_gemm_operands operands = matrices.operands();
  const Stream stream = new_stream();
  ASSERT_EQ(driver_.capture_begin(stream, kCaptureOfThread), 0);
  EXPECT_EQ(
      kiln_gemm(&problem, &operands, reinterpret_cast<void*>(workspace->address()), bytes, stream),
      KILN_OK)
      << kiln_last_error();
  // One that was never prepared says so and leaves the capture whole.
  const kiln_gemm_problem other = problem_of(384, 512, 328);
  EXPECT_EQ(kiln_gemm(&other, &operands, nullptr, 0, stream), KILN_NOT_PREPARED);
  Driver::Graph graph = nullptr;
  ASSERT_EQ(driver_.capture_end(stream, &graph), 0);
  Driver::GraphExec exec = nullptr;
  ASSERT_EQ(driver_.instantiate(&exec, graph, 0), 0);
  for (unsigned seed : {5U, 6U}) {
    Matrices::fill_integers(matrices.a, seed);
    matrices.upload();
    ASSERT_TRUE(gpu_->synchronize());
    ASSERT_EQ(driver_.graph_launch(exec, stream), 0);
    ASSERT_EQ(driver_.stream_synchronize(stream), 0);
    matrices.download();
    EXPECT_EQ(matrices.wrong(problem), 0);
  }
  driver_.stream_destroy(stream);
}

// The first call for the problem included, which one of them compiles.
TEST_F(GpuGemmTest, ThreadsOnStreamsOfTheirOwn) {
  const kiln_gemm_problem problem = problem_of(264, 520, 200);
  constexpr int kThreads = 4;
  std::vector<Matrices> matrices;
  std::vector<Stream> streams;
  for (unsigned i = 0; i < kThreads; ++i) {
    Matrices::fill_integers(matrices.emplace_back(*gpu_, problem).a, 10 + i);
    matrices.back().upload();
    streams.push_back(new_stream());
  }
  std::vector<std::thread> threads;
  std::vector<kiln_status> statuses(kThreads, KILN_OK);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 20 && statuses[i] == KILN_OK; ++repeat) {
        statuses[i] = multiply(problem, matrices[i], streams[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(statuses[i], KILN_OK);
    matrices[i].download();
    EXPECT_EQ(matrices[i].wrong(problem), 0) << "thread " << i;
    driver_.stream_destroy(streams[i]);
  }
}

// A product of few rows, whose K is shared by several blocks.
TEST_F(GpuGemmTest, AWorkspaceThatIsTooSmallIsRefused) {
  const kiln_gemm_problem problem = problem_of(16, 2112, 7168);
  Matrices matrices(*gpu_, problem);
  const kiln_gemm_operands operands = matrices.operands();
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_gemm_workspace(&problem, &bytes), KILN_OK) << kiln_last_error();
  if (bytes > 0) {
    auto workspace = gpu_->allocate(bytes);
    ASSERT_TRUE(workspace);
    void* address = reinterpret_cast<void*>(workspace->address());
    EXPECT_EQ(kiln_gemm(&problem, &operands, nullptr, bytes, nullptr), KILN_WORKSPACE);
    EXPECT_EQ(kiln_gemm(&problem, &operands, address, bytes - 1, nullptr), KILN_WORKSPACE);
    void* past = reinterpret_cast<void*>(workspace->address() + 64);
    EXPECT_EQ(kiln_gemm(&problem, &operands, past, bytes, nullptr), KILN_WORKSPACE);
  } else {
    EXPECT_EQ(std::string(kiln_gemm_kernel(&problem, nullptr)).find("SPLITS"), std::string::npos);
  }
  ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
  matrices.download();
  EXPECT_EQ(matrices.wrong(problem), 0);
  matrices.expect_zones_intact();
}

TEST_F(GpuGemmTest, RowsHaveTheSameBitsForEveryM) {
  constexpr std::int64_t kMost = 1000;
  kiln_gemm_problem problem = problem_of(kMost, 768, 2048);
  problem.flags = KILN_GEMM_BATCH_INVARIANT;
  Matrices matrices(*gpu_, problem);
  matrices.fill_normal(3);
  ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
  matrices.download();
  const std::vector<std::byte> whole = matrices.c.bytes;
  for (const std::int64_t m : {1, 7, 64, 129, 512}) {
    problem.m = m;
    ASSERT_TRUE(matrices.memory[2].fill(0xff));
    ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
    matrices.download();
    const auto bytes = static_cast<std::size_t>(m * 768 * 2);
    EXPECT_EQ(std::memcmp(matrices.c.bytes.data(), whole.data(), bytes), 0) << m << " rows";
    EXPECT_EQ(matrices.c.bytes[bytes], std::byte{0xff}) << m << " rows";
  }
}

TEST_F(GpuGemmTest, EveryRunHasTheSameBits) {
  const kiln_gemm_problem problem = problem_of(256, 512, 8192);
  Matrices matrices(*gpu_, problem);
  matrices.fill_normal(4);
  ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
  matrices.download();
  const std::vector<std::byte> first = matrices.c.bytes;
  for (int run = 0; run < 10; ++run) {
    ASSERT_EQ(multiply(problem, matrices), KILN_OK) << kiln_last_error();
    matrices.download();
    EXPECT_EQ(matrices.c.bytes, first) << "run " << run;
  }
}

// Two launches, a workspace, alpha and beta: each element is a sum in two parts.
constexpr const char* kInParts = R"(
__co__ void gemm(global bf16 [M, K] a, global bf16 [N, K] b, global bf16 [M, N] c,
                 global f32 [2, M, N] partial, float alpha, float beta) {
  parallel {part, i} by [2, M] : block {
    parallel t by 32 : thread {
      sum = 0.0f;
      foreach k in [K / 2] {
        sum = sum + a.at(i, part * (K / 2) + k) * b.at(t, part * (K / 2) + k);
      }
      partial.at(part, i, t) = sum;
    }
  }
  parallel i by M : block {
    parallel t by 32 : thread {
      c.at(i, t) = __to<bf16>(alpha * (partial.at(0, i, t) + partial.at(1, i, t)) + beta * c.at(i, t));
    }
  }
}
)";

TEST_F(GpuGemmTest, LaunchesShareAWorkspaceAndTakeFactors) {
  const kiln_gemm_problem shape = problem_of(40, 32, 64);
  Problem problem{.m = 40, .n = 32, .k = 64};
  problem.epilogue = {.has_alpha = true, .has_beta = true};
  const Choice choice{.kernel = "in_parts"};
  auto program = compile(choice, gpu_->arch(), "in_parts.co", kInParts);
  ASSERT_TRUE(program) << program.error().text();
  const auto plan = Plan::prepare(*gpu_, problem, choice, std::move(*program));
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ((*plan)->workspace_bytes(), 2U * 40 * 32 * 4);
  Matrices matrices(*gpu_, shape);
  Matrices::fill_integers(matrices.c, 9);
  const Tensor before = matrices.c;
  ASSERT_TRUE(matrices.memory[2].copy_in(before.bytes));
  auto workspace = gpu_->allocate((*plan)->workspace_bytes());
  ASSERT_TRUE(workspace);
  const Operands operands{.a = matrices.memory[0].address(),
                          .b = matrices.memory[1].address(),
                          .c = matrices.memory[2].address(),
                          .alpha = 0.5,
                          .beta = 2};
  EXPECT_FALSE((*plan)->start(operands, 0, nullptr));
  const auto started = (*plan)->start(operands, workspace->address(), nullptr);
  ASSERT_TRUE(started) << started.error().text();
  ASSERT_TRUE(gpu_->synchronize());
  matrices.download();
  for (std::int64_t i = 0; i < 40 * 32; ++i) {
    double sum = 0;
    for (std::int64_t l = 0; l < 64; ++l) {
      sum += matrices.a.get(static_cast<std::size_t>(i / 32 * 64 + l)) *
             matrices.b.get(static_cast<std::size_t>(i % 32 * 64 + l));
    }
    const auto index = static_cast<std::size_t>(i);
    ASSERT_EQ(matrices.c.get(index), round_to(DType::kBF16, sum / 2 + 2 * before.get(index))) << i;
  }
  EXPECT_TRUE(*workspace->zones_intact());
}

}  // namespace
}  // namespace kiln::gemm
