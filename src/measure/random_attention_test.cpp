// Random problems of attention: which are drawn, and their text.
#include "measure/random_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "attention/choice.h"

namespace kiln::measure {
namespace {

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

ServedDepths depths() { return served_depths(hopper()); }

TEST(RandomAttention, DepthsAreTheLibrarys) {
  for (const std::int64_t depth : {64, 128, 256}) {
    EXPECT_TRUE(std::ranges::count(depths().forward, depth)) << depth;
    EXPECT_TRUE(std::ranges::count(depths().backward, depth)) << depth;
  }
  EXPECT_FALSE(std::ranges::count(depths().forward, 8));
  EXPECT_EQ(depths().of_8_bits, (std::vector<std::int64_t>{64, 128, 256}));
  EXPECT_TRUE(served_depths(*target::find_arch("sm_80")).forward.empty());
}

TEST(RandomAttention, EveryKindIsDrawn) {
  std::set<std::string> seen;
  int served = 0;
  for (std::uint64_t number = 0; number < 500; ++number) {
    const RandomAttention drawn = draw_attention(3, number, depths());
    const attention::Problem& p = drawn.problem;
    const auto whole = attention::normalised(p);
    ASSERT_TRUE(whole) << whole.error().text();
    EXPECT_LE(std::max(p.queries, p.keys), kAttentionRowsMax);
    EXPECT_LE(p.batch * p.heads * p.queries * p.keys * p.depth, 1 << 25) << text(drawn);
    if (attention::choose(*whole, hopper(), 132)) ++served;
    const std::pair<const char*, bool> kinds[] = {{"bf16", p.dtype == DType::kBF16},
                                                  {"f16", p.dtype == DType::kF16},
                                                  {"causal", p.causal},
                                                  {"full", !p.causal},
                                                  {"backward", p.backward},
                                                  {"any order", p.any_order},
                                                  {"balanced", p.balanced},
                                                  {"one query", p.queries == 1},
                                                  {"ragged", p.queries % 8 != 0},
                                                  {"fewer keys", p.causal && p.keys < p.queries},
                                                  {"shared", p.heads > p.key_heads},
                                                  {"gaps", p.q != attention::Spacing{}},
                                                  {"packed", p.o == attention::Spacing{}},
                                                  {"offset", drawn.offset != 0},
                                                  {"keys to the left", whole->left != -1},
                                                  {"keys to the right", whole->right != -1},
                                                  {"a soft cap", p.soft_cap != 0},
                                                  {"8 bits", has_8_bits(p)},
                                                  {"factors", drawn.factors}};
    for (const auto& [name, is] : kinds) {
      if (is) seen.insert(name);
    }
    seen.insert(std::to_string(p.depth));
  }
  EXPECT_EQ(seen.size(), 19 + depths().forward.size());
  EXPECT_EQ(served, 500);
}

TEST(RandomAttention, TextIsReadBack) {
  for (std::uint64_t number = 0; number < 300; ++number) {
    const RandomAttention drawn = draw_attention(1, number, depths());
    const auto read = parse_attention(text(drawn));
    ASSERT_TRUE(read) << text(drawn);
    EXPECT_EQ(*read, drawn) << text(drawn);
  }
  EXPECT_EQ(text(draw_attention(1, 7, depths())), text(draw_attention(1, 7, depths())));
  EXPECT_NE(text(draw_attention(1, 7, depths())), text(draw_attention(2, 7, depths())));
}

TEST(RandomAttention, OtherTextIsNone) {
  for (const char* text :
       {"", "attention", "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=x",
        "attention f32 queries=1 keys=1 heads=1 key_heads=1 depth=64",
        "attention bf16 queries=1 keys=1 heads=3 key_heads=2 depth=64",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 offset=8",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 scale=-1",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 q=1,2",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 left=-2",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 soft_cap=-1",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 factors",
        "attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64 mirrored",
        "bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64"}) {
    EXPECT_FALSE(parse_attention(text)) << text;
  }
  EXPECT_TRUE(parse_attention("attention bf16 queries=1 keys=1 heads=1 key_heads=1 depth=64"));
}

}  // namespace
}  // namespace kiln::measure
