#include "reference/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/compare.h"
#include "reference/machine.h"
#include "reference/test_builder.h"

namespace kiln::reference {
namespace {

using ir::Level;
using ir::Role;
using ir::Space;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Rows that were one are set apart, and those of other rows stay.
TEST(VarTable, RepeatedRowsAreSetApart) {
  VarTable parent;
  parent.add(std::vector<std::int64_t>{1, 2, 3});
  parent.add(std::vector<std::int64_t>{4, 5, 6});
  VarTable table = VarTable::repeated(parent, 3);
  ASSERT_EQ(table.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) table.set(i, ir::VarId{1}, static_cast<std::int64_t>(10 * i));
  table.set(4, ir::VarId{2}, 7);
  parent.set(1, ir::VarId{0}, 9);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::int64_t expected[] = {i < 3 ? 1 : 4, static_cast<std::int64_t>(10 * i),
                                     i < 3 ? 3 : (i == 4 ? 7 : 6)};
    EXPECT_TRUE(std::ranges::equal(table[i], expected)) << i;
  }
  EXPECT_EQ(VarTable::repeated(table, 2)[9][2], 7);
  EXPECT_EQ(VarTable::repeated(parent, 0).size(), 0U);
}

Tensor tensor(DType dtype, std::vector<std::int64_t> shape,
              const std::function<double(std::int64_t)>& value) {
  Tensor out = Tensor::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    out.set(static_cast<std::size_t>(i), value(i));
  }
  return out;
}

ir::Arguments arguments(const ir::Function& function, std::vector<std::int64_t> vars,
                        std::vector<Tensor> tensors) {
  ir::Arguments out;
  vars.resize(function.vars.size());
  out.vars = std::move(vars);
  for (Tensor& t : tensors) out.params.push_back({std::move(t), 0});
  return out;
}

// The K loop of chapter 4 over one warp's 16x16 tile, as sema builds it.
ir::Function matmul(DType output) {
  Builder b("matmul");
  const ir::Expr m = b.dim("M");
  const ir::Expr n = b.dim("N");
  const ir::Expr k = b.dim("K");
  const auto lhs = b.param("lhs", DType::kF16, {m, k});
  const auto rhs = b.param("rhs", DType::kF16, {n, k});
  const auto out = b.param("output", output, {m, n});
  b.parallel(Level::kBlock, {{"bm", cdiv(m, 16)}, {"bn", cdiv(n, 16)}}, [&](const auto& at) {
    const auto tile = b.buffer(Space::kShared, output, {16, 16});
    const auto lhs_s = b.buffer(Space::kShared, DType::kF16, {16, 16});
    const auto rhs_s = b.buffer(Space::kShared, DType::kF16, {16, 16});
    b.parallel(Level::kGroup, {{"w", 1}}, [&](const auto&) {
      const auto c = b.frag(Role::kC, DType::kF16, 16, 16);
      const auto a_frag = b.frag(Role::kA, DType::kF16, 16, 16);
      const auto b_frag = b.frag(Role::kB, DType::kF16, 16, 16);
      b.op(ir::Fill{c, b.constant(DType::kF16, 0)});
      b.loop(cdiv(k, 16), [&](const ir::Expr& i) {
        b.copy(b.view(lhs, {at[0] * 16, i * 16}, {16, 16}), lhs_s);
        b.copy(b.view(rhs, {at[1] * 16, i * 16}, {16, 16}), rhs_s);
        b.load(a_frag, lhs_s);
        b.load(b_frag, rhs_s);
        b.mma(c, a_frag, b_frag);
      });
      b.store(c, tile);
    });
    b.copy(tile, b.view(out, {at[0] * 16, at[1] * 16}, {16, 16}));
  });
  return b.function;
}

Numerics f16_numerics() {
  return [](ir::OpId) { return Accumulation{.roundoff = 0x1p-11, .depth = 16}; };
}

struct Problem {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  Tensor lhs;
  Tensor rhs;
};

double irrational(std::int64_t i) { return std::sin(static_cast<double>(i * i % 1009) + 0.5); }

