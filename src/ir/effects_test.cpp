// What each operation declares of itself, in words: one row for each kind, and for each way in
// which its fields change what it touches.
#include "ir/effects.h"

#include <set>

#include "ir/op_text.h"
#include "ir/registers.h"
#include "ir/samples_for_test.h"

namespace kiln::ir {

namespace {

std::string_view text_of(Sort sort) {
  switch (sort) {
    case Sort::kStructure: return "structure";
    case Sort::kJump: return "jump";
    case Sort::kName: return "name";
    case Sort::kPure: return "pure";
    case Sort::kFetch: return "fetch";
    case Sort::kMove: return "move";
    case Sort::kOrder: return "order";
    case Sort::kState: return "state";
  }
  return "";
}

std::string_view text_of(Executor executor) {
  switch (executor) {
    case Executor::kThread: return "thread";
    case Executor::kUnit: return "unit";
    case Executor::kBlock: return "block";
    case Executor::kOfUnit: return "as `unit` says";
  }
  return "";
}

std::string_view text_of(Place place) {
  switch (place) {
    case Place::kAnywhere: return "";
    case Place::kKernel: return " in kernels";
    case Place::kHost: return " on the host";
  }
  return "";
}

std::string_view text_of(Waits waits) {
  switch (waits) {
    case Waits::kForNothing: return "";
    case Waits::kForThreads: return ", waits for threads";
    case Waits::kForCopies: return ", waits for copies";
    case Waits::kForStores: return ", waits for stores";
    case Waits::kForProducts: return ", waits for products";
    case Waits::kForEvent: return ", waits for an event";
  }
  return "";
}

std::string_view text_of(Use use) {
  switch (use) {
    case Use::kReads: return "reads";
    case Use::kWrites: return "writes";
    case Use::kUpdates: return "updates";
    case Use::kStarts: return "starts";
  }
  return "";
}

std::string text_of(const Function& f, const Touch& touch) {
  std::string out = format(", {} ", text_of(touch.use));
  if (touch.index != nullptr) out += "one of ";
  if (touch.chooses) out += "some of ";
  out += f.values[touch.value].name;
  if (touch.atomic) out += " as a whole";
  if (touch.proxy == Proxy::kAsync) out += " by the async proxy";
  if (touch.asynchronous) out += " late";
  if (touch.label.valid()) out += " until " + f.values[touch.label].name;
  return out;
}

std::string_view text_of(Beyond beyond) {
  switch (beyond) {
    case Beyond::kRefuses: return "refuses";
    case Beyond::kCarries: return "carries";
    case Beyond::kSkips: return "skips";
    case Beyond::kNeutral: return "neutral";
  }
  return "";
}

std::string effects(const Function& f, const Op& op) {
  std::string out = format("{} {}{}{}", text_of(traits(op.kind()).sort), text_of(executor_of(op)),
                           text_of(traits(op.kind()).place), text_of(waits_of(op)));
  for_each_touch(op, [&](const Touch& touch) { out += text_of(f, touch); });
  return out;
}

// The first operation of the sample whose text begins with `start`.
struct Row {
  const char* sample;
  const char* start;
  const char* effects;
};

constexpr Row kRows[] = {
    // structure
    {kMatmul, "parallel level=block", "structure unit"},
    {kMatmul, "for var=iv_k", "structure thread"},
    {kElements, "if ", "structure thread"},
    {kElements, "once", "structure thread in kernels"},
    {kElements, "return", "jump thread on the host"},
    {kRing, "loop", "structure thread"},
    {kRing, "break", "jump thread"},
    {kRing, "continue", "jump thread"},
    {kRing, "yield", "jump thread in kernels"},
    {kRing, "inthreads", "structure block in kernels"},
    // memory
    {kMatmul, "alloc name=\"ma\"", "name thread"},
    {kElements, "alloc name=\"acc\"", "name thread, starts acc"},
    {kMatmul, "subview", "name thread"},
    {kRing, "alias", "name thread"},
    {kMatmul, "copy src=%lhs_tile",
     "move unit in kernels, reads lhs_tile late, writes lhs_load_s late"},
    {kMatmul, "copy src=%output_s", "move block in kernels, reads output_s, writes output_tile"},
    {kElements, "copy src=%x_row dst=%l", "move thread in kernels, reads x_row, writes l"},
    {kRing, "copy src=%from",
     "move block in kernels, reads from by the async proxy late until full, writes to by the async "
     "proxy late until full"},
    {kRing, "copy src=%out",
     "move block in kernels, reads out by the async proxy late, writes row by the async proxy "
     "late"},
    {kNames, "copy src=%x", "move block in kernels, reads x until f, writes s until f"},
    {kMatmul, "copy_wait", "order thread in kernels, waits for copies"},
    {kMatmul, "barrier", "order unit in kernels, waits for threads"},
    {kElements, "read", "fetch thread, reads one of s"},
    {kElements, "write", "move thread, writes one of s"},
    {kElements, "atomic", "fetch thread in kernels, updates one of s as a whole"},
    {kRing, "splat", "move block in kernels, writes flat"},
    // meeting
    {kRing, "event name", "name thread in kernels"},
    {kRing, "trigger", "order unit in kernels"},
    {kRing, "event_wait", "order thread in kernels, waits for an event"},
    {kNames, "future name", "name thread in kernels"},
    {kNames, "future_wait", "order unit in kernels, waits for copies"},
    {kNames, "exchange", "order thread in kernels"},
    {kRing, "bulk_wait", "order unit in kernels, waits for stores"},
    {kRing, "registers", "order unit in kernels"},
    // matrix unit
    {kMatmul, "fill", "move unit in kernels, writes mc"},
    {kMatmul, "load", "move unit in kernels, reads a_view, writes ma"},
    {kProducts, "load frag=%y", "move unit in kernels, writes y"},  // read by the product
    {kMatmul, "mma", "move unit in kernels, reads ma, reads mb, updates mc"},
    {kProducts, "mma c",
     "move unit in kernels, reads x by the async proxy late, reads y by the async proxy late, "
     "updates part by the async proxy late"},
    {kMatmul, "store", "move unit in kernels, reads mc, writes c_view"},
    {kProducts, "scale", "move unit in kernels, reads factors, reads part, updates acc"},
    {kProducts, "apply", "structure unit in kernels"},
    {kProducts, "element", "fetch thread in kernels, reads acc"},
    {kProducts, "set_element", "move thread in kernels, writes acc"},
    {kTiles, "reduce", "move unit in kernels, reads row, writes parts"},
    {kTiles, "scan", "move unit in kernels, reads part, writes grown"},
    {kTiles, "vote", "fetch unit in kernels, reads flags"},
    {kTiles, "convert", "move unit in kernels, reads grown, writes turned"},
    {kTiles, "recast", "move unit in kernels, reads part, writes halves"},
    {kProducts, "mma_fence", "order unit in kernels"},
    {kProducts, "mma_commit", "order unit in kernels"},
    {kProducts, "mma_wait", "order unit in kernels, waits for products"},
    {kProducts, "proxy_fence", "order thread in kernels"},
    // scalars
    {kElements, "const", "pure thread"},
    {kElements, "index", "pure thread"},
    {kElements, "bind", "state thread"},
    {kElements, "unary", "pure thread"},
    {kElements, "binary", "pure thread"},
    {kElements, "cast", "pure thread"},
    {kElements, "bitcast", "pure thread"},
    {kElements, "choose", "pure thread"},
    {kElements, "fma", "pure thread"},
    {kElements, "get", "fetch thread, reads acc"},
    {kElements, "set", "move thread, writes acc"},
    {kElements, "assert", "state thread"},
    {kElements, "print", "state thread"},
    // CUDA
    {kElements, "cuda", "move thread in kernels, updates some of s, updates some of acc"},
};

OpId find(const Function& f, std::string_view start) {
  OpId found;
  walk(f, f.body, [&](OpId id) {
    std::string text = op_text(f, id);
    if (f.ops[id].result.valid()) text = text.substr(text.find("= ") + 2);
    if (!found.valid() && text.starts_with(start)) found = id;
  });
  return found;
}

TEST(Effects, EachOperationSaysWhatItIsAndWhatItTouches) {
  std::set<OpKind> seen;
  for (const Row& row : kRows) {
    const Module module = parsed(row.sample);
    const Function& f = module.functions[0];
    const OpId id = find(f, row.start);
    ASSERT_TRUE(id.valid()) << row.start;
    EXPECT_EQ(effects(f, f.ops[id]), row.effects) << row.start;
    seen.insert(f.ops[id].kind());
  }
  EXPECT_EQ(seen.size(), std::size(kTraits) - 1) << "a kind of operation has no row here";
}

// A field of its own makes an operation wait, or leave elements out.
TEST(Effects, DecidedFieldsCount) {
  Scale scale;
  EXPECT_EQ(waits_of({.span = {}, .data = scale, .result = {}}), Waits::kForNothing);
  scale.waits = true;
  EXPECT_EQ(waits_of({.span = {}, .data = scale, .result = {}}), Waits::kForProducts);
  Store store;
  store.masked = true;
  std::vector<bool> chooses;
  Store::touches(store, [&](const Touch& touch) { chooses.push_back(touch.chooses); });
  EXPECT_EQ(chooses, (std::vector<bool>{false, true}));
}

// What each use of a tile does beyond the edge of a padded one.
TEST(Effects, EachUseOfATileSaysWhatItDoesBeyondItsEdge) {
  const Row rows[] = {
      {kMatmul, "fill", "mc carries"},
      {kTiles, "load", "row skips"},
      {kTiles, "store", "parts skips"},
      {kTiles, "element", "row skips"},
      {kTiles, "set_element", "part skips"},
      {kTiles, "reduce", "row neutral, parts carries"},
      {kTiles, "scan", "part carries, grown carries"},
      {kTiles, "vote", "flags carries"},
      {kTiles, "convert", "grown carries, turned carries"},
      {kTiles, "recast", "part carries, halves carries"},
      {kMatmul, "mma", "ma refuses, mb refuses, mc refuses"},
      {kProducts, "scale", "part refuses, acc refuses"},
  };
  for (const Row& row : rows) {
    const Module module = parsed(row.sample);
    const Function& f = module.functions[0];
    std::string said;
    for_each_touch(f.ops[find(f, row.start)], [&](const Touch& touch) {
      if (!std::holds_alternative<FragType>(f.type(touch.value))) return;
      said += format("{}{} {}", said.empty() ? "" : ", ", f.values[touch.value].name,
                     text_of(touch.beyond));
    });
    EXPECT_EQ(said, row.effects) << row.start;
  }
}

// A row of 63 on two warps, padded to 64, and what is done with it.
std::string padded_row(std::string_view body) {
  return format(
      "module form=decided\nfunc @f(global %x: view<f32, global, [1, 63]>) {{\nvar b: parallel < "
      "1\n"
      "var i: loop < 1\nvar j: loop < 63\n"
      "parallel level=block vars=[b] threads=64 bounds=[64] body={{\n"
      "%row = alloc registers=\"(64,1):(1,0)\" padded=[1, 64] : frag<tile, f32, 1x63>\n"
      "%sum = alloc registers=\"(64,1):(0,0)\" : frag<tile, f32, 1x1>\n"
      "%cell = alloc : cell<f32>\n{}\n}}\n}}\n",
      body);
}

TEST(MindedEdge, IsThatOfAPaddedTileWhereTheOperationDoesNotCarryOn) {
  const Module module =
      parsed(padded_row("load frag=%row view=%x\nreduce frag=%sum source=%row kind=sum\n"
                        "convert frag=%row source=%row"));
  const Function& f = module.functions[0];
  const ValueId row = f.ops[find(f, "alloc registers=\"(64,1):(1,0)")].result;
  const ValueId sum = f.ops[find(f, "alloc registers=\"(64,1):(0,0)")].result;
  EXPECT_EQ(minded_edge(f, f.ops[find(f, "load")], row), (target::Element{1, 63}));
  EXPECT_EQ(minded_edge(f, f.ops[find(f, "reduce")], row), (target::Element{1, 63}));
  EXPECT_FALSE(minded_edge(f, f.ops[find(f, "reduce")], sum).has_value()) << "it is not padded";
  EXPECT_FALSE(minded_edge(f, f.ops[find(f, "convert")], row).has_value());
}

TEST(GoesBeyondUnseen, WhatOnlyComputesElementsDoes) {
  const auto goes = [](std::string_view body) {
    const Module module = parsed(padded_row(
        format("apply frag=%row row=i col=j body={{\n%v = element frag=%row : f32\n{}\n}}", body)));
    const Function& f = module.functions[0];
    return goes_beyond_unseen(f, std::get<Apply>(f.ops[find(f, "apply")].data));
  };
  EXPECT_TRUE(goes("%w = binary kind=div left=%v right=%v : f32\nset_element frag=%row value=%w"));
  EXPECT_TRUE(goes("%g = get cell=%cell : f32\nset_element frag=%row value=%g"));
  EXPECT_FALSE(goes("set cell=%cell value=%v")) << "it is read behind the apply";
  EXPECT_FALSE(goes("set_element frag=%sum value=%v")) << "the one sum is no padding";
  EXPECT_FALSE(goes("%r = read view=%x index=[0, j] : f32\nset_element frag=%row value=%r"));
  EXPECT_FALSE(goes("%n = cast operand=%v : s32\n%q = binary kind=rem left=%n right=%n : s32"));
}

TEST(Effects, ResultsFollowFromTheSort) {
  for (const char* sample : {kMatmul, kElements, kStores, kProducts, kRing, kTiles, kNames}) {
    const Module module = parsed(sample);
    const Function& f = module.functions[0];
    walk(f, f.body, [&](OpId id) {
      const Op& op = f.ops[id];
      EXPECT_EQ(op.result.valid(), has_result(op.kind())) << op_text(f, id);
    });
  }
}

TEST(Effects, MemoryIsWhatViewsShow) {
  const Module module = parsed(kMatmul);
  const Function& f = module.functions[0];
  const std::vector<Touch> of_load = memory_touched(f, f.ops[find(f, "load")]);
  ASSERT_EQ(of_load.size(), 1U);
  EXPECT_EQ(f.values[of_load[0].value].name, "a_view");
  EXPECT_TRUE(memory_touched(f, f.ops[find(f, "mma")]).empty());
}

TEST(Effects, AUnitWritesTogetherWhatNoThreadWritesAlone) {
  const Module module = parsed(kElements);
  const Function& f = module.functions[0];
  const auto written = [&](std::string_view start) {
    return written_together(f, f.ops[find(f, start)]);
  };
  ASSERT_TRUE(written("copy src=%x_row dst=%s").valid());
  EXPECT_EQ(f.values[written("copy src=%x_row dst=%s")].name, "s");
  EXPECT_FALSE(written("copy src=%x_row dst=%l").valid());  // each thread its own
  EXPECT_FALSE(written("write").valid());
}

TEST(Effects, OnlyJumpsInsideOfKernelsLeaveEarly) {
  const Module ring = parsed(kRing);
  EXPECT_TRUE(may_leave_early(ring.functions[0], ring.functions[0].body));
  const Module elements = parsed(kElements);  // with a return
  EXPECT_FALSE(may_leave_early(elements.functions[0], elements.functions[0].body));
}

TEST(RootOf, GoesThroughWindowsAndOtherShapes) {
  const Module module = parsed(kRing);
  const Function& f = module.functions[0];
  const auto root_name = [&](std::string_view start) {
    return f.values[root_of(f, f.ops[find(f, start)].result)].name;
  };
  EXPECT_EQ(root_name("subview base=%x"), "x");
  EXPECT_EQ(root_name("alias"), "s");
  EXPECT_EQ(root_name("alloc name=\"out\""), "out");
}

}  // namespace

}  // namespace kiln::ir
