// How long the front end takes for a line of source: preprocess, parse, analyse and decide a file
// of many kernels; and how long the passes take that make a fast kernel of a plain loop.
//
//   front_end_bench --benchmark_filter=kernels:200
//   front_end_bench --benchmark_filter=of_attributes
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "passes/pass_table.h"
#include "sema/sema.h"
#include "support/file.h"
#include "syntax/parser.h"
#include "target/arch.h"

namespace {

// `count` copies of chapter 4's kernel, each under its own name.
std::string long_file(std::int64_t count) {
  const auto text = kiln::read_file(KILN_SOURCE_DIR "/examples/matmul_wmma.co");
  KILN_CHECK(text.has_value(), "{}", text.error().text());
  const std::string name = "matmul_wmma";
  const std::size_t kernel = text->find("__co__");
  const std::size_t at = text->find(name, kernel);
  KILN_CHECK(at != std::string::npos, "examples/matmul_wmma.co has no kernel `{}`", name);
  std::string out = text->substr(0, kernel);
  for (std::int64_t i = 0; i < count; ++i) {
    out += text->substr(kernel, at - kernel) + name + kiln::format("_{}", i) +
           text->substr(at + name.size());
  }
  return out;
}

void front_end(benchmark::State& state) {
  const std::string text = long_file(state.range(0));
  std::int64_t lines = 0;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  const kiln::target::Arch& arch = *kiln::target::find_arch("sm_80");
  for (auto _ : state) {
    kiln::Sources sources;
    kiln::Diagnostics diags;
    const kiln::FileId file = sources.add("long.co", text);
    const kiln::ast::Ast tree = kiln::parse_file(sources, file, {}, diags);
    auto module = kiln::sema::analyse(tree, arch, sources, diags);
    KILN_CHECK(module.has_value(), "the benchmark's file has {} errors", diags.error_count());
    KILN_CHECK(kiln::passes::run_passes(*module, diags).has_value(), "the passes refuse it");
    benchmark::DoNotOptimize(module->functions.data());
  }
  state.counters["lines"] = static_cast<double>(lines);
  state.counters["time_per_line"] =
      benchmark::Counter(static_cast<double>(lines), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}
BENCHMARK(front_end)->ArgName("kernels")->Arg(1)->Arg(20)->Arg(200)->Unit(benchmark::kMillisecond);

// The seconds of a processor that `persist`, `specialise` and `pipeline` take together for a file.
double seconds_of_attributes(const std::string& text, const std::string& path) {
  kiln::Sources sources;
  kiln::Diagnostics diags;
  const kiln::FileId file = sources.add(path, text);
  const kiln::ast::Ast tree = kiln::parse_file(sources, file, {}, diags);
  auto module = kiln::sema::analyse(tree, *kiln::target::find_arch("sm_90a"), sources, diags);
  if (!module.has_value()) return 0;
  double seconds = 0;
  const std::clock_t begin = std::clock();
  kiln::passes::PassOptions options{.stop_after = "pipeline"};
  options.after_each = [&](std::string_view, const kiln::ir::Module&) {
    seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  (void)kiln::passes::run_passes(*module, diags, options);
  return seconds;
}

// The slowest of the tree's examples and kernels, each with the macros that it has by itself.
void of_attributes(benchmark::State& state) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* folder : {"/examples", "/kernels"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(KILN_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".co") continue;
      const std::string path = entry.path().string();
      files.emplace_back(path, *kiln::read_file(path));
    }
  }
  std::string slowest;
  for (auto _ : state) {
    double most = 0;
    for (const auto& [path, text] : files) {
      const double seconds = seconds_of_attributes(text, path);
      if (seconds > most) slowest = std::filesystem::path(path).stem().string();
      most = std::max(most, seconds);
    }
    state.SetIterationTime(most);
  }
  state.SetLabel(slowest);
}
BENCHMARK(of_attributes)->UseManualTime()->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace
