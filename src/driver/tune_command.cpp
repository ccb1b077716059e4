// `kiln tune`: the fastest defines of a file's kernel, or of the library's kernels for a suite.
#include "driver/commands.h"
#include "measure/bench_suites.h"
#include "measure/tune_device.h"
#include "measure/tune_file_device.h"

namespace kiln::driver {

namespace {

// An option, and whether it was given.
using Given = std::pair<const char*, bool>;

Checked<void> refuse(std::span<const Given> options, const char* with, Diagnostics& diags) {
  for (const auto& [name, given] : options) {
    if (given) return diags.report<diag::BenchOptionUnused>({}, name, with).emit();
  }
  return {};
}

Checked<void> check_library_form(const measure::TuneOptions& options, Diagnostics& diags) {
  const Given of_files[] = {
      {"--arch", !options.program.arch.empty()}, {"-D", !options.program.defines.empty()},
      {"--kernel", !options.kernel.empty()},     {"--expect", !options.expect.empty()},
      {"--over", !options.over.empty()},         {"--no-attributes", options.no_attributes}};
  if (auto fits = refuse(of_files, "the library's kernels", diags); !fits) return fits;
  if (!options.output.empty()) return {};
  return diags.report<diag::OptionForm>({}, "-o", "", "the table's file")
      .help("as in -o kernels/tuned/sm_90a.json")
      .emit();
}

Checked<void> check_file_form(const measure::TuneOptions& options, Diagnostics& diags) {
  const Given of_the_library[] = {{"--problem", !options.problems.empty()},
                                  {"--only", !options.only.empty()},
                                  {"--resume", options.resume},
                                  {"-o", !options.output.empty()}};
  return refuse(of_the_library, "a file", diags);
}

io::Exit tune_file_on_gpu(const measure::TuneOptions& options, io::Console& console) {
  Diagnostics diags;
  if (check_file_form(options, diags))
    return measure::tune_file(options, measure::open_tune_file_gpu, console);
  io::show(console, diags, {});
  return io::Exit::kUsage;
}

io::Exit tune_on_gpu(const measure::TuneOptions& options, io::Console& console) {
  Diagnostics diags;
  if (!check_library_form(options, diags)) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  const auto cases = measure::tuned_cases(options, diags);
  if (!cases) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  const auto device = measure::TuneGpu::open(options.seed);
  if (!device) return io::environment_failed(console, device.error()).error;
  return measure::tune_library(options, *cases, **device, console);
}

}  // namespace

io::Exit tune(const measure::TuneOptions& options, io::Console& console) {
  const std::string& file = options.program.file;
  Diagnostics diags;
  if (file.empty() && options.problems.empty()) {
    diags
        .report<diag::OptionForm>({}, "kiln tune", "",
                                  "`kiln tune FILE.co`, `kiln tune SUITE` or `kiln tune --problem`")
        .help("suites are {}", measure::tuned_suite_list())
        .emit();
  } else if (file.find_first_of("./") != std::string::npos) {
    return tune_file_on_gpu(options, console);
  } else if (!file.empty() && !measure::is_tuned_suite(file)) {
    diags.report<diag::OptionChoice>({}, "kiln tune", file, measure::tuned_suite_list()).emit();
  } else {
    return tune_on_gpu(options, console);
  }
  io::show(console, diags, {});
  return io::Exit::kUsage;
}

}  // namespace kiln::driver
