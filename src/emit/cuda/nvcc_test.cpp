// Every sample, for every architecture, through nvcc with all warnings as errors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "emit/cuda/emit.h"
#include "emit/cuda/samples_for_test.h"

namespace kiln::emit {
namespace {

struct Case {
  const char* sample;
  const char* arch;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.sample << " for " << c.arch; }

class NvccTest : public testing::TestWithParam<Case> {};

TEST_P(NvccTest, CompilesWithoutWarnings) {
  const std::string sample = GetParam().sample;
  Sources sources;
  const target::Arch* arch = target::find_arch(GetParam().arch);
  ASSERT_NE(arch, nullptr);
  const ir::Module module = load_sample(KILN_EMIT_TESTDATA "/" + sample + ".kir", *arch, sources);

  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("kiln_nvcc_" + sample + GetParam().arch);
  std::filesystem::create_directories(folder);
  const std::string source = (folder / "kernel.cu").string();
  ASSERT_TRUE(write_file(source, emit(module, sources)));
  const std::string command = format(
      "'{}' -std=c++17 -gencode=arch={},code={} -Werror all-warnings -I'{}' -c -o '{}' '{}'",
      KILN_NVCC, arch->compute, arch->name, KILN_INCLUDE, (folder / "kernel.o").string(), source);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  if (!HasFailure()) std::filesystem::remove_all(folder);
}

// ptxas before CUDA 13.5 forgets the sign of a negated number where it makes one instruction of two of
// these (kiln/device/math.cuh), however the numbers were negated.
TEST(Nvcc, NoMinimumOrMaximumOfSignedNumbersIsLeftToPtxas) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_nvcc_ends";
  std::filesystem::create_directories(folder);
  const std::string source = (folder / "ends.cu").string();
  const std::string ptx = (folder / "ends.ptx").string();
  ASSERT_TRUE(write_file(source, R"(
#include "kiln/device/math.cuh"
#include "kiln/device/pair.cuh"
#include "kiln/device/reduce.cuh"
static_assert(kiln::min(3, -4) == -4 && kiln::max(short(3), short(-4)) == 3);
template <class T>
__device__ T ends(const T* x) {
  return kiln::min(kiln::max(kiln::max(T(-x[0]), x[1]), x[2]), kiln::min(x[3], T(-x[4])));
}
__global__ void all(const signed char* a, const short* b, const int* c, int* y) {
  y[0] = ends(a) + ends(b) + ends(c);
  int rows[4] = {-c[5], c[6], c[7], -c[8]};
  int row[1];
  kiln::reduce_max<int, int>(row, rows, [](int) { return 0; });
  y[1] = row[0];
}
)"));
  const std::string command =
      format("'{}' -std=c++17 -arch=sm_90a -Werror all-warnings -I'{}' -ptx -o '{}' '{}'",
             KILN_NVCC, KILN_INCLUDE, ptx, source);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto text = read_file(ptx);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("selp"), std::string::npos);
  for (const char* instruction : {"max.s32", "min.s32", "max.s16", "min.s16"}) {
    EXPECT_EQ(text->find(instruction), std::string::npos) << instruction;
  }
  if (!HasFailure()) std::filesystem::remove_all(folder);
}

// What stands between braces: "%r1, %r2" of "{%r1, %r2}, ...".
std::vector<std::string> lists_in(const std::string& line) {
  std::vector<std::string> out;
  for (std::size_t at = line.find('{'); at != std::string::npos; at = line.find('{', at + 1)) {
    out.push_back(line.substr(at + 1, line.find('}', at) - at - 1));
  }
  return out;
}

// The first of a statement's products writes the sum before the others have read A: no register may be both, though both hold
// the same in front of it.
TEST(Nvcc, SumsOfSeveralStepsHaveRegistersOfTheirOwn) {
  Sources sources;
  const ir::Module module =
      load_sample(KILN_EMIT_TESTDATA "/sum_begins_with_its_operand.kir", sources);
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_nvcc_sums";
  std::filesystem::create_directories(folder);
  const std::string source = (folder / "sums.cu").string();
  const std::string ptx = (folder / "sums.ptx").string();
  ASSERT_TRUE(write_file(source, emit(module, sources)));
  const std::string command = format("'{}' -std=c++17 -arch=sm_90a -I'{}' -ptx -o '{}' '{}'",
                                     KILN_NVCC, KILN_INCLUDE, ptx, source);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto text = read_file(ptx);
  ASSERT_TRUE(text);
  std::istringstream lines(*text);
  int products = 0;
  for (std::string line; std::getline(lines, line);) {
    for (std::size_t at = line.find("wgmma.mma_async"); at != std::string::npos;
         at = line.find("wgmma.mma_async", at + 1)) {
      const std::vector<std::string> lists = lists_in(line.substr(at, line.find(';', at) - at));
      ASSERT_EQ(lists.size(), 2) << line;
      std::istringstream of_a(lists[1]);
      for (std::string name; std::getline(of_a >> std::ws, name, ',');) {
        EXPECT_EQ((lists[0] + ",").find(name + ","), std::string::npos) << name << " in " << line;
      }
      ++products;
    }
  }
  EXPECT_EQ(products, 2);
  if (!HasFailure()) std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Samples, NvccTest,
    testing::Values(Case{"one_warp", "sm_80"}, Case{"one_warp", "sm_86"},
                    Case{"one_warp", "sm_90a"}, Case{"scalars", "sm_80"}, Case{"scalars", "sm_86"},
                    Case{"scalars", "sm_90a"}, Case{"memories", "sm_80"}, Case{"memories", "sm_86"},
                    Case{"memories", "sm_90a"}, Case{"edges", "sm_80"}, Case{"edges", "sm_86"},
                    Case{"edges", "sm_90a"}, Case{"two_warpgroups", "sm_90a"},
                    Case{"operand_in_registers", "sm_90a"},
                    Case{"operands_of_both_columns", "sm_90a"}, Case{"bulk_pipeline", "sm_90a"},
                    Case{"cluster_multicast", "sm_90a"}, Case{"producer_consumer", "sm_80"},
                    Case{"producer_consumer", "sm_90a"}));

}  // namespace
}  // namespace kiln::emit
