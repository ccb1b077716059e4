// `kiln cache`: kernels into the compile cache, what it is, nothing in it.
#include <chrono>

#include "driver/commands.h"
#include "driver/program.h"
#include "runtime/cache.h"
#include "runtime/call.h"
#include "support/escape.h"

namespace kiln::driver {

namespace {

std::string entries_text(const runtime::CacheUsage& usage) {
  return format("{} {}, {} bytes", usage.entries, usage.entries == 1 ? "entry" : "entries",
                usage.bytes);
}

// Each function is a text of its own, as only one of them is run at a time.
Stage<void> warm(const Program& program, const ir::Function& function, const runtime::Cache& cache,
                 Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = runtime::warm_kernels(program.decided, function, program.sources, cache);
  if (!compiled) return environment_failed(console, compiled.error());
  if (!compiled->kept) {
    return environment_failed(console, {"the cache does not keep", function.name, compiled->note});
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  console.out << format("{} for {}: {}, {:.4f} s\n", function.name, program.arch->name,
                        compiled->cached ? "in the cache already" : "compiled", seconds.count());
  return {};
}

}  // namespace

Exit cache_warm(const CacheOptions& options, Console& console) {
  const auto settings = runtime::cache_settings();
  if (!settings) return environment_failed(console, settings.error()).error;
  const runtime::Cache cache(*settings);
  if (!cache.on()) {
    return environment_failed(console, {"there is no compile cache", {}, "it is switched off"})
        .error;
  }
  Program program;
  const Exit exit = compile(options.program, {}, program, console);
  show_briefly(console, program.diags, program.sources);
  if (exit != Exit::kFine) return exit;
  for (const ir::Function& function : program.decided.functions) {
    if (const auto done = warm(program, function, cache, console); !done) return done.error();
  }
  return Exit::kFine;
}

Exit cache_info(Console& console) {
  const auto settings = runtime::cache_settings();
  if (!settings) return environment_failed(console, settings.error()).error;
  const runtime::Cache cache(*settings);
  const auto usage = cache.usage();
  if (!usage) return environment_failed(console, usage.error()).error;
  console.out << format("folder   {}\nentries  {}\nbytes    {}\nlimit    {}\n",
                        cache.on() ? shown(settings->folder) : "none: the cache is off",
                        usage->entries, usage->bytes, settings->bytes_max);
  return Exit::kFine;
}

Exit cache_clear(Console& console) {
  const auto settings = runtime::cache_settings();
  if (!settings) return environment_failed(console, settings.error()).error;
  const auto removed = runtime::Cache(*settings).clear();
  if (!removed) return environment_failed(console, removed.error()).error;
  console.out << format("removed {}\n", entries_text(*removed));
  return Exit::kFine;
}

}  // namespace kiln::driver
