#include "explain/draw/palette.h"

#include <array>

#include "support/check.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

using Rgb = std::array<int, 3>;

// Okabe and Ito, "Color Universal Design" (2008), with grey for their black; in an order that keeps
// neighbours apart.
constexpr std::array<Rgb, 8> kHues = {{{86, 180, 233},
                                       {230, 159, 0},
                                       {0, 158, 115},
                                       {204, 121, 167},
                                       {240, 228, 66},
                                       {0, 114, 178},
                                       {213, 94, 0},
                                       {140, 140, 140}}};
constexpr Rgb kRampDark = {44, 134, 190};

// How much of the hue, in percent; the rest is white.
constexpr std::array<int, 4> kTints = {24, 38, 52, 66};
constexpr int kRampFrom = 6;
constexpr int kRampTo = 90;

std::string mixed(const Rgb& hue, int percent) {
  std::string out;
  for (const int part : hue) out += format("{:02x}", 255 + (part - 255) * percent / 100);
  return out;
}

}  // namespace

std::string hex(int colour) {
  KILN_CHECK(colour >= 0 && colour < kColours, "colour {} of {}", colour, kColours);
  if (colour >= kCategories) {
    const int step = colour - kCategories;
    return mixed(kRampDark, kRampFrom + (kRampTo - kRampFrom) * step / (kRampSteps - 1));
  }
  const auto hue = static_cast<std::size_t>(colour) / kTints.size();
  const auto tint = static_cast<std::size_t>(colour) % kTints.size();
  return mixed(kHues[hue], kTints[tint]);
}

}  // namespace kiln::explain
