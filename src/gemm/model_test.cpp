// What is lost by taking the model's word for it, over all that `kiln tune` measured of 68 products on
// an H200: bench/results/choice/candidates.jsonl.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "gemm/problem.h"
#include "gemm/space.h"
#include "support/file.h"
#include "support/format.h"

namespace kiln::gemm {
namespace {

constexpr int kMultiprocessors = 132;

struct Measured {
  Problem problem;
  std::map<std::string, double> microseconds;  // by kernel and defines
};

std::vector<Measured> read_measured() {
  const auto text = read_file(KILN_CANDIDATES);
  EXPECT_TRUE(text) << KILN_CANDIDATES;
  std::vector<Measured> out;
  if (!text) return out;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    Problem problem{.m = row["m"], .n = row["n"], .k = row["k"]};
    problem.a = problem.b = dtype_from_name(row["type"].get<std::string>()).value();
    out.push_back({problem, row["microseconds"].get<std::map<std::string, double>>()});
  }
  return out;
}

std::string way_of(const Variant& variant) {
  std::string out(variant.row->name);
  for (const auto& [name, value] : variant.defines) out += format(" {}={}", name, value);
  return out;
}

// How much longer the choice takes than the fastest; nothing where it was not measured.
std::optional<double> loss_of(const Measured& measured) {
  const auto best =
      best_variant(*normalised(measured.problem), *target::find_arch("sm_90a"), kMultiprocessors);
  if (!best) return std::nullopt;
  const auto own = measured.microseconds.find(way_of(*best));
  if (own == measured.microseconds.end()) return std::nullopt;
  const auto least = std::ranges::min_element(measured.microseconds, {},
                                              &std::map<std::string, double>::value_type::second);
  return own->second / least->second;
}

TEST(MeasuredCandidates, TheChoiceIsAmongTheFastest) {
  const std::vector<Measured> all = read_measured();
  ASSERT_EQ(all.size(), 68);
  int near = 0;
  int known = 0;
  double logarithms = 0;
  for (const Measured& each : all) {
    const auto loss = loss_of(each);
    if (!loss) continue;
    ++known;
    logarithms += std::log(*loss);
    near += *loss <= 1.05 ? 1 : 0;
    EXPECT_LE(*loss, 1.2) << text(each.problem);
  }
  EXPECT_EQ(known, 68);
  EXPECT_GE(near, 58);
  EXPECT_LE(std::exp(logarithms / known), 1.02);
}

}  // namespace
}  // namespace kiln::gemm
