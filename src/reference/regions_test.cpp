#include "reference/regions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/interpreter.h"
#include "reference/test_builder.h"

namespace kiln::reference {

namespace {

TEST(Turns, AFlowRunsUntilItWaits) {
  std::string told;
  int step = 0;
  {
    Turns turns;
    turns.start([&] {
      told += "a";
      step = 1;
      EXPECT_TRUE(turns.wait([&] { return step == 2; }));
      told += "c";
    });
    turns.start([&] {
      EXPECT_TRUE(turns.wait([&] { return step == 1; }));
      told += "b";
      step = 2;
    });
    told += "0";
    EXPECT_TRUE(turns.join());
  }
  EXPECT_EQ(told, "0abc");
}

TEST(Turns, WhenAllWaitAllAreTold) {
  Turns turns;
  int told = 0;
  int stuck = 0;
  turns.on_stuck = [&] { ++stuck; };
  for (int i = 0; i < 2; ++i) {
    turns.start([&] {
      if (!turns.wait([] { return false; })) ++told;
      if (!turns.wait([] { return true; })) ++told;
    });
  }
  EXPECT_FALSE(turns.join());
  EXPECT_EQ(told, 4);
  EXPECT_EQ(stuck, 1);
}

constexpr std::int64_t kTiles = 5;
constexpr std::int64_t kElements = 8;

// Copies x to y tile by tile through a ring of `slots` buffers: one region fills, another empties.
struct Ring {
  Builder b{"ring"};
  ir::ValueId full;
  ir::ValueId empty;
  ir::ValueId x;
  ir::ValueId y;
  ir::ValueId ring;
  std::int64_t slots = 2;

  ir::ValueId event(const std::string& name, bool ready) {
    ir::Event made;
    made.name = name;
    made.ready = ready;
    return b.result(made, ir::EventType{slots}, name);
  }
  void wait(ir::ValueId on, const ir::Expr& n) {
    ir::EventWait made;
    made.event = on;
    made.slot = ir::mod(n, slots);
    b.op(made);
  }
  void trigger(ir::ValueId what, const ir::Expr& n) {
    ir::Trigger made;
    made.event = what;
    made.slot = ir::mod(n, slots);
    b.op(made);
  }
  void region(std::int64_t first, const std::function<void()>& body) {
    ir::Inthreads made;
    made.first = first;
    made.threads = 32;
    made.async = true;
    made.body = b.region(body);
    b.op(made);
  }
  void move(ir::ValueId from, ir::ValueId to, const ir::Expr& n, const ir::Expr& at, bool fills) {
    const ir::Expr from_row = fills ? n : at;
    const ir::Expr to_row = fills ? at : n;
    b.copy(b.view(from, {from_row, 0}, {1, kElements}), b.view(to, {to_row, 0}, {1, kElements}));
  }

  void fill(const ir::Expr& n) {
    wait(empty, n);
    move(x, ring, n, ir::mod(n, slots), true);
    trigger(full, n);
  }
  void drain(const ir::Expr& n) {
    wait(full, n);
    move(ring, y, n, ir::mod(n, slots), false);
    trigger(empty, n);
  }

  // `credits`: how many tiles the second region gives back.
  void build(bool ready, const ir::Expr& credits) {
    build_block(ready, [&] {
      region(0, [&] { b.loop(kTiles, [&](const ir::Expr& n) { fill(n); }); });
      region(32, [&] { b.loop(credits, [&](const ir::Expr& n) { drain(n); }); });
    });
  }
  void build_around(const ir::Expr& tiles) {
    build_block(true, [&] {
      b.loop(tiles, [&](const ir::Expr& n) {
        region(0, [&] { fill(n); });
        region(32, [&] { drain(n); });
      });
    });
  }
  void build_block(bool ready, const std::function<void()>& body) {
    x = b.param("x", DType::kF32, {kTiles, kElements});
    y = b.param("y", DType::kF32, {kTiles, kElements});
    b.parallel(ir::Level::kBlock, {{"b", 1}}, [&](const Builder::Vars&) {
      ring = b.buffer(ir::Space::kShared, DType::kF32, {slots, kElements});
      full = event("full", false);
      empty = event("empty", ready);
      body();
    });
    for (ir::Op& op : b.function.ops) {
      if (auto* launch = std::get_if<ir::Parallel>(&op.data)) launch->threads = 64;
    }
  }

