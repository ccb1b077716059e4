#include "measure/bench_plot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "support/file.h"

namespace kiln::measure {
namespace {

const std::string kFolder = KILN_MEASURE_TESTDATA "/plot/";

std::vector<BenchRow> rows_of_file() {
  const auto text = read_file(kFolder + "results.jsonl");
  EXPECT_TRUE(text.has_value());
  const auto rows = parse_rows(*text, "results.jsonl");
  EXPECT_TRUE(rows.has_value());
  return *rows;
}

TEST(BenchPlot, OfAProblemTheLastRowCounts) {
  const auto rows = latest_rows(rows_of_file());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].ratio, 0.9402);
  EXPECT_EQ(rows[0].shape, "M=1024,N=1024,K=1024");
}

// `KILN_BLESS=1 driver_test` writes it anew.
TEST(BenchPlot, IsThePictureOfTheFile) {
  const std::string svg = plot_svg(rows_of_file());
  const std::string path = kFolder + "results.svg";
  if (std::getenv("KILN_BLESS") != nullptr) {
    ASSERT_TRUE(write_file(path, svg).has_value());
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected.has_value()) << expected.error().text();
  EXPECT_EQ(svg, *expected);
}

TEST(BenchPlot, SaysWhatIsAheadAndWhatIsBehind) {
  const std::string svg = plot_svg(rows_of_file());
  const auto count = [&](std::string_view part) {
    int out = 0;
    for (auto at = svg.find(part); at != svg.npos; at = svg.find(part, at + 1)) ++out;
    return out;
  };
  EXPECT_EQ(count("class=\"ahead\""), 1);
  EXPECT_EQ(count("class=\"behind\""), 1);
  EXPECT_EQ(count("class=\"one\""), 2);  // a line at 1 for each suite
  EXPECT_EQ(count(">none<"), 1);         // no baseline
  EXPECT_EQ(count("dense: geometric mean 0.991, least 0.940"), 1);
}

TEST(BenchPlot, ALongBarMakesTheAxisLonger) {
  BenchRow row{.suite = "dense"};
  row.ratio = 1.61;
  const std::string svg = plot_svg({row});
  EXPECT_NE(svg.find(">1.8</text>"), svg.npos);
  EXPECT_EQ(svg.find(">2.0</text>"), svg.npos);
}

TEST(BenchPlot, FilesWithoutResultsAreTheEnvironments) {
  std::ostringstream out;
  std::ostringstream err;
  io::Console console{.out = out, .err = err};
  EXPECT_EQ(bench_plot({.plot = kFolder + "none.jsonl"}, console), io::Exit::kEnvironment);
  EXPECT_EQ(bench_plot({.plot = kFolder + "results.svg"}, console), io::Exit::kEnvironment);
  EXPECT_NE(err.str().find("line 1 is no line"), std::string::npos) << err.str();
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(bench_plot({.plot = kFolder + "results.jsonl"}, console), io::Exit::kFine);
  EXPECT_EQ(out.str(), plot_svg(rows_of_file()));
}

}  // namespace
}  // namespace kiln::measure
