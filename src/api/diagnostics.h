// Diagnostics as data of C, for kiln/kiln.h.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "kiln/kiln.h"

namespace kiln::api {

// Texts that C may point to: they stay where they are.
class Texts {
 public:
  [[nodiscard]] const char* keep(std::string text) {
    return texts_.emplace_back(std::move(text)).c_str();
  }

 private:
  std::deque<std::string> texts_;
};

struct DiagnosticRows {
  std::vector<kiln_diagnostic> rows;
  std::string text;  // all of them as a terminal shows them

  void set(const Diagnostics& diags, const Sources& sources);

 private:
  Texts texts_;
};

}  // namespace kiln::api
