#include "support/result.h"

namespace kiln {

std::string Error::text() const {
  std::string out = what;
  if (!subject.empty()) out += format(" `{}`", subject);
  if (!reason.empty()) out += format(": {}", reason);
  return out;
}

}  // namespace kiln
