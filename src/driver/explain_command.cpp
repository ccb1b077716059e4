// `kiln explain`: compile, choose a shape, count in the simulator, work out the rest, print.
#include "driver/commands.h"
#include "driver/report.h"
#include "explain/cost/cost_print.h"
#include "io/explained.h"
#include "io/machine.h"

namespace kiln::driver {

namespace {

std::string printed(const ExplainOptions& options, const io::Explained& explained,
                    const ir::Function& function, const Sources& sources) {
  if (options.html) return io::explained_page(explained, function, sources);
  return options.json ? explain::to_json(explained.explanation, sources)
                      : explain::to_text(explained.explanation, sources);
}

io::Exit explain_function(const ExplainOptions& options, const std::vector<io::Assignment>& given,
                          io::Program& program, io::Console& console) {
  const auto kernel =
      io::choose_kernel(program, options.program.file, options.kernel, program.diags);
  if (!kernel) return io::Exit::kUsage;
  io::ExplainOptions how;
  how.shapes = given;
  how.memory_bytes_max = io::memory_allowed(options.max_memory);
  how.progress = [&](std::string_view text) { io::show_progress(console, text); };
  const auto explained = io::explain(program, *kernel, how, program.diags);
  io::show_progress(console, "");
  if (!explained) {
    const auto& [exit, error] = explained.error();
    return error ? io::environment_failed(console, *error).error : exit;
  }
  const ir::Function& function = program.decided.functions[*kernel];
  return io::write_text(console, options.output,
                        printed(options, *explained, function, program.sources));
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
