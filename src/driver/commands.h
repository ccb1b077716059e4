// The commands of `kiln`, without the command-line parser: options in, exit code out.
//
//   const Exit exit = check({.program = {.file = "matmul.co", .arch = "sm_80"}}, console);
#pragma once

#include "driver/console.h"
#include "driver/options.h"

namespace kiln::driver {

// Every mistake of the file. --json: one array on `out`, nothing on `err`.
[[nodiscard]] Exit check(const CheckOptions& options, Console& console);

// Runs one kernel and compares its outputs with the reference (run.cpp).
[[nodiscard]] Exit run(const RunOptions& options, Console& console);

// The CUDA text.
[[nodiscard]] Exit emit(const EmitCommandOptions& options, Console& console);

// The tile IR after a pass; "all": after each; "sema": before the first.
[[nodiscard]] Exit ir(const IrOptions& options, Console& console);

// The table of matrix instructions.
[[nodiscard]] Exit atoms(const AtomsOptions& options, Console& console);

// Who owns which element, and what lies in which bank, as a picture (map_command.cpp).
[[nodiscard]] Exit map(const MapOptions& options, Console& console);

// A matrix for the sparse instructions: pruned, packed, with metadata (prune_command.cpp).
[[nodiscard]] Exit prune(const PruneOptions& options, Console& console);

// What a kernel costs on a GPU: instructions, memory, occupancy, times (explain_command.cpp).
[[nodiscard]] Exit explain(const ExplainOptions& options, Console& console);

// Measures a kernel, beside the vendor's library where that does the same (bench_command.cpp).
[[nodiscard]] Exit bench(const BenchOptions& options, Console& console);

// Searches for the fastest defines, of a file or of the library's kernels (tune_command.cpp).
[[nodiscard]] Exit tune(const TuneOptions& options, Console& console);

// The compile cache: kernels into it, what it is, nothing in it (cache_command.cpp).
[[nodiscard]] Exit cache_warm(const CacheOptions& options, Console& console);
[[nodiscard]] Exit cache_info(Console& console);
[[nodiscard]] Exit cache_clear(Console& console);

}  // namespace kiln::driver
