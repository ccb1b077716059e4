#include "measure/timing.h"

#include <gtest/gtest.h>

#include <atomic>

#include "measure/nvml.h"

#include "measure/cublaslt_api.h"

namespace kiln::measure {
namespace {

TEST(BenchTest, MedianAndQuartilesAreInterpolated) {
  EXPECT_DOUBLE_EQ(median({3}), 3);
  EXPECT_DOUBLE_EQ(median({9, 1, 4}), 4);
  EXPECT_DOUBLE_EQ(median({9, 1, 4, 2}), 3);
  EXPECT_DOUBLE_EQ(interquartile({7}), 0);
  EXPECT_DOUBLE_EQ(interquartile({5, 1, 4, 2, 3}), 2);    // 2 to 4
  EXPECT_DOUBLE_EQ(interquartile({1, 2, 3, 4}), 1.5);     // 1.75 to 3.25
  EXPECT_DOUBLE_EQ(interquartile({1, 1, 1, 1, 100}), 0);  // an outlier does not show
}

TEST(BenchTest, RatiosAreOfNeighboursAndNotOfMedians) {
  // The chip slows down to half its clock in the middle: each pair still says 1.1.
  const Summary drifting = summarise({1, 2, 4}, {1.1, 2.2, 4.4});
  EXPECT_DOUBLE_EQ(drifting.ratio, 1.1);
  EXPECT_NEAR(drifting.spread, 0, 1e-12);
  EXPECT_DOUBLE_EQ(drifting.ours, 2);
  EXPECT_DOUBLE_EQ(drifting.theirs, 2.2);
  // Medians alone would say 2 / 3 here.
  const Summary crossed = summarise({1, 3, 9}, {2, 1, 9});
  EXPECT_DOUBLE_EQ(crossed.ratio, 1);
  EXPECT_GT(crossed.spread, 0.5);
}

TEST(BenchTest, SetsTouchTwiceTheCacheAndAreAtLeastTwo) {
  constexpr std::int64_t kL2 = 50 << 20;
  EXPECT_EQ(rotating_sets(3 * (32 << 20), kL2), 2U);
  EXPECT_EQ(rotating_sets(std::int64_t{1} << 33, kL2), 2U);
  EXPECT_EQ(rotating_sets(20 << 20, kL2), 5U);
  EXPECT_EQ(rotating_sets((20 << 20) - 1, kL2), 6U);
  EXPECT_EQ(rotating_sets(1, kL2), 512U);
}

TEST(BenchTest, CublasLtHasEverythingThatIsCalled) {
  const auto api = cublaslt::open_api();
  if (!api) GTEST_SKIP() << "not tested: " << api.error().text();
  EXPECT_GE(api->version(), 120000U);
  EXPECT_STREQ(api->status_name(15), "CUBLAS_STATUS_NOT_SUPPORTED");
  const auto refused = api->check(15, "cannot multiply", "e5m2 * e5m2");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().text(),
            "cannot multiply `e5m2 * e5m2`: CUBLAS_STATUS_NOT_SUPPORTED (number 15)");
}

TEST(Clocks, MediansOfWhatWasSeen) {
  const ClockSamples seen = medians({1980, 1700, 1755}, {});
  EXPECT_EQ(seen.sm_mhz, 1755);
  EXPECT_FALSE(seen.power_watt.has_value());
}

TEST(Clocks, WithoutTheLibraryNothingIsSampled) {
  ClockSampler sampler(std::nullopt);
  const ClockSamples seen = sampler.stop();
  EXPECT_FALSE(seen.sm_mhz.has_value());
  EXPECT_FALSE(seen.power_watt.has_value());
}

// Stands for the library: the clock falls by 10 MHz each time it is asked for.
TEST(Clocks, AreSampledUntilItStops) {
  static std::atomic<unsigned> asked = 0;
  Nvml nvml;
  nvml.clock = [](Nvml::Device, int which, unsigned* mhz) {
    *mhz = which == 1 ? 2000 - 10 * asked++ : 0;
    return 0;
  };
  nvml.power = [](Nvml::Device, unsigned* milliwatts) {
    *milliwatts = 350500;
    return 0;
  };
  ClockSampler sampler(nvml);
  while (asked < 3) std::this_thread::yield();
  const ClockSamples seen = sampler.stop();
  const unsigned count = asked;
  EXPECT_EQ(seen.sm_mhz, 2000 - 5.0 * (count - 1));
  EXPECT_EQ(seen.power_watt, 350.5);
}

}  // namespace
}  // namespace kiln::measure
