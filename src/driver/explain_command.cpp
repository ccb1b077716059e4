// `kiln explain`: compile, choose a shape, count in the simulator, work out the rest, print.
#include "driver/commands.h"
#include "driver/report.h"
#include "explain/cost/cost_print.h"
#include "io/advice.h"
#include "io/machine.h"
#include "support/format.h"

namespace kiln::driver {

namespace {

std::string page(const io::Explained& explained, const io::Advice& advice, std::size_t kernel,
                 const io::Program& program, const io::ExplainOptions& how) {
  const ir::Function& function = program.decided.functions[kernel];
  const explain::Trial* best = explained.explanation.best();
  if (best == nullptr) return io::explained_page(explained, function, program.sources);
  const auto after =
      io::explain_decided(*advice.best, program.sources, kernel, how, explain::Detail::kTime);
  if (!after) return io::explained_page(explained, function, program.sources);
  const io::Changed changed = {
      format("{} at line {}", best->attribute, program.sources.place(best->span).line), *after,
      advice.best->functions[kernel]};
  return io::explained_page(explained, function, program.sources, &changed);
}

io::Exit explain_function(const ExplainOptions& options, const std::vector<io::Assignment>& given,
                          io::Program& program, io::Console& console) {
  const auto kernel =
      io::choose_kernel(program, options.program.file, options.kernel, program.diags);
  if (!kernel) return io::Exit::kUsage;
  io::ExplainOptions how;
  how.shapes = given;
  how.memory_bytes_max = io::memory_allowed(options.max_memory);
  how.compile = options.compile;
  how.progress = [&](std::string_view text) { io::show_progress(console, text); };
  auto explained = io::explain(program, *kernel, how, program.diags);
  io::show_progress(console, "");
  if (!explained) {
    const auto& [exit, error] = explained.error();
    return error ? io::environment_failed(console, *error).error : exit;
  }
  how.shapes = explained->shapes;  // what is compared is of one shape
  io::Advice advice;
  if (!options.no_advice) {
    io::show_progress(console, "trying attributes");
    advice = io::try_attributes(program, *kernel, how);
    io::show_progress(console, "");
  }
  explain::Explanation& explanation = explained->explanation;
  explanation.trials = std::move(advice.trials);
  const std::string text = options.html   ? page(*explained, advice, *kernel, program, how)
                           : options.json ? explain::to_json(explanation, program.sources)
                                          : explain::to_text(explanation, program.sources);
  return io::write_text(console, options.output, text);
}

}  // namespace

io::Exit explain(const ExplainOptions& options, io::Console& console) {
  io::Program program;
  const auto shapes = io::parse_assignments("--shape", options.shapes,
                                            io::ListForm::kCommaSeparated, program.diags);
  io::Exit exit = io::Exit::kUsage;
  if (shapes) {
    io::show_progress(console, "compiling");
    exit = io::compile(options.program, {.kernel = options.kernel}, program, console);
    io::show_progress(console, "");
    if (exit == io::Exit::kFine) exit = explain_function(options, *shapes, program, console);
  }
  io::show_briefly(console, program.diags, program.sources);
  return exit;
}

}  // namespace kiln::driver
