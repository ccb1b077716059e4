// What comes from DRAM, against counts made by hand.
#include "explain/cost/reuse.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "ir/effects.h"
#include "ir/print.h"
#include "target/arch.h"

namespace kiln::explain {

namespace {

constexpr std::int64_t kMega = 1 << 20;

constexpr const char* kGrid = R"kir(
  var i: parallel < cdiv(M, 128)
  var j: parallel < cdiv(N, 256)
  parallel level=block vars=[i, j] threads=128 name="product" body={
    BODY
  }
)kir";

// Blocks that stay: 132 of them go through the tiles, 8 columns at a time where these divide the grid.
constexpr const char* kStays = R"kir(
  var block: parallel < 132
  var i: bound < cdiv(M, 128)
  var j: bound < cdiv(N, 256)
  var tile: bound
  var round: loop < cdiv(cdiv(M, 128)*cdiv(N, 256), 132)
  parallel level=block vars=[block] threads=128 name="product" body={
    for var=round upper=cdiv(cdiv(M, 128)*cdiv(N, 256), 132) body={
      %t = index expr=132*round + block : s32
      bind var=tile value=%t
      %all = index expr=cdiv(M, 128)*cdiv(N, 256) : s32
      %there = binary kind=lt left=%t right=%all : bool
      if condition=%there then={
        %row = index expr=floordiv(mod(tile, 8*cdiv(M, 128)), 8) : s32
        bind var=i value=%row
        %column = index expr=8*floordiv(tile, 8*cdiv(M, 128)) + mod(tile, 8) : s32
        bind var=j value=%column
        BODY
      }
    }
  }
)kir";

constexpr const char* kBody = R"kir(
    %xs = alloc name="xs" : view<f16, shared, [128, 64]>
    %ys = alloc name="ys" : view<f16, shared, [256, 64]>
    for var=k upper=cdiv(K, 64) body={
      %xt = subview base=%x origin=[128*i, 64*k] : view<f16, global, [128, 64]>
      copy src=%xt dst=%xs
      %yt = subview base=%y origin=[256*j, 64*k] : view<f16, global, [256, 64]>
      copy src=%yt dst=%ys
    }
)kir";

// Bytes of a product of 8192 x 8192, which asks for each panel once in each tile.
double read_of(std::string launch, std::int64_t k, std::int64_t blocks) {
  launch.replace(launch.find("BODY"), 4, kBody);
  const std::string text =
      "module arch=sm_90a form=tile\n\nfunc @product(global %x: view<f16, global, [M, K]>, "
      "global %y: view<f16, global, [N, K]>) {\n  var M: dim\n  var N: dim\n  var K: dim\n"
      "  var k: loop < cdiv(K, 64)" +
      launch + "}\n";
  Sources sources;
  Diagnostics diags;
  const auto module = ir::parse(sources, sources.add("kernel.kir", text), diags);
  EXPECT_TRUE(module.has_value()) << render_all(diags, sources);
  if (!module) return 0;
  const ir::Function& function = module->functions[0];
  ir::Arguments arguments;
  for (const ir::Var& var : function.vars) {
    const bool is_size = var.name == "M" || var.name == "N";
    arguments.vars.push_back(is_size ? 8192 : var.name == "K" ? k : 0);
  }
  constexpr std::int64_t kTiles = 64 * 32;
  sim::Outcome outcome;
  outcome.by_operation.resize(function.ops.size());
  for (std::uint32_t op = 0; op < function.ops.size(); ++op) {
    const auto* copy = std::get_if<ir::Copy>(&function.ops[ir::OpId{op}].data);
    if (copy == nullptr) continue;
    const std::int64_t rows = function.view_type(copy->src).shape[0].constant().value_or(0);
    outcome.by_operation[op].bytes_global_read = kTiles * rows * k * 2;
  }
  LaunchCost cost;
  cost.op = ir::launches(function).front();
  cost.blocks = blocks;
  cost.times = 1;
  cost.occupancy.blocks = 1;
  return bytes_from_dram(function, arguments, cost, outcome, *module->arch);
}

// Of 4096 deep panels a row has 1 MB and a column 2. 132 blocks go through all 64 rows of two or three columns: 68 MB
// at least, of which the next 132 find nothing.
TEST(Reuse, ATurnFindsNothingOfOneThatTheCacheDoesNotHold) {
  std::int64_t expected = 0;
  for (std::int64_t first = 0; first < 2048; first += 132) {
    const std::int64_t last = std::min<std::int64_t>(first + 132, 2048) - 1;
    expected += 64 * kMega + (last / 64 - first / 64 + 1) * 2 * kMega;
  }
  EXPECT_DOUBLE_EQ(read_of(kGrid, 4096, 2048), static_cast<double>(expected));
}

TEST(Reuse, WhatTheCacheHoldsComesOnce) {
  EXPECT_DOUBLE_EQ(read_of(kGrid, 512, 2048), 16.0 * kMega);
  EXPECT_DOUBLE_EQ(read_of(kStays, 512, 132), 16.0 * kMega);
}

// 8 columns and 17 or 18 rows are 34 MB: the next turn finds the columns, and reads 16 or 17 rows. Each of the four groups
// of columns reads all rows, and its columns once; only at its end another group's turn may lie in between.
TEST(Reuse, ColumnsInTurnStayInTheCache) {
  const double bytes = read_of(kStays, 4096, 132);
  EXPECT_GE(bytes, 4.0 * (64 + 16) * kMega);
  EXPECT_LE(bytes, 4.0 * (64 + 16 + 4) * kMega);
}

}  // namespace

}  // namespace kiln::explain
