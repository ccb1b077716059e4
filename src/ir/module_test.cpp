#include "ir/module.h"

#include "ir/samples_for_test.h"

namespace kiln::ir {

namespace {

ValueId value_named(const Function& f, std::string_view name) {
  for (std::size_t i = 0; i < f.values.size(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    if (f.values[id].name == name) return id;
  }
  ADD_FAILURE() << "no value named " << name;
  return {};
}

// "root [origins] [[limits of dimension 0], ...] dropped"
std::string resolved(const Function& f, std::string_view view) {
  const ResolvedView at = resolve_view(f, value_named(f, view));
  const auto list = [&](const std::vector<Expr>& exprs) {
    return format("[{}]", join(exprs, ", ", [&](const Expr& e) { return f.text(e); }));
  };
  return format("{} {} [{}] {}", f.values[at.root].name, list(at.origin),
                join(at.limits, ", ", list), at.dropped);
}

Module windows(const std::string& body) {
  return parsed(
      "module form=tile\nfunc @f(global %x: view<f32, global, [N, K]>) {\n"
      "var N: dim\nvar K: dim\nvar m: scalar\n" +
      body + "\n}\n");
}

TEST(ResolveView, ARootIsItself) {
  const Module module = windows("");
  EXPECT_EQ(resolved(module.functions[0], "x"), "x [0, 0] [[N], [K]] 0");
}

TEST(ResolveView, AWindowMovesTheOriginAndKeepsTheRootsLimits) {
  const Module module =
      windows("%w = subview base=%x origin=[16*m, 4] : view<f32, global, [16, 4]>");
  EXPECT_EQ(resolved(module.functions[0], "w"), "x [16*m, 4] [[N], [K]] 0");
}

TEST(ResolveView, AWindowOfAWindowIsLimitedByBoth) {
  const Module module = windows(
      "%w = subview base=%x origin=[16*m, 0] : view<f32, global, [16, K]>\n"
      "%v = subview base=%w origin=[3, m] : view<f32, global, [2, 2]>");
  EXPECT_EQ(resolved(module.functions[0], "v"), "x [16*m + 3, m] [[N, 16*m + 16], [K]] 0");
}

TEST(ResolveView, DroppedDimensionsStayPinned) {
  const Module module = windows(
      "%w = subview base=%x origin=[m, 8] drop=1 : view<f32, global, [16]>\n"
      "%v = subview base=%w origin=[4] drop=0 : view<f32, global, [4]>\n"
      "%u = subview base=%v origin=[1] drop=1 : view<f32, global, []>");
  const Function& f = module.functions[0];
  EXPECT_EQ(resolved(f, "w"), "x [m, 8] [[N], [K]] 1");
  EXPECT_EQ(resolved(f, "v"), "x [m, 12] [[N], [K, 24]] 1");
  EXPECT_EQ(resolved(f, "u"), "x [m, 13] [[N], [K, 24, 16]] 2");
}

TEST(Walk, GoesThroughRegionsInProgramOrder) {
  const Module module = parsed(kElements);
  const Function& f = module.functions[0];
  std::string order;
  const OpId branch = [&] {
    for (std::size_t i = 0; i < f.ops.size(); ++i) {
      const OpId id{static_cast<std::uint32_t>(i)};
      if (f.ops[id].kind() == OpKind::kIf) return id;
    }
    return OpId{};
  }();
  ASSERT_EQ(regions_of(f.ops[branch]).size(), 2u);
  for (const RegionId region : regions_of(f.ops[branch])) {
    walk(f, region, [&](OpId id) { order += std::string(mnemonic(f.ops[id].kind())) + " "; });
  }
  EXPECT_EQ(order, "binary write set ");
  std::size_t count = 0;
  walk(f, f.body, [&](OpId) { ++count; });
  EXPECT_EQ(count, f.ops.size());
}

TEST(Walk, FindsTheLaunches) {
  const Module module = parsed(kMatmul);
  const Function& f = module.functions[0];
  ASSERT_EQ(launches(f).size(), 1u);
  EXPECT_EQ(std::get<Parallel>(f.ops[launches(f)[0]].data).name, "matmul_wmma");
}

}  // namespace

}  // namespace kiln::ir
