// The comparison, attacked: results of a correct machine are mutilated in every way that kernels go
// wrong, for each instruction, length of the contraction and fill. Each time the mistake is found,
// or the comparison has said beforehand (Tells) that it could not tell such a mistake. None is
// silent. With KILN_COMPARISON_TABLE=FILE the results are appended to the file, a row for each
// fill, instruction and mistake and a letter for each K: f found, s said,
// = nothing changed, ! silent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/fill.h"
#include "reference/compare.h"
#include "reference/interpreter.h"
#include "reference/test_builder.h"
#include "target/execute.h"
#include "target/mma.h"

namespace kiln {
namespace {

using reference::Comparison;
using reference::Tells;

constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kRows = 2 * kTileRows;  // two tiles, one above the other
constexpr std::int64_t kCols = 8;
constexpr std::size_t kElements = kRows * kCols;

// A product of [32, K] and [8, K] by the instruction.
struct Problem {
  const target::Mma& atom;
  std::int64_t k;
  Tensor a;
  Tensor b;

  [[nodiscard]] std::int64_t steps() const { return (k + atom.shape.k - 1) / atom.shape.k; }
};

DType stored(DType operand) { return operand == DType::kTF32 ? DType::kF32 : operand; }

Problem problem(const target::Mma& atom, std::int64_t k, io::Fill fill) {
  const double exact = std::min(atom.exact_integers, integers_exact_up_to(atom.acc));
  io::FillOptions options{.fill = fill, .seed = 5, .ordinal = 0, .longest = std::max(k, kRows)};
  options.products = {.exact = exact,
                      .largest = is_float(atom.acc) ? info(atom.acc).max : 0,
                      .operands = {stored(atom.a), stored(atom.b)}};
  Problem out{atom, k, Tensor::zeros(stored(atom.a), {kRows, k}),
              Tensor::zeros(stored(atom.b), {kCols, k})};
  io::fill_tensor(out.a, options);
  options.ordinal = 1;
  io::fill_tensor(out.b, options);
  return out;
}

ir::Function matmul(const target::Mma& atom) {
  reference::Builder b("matmul");
  const ir::Expr k = b.dim("K");
  const auto lhs = b.param("lhs", stored(atom.a), {ir::Expr(kRows), k});
  const auto rhs = b.param("rhs", stored(atom.b), {ir::Expr(kCols), k});
  const auto out = b.param("out", atom.acc, {ir::Expr(kRows), ir::Expr(kCols)});
  const std::int64_t depth = atom.shape.k;
  b.parallel(ir::Level::kBlock, {{"i", ir::Expr(2)}}, [&](const auto& at) {
    const auto c = b.frag(ir::Role::kC, atom.acc, kTileRows, kCols);
    const auto a_frag = b.frag(ir::Role::kA, atom.a, kTileRows, depth);
    const auto b_frag = b.frag(ir::Role::kB, atom.b, kCols, depth);
    b.op(ir::Fill{c, b.constant(atom.acc, 0)});
    b.loop(ir::cdiv(k, ir::Expr(depth)), [&](const ir::Expr& step) {
      b.load(a_frag, b.view(lhs, {at[0] * kTileRows, step * depth}, {kTileRows, depth}));
      b.load(b_frag, b.view(rhs, {ir::Expr(0), step * depth}, {kCols, depth}));
      b.mma(c, a_frag, b_frag);
    });
    b.store(c, b.view(out, {at[0] * kTileRows, ir::Expr(0)}, {kTileRows, kCols}));
  });
  return b.function;
}

reference::Outcome expected(const Problem& p) {
  const ir::Function function = matmul(p.atom);
  ir::Arguments arguments;
  arguments.vars.resize(function.vars.size());
  arguments.vars[0] = p.k;
  for (const Tensor& tensor : {p.a, p.b, Tensor::zeros(p.atom.acc, {kRows, kCols})}) {
    arguments.params.emplace_back();
    arguments.params.back().tensor = tensor;
  }
  return reference::interpret(function, arguments, [&](ir::OpId) {
    return reference::Accumulation{.roundoff = p.atom.acc_roundoff,
                                   .depth = p.atom.shape.k,
                                   .exact_integers = p.atom.exact_integers};
  });
}

// A stored value as the unit takes it: an infinity of f8_e5m2 stays one, only conversions saturate.
double operand_of(DType operand, double stored) {
  return std::isinf(stored) ? stored : round_to(operand, stored);
}

// What each step adds to each element.
using Steps = std::vector<std::vector<double>>;

Steps steps_of(const Problem& p) {
  const auto values = [&](const Tensor& tensor, DType operand) {
    std::vector<double> out;
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
      out.push_back(operand_of(operand, tensor.get(i)));
    }
    return out;
  };
  const std::vector<double> a = values(p.a, p.atom.a);
  const std::vector<double> b = values(p.b, p.atom.b);
  Steps out(static_cast<std::size_t>(p.steps()), std::vector<double>(kElements));
  for (std::size_t e = 0; e < kElements; ++e) {
    const std::size_t row = e / kCols * static_cast<std::size_t>(p.k);
    const std::size_t col = e % kCols * static_cast<std::size_t>(p.k);
    for (std::size_t k = 0; k < static_cast<std::size_t>(p.k); ++k) {
      out[k / static_cast<std::size_t>(p.atom.shape.k)][e] += a[row + k] * b[col + k];
    }
  }
  return out;
}

double accumulated(DType acc, double sum) {
  if (acc == DType::kF32) return target::round_towards_zero_f32(sum);
  if (acc == DType::kS32) return static_cast<std::int32_t>(static_cast<std::int64_t>(sum));
  return round_to(acc, sum);
}

// What a machine computes that rounds after each step. `kept` says which steps it does, `change`
// what becomes of a partial sum every eighth of the way.
using Kept = std::function<bool(std::size_t)>;
using Change = std::function<double(double)>;

std::vector<double> machine(const Problem& p, const Steps& steps, const Kept& kept,
                            const Change& change = {}) {
  std::vector<double> sums(kElements);
  const std::size_t part = std::max<std::size_t>(steps.size() / 8, 1);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!kept(s)) continue;
    for (std::size_t e = 0; e < kElements; ++e) {
      sums[e] = accumulated(p.atom.acc, sums[e] + steps[s][e]);
      if (change && s % part == part - 1) sums[e] = accumulated(p.atom.acc, change(sums[e]));
    }
  }
  return sums;
}

