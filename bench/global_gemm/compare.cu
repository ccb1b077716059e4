// examples/global_gemm.cu beside cuBLASLt and, when it is linked in (KILN_SEED), a tutorial's
// program written on CuTe, in one process.
//
//   compare 4096 4096 4096      one table; --json instead prints one JSON object a line
//
// Random normal inputs, f16 in, f32 out; the contenders take turns in short batches so that clocks
// and temperature are the same for all, the inputs rotate past the L2 cache, and what is printed is
// the median of the batches and of the paired ratios to cuBLASLt. Each result is checked first.
#define main example_main
#include "../../examples/global_gemm.cu"
#undef main

#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#if defined(KILN_SEED)
void launch_seed(const void* a, const void* b, float* c, int m, int n, int k);  // whole tiles only
#endif

namespace {

void check_blas(cublasStatus_t code, const char* what) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s: cuBLASLt error %d\n", what, static_cast<int>(code));
  std::exit(3);
}

// C = A * B^T by row is C^T = B * A^T by column: cuBLASLt gets B first, transposed.
class CublasLt {
 public:
  explicit CublasLt(const Problem& p) {
    check_blas(cublasLtCreate(&handle_), "create");
    check_blas(cublasLtMatmulDescCreate(&matmul_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "matmul");
    const cublasOperation_t transpose = CUBLAS_OP_T;
    cublasLtMatmulDescSetAttribute(matmul_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                   sizeof transpose);
    cublasLtMatrixLayoutCreate(&b_, CUDA_R_16F, p.k, p.n, p.k);
    cublasLtMatrixLayoutCreate(&a_, CUDA_R_16F, p.k, p.m, p.k);
    cublasLtMatrixLayoutCreate(&c_, CUDA_R_32F, p.n, p.m, p.n);
    check(cudaMalloc(&workspace_, kWorkspace), "workspace");
    pick(p);
  }
  void launch(const Problem& p) { run(p, algorithm_); }

 private:
  static constexpr std::size_t kWorkspace = std::size_t{64} << 20;

  void run(const Problem& p, const cublasLtMatmulAlgo_t& algorithm) {
    const float one = 1.0f, zero = 0.0f;
    check_blas(cublasLtMatmul(handle_, matmul_, &one, p.b, b_, p.a, a_, &zero, p.c, c_, p.c, c_,
                              &algorithm, workspace_, kWorkspace, nullptr),
               "matmul");
  }
  // The fastest of what the heuristic proposes.
  void pick(const Problem& p) {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &kWorkspace, sizeof kWorkspace);
    cublasLtMatmulHeuristicResult_t found[8];
    int count = 0;
    check_blas(cublasLtMatmulAlgoGetHeuristic(handle_, matmul_, b_, a_, c_, c_, preference, 8,
                                              found, &count),
               "heuristic");
    float best = 1e30f;
    for (int i = 0; i < count; ++i) {
      const float ms = time_of([&] { run(p, found[i].algo); });
      if (ms < best) {
        best = ms;
        algorithm_ = found[i].algo;
      }
    }
    cublasLtMatmulPreferenceDestroy(preference);
  }

 public:
  // Milliseconds of one launch, over a short batch after a warm-up.
  static float time_of(const std::function<void()>& launch_once) {
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    constexpr int kLaunches = 10;
    launch_once();
    check(cudaEventRecord(start), "event");
    for (int i = 0; i < kLaunches; ++i) launch_once();
    check(cudaEventRecord(stop), "event");
    check(cudaEventSynchronize(stop), "batch");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, stop), "event");
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return ms / kLaunches;
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t matmul_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  void* workspace_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

struct Contender {
  const char* name;
  std::function<void(const Problem&)> launch;
  std::vector<float> times;
};

unsigned long long wrong_elements(const Contender& contender, const Problem& p) {
  check(cudaMemset(p.c, 0xff, std::size_t(p.m) * p.n * sizeof(float)), "poison");
  contender.launch(p);
  unsigned long long* wrong = allocate<unsigned long long>(1);
  check(cudaMemset(wrong, 0, sizeof *wrong), "verification");
  count_wrong<<<dim3((p.n + 127) / 128, p.m), 128>>>(p, wrong);
  unsigned long long count = 0;
  check(cudaMemcpy(&count, wrong, sizeof count, cudaMemcpyDeviceToHost), "verification");
  cudaFree(wrong);
  return count;
}

