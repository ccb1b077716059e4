// `kiln bench`: a suite, random problems, the kernel of a file, or a plot of what was measured.
#include "driver/commands.h"
#include "measure/bench_attention.h"
#include "measure/bench_file.h"
#include "measure/bench_plot.h"
#include "measure/bench_random.h"
#include "measure/bench_suite.h"
#include "support/format.h"

namespace kiln::driver {

namespace {

std::string all_suites() {
  return measure::suite_list() + ", " + measure::attention_suites() + ", random";
}

// What is wrong before it is known what the command line's first word is.
Checked<void> check_form(const measure::BenchOptions& options, Diagnostics& diags) {
  const std::string& file = options.program.file;
  if (!options.plot.empty()) {
    if (file.empty()) return {};
    return diags.report<diag::BenchOptionUnused>({}, file, "`--plot`").emit();
  }
  if (file.empty()) {
    return diags
        .report<diag::OptionForm>({}, "kiln bench", "",
                                  "`kiln bench SUITE` or `kiln bench FILE.co`")
        .help("suites are {}", all_suites())
        .emit();
  }
  if (!options.output.empty()) {
    return diags.report<diag::BenchOptionUnused>({}, "-o", "a measurement").emit();
  }
  if (options.seconds > 0 && !measure::is_random(options)) {
    return diags.report<diag::BenchOptionUnused>({}, "--seconds", format("`{}`", file)).emit();
  }
  if (measure::is_random(options) || measure::is_attention(options)) return {};
  if (options.count != 0) {
    const char* what = measure::is_suite(file) ? "a suite" : "a file";
    return diags.report<diag::BenchOptionUnused>({}, "--count", what).emit();
  }
  if (measure::is_suite(file)) return {};
  if (file.find_first_of("./") == std::string::npos) {
    return diags.report<diag::OptionChoice>({}, "kiln bench", file, all_suites()).emit();
  }
  if (options.only.empty()) return {};
  return diags.report<diag::BenchOptionUnused>({}, "--only", "a file").emit();
}

}  // namespace

io::Exit bench(const measure::BenchOptions& options, io::Console& console) {
  Diagnostics diags;
  if (!check_form(options, diags)) {
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  if (!options.plot.empty()) return measure::bench_plot(options, console);
  if (measure::is_random(options)) return measure::bench_random(options, console);
  if (measure::is_attention(options)) return measure::bench_attention(options, console);
  if (measure::is_suite(options.program.file)) return measure::bench_suite(options, console);
  return measure::bench_file(options, console);
}

}  // namespace kiln::driver
