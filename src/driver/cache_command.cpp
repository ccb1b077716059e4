// `kiln cache`: kernels into the compile cache, what it is, nothing in it.
#include <chrono>

#include "backends/device.h"
#include "driver/commands.h"
#include "io/program.h"
#include "runtime/cache.h"
#include "support/escape.h"

namespace kiln::driver {

namespace {

std::string entries_text(const runtime::CacheUsage& usage) {
  return format("{} {}, {} bytes", usage.entries, usage.entries == 1 ? "entry" : "entries",
                usage.bytes);
}

// Each function is a text of its own, as only one of them is run at a time.
io::Stage<void> warm(const io::Program& program, const ir::Function& function,
                     const runtime::Cache& cache, io::Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = backends::device().warm(
      {.module = program.decided, .function = function, .sources = program.sources}, cache);
  if (!compiled) return io::environment_failed(console, compiled.error());
  if (!compiled->kept) {
    return io::environment_failed(console,
                                  {"the cache does not keep", function.name, compiled->note});
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  console.out << format("{} for {}: {}, {:.4f} s\n", function.name, program.arch->name,
                        compiled->cached ? "in the cache already" : "compiled", seconds.count());
  return {};
}

}  // namespace

io::Exit cache_warm(const CacheOptions& options, io::Console& console) {
  const auto settings = runtime::cache_settings();
  if (!settings) return io::environment_failed(console, settings.error()).error;
  const runtime::Cache cache(*settings);
  if (!cache.on()) {
    return io::environment_failed(console, {"there is no compile cache", {}, "it is switched off"})
        .error;
  }
  io::Program program;
  const io::Exit exit = io::compile(options.program, {}, program, console);
  io::show_briefly(console, program.diags, program.sources);
  if (exit != io::Exit::kFine) return exit;
  for (const ir::Function& function : program.decided.functions) {
    if (const auto done = warm(program, function, cache, console); !done) return done.error();
  }
  return io::Exit::kFine;
}

io::Exit cache_info(io::Console& console) {
  const auto settings = runtime::cache_settings();
  if (!settings) return io::environment_failed(console, settings.error()).error;
  const runtime::Cache cache(*settings);
  const auto usage = cache.usage();
  if (!usage) return io::environment_failed(console, usage.error()).error;
  console.out << format("folder   {}\nentries  {}\nbytes    {}\nlimit    {}\n",
                        cache.on() ? shown(settings->folder) : "none: the cache is off",
                        usage->entries, usage->bytes, settings->bytes_max);
  return io::Exit::kFine;
}

io::Exit cache_clear(io::Console& console) {
  const auto settings = runtime::cache_settings();
  if (!settings) return io::environment_failed(console, settings.error()).error;
  const auto removed = runtime::Cache(*settings).clear();
  if (!removed) return io::environment_failed(console, removed.error()).error;
  console.out << format("removed {}\n", entries_text(*removed));
  return io::Exit::kFine;
}

}  // namespace kiln::driver
