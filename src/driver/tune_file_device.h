// Candidates of `kiln tune FILE.co`, measured on the machine's GPU.
#pragma once

#include "driver/tune_file.h"

namespace kiln::driver {

// Errors: no GPU that kiln can use.
[[nodiscard]] Result<std::unique_ptr<TuneFileDevice>> open_tune_file_gpu();

}  // namespace kiln::driver
