#include "ir/functions.h"

#include <cmath>

#include "support/check.h"

namespace kiln::ir {

double value_of(UnaryKind function, double x) {
  switch (function) {
    case UnaryKind::kExp: return std::exp(x);
    case UnaryKind::kLog: return std::log(x);
    case UnaryKind::kTanh: return std::tanh(x);
    case UnaryKind::kErf: return std::erf(x);
    case UnaryKind::kSqrt: return std::sqrt(x);
    case UnaryKind::kRsqrt: return 1 / std::sqrt(x);
    case UnaryKind::kNegate:
    case UnaryKind::kNot:
    case UnaryKind::kBitNot: break;
  }
  KILN_UNREACHABLE("an operator, not a function");
}

}  // namespace kiln::ir
