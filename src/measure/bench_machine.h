// The machine a measurement was made on, and the file its lines go to.
#pragma once

#include "measure/bench_row.h"
#include "runtime/gpu.h"

namespace kiln::measure {

// Describes this GPU and this kiln; `arch` and `toolkit` are the kernel's.
[[nodiscard]] BenchMachine machine_of(const runtime::Gpu& gpu, std::string arch,
                                      std::string toolkit);

// Appends a text to the file in one write, so that whoever is stopped leaves whole lines. Without a
// text it only finds out whether it could. Errors: the file cannot be opened or written.
[[nodiscard]] Result<void> append_to_file(const std::string& path, std::string_view text);

}  // namespace kiln::measure
