#include <gtest/gtest.h>

#include <set>

#include "backends/device.h"
#include "io/bind.h"
#include "passes/pass_table.h"
#include "sema/sema.h"
#include "syntax/parser.h"

namespace kiln::backends {
namespace {

constexpr const char* kDouble = R"(
__co__ void twice(global f32 [N] x, global f32 [N] y) {
  parallel b by cdiv(N, 32) : block {
    parallel t by 32 : thread {
      if (b * 32 + t < N) {
        y.at(b * 32 + t) = x.at(b * 32 + t) * 2.0;
      }
    }
  }
}
)";

class BackendsTest : public testing::Test {
 protected:
  void SetUp() override {
    const FileId file = sources_.add("twice.co", kDouble);
    const ast::Ast tree = parse_file(sources_, file, {}, diags_);
    auto module = sema::analyse(tree, *target::find_arch("sm_80"), sources_, diags_);
    ASSERT_TRUE(module.has_value());
    tile_ = *module;
    decided_ = *module;
    ASSERT_TRUE(passes::run_passes(decided_, diags_).has_value());
    auto arguments =
        io::bind(function(), {.shapes = {{"N", "70"}}, .fill = io::Fill::kNormal}, diags_);
    ASSERT_TRUE(arguments.has_value());
    arguments_ = std::move(*arguments);
    interpreted_.outcome =
        reference::interpret(tile_.functions[0], arguments_, reference::f32_numerics());
    ASSERT_EQ(interpreted_.outcome.outputs.size(), 1U);
  }

  const ir::Function& function() const { return decided_.functions[0]; }

  Result<Execution> run(const Backend& backend) const {
    auto prepared = backend.prepare({.module = decided_,
                                     .function = function(),
                                     .sources = sources_,
                                     .interpreted = &interpreted_});
    if (!prepared) return Unexpected{prepared.error()};
    return (*prepared)->run(arguments_, {});
  }

  Sources sources_;
  Diagnostics diags_;
  ir::Module tile_;
  ir::Module decided_;
  ir::Arguments arguments_;
  Interpreted interpreted_;
};

// Whatever is a row gives the right outputs and says what it promises, on the machines that have
// it.
TEST_F(BackendsTest, EveryRowComputesAndReportsWhatItSays) {
  for (const Backend* backend : backends()) {
    if (!backend->find()) continue;
    const auto execution = run(*backend);
    ASSERT_TRUE(execution.has_value()) << backend->name << ": " << execution.error().text();
    EXPECT_EQ(execution->backend, backend);
    EXPECT_EQ(execution->sim.has_value(), backend->reports.findings) << backend->name;
    EXPECT_EQ(execution->times.has_value(), backend->reports.times) << backend->name;
    const Tensor x = arguments_.params[0].tensor;
    const Tensor y = result_of(execution->arguments, interpreted_.outcome.outputs[0]);
    ASSERT_EQ(y.elements(), 70);
    for (std::size_t i = 0; i < 70; ++i) {
      ASSERT_EQ(y.get(i), 2 * x.get(i)) << backend->name << " " << i;
    }
  }
}

TEST_F(BackendsTest, WhatIsPreparedRunsAgain) {
  const auto prepared = kSim.prepare(
      {.module = decided_, .function = function(), .sources = sources_, .interpreted = nullptr});
  ASSERT_TRUE(prepared.has_value());
  for (int i = 0; i < 2; ++i) {
    const auto execution = (*prepared)->run(arguments_, {});
    ASSERT_TRUE(execution.has_value());
    EXPECT_EQ(execution->arguments.params[1].tensor.get(69),
              2 * arguments_.params[0].tensor.get(69));
  }
}

TEST_F(BackendsTest, TheSimulatorKeepsToItsLimits) {
  ASSERT_TRUE(kSim.gives_up);
  auto prepared = kSim.prepare({.module = decided_, .function = function(), .sources = sources_});
  ASSERT_TRUE(prepared.has_value());
  const auto execution = (*prepared)->run(arguments_, {.steps_max = 1});
  ASSERT_TRUE(execution.has_value());
  EXPECT_TRUE(execution->sim->gave_up);
}

// As many products, loads and stores as a run with checks has, whether every block is counted or
// three stand for all: the grid has three.
TEST_F(BackendsTest, TheRowThatCountsCountsWhatARunDoes) {
  const auto execution = run(counter());
  ASSERT_TRUE(execution.has_value());
  const Job job{.module = decided_, .function = function(), .sources = sources_};
  for (const bool all_blocks : {false, true}) {
    ir::Arguments arguments = arguments_;
    arguments.vars.resize(function().vars.size());
    const auto counted = counter().count(job, arguments, {.all_blocks = all_blocks, .trace = true});
    ASSERT_TRUE(counted.has_value());
    EXPECT_EQ(counted->counters.instructions, execution->sim->counters.instructions);
    EXPECT_EQ(counted->by_operation.size(), function().ops.size());
    EXPECT_EQ(counted->traces.size(), 1U);
  }
  EXPECT_TRUE(execution->sim->by_operation.empty());
}

TEST(BackendTableTest, NamesAreFoundAndAutoIsTheOneThatServes) {
  EXPECT_EQ(backend_names(), "auto, sim, gpu, reference");
  const target::Arch& arch = *target::find_arch("sm_80");
  std::set<std::string_view> names;
  for (const Backend* backend : backends()) {
    EXPECT_TRUE(names.insert(backend->name).second) << backend->name;
    EXPECT_EQ(choose_backend(backend->name, arch), backend);
  }
  EXPECT_EQ(choose_backend("tpu", arch), nullptr);
  EXPECT_EQ(choose_backend("", arch), nullptr);
  EXPECT_EQ(choose_backend("auto", arch), kGpu.serves(arch) ? &kGpu : &kSim);
}

TEST(BackendTableTest, OneRowIsMeasured) {
  for (const Backend* backend : backends()) EXPECT_EQ(backend->device != nullptr, backend == &kGpu);
  EXPECT_EQ(&device(), kGpu.device);
}

}  // namespace
}  // namespace kiln::backends