  Outcome run() {
    ir::Arguments arguments;
    for (const double scale : {1.0, 0.0}) {
      ir::Arguments::Value value;
      value.tensor = Tensor::zeros(DType::kF32, {kTiles, kElements});
      for (std::size_t i = 0; i < kTiles * kElements; ++i) {
        value.tensor.set(i, scale * static_cast<double>(i + 1));
      }
      arguments.params.push_back(value);
    }
    arguments.vars.resize(b.function.vars.size());
    return interpret(b.function, arguments, f32_numerics());
  }
};

TEST(Regions, ARingOfTwoHandsOverAllTiles) {
  Ring ring;
  ring.build(true, kTiles);
  const Outcome outcome = ring.run();
  EXPECT_TRUE(outcome.stuck_at.empty());
  for (const Output& output : outcome.outputs) {
    for (std::size_t i = 0; i < output.expected.size(); ++i) {
      EXPECT_EQ(output.expected[i], static_cast<double>(i + 1)) << output.name;
    }
  }
}

// Producer and consumer with the loop around their regions: each trip's regions go on from those of
// the trip before.
TEST(Regions, ARegionFollowsItselfInALoop) {
  Ring ring;
  ring.build_around(kTiles);
  const Outcome outcome = ring.run();
  EXPECT_TRUE(outcome.stuck_at.empty());
  for (const Output& output : outcome.outputs) {
    for (std::size_t i = 0; i < output.expected.size(); ++i) {
      EXPECT_EQ(output.expected[i], static_cast<double>(i + 1)) << output.name;
    }
  }
}

// Of two warps only the second is in the region; what stands behind it runs in both.
TEST(Regions, OnlyInstancesWithThreadsInItRunARegion) {
  for (const bool async : {false, true}) {
    Builder b("halves");
    const ir::ValueId y = b.param("y", DType::kF32, {2, 2});
    b.parallel(ir::Level::kBlock, {{"b", 1}}, [&](const Builder::Vars&) {
      b.parallel(ir::Level::kGroup, {{"w", 2}}, [&](const Builder::Vars& w) {
        ir::Inthreads made;
        made.first = 32;
        made.threads = 32;
        made.async = async;
        made.body = b.region([&] { b.op(ir::Write{y, {w[0], 0}, b.constant(DType::kF32, 3)}); });
        b.op(made);
        b.op(ir::Write{y, {w[0], 1}, b.constant(DType::kF32, 4)});
      });
    });
    for (ir::Op& op : b.function.ops) {
      auto* launch = std::get_if<ir::Parallel>(&op.data);
      if (launch != nullptr && launch->level == ir::Level::kBlock) launch->threads = 64;
    }
    ir::Arguments arguments;
    ir::Arguments::Value value;
    value.tensor = Tensor::zeros(DType::kF32, {2, 2});
    arguments.params.push_back(value);
    arguments.vars.resize(b.function.vars.size());
    const Outcome outcome = interpret(b.function, arguments, f32_numerics());
    ASSERT_EQ(outcome.outputs.size(), 1u);
    EXPECT_EQ(outcome.outputs[0].expected, (std::vector<double>{0, 4, 3, 4}));
  }
}

TEST(Regions, WithoutTheFirstCreditsBothWaitForEver) {
  Ring ring;
  ring.build(false, kTiles);
  const Outcome outcome = ring.run();
  ASSERT_EQ(outcome.stuck_at.size(), 2u);
  for (const ir::OpId id : outcome.stuck_at) {
    EXPECT_EQ(ring.b.function.ops[id].kind(), ir::OpKind::kEventWait);
  }
  EXPECT_NE(outcome.stuck_at[0], outcome.stuck_at[1]);
  for (const Output& output : outcome.outputs) {
    for (const double bound : output.bound) EXPECT_TRUE(std::isinf(bound));
  }
}

TEST(Regions, OneCreditTooFewStopsTheFirstRegion) {
  Ring ring;
  ring.build(true, kTiles - ring.slots - 1);
  const Outcome outcome = ring.run();
  ASSERT_EQ(outcome.stuck_at.size(), 1u);
}

}  // namespace

}  // namespace kiln::reference
