// How fast the simulator runs two kernels on one core, with all checks and without: chapter 4's,
// and one of bulk copies, events and products of warpgroups.
//
//   sim_bench --benchmark_filter=matmul_1p2c/512/checks:1
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "io/bind.h"
#include "passes/pass_table.h"
#include "sema/sema.h"
#include "sim/sim.h"
#include "support/file.h"
#include "syntax/parser.h"
#include "target/arch.h"

namespace {

struct Example {
  std::string_view name;
  std::string_view arch;
};
constexpr Example kWarps{"matmul_wmma", "sm_80"};
constexpr Example kRing{"matmul_1p2c", "sm_90a"};

kiln::ir::Module decided(const Example& example) {
  const std::string name = kiln::format("{}.co", example.name);
  auto text = kiln::read_file(kiln::format("{}/examples/{}", KILN_SOURCE_DIR, name));
  KILN_CHECK(text.has_value(), "{}", text.error().text());
  kiln::Sources sources;
  kiln::Diagnostics diags;
  const kiln::FileId file = sources.add(name, std::move(*text));
  const kiln::ast::Ast tree = kiln::parse_file(sources, file, {}, diags);
  auto module = kiln::sema::analyse(tree, *kiln::target::find_arch(example.arch), sources, diags);
  KILN_CHECK(module.has_value(), "the kernel has {} errors", diags.error_count());
  KILN_CHECK(kiln::passes::run_passes(*module, diags).has_value(), "the passes refuse it");
  return std::move(*module);
}

void simulate(benchmark::State& state, const Example& example) {
  const kiln::ir::Module module = decided(example);
  const kiln::ir::Function& function = module.functions.front();
  const std::string extent = kiln::format("{}", state.range(0));
  kiln::Diagnostics diags;
  const auto arguments = kiln::io::bind(
      function, {.shapes = {{"M", extent}, {"N", extent}, {"K", extent}}, .inputs = {}}, diags);
  KILN_CHECK(arguments.has_value(), "the shape is refused");
  kiln::sim::Options options;
  options.checks = state.range(1) != 0;
  options.cores = 1;
  for (auto _ : state) {
    kiln::ir::Arguments own = *arguments;
    const auto outcome = kiln::sim::run(module, function, own, options);
    KILN_CHECK(outcome.has_value() && outcome->reports.empty(), "the run is not clean");
  }
  const auto n = static_cast<double>(state.range(0));
  state.counters["flop_per_second"] = benchmark::Counter(
      2 * n * n * n, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}
BENCHMARK_CAPTURE(simulate, matmul_wmma, kWarps)
    ->ArgNames({"", "checks"})
    ->ArgsProduct({{256}, {1, 0}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, matmul_1p2c, kRing)
    ->ArgNames({"", "checks"})
    ->ArgsProduct({{512}, {1, 0}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
