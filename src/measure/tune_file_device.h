// Candidates of `kiln tune FILE.co`, measured on the machine's GPU.
#pragma once

#include "measure/tune_file.h"

namespace kiln::measure {

// Errors: no GPU that kiln can use.
[[nodiscard]] Result<std::unique_ptr<TuneFileDevice>> open_tune_file_gpu();

}  // namespace kiln::measure
