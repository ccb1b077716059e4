#include "target/miscompiled.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace kiln::target {
namespace {

// VIMNMX.RELU R18, P1, P1, R18, 0x2, PT as ptxas of CUDA 13.0 wrote it, and the same with no
// predicates, with two, and without RELU.
constexpr std::uint64_t kLow = 0x0000000212127848;
constexpr std::uint64_t kTwice = 0x000fda0003921100;
constexpr std::uint64_t kNone = 0x000fda0003fe1100;
constexpr std::uint64_t kTwo = 0x000fda0003a21100;
constexpr std::uint64_t kNoClamp = 0x000fda0003920100;

// A cubin of one section, which holds one instruction.
std::string cubin(std::uint32_t flags, std::uint64_t low, std::uint64_t high,
                  std::uint64_t section_flags = 6) {
  std::string out(0x40 + 0x40 + 16, '\0');
  const auto put = [&](std::size_t at, auto value) {
    std::memcpy(out.data() + at, &value, sizeof(value));
  };
  out.replace(0, 4,
              "\x7f"
              "ELF");
  put(0x28, std::uint64_t{0x40});
  put(0x30, flags);
  put(0x3a, std::uint16_t{0x40});
  put(0x3c, std::uint16_t{1});
  put(0x40 + 0x08, section_flags);
  put(0x40 + 0x18, std::uint64_t{0x80});
  put(0x40 + 0x20, std::uint64_t{16});
  put(0x80, low);
  put(0x88, high);
  return out;
}

constexpr std::uint32_t kHopper = 0x6005a04;
constexpr std::uint32_t kHopperOld = 0x5a055a;
constexpr std::uint32_t kAda = 0x6005904;

TEST(Miscompiled, OnePredicateThatIsSetTwiceIsFound) {
  EXPECT_NE(known_miscompilation(cubin(kHopper, kLow, kTwice)), "");
  EXPECT_NE(known_miscompilation(cubin(kHopperOld, kLow, kTwice)), "");
}

TEST(Miscompiled, OtherInstructionsAreNot) {
  for (const std::uint64_t high : {kNone, kTwo, kNoClamp}) {
    EXPECT_EQ(known_miscompilation(cubin(kHopper, kLow, high)), "") << high;
  }
  EXPECT_EQ(known_miscompilation(cubin(kHopper, 0x0000000212127810, kTwice)), "");
  EXPECT_EQ(known_miscompilation(cubin(kAda, kLow, kTwice)), "");
  EXPECT_EQ(known_miscompilation(cubin(kHopper, kLow, kTwice, 2)), "") << "data";
}

TEST(Miscompiled, FilesThatEndEarlyHaveNothingWrong) {
  const std::string whole = cubin(kHopper, kLow, kTwice);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(known_miscompilation(whole.substr(0, bytes)), "") << bytes;
  }
  std::string far = whole;
  for (std::size_t at = 0x28; at < 0x30; ++at) far[at] = '\xff';
  EXPECT_EQ(known_miscompilation(far), "");
}

}  // namespace
}  // namespace kiln::target