Problem problem(std::int64_t m, std::int64_t n, std::int64_t k,
                const std::function<double(std::int64_t)>& value) {
  return {m, n, k, tensor(DType::kF16, {m, k}, value),
          tensor(DType::kF16, {n, k}, [&](std::int64_t i) { return value(i + 7); })};
}

Output run(const Problem& p, DType output = DType::kF16) {
  const ir::Function function = matmul(output);
  const ir::Arguments args =
      arguments(function, {p.m, p.n, p.k}, {p.lhs, p.rhs, Tensor::zeros(output, {p.m, p.n})});
  const Outcome outcome = interpret(function, args, f16_numerics());
  EXPECT_EQ(outcome.outputs.size(), 1U);
  EXPECT_EQ(outcome.outside_accesses, 0U);
  return outcome.outputs[0];
}

// What hardware does: f16 accumulators, rounded after each 16 products. `skip_tile` loses one K
// tile.
Tensor emulate(const Problem& p, std::int64_t skip_tile = -1, std::int64_t row_shift = 0) {
  Tensor out = Tensor::zeros(DType::kF16, {p.m, p.n});
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::int64_t tile = 0; tile * 16 < p.k; ++tile) {
        if (tile == skip_tile) continue;
        const std::int64_t row = (i + row_shift) % p.m;
        for (std::int64_t k = tile * 16; k < std::min(p.k, tile * 16 + 16); ++k) {
          sum += p.lhs.get(static_cast<std::size_t>(row * p.k + k)) *
                 p.rhs.get(static_cast<std::size_t>(j * p.k + k));
        }
        sum = round_to(DType::kF16, sum);
      }
      out.set(static_cast<std::size_t>(i * p.n + j), sum);
    }
  }
  return out;
}

TEST(Interpreter, IntegersHaveBoundZeroAndTheExactProduct) {
  const Problem p =
      problem(20, 18, 37, [](std::int64_t i) { return static_cast<double>(i * 7 % 5 - 2); });
  const Output output = run(p);
  for (const double bound : output.bound) EXPECT_EQ(bound, 0);
  const Comparison same = compare(output, emulate(p));
  EXPECT_EQ(same.elements, 360);
  EXPECT_EQ(same.outside, 0);
  EXPECT_EQ(same.worst, 0);
}

TEST(Interpreter, EmulatedHardwareIsInsideTheBound) {
  for (const std::int64_t k : {1, 16, 70, 256}) {
    const Problem p = problem(17, 33, k, irrational);
    const Comparison comparison = compare(run(p), emulate(p));
    EXPECT_EQ(comparison.outside, 0) << "K = " << k;
    EXPECT_EQ(comparison.not_compared, 0);
    EXPECT_GT(comparison.worst, 0);
  }
}

TEST(Interpreter, LostTileIsOutsideTheBound) {
  const Problem p = problem(32, 32, 128, irrational);
  for (std::int64_t tile = 0; tile < 8; ++tile) {
    const Comparison comparison = compare(run(p), emulate(p, tile));
    EXPECT_GT(comparison.outside, comparison.elements / 2) << "tile " << tile;
  }
}

TEST(Interpreter, RowsShiftedByOneAreOutsideTheBound) {
  const Problem p = problem(32, 32, 64, irrational);
  const Comparison comparison = compare(run(p), emulate(p, -1, 1));
  EXPECT_GT(comparison.outside, comparison.elements * 9 / 10);
}

TEST(Interpreter, OneWrongElementIsFound) {
  const Problem p = problem(32, 32, 64, irrational);
  Tensor actual = emulate(p);
  const double right = actual.get(5 * 32 + 3);
  actual.set(5 * 32 + 3, right + 0.25);
  const Comparison comparison = compare(run(p), actual);
  EXPECT_EQ(comparison.outside, 1);
  ASSERT_TRUE(comparison.first.has_value());
  EXPECT_EQ(comparison.first->coordinates, (std::vector<std::int64_t>{5, 3}));
}

TEST(Interpreter, InfinityAndNanSpoilTheirRowOnly) {
  Problem p = problem(17, 16, 16, irrational);
  p.lhs.set(2 * 16 + 5, kInf);
  p.lhs.set(3 * 16 + 5, kNan);
  const Output output = run(p);
  for (std::size_t j = 0; j < 16; ++j) {
    const double x = p.rhs.get(j * 16 + 5);
    EXPECT_EQ(output.expected[2 * 16 + j], x > 0 ? kInf : -kInf);
    EXPECT_TRUE(std::isnan(output.expected[3 * 16 + j]));
    EXPECT_TRUE(std::isfinite(output.expected[4 * 16 + j]));
  }
}