// How much has to be wrong for the comparison to promise that it finds it.
struct Mutilation {
  std::string name;
  Tells promised_from;
  std::vector<double> result;
};

std::vector<double> moved(const std::vector<double>& right,
                          const std::function<double(std::size_t row, std::size_t col)>& value) {
  std::vector<double> out = right;
  for (std::size_t e = 0; e < kElements; ++e) out[e] = value(e / kCols, e % kCols);
  return out;
}

std::vector<Mutilation> mutilations(const Problem& p, const Steps& steps,
                                    const std::vector<double>& right) {
  const std::size_t count = steps.size();
  const auto at = [&](std::size_t row, std::size_t col) { return right[row * kCols + col]; };
  const auto all = [](std::size_t) { return true; };
  const auto rounded = [&](DType dtype) {
    return machine(p, steps, all, [=](double sum) { return round_to(dtype, sum); });
  };
  std::vector<Mutilation> out;
  const auto add = [&](std::string name, Tells from, std::vector<double> result) {
    out.push_back({std::move(name), from, std::move(result)});
  };
  add("middle step lost", Tells::kSteps, machine(p, steps, [&](auto s) { return s != count / 2; }));
  add("last step lost", Tells::kSteps, machine(p, steps, [&](auto s) { return s + 1 != count; }));
  add("half lost", Tells::kSteps, machine(p, steps, [&](auto s) { return s < count / 2; }));
  add("first step only", Tells::kSteps, machine(p, steps, [&](auto s) { return s == 0; }));
  add("rounded to bf16", Tells::kAll, rounded(DType::kBF16));
  add("rounded to f16", Tells::kAll, rounded(DType::kF16));
  add("rounded to e4m3", Tells::kAll, rounded(DType::kE4M3));
  const auto tile = [](std::size_t row) { return row / kTileRows; };
  add("tile zero", Tells::kTiles,
      moved(right, [&](auto r, auto c) { return tile(r) == 1 ? 0 : at(r, c); }));
  add("tile doubled", Tells::kTiles, moved(right, [&](auto r, auto c) {
        return accumulated(p.atom.acc, tile(r) == 1 ? 2 * at(r, c) : at(r, c));
      }));
  add("tiles swapped", Tells::kTiles,
      moved(right, [&](auto r, auto c) { return at((r + kTileRows) % kRows, c); }));
  add("part transposed", Tells::kTiles,
      moved(right, [&](auto r, auto c) { return r < kCols ? at(c, r) : at(r, c); }));
  add("row off by one", Tells::kTiles,
      moved(right, [&](auto r, auto c) { return at((r + 1) % kRows, c); }));
  std::vector<double> one = right;
  one[37] = one[38];
  add("one element wrong", Tells::kAll, one);
  std::vector<double> sign = right;
  const double product = operand_of(p.atom.a, p.a.get(0)) * operand_of(p.atom.b, p.b.get(0));
  sign[0] = accumulated(p.atom.acc, sign[0] - 2 * product);
  add("sign of one product", Tells::kAll, sign);
  return out;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

Comparison compared(const reference::Outcome& outcome, const std::vector<double>& result) {
  const reference::Output& output = outcome.outputs[0];
  Tensor tensor = Tensor::zeros(output.dtype, output.shape);
  for (std::size_t i = 0; i < result.size(); ++i) tensor.set(i, result[i]);
  Comparison out = reference::compare(output, tensor);
  out.tells = reference::tells(out, output, outcome);
  return out;
}

constexpr std::string_view kAtoms[] = {
    "m16n8k16.f32.f16",  "m16n8k16.f16.f16",  "m16n8k16.f32.bf16", "m16n8k8.f32.tf32",
    "m16n8k16.f64.f64",  "m16n8k32.f32.e4m3", "m16n8k32.f32.e5m2", "m16n8k32.f16.e4m3",
    "m16n8k32.f16.e5m2", "m16n8k32.s32.s8",   "m16n8k32.s32.u8"};

// Of a mistake, by its name and the instruction's: what became of it for each K.
using Table = std::map<std::string, std::string>;

void write_table(const std::string& fill, const Table& table) {
  const char* path = std::getenv("KILN_COMPARISON_TABLE");
  if (path == nullptr) return;
  std::ofstream file(path, std::ios::app);
  for (const auto& [row, letters] : table) file << fill << ", " << row << ": " << letters << "\n";
}

class Attack : public testing::TestWithParam<const char*> {};

TEST_P(Attack, IsFoundOrTheComparisonSaysThatItCouldNotTell) {
  const io::Fill fill = io::fill_from_name(GetParam()).value();
  std::map<std::string, int> count;  // "found", "said", "nothing changed", "silent"
  Table table;
  for (const std::string_view name : kAtoms) {
    const target::Mma* atom = target::find_mma(name);
    ASSERT_NE(atom, nullptr) << name;
    for (const std::int64_t k : {16, 100, 2048, 65536, 131072}) {
      const Problem p = problem(*atom, k, fill);
      const reference::Outcome outcome = expected(p);
      const Steps steps = steps_of(p);
      const std::vector<double> right = machine(p, steps, [](std::size_t) { return true; });
      const Comparison fine = compared(outcome, right);
      EXPECT_EQ(fine.outside, 0) << name << " K=" << k;
      for (const Mutilation& wrong : mutilations(p, steps, right)) {
        const bool changed = !same(wrong.result, right);
        const bool found = compared(outcome, wrong.result).outside > 0;
        const bool said = fine.tells < wrong.promised_from;
        const std::string_view what = !changed ? "=" : found ? "found" : said ? "said" : "silent";
        ++count[std::string(what)];
        table[std::string(name) + ", " + wrong.name] += what[0] == 's' && !said ? '!' : what[0];
        if (!changed) continue;
        EXPECT_TRUE(found || said) << name << " K=" << k << ": " << wrong.name << ", tells "
                                   << reference::name(fine.tells);
        if (fill == io::Fill::kIntegers) {
          EXPECT_TRUE(found) << name << " K=" << k << ": " << wrong.name;
        }
      }
    }
  }
  for (const auto& [what, times] : count) RecordProperty(what, times);
  write_table(GetParam(), table);
  EXPECT_EQ(count["silent"], 0);
  EXPECT_GT(count["found"], count["said"]);
}

INSTANTIATE_TEST_SUITE_P(Fills, Attack,
                         testing::Values("normal", "integers", "ones", "adversarial"));

}  // namespace
}  // namespace kiln
