// The functions of kiln/gemm.h from eight threads at once, over a driver of paper. What the threads
// do not see of each other is checked here; that they do not race is for ThreadSanitizer to say
// (`./dev tsan`).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gemm/start_test_support.h"
#include "support/in_threads_test.h"

namespace kiln::gemm {
namespace {

constexpr int kThreads = 8;

// Types that are none: the message names the thread's own number.
void fails_with_its_own_message(int thread) {
  kiln_gemm_problem wrong = problem_of(kExtent, kExtent, kExtent);
  wrong.type_a = 100 + thread;
  kiln_status status = KILN_OK;
  EXPECT_EQ(kiln_gemm_kernel(&wrong, &status), nullptr);
  EXPECT_EQ(status, KILN_INVALID);
  EXPECT_EQ(std::string(kiln_last_error())
                .find("not a matrix product: types " + std::to_string(100 + thread)),
            0U)
      << kiln_last_error();
}

// All that one thread asks about a problem, and one start of it.
struct Answers {
  std::size_t prepared = 1;
  std::size_t workspace = 2;
  const char* kernel = nullptr;
};

Answers ask(const kiln_gemm_problem& problem, std::uintptr_t base) {
  Answers out;
  EXPECT_EQ(kiln_gemm_prepare(&problem, &out.prepared), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_gemm_workspace(&problem, &out.workspace), KILN_OK) << kiln_last_error();
  kiln_status status = KILN_DEVICE;
  out.kernel = kiln_gemm_kernel(&problem, &status);
  EXPECT_EQ(status, KILN_OK);
  const kiln_gemm_operands operands = operands_at(base);
  void* workspace = reinterpret_cast<void*>(base + (1 << 16));
  seen_count = 0;
  EXPECT_EQ(kiln_gemm(&problem, &operands, workspace, out.workspace, nullptr), KILN_OK)
      << kiln_last_error();
  EXPECT_GE(seen_count, 1U);
  // Some kernels take B first.
  const auto [first, second] = std::minmax(seen[0].first[0], seen[0].first[1]);
  EXPECT_EQ(first, base);
  EXPECT_EQ(second, base + 4096);
  return out;
}

class ThreadsTest : public LaunchesTest {
 protected:
  // Nothing is compiled yet: the cache of compilations is a new folder.
  static void SetUpTestSuite() {
    std::string folder = testing::TempDir() + "kiln_threads_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    setenv("KILN_CACHE_DIR", folder.c_str(), 1);
    folder_ = folder;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  static inline std::string folder_;
};

// Whether the problem is prepared or not: the first to come prepares it, the others get the same.
TEST_F(ThreadsTest, OneProblem) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  const int modules = fake_->modules;
  std::vector<Answers> answers(kThreads);
  in_threads(kThreads, [&](int thread) {
    const auto base = static_cast<std::uintptr_t>(thread + 1) << 32;
    answers[static_cast<std::size_t>(thread)] = ask(problem, base);
    fails_with_its_own_message(thread);
  });
  for (const Answers& each : answers) {
    EXPECT_EQ(each.kernel, answers[0].kernel);
    EXPECT_NE(each.kernel, nullptr);
    EXPECT_EQ(each.prepared, 0U);
    EXPECT_EQ(each.workspace, 0U);
  }
  EXPECT_EQ(fake_->modules, modules + 1);
  EXPECT_EQ(fake_->contexts_held, 0);
}

// Every thread goes through all of them, each from another one on. Two share a kernel, one has two
// launches and a workspace, one has no kernel that fits it.
TEST_F(ThreadsTest, DifferentProblems) {
  std::vector<kiln_gemm_problem> problems = {problem_of(kExtent, kExtent, 512),
                                             problem_of(kExtent, kExtent, 2 * kExtent),
                                             problem_of(16, 2112, 7168), problem_of(256, 256, 64)};
  problems[3].type_a = problems[3].type_b = problems[3].type_c = KILN_F16;
  kiln_gemm_problem refused = problem_of(64, 64, 64);
  refused.type_a = KILN_S8;  // times bf16
  const std::size_t count = problems.size();
  std::vector<std::vector<Answers>> answers(kThreads, std::vector<Answers>(count));
  in_threads(kThreads, [&](int thread) {
    const auto mine = static_cast<std::size_t>(thread);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t which = (mine + i) % count;
      answers[mine][which] = ask(problems[which], (mine + 1) << 32);
      EXPECT_EQ(kiln_gemm_prepare(&refused, nullptr), KILN_UNSUPPORTED);
      EXPECT_NE(std::string(kiln_last_error()).find("s8"), std::string::npos) << kiln_last_error();
      fails_with_its_own_message(thread);
    }
  });
  for (const auto& each : answers) {
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(each[i].kernel, answers[0][i].kernel);
      EXPECT_EQ(each[i].prepared, each[i].workspace);
      EXPECT_EQ(each[i].workspace, answers[0][i].workspace);
    }
  }
  EXPECT_GT(answers[0][2].workspace, 0U);
  EXPECT_EQ(fake_->contexts_held, 0);
}

// More sets of operands than tensor maps are kept for, some of them every thread's.
TEST_F(ThreadsTest, PreparedCallsWithManyOperands) {
  const kiln_gemm_problem problem = problem_of(kExtent, kExtent, kExtent);
  ASSERT_EQ(kiln_gemm_prepare(&problem, nullptr), KILN_OK) << kiln_last_error();
  in_threads(kThreads, [&](int thread) {
    for (std::uintptr_t i = 1; i <= 300; ++i) {
      const auto own = static_cast<std::uintptr_t>(thread) << 32;
      const std::uintptr_t base = (i << 20) + (i % 3 == 0 ? 0 : own);
      const kiln_gemm_operands operands = operands_at(base);
      seen_count = 0;
      ASSERT_EQ(kiln_gemm(&problem, &operands, nullptr, 0, nullptr), KILN_OK);
      ASSERT_EQ(seen_count, 1U);
      ASSERT_EQ(seen[0].first, (std::array<std::uintptr_t, 3>{base, base + 4096, base + 8192}));
    }
  });
  EXPECT_EQ(fake_->contexts_held, 0);
}

}  // namespace
}  // namespace kiln::gemm