TEST(Interpreter, SumThatMayOverflowIsUnboundedAndCounted) {
  Problem p = problem(16, 16, 32, [](std::int64_t) { return 1.0; });
  for (std::size_t k = 0; k < 32; ++k) p.lhs.set(k, k % 2 == 0 ? 60000.0 : -60000.0);
  const Output output = run(p);
  const Comparison comparison = compare(output, emulate(p));
  EXPECT_EQ(comparison.not_compared, 16);
  EXPECT_EQ(output.bound[0], kInf);
  EXPECT_EQ(output.bound[16], 0);
}

// -1e300 * 1e300 added to infinity: infinity from a fused multiply-add, no number from one that rounds
// the product first. An operand that is infinite itself promises what it did.
TEST(Interpreter, ProductsBeyondF64AreUnbounded) {
  Builder b("beyond");
  const auto lhs = b.param("lhs", DType::kF64, {8, 4});
  const auto rhs = b.param("rhs", DType::kF64, {8, 4});
  const auto out = b.param("out", DType::kF64, {8, 8});
  b.parallel(Level::kBlock, {{"b", 1}}, [&](const auto&) {
    const auto c = b.frag(Role::kC, DType::kF64, 8, 8);
    const auto left = b.frag(Role::kA, DType::kF64, 8, 4);
    const auto right = b.frag(Role::kB, DType::kF64, 8, 4);
    b.op(ir::Fill{c, b.constant(DType::kF64, 0)});
    b.load(left, lhs);
    b.load(right, rhs);
    b.mma(c, left, right);
    b.store(c, out);
  });
  const auto row_of = [](std::int64_t i) {
    if (i / 4 == 1) return i % 2 == 0 ? 1e300 : -1e300;
    return i == 2 * 4 ? kInf : 1.0;
  };
  const auto column_of = [](std::int64_t i) { return i / 4 == 2 ? 1e300 : 1.0; };
  const ir::Arguments args =
      arguments(b.function, {},
                {tensor(DType::kF64, {8, 4}, row_of), tensor(DType::kF64, {8, 4}, column_of),
                 Tensor::zeros(DType::kF64, {8, 8})});
  const auto numerics = [](ir::OpId) { return Accumulation{.roundoff = 0x1p-53, .depth = 1}; };
  const Output output = interpret(b.function, args, numerics).outputs.at(0);
  EXPECT_EQ(output.bound[1 * 8 + 2], kInf);
  EXPECT_LT(output.bound[1 * 8 + 3], 1e300);
  EXPECT_EQ(output.expected[2 * 8 + 3], kInf);
  EXPECT_EQ(output.bound[2 * 8 + 3], 0);
}

// Two groups share an accumulator that the block filled once; each keeps its own sums from one
// entry of the inner parallel to the next.
TEST(Interpreter, AccumulatorOfTheBlockBecomesOnePerGroup) {
  Builder b("split");
  const auto x = b.param("x", DType::kF16, {16, 16});
  const auto out = b.param("out", DType::kF32, {32, 16});
  b.parallel(Level::kBlock, {{"b", 1}}, [&](const auto&) {
    const auto c = b.frag(Role::kC, DType::kF32, 16, 16);
    b.op(ir::Fill{c, b.constant(DType::kF32, 0)});
    b.loop(3, [&](const ir::Expr&) {
      b.parallel(Level::kGroup, {{"g", 2}}, [&](const auto& g) {
        const auto a_frag = b.frag(Role::kA, DType::kF16, 16, 16);
        const auto b_frag = b.frag(Role::kB, DType::kF16, 16, 16);
        b.load(a_frag, x);
        b.load(b_frag, x);
        // Group 1 runs two more products than group 0.
        b.loop(1 + g[0] * 2, [&](const ir::Expr&) { b.mma(c, a_frag, b_frag); });
      });
    });
    b.parallel(Level::kGroup, {{"g", 2}}, [&](const auto& g) {
      b.store(c, b.view(out, {g[0] * 16, 0}, {16, 16}));
    });
  });
  const auto identity = [](std::int64_t i) { return i / 16 == i % 16 ? 1.0 : 0.0; };
  const ir::Arguments args =
      arguments(b.function, {},
                {tensor(DType::kF16, {16, 16}, identity), Tensor::zeros(DType::kF32, {32, 16})});
  const Outcome outcome = interpret(b.function, args, f32_numerics());
  const Output& output = outcome.outputs.at(0);
  EXPECT_EQ(output.expected[0], 3);
  EXPECT_EQ(output.expected[16 * 16], 9);
  EXPECT_EQ(output.expected[1], 0);
  EXPECT_EQ(output.bound[0], 0);
}

