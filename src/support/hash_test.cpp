#include "support/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln {
namespace {

// The values of xxHash's own documents for seed 0: entries outlive a change of compiler.
TEST(HashTest, DigestsAreTheStandardOnes) {
  EXPECT_EQ(digest("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest("abc").hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(HashTest, EveryBitOfALongTextMatters) {
  std::string text(600, 'x');
  std::set<std::string> seen = {digest(text).hex()};
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(seen.insert(digest(text).hex()).second) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(HashTest, PartsAreNotRunTogether) {
  const std::string_view lists[][3] = {
      {"ab", "c", ""}, {"a", "bc", ""}, {"abc", "", ""}, {"", "abc", ""}, {"c", "ab", ""}};
  std::set<std::string> seen;
  for (const auto& list : lists) {
    EXPECT_TRUE(seen.insert(digest_of_parts(list).hex()).second) << list[0];
    EXPECT_TRUE(seen.insert(digest_of_parts(std::span(list).first(2)).hex()).second) << list[0];
  }
}

}  // namespace
}  // namespace kiln
