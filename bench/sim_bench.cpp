// How fast the simulator runs chapter 4's kernel, with all checks and without.
//
//   sim_bench --benchmark_filter=checks:1
#include <benchmark/benchmark.h>

#include <string>

#include "driver/bind.h"
#include "passes/pipeline.h"
#include "sema/sema.h"
#include "sim/sim.h"
#include "support/file.h"
#include "syntax/parser.h"
#include "target/arch.h"

namespace {

kiln::ir::Module decided_matmul() {
  auto text = kiln::read_file(KILN_SOURCE_DIR "/examples/matmul_wmma.co");
  KILN_CHECK(text.has_value(), "{}", text.error().text());
  kiln::Sources sources;
  kiln::Diagnostics diags;
  const kiln::FileId file = sources.add("matmul_wmma.co", std::move(*text));
  const kiln::ast::Ast tree = kiln::parse_file(sources, file, {}, diags);
  auto module = kiln::sema::analyse(tree, *kiln::target::find_arch("sm_80"), sources, diags);
  KILN_CHECK(module.has_value(), "the kernel has {} errors", diags.error_count());
  KILN_CHECK(kiln::passes::run_pipeline(*module, diags).has_value(), "the passes refuse it");
  return std::move(*module);
}

void simulate(benchmark::State& state) {
  const kiln::ir::Module module = decided_matmul();
  const kiln::ir::Function& function = module.functions.front();
  const std::string extent = kiln::format("{}", state.range(0));
  kiln::Diagnostics diags;
  const auto arguments = kiln::driver::bind(
      function, {.shapes = {{"M", extent}, {"N", extent}, {"K", extent}}, .inputs = {}}, diags);
  KILN_CHECK(arguments.has_value(), "the shape is refused");
  kiln::sim::Options options;
  options.checks = state.range(1) != 0;
  for (auto _ : state) {
    kiln::ir::Arguments own = *arguments;
    const auto outcome = kiln::sim::run(module, function, own, options);
    KILN_CHECK(outcome.has_value() && outcome->reports.empty(), "the run is not clean");
  }
  const auto n = static_cast<double>(state.range(0));
  state.counters["flop_per_second"] = benchmark::Counter(
      2 * n * n * n, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}
BENCHMARK(simulate)
    ->ArgNames({"extent", "checks"})
    ->Args({256, 1})
    ->Args({256, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