// y[b#t] = x[b#t] * 0.1 where b#t < N.
TEST(Interpreter, GuardedElementwiseThreads) {
  Builder b("scale");
  const ir::Expr n = b.dim("N");
  const auto x = b.param("x", DType::kF32, {n});
  const auto y = b.param("y", DType::kF32, {n});
  b.parallel(Level::kBlock, {{"b", cdiv(n, 8)}}, [&](const auto& block) {
    b.parallel(Level::kThread, {{"t", 8}}, [&](const auto& thread) {
      const ir::Expr at = block[0] * 8 + thread[0];
      const auto inside = b.result(ir::Binary{ir::BinaryKind::kLt, b.index(at), b.index(n)},
                                   ir::ScalarType{DType::kBool});
      const ir::RegionId then = b.region([&] {
        const auto product = b.binary(ir::BinaryKind::kMul, DType::kF32, b.read(x, {at}),
                                      b.constant(DType::kF32, 0.1));
        b.op(ir::Write{y, {at}, product});
      });
      b.op(ir::If{inside, then, {}});
    });
  });
  const ir::Arguments args = arguments(
      b.function, {19}, {tensor(DType::kF32, {19}, irrational), Tensor::zeros(DType::kF32, {19})});
  const Outcome outcome = interpret(b.function, args, f32_numerics());
  const Output& output = outcome.outputs.at(0);
  const Tensor right = tensor(DType::kF32, {19}, [&](std::int64_t i) {
    return static_cast<double>(
        static_cast<float>(args.params[0].tensor.get(static_cast<std::size_t>(i))) * 0.1F);
  });
  EXPECT_EQ(compare(output, right).outside, 0);
  Tensor wrong = right;
  wrong.set(18, right.get(18) * (1 + 0x1p-21));
  EXPECT_EQ(compare(output, wrong).outside, 1);
  EXPECT_EQ(outcome.outside_accesses, 0U);
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// 0.5 * the least f32 is rounded to 0, and 0 times an infinite part is no number; any other factor
// leaves the infinity, without error.
TEST(Interpreter, ScaledInfinitiesAreWhatTheRoundedFactorMakesOfThem) {
  Builder b("scaled");
  const auto parts = b.param("parts", DType::kF32, {16, 8});
  const auto factors = b.param("factors", DType::kF32, {16, 1});
  const auto out = b.param("out", DType::kF32, {16, 8});
  b.parallel(Level::kBlock, {{"b", 1}}, [&](const auto&) {
    const auto c = b.frag(ir::Role::kC, DType::kF32, 16, 8);
    const auto part = b.frag(ir::Role::kC, DType::kF32, 16, 8);
    b.op(ir::Fill{c, b.constant(DType::kF32, 0)});
    b.load(part, parts);
    b.op(ir::Scale{c, part, factors, b.constant(DType::kF32, 0.5)});
    b.store(c, out);
  });
  const ir::Arguments args = arguments(
      b.function, {},
      {tensor(DType::kF32, {16, 8}, [](std::int64_t i) { return i % 8 == 3 ? -kInfinite : 1; }),
       tensor(DType::kF32, {16, 1}, [](std::int64_t i) { return i == 2 ? 0x1p-149 : 0x1p-148; }),
       Tensor::zeros(DType::kF32, {16, 8})});
  const Output output = interpret(b.function, args, f32_numerics()).outputs.at(0);
  EXPECT_TRUE(std::isnan(output.expected[2 * 8 + 3]));
  EXPECT_EQ(output.expected[4 * 8 + 3], -kInfinite);
  EXPECT_EQ(output.bound[4 * 8 + 3], 0);
}

// Threads write a shared array, then read their neighbour's element: all write before any reads.
TEST(Interpreter, SharedMemoryIsSeenByTheWholeBlock) {
  Builder b("rotate");
  const auto y = b.param("y", DType::kS32, {8});
  b.parallel(Level::kBlock, {{"b", 1}}, [&](const auto&) {
    const auto s = b.buffer(Space::kShared, DType::kS32, {8});
    b.parallel(Level::kThread, {{"t", 8}}, [&](const auto& t) {
      b.op(ir::Write{s, {t[0]}, b.index(t[0] * 10)});
      b.op(ir::Barrier{Level::kBlock, false});
      b.op(ir::Write{y, {t[0]}, b.read(s, {mod(t[0] + 1, 8)})});
    });
  });
  const ir::Arguments args = arguments(b.function, {}, {Tensor::zeros(DType::kS32, {8})});
  const Outcome outcome = interpret(b.function, args, f32_numerics());
  EXPECT_EQ(outcome.outputs[0].expected, (std::vector<double>{10, 20, 30, 40, 50, 60, 70, 0}));
}

// A cell counts in each thread as often as the thread's own loop runs.
TEST(Interpreter, DivergentLoopsAndCells) {
  Builder b("count");
  const auto y = b.param("y", DType::kS32, {5});
  b.parallel(Level::kBlock, {{"b", 1}}, [&](const auto&) {
    const auto zero = b.constant(DType::kS32, 0);
    const auto cell = b.cell(DType::kS32, zero);
    b.parallel(Level::kThread, {{"t", 5}}, [&](const auto& t) {
      b.loop(t[0], [&](const ir::Expr& i) {
        const auto now = b.result(ir::Get{cell}, ir::ScalarType{DType::kS32});
        b.op(ir::Set{cell, b.binary(ir::BinaryKind::kAdd, DType::kS32, now, b.index(i + 1))});
      });
      b.op(ir::Write{y, {t[0]}, b.result(ir::Get{cell}, ir::ScalarType{DType::kS32})});
    });
  });
  const ir::Arguments args = arguments(b.function, {}, {Tensor::zeros(DType::kS32, {5})});
  const Outcome outcome = interpret(b.function, args, f32_numerics());
  EXPECT_EQ(outcome.outputs[0].expected, (std::vector<double>{0, 1, 3, 6, 10}));
}

TEST(Interpreter, UninitialisedMemoryIsUnboundedAndOutsideAccessesAreCounted) {
  Builder b("bad");
  const auto y = b.param("y", DType::kF32, {2});
  b.parallel(Level::kBlock, {{"b", 1}}, [&](const auto&) {
    const auto s = b.buffer(Space::kShared, DType::kF32, {4});
    b.op(ir::Write{y, {0}, b.read(s, {2})});
    b.op(ir::Write{y, {2}, b.constant(DType::kF32, 1)});
  });
  const ir::Arguments args = arguments(b.function, {}, {Tensor::zeros(DType::kF32, {2})});
  const Outcome outcome = interpret(b.function, args, f32_numerics());
  EXPECT_EQ(outcome.outputs[0].bound, (std::vector<double>{kInf, 0}));
  EXPECT_EQ(outcome.outside_accesses, 1U);
}

TEST(Interpreter, ReturnedBufferIsTheLastOutput) {
  Builder b("make");
  const auto made = b.buffer(Space::kGlobal, DType::kF32, {3});
  b.parallel(Level::kBlock, {{"b", 3}}, [&](const auto& at) {
    const auto value = b.result(ir::Cast{b.index(at[0] + 1)}, ir::ScalarType{DType::kF32});
    b.op(ir::Write{made, {at[0]}, value});
  });
  b.op(ir::Return{made});
  const Outcome outcome = interpret(b.function, arguments(b.function, {}, {}), f32_numerics());
  ASSERT_EQ(outcome.outputs.size(), 1U);
  EXPECT_FALSE(outcome.outputs[0].param.has_value());
  EXPECT_EQ(outcome.outputs[0].expected, (std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace kiln::reference
