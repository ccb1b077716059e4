// The text of kiln_last_error (kiln/status.h), one for each thread.
#pragma once

#include <string>

namespace kiln {

[[nodiscard]] std::string& last_error();

}  // namespace kiln
