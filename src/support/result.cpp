#include "support/result.h"

#include "support/escape.h"
#include "support/format.h"

namespace kiln {

std::string Error::text() const {
  std::string out = what;
  if (!subject.empty()) out += format(" `{}`", shown(subject));
  if (!reason.empty()) out += format(": {}", escape_lines(reason));
  return out;
}

}  // namespace kiln