float median(std::vector<float> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Enough copies of the problem that no launch finds its inputs in a 50 MiB cache.
std::vector<Problem> copies(int m, int n, int k) {
  const std::size_t bytes = (std::size_t(m) + n) * k * 2;
  const std::size_t count = std::min<std::size_t>(64, 1 + (std::size_t{100} << 20) / bytes);
  std::vector<Problem> out;
  for (std::size_t i = 0; i < count; ++i) {
    Problem p{m, n, k};
    p.a = random_matrix(m, k, static_cast<unsigned>(2 * i + 1));
    p.b = random_matrix(n, k, static_cast<unsigned>(2 * i + 2));
    p.c = allocate<float>(std::size_t(m) * n);
    out.push_back(p);
  }
  return out;
}

std::vector<Contender> contenders(const Problem& p, CublasLt& blas) {
  const bool whole = p.m % kBlockM == 0 && p.n % kBlockN == 0 && p.k % kBlockK == 0;
  std::vector<Contender> out;
  out.push_back({"cuBLASLt", [&](const Problem& q) { blas.launch(q); }, {}});
  if (whole) {
#if defined(KILN_SEED)
    out.push_back(
        {"seed on CuTe", [](const Problem& q) { launch_seed(q.a, q.b, q.c, q.m, q.n, q.k); }, {}});
#endif
    out.push_back({"kiln Plain", launch<Plain>, {}});
    out.push_back({"kiln Pipelined", launch<Pipelined>, {}});
    out.push_back({"kiln Staged", launch<Staged>, {}});
  }
  if (p.k % 8 == 0) out.push_back({"kiln Guarded 16", launch<Guarded<16>>, {}});
  return out;
}

bool compare(int m, int n, int k, bool json) {
  const std::vector<Problem> problems = copies(m, n, k);
  CublasLt blas(problems[0]);
  std::vector<Contender> all = contenders(problems[0], blas);
  bool right = true;
  for (const Contender& contender : all) {
    const unsigned long long wrong = wrong_elements(contender, problems[0]);
    if (wrong != 0) std::fprintf(stderr, "%s: %llu elements wrong\n", contender.name, wrong);
    right = right && wrong == 0;
  }
  constexpr int kRounds = 25;
  std::size_t turn = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& contender : all) {
      contender.times.push_back(
          CublasLt::time_of([&] { contender.launch(problems[turn++ % problems.size()]); }));
    }
  }
  for (const Contender& contender : all) {
    std::vector<float> ratios;
    for (int i = 0; i < kRounds; ++i) ratios.push_back(all[0].times[i] / contender.times[i]);
    const float ms = median(contender.times);
    const double tflops = 2.0 * m * n * k / (ms * 1e-3) / 1e12;
    std::printf(json ? "{\"m\": %d, \"n\": %d, \"k\": %d, \"name\": \"%s\", \"ms\": %.5f, "
                       "\"tflops\": %.2f, \"of_cublaslt\": %.3f}\n"
                     : "%5d x %5d x %5d  %-16s %9.4f ms  %7.2f TFLOP/s  %.2f of cuBLASLt\n",
                m, n, k, contender.name, ms, tflops, median(ratios));
  }
  for (const Problem& p : problems) {
    cudaFree(p.a);
    cudaFree(p.b);
    cudaFree(p.c);
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[argc - 1], "--json") == 0;
  const int numbers = argc - 1 - (json ? 1 : 0);
  if (numbers == 0 || numbers % 3 != 0) {
    std::fprintf(stderr, "usage: %s M N K [M N K]... [--json]\n", argv[0]);
    return 2;
  }
  bool right = true;
  for (int i = 1; i <= numbers; i += 3) {
    right &= compare(extent(argv[i]), extent(argv[i + 1]), extent(argv[i + 2]), json);
  }
  return right ? 0 : 1;
}
