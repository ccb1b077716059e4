#include "reference/spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kiln::reference {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The distance of the further one; of equal infinities 0.
double further(double value, double low, double high) {
  const auto distance = [&](double end) { return end == value ? 0 : std::fabs(end - value); };
  const double a = distance(low);
  const double b = distance(high);
  return std::isnan(a) || std::isnan(b) ? kNone : std::max(a, b);
}

// From tan(x + d) = (tan x + tan d) / (1 - tan x * tan d), so that no multiple of pi is subtracted.
double spread_of_tangent(double value, double error) {
  if (!(error < std::numbers::pi / 2)) return kUnbounded;
  const double step = std::tan(error);
  // Almost at a pole the rounding of this very product would count.
  if (!(std::fabs(value) * step < 1 - 0x1p-20)) return kUnbounded;
  const double low = (value - step) / (1 + value * step);
  const double high = (value + step) / (1 - value * step);
  return further(value, low, high) * (1 + 0x1p-20);
}

struct Interval {
  double low;
  double high;

  [[nodiscard]] bool holds(double x) const { return low <= x && x <= high; }
};

Interval interval_of(const Number& number) {
  return {number.value - number.error, number.value + number.error};
}

// How far the values at the corners of the rectangle lie from `middle`.
template <class Function>
double over_corners(const Function& function, double middle, const Interval& x, const Interval& y) {
  const double near = further(middle, function(x.low, y.low), function(x.low, y.high));
  const double far = further(middle, function(x.high, y.low), function(x.high, y.high));
  return std::isnan(near) || std::isnan(far) ? kNone : std::max(near, far);
}

// x^y of positive x goes one way along each axis: the corners bound it. Of other x it has values
// where y is an integer: on both sides of 0 it goes one way, and there it turns or has a pole.
double spread_of_power(double middle, const Interval& x, const Interval& y) {
  const auto power = [](double a, double b) { return std::pow(a, b); };
  const double corners = over_corners(power, middle, x, y);
  if (x.low > 0) return corners;
  const bool integer = y.low == y.high && std::trunc(y.low) == y.low;
  if (!integer) return x.low == 0 ? corners : kNone;
  if (!x.holds(0)) return corners;
  return y.low < 0 ? kUnbounded : std::max(corners, further(middle, power(0, y.low), middle));
}

// The angle of a rectangle that neither holds the origin nor meets the half-axis where it jumps from
// -pi to pi is bounded by those of its corners.
double spread_of_angle(double middle, const Interval& y, const Interval& x) {
  if (y.holds(0) && x.low <= 0) return std::numbers::pi + std::fabs(middle);
  return over_corners([](double a, double b) { return std::atan2(a, b); }, middle, y, x);
}

}  // namespace

double spread_of(const ir::FunctionInfo& row, const Number& operand) {
  const double middle = row.value(operand.value);
  const Interval x = interval_of(operand);
  switch (row.course) {
    case ir::Course::kMonotonic: return further(middle, row.value(x.low), row.value(x.high));
    case ir::Course::kEven: {
      const double size = std::fabs(operand.value);
      const double least = row.value(std::max(size - operand.error, 0.0));
      return further(middle, least, row.value(size + operand.error));
    }
    case ir::Course::kWave: return std::min(operand.error, 1 + std::fabs(middle));
    case ir::Course::kTangent: return spread_of_tangent(middle, operand.error);
    case ir::Course::kReciprocal:
      return x.holds(0) ? kUnbounded : further(middle, row.value(x.low), row.value(x.high));
  }
  return kNone;
}

double spread_of(ir::BinaryKind function, const Number& left, const Number& right) {
  const double middle = ir::value_of(function, left.value, right.value);
  const Interval a = interval_of(left);
  const Interval b = interval_of(right);
  if (function == ir::BinaryKind::kPow) return spread_of_power(middle, a, b);
  if (function == ir::BinaryKind::kAtan2) return spread_of_angle(middle, a, b);
  KILN_UNREACHABLE("`{}` has no bounds over an interval", ir::info(function).name);
}

}  // namespace kiln::reference
