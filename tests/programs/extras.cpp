// What the other families leave: the host part, tuples, tied variables, stores once a block, tiles
// in turn over a small grid.
#include <algorithm>

#include "programs/expr.h"
#include "programs/families.h"

namespace kiln::programs {

namespace {

// A buffer of the function's own is filled and returned.
void add_returned(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const DType made = draw.of(storage_types());
  const Extent n = gen.dimension(draw.within(1, 150));
  const Param x = gen.input(type, {n});
  Node& function = gen.out.function;
  const bool whole = gen.out.result == "void";
  const std::string y = whole ? gen.name("result") : gen.output(made, {n}).name;
  if (whole) {
    function.line(format("{} [{}] {};", name(made), n.text, y));
    gen.out.result = draw.chance(50) ? "auto" : format("{}[{}]", name(made), n.text);
  }
  const std::string tile = gen.name("tile");
  function.line(format("{} : [{}, {}];", tile, 2, draw.of({16, 32, 64})));
  const std::string count = gen.name("count");
  function.line(format("int {} = __alignup({}, {}(1)) / {}(1) + |{}| - {};", count, n.text, tile,
                       tile, name(type), size_bytes(type)));
  Node& body = function.open(format("parallel b by {} : block, t by {}(1) : thread", count, tile));
  if (draw.chance(50)) {
    body.line(format("if (b # t >= {}) yield;", n.text));
  } else {
    body.open(format("if (b # t >= {})", n.text)).line("yield;");
  }
  if (draw.chance(50)) body.line(format("assert(b # t < {}, \"inside\");", n.text));
  std::vector<Value> leaves = {leaf(format("{}.at(b # t)", x.name), type), bounded("(b # t)", 200)};
  if (draw.chance(50))
    leaves.push_back(leaf(format("{}.at({} - 1 - b # t)", x.name, n.text), type));
  Exprs exprs(gen, leaves);
  body.line(format("{}.at(b # t) = {};", y, exprs.of(made, 3).text));
  // The last statement: draw_family moves it there.
  if (whole) gen.out.returned = y;
}

// A loop and a condition around launches.
void add_host_loop(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of({DType::kF32, DType::kS32, DType::kU8, DType::kF16});
  const Extent rows = gen.dimension(draw.within(1, 4));
  const Extent n = gen.dimension(draw.within(1, 70));
  const Param x = gen.input(type, {rows, n});
  const Param y = gen.output(type, {rows, n});
  const std::string r = gen.name("row");
  Node* at = &gen.out.function.open(format("foreach {} in [{}]", r, rows.text));
  if (draw.chance(50)) at = &at->open(format("if ({} + 1 > 0)", rows.text));
  Node& body = at->open(format("parallel b by cdiv({}, 32) : block, t by 32 : thread", n.text));
  Exprs exprs(gen, {leaf(format("{}.at({}, b # t)", x.name, r), type), bounded(r, 3)});
  body.line(
      format("if (b # t < {}) {}.at({}, b # t) = {};", n.text, y.name, r, exprs.of(type, 2).text));
}

// One element a block, by one of its threads; tuples, tied and changed variables.
void add_once(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const Extent n = gen.dimension(draw.within(1, 9));
  const int width = draw.of({4, 8, 32});
  const Param x = gen.input(type, {n, gen.constant(width)});
  const Param y = gen.output(draw.of(integer_types()), {n});
  const Param z = gen.output(type, {n, gen.constant(width)});
  Node& block = gen.out.function.open(format("parallel b by {} : block", n.text));
  block.line(format("s_once = dma.copy {}.subspan(1, {}).at(b, 0) => shared;", x.name, width));
  Exprs exprs(gen, {leaf(format("s_once.data.at(0, {})", draw.within(0, width - 1)), type),
                    bounded("b", 8)});
  block.line(format("{}.at(b) = {};", y.name, exprs.of(y.type, 3).text));
  Node& body = block.open(format("parallel {{u_, v_}} by [2, {}] : thread", width / 2));
  switch (draw.within(0, 3)) {
    case 0: {
      Node& with = body.open("with i in [3], j in [3] where i <-> j");
      with.open("foreach i")
          .line(format("if (u_ # v_ == i + j) {}.at(b, u_ # v_) = s_once.data.at(0, u_ # v_);",
                       z.name));
      body.line(format("{}.at(b, u_ # v_) = s_once.data.at(0, {} - u_ # v_);", z.name, width - 1));
      break;
    }
    case 1: {
      Node& with = body.open("with pair = {i, j} in [2, 2]");
      with.open("foreach pair")
          .line(format("{}.at(b, u_ # v_) = s_once.data.at(0, (u_ # v_ + i * 2 + j) % {});", z.name,
                       width));
      break;
    }
    case 2: {
      body.line(format("pair_ = {{0, {}}};", 1));
      body.line(format("{}.at(b, u_ # v_) = s_once.data.at(pair_(0), (u_ # v_ + pair_(1)) % {});",
                       z.name, width));
      break;
    }
    default:
      body.line(format("place = v_ #+ 1;"));
      body.line(
          format("{}.at(b, u_ # v_) = s_once.data.at(0, u_ * {} + place * 1);", z.name, width / 2));
      break;
  }
}

// A grid smaller than the tiles, which blocks take in turn.
void add_persistent(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const int rows = draw.of({4, 8});
  const int columns = draw.of({16, 32});
  const Extent m = gen.dimension(draw.within(rows, 4 * rows), rows);
  const Extent n = gen.dimension(draw.within(columns, 4 * columns), columns);
  const Param x = gen.input(type, {m, n});
  const Param y = gen.output(type, {m, n});
  const int blocks = draw.within(2, 5);
  const std::string per = gen.name("per_row");
  const std::string all = gen.name("tiles");
  Node& function = gen.out.function;
  function.line(format("int {} = cdiv({}, {});", per, n.text, columns));
  function.line(format("int {} = cdiv({}, {}) * {};", all, m.text, rows, per));
  const bool threads = draw.chance(50);
  Node& block = function.open(
      format("parallel b by {} : block{}", blocks, threads ? ", t by 64 : thread" : ""));
  block.line(format("shared {} [{}, {}] held;", name(type), rows, columns));
  Node* at = nullptr;
  if (draw.chance(50)) {
    at = &block.open(format("foreach round in [cdiv({}, {})]", all, blocks));
    at->line("tile = round # b;");
    at = &at->open(format("if (tile < {})", all));
  } else {
    block.line("mutable int tile = b;");
    at = &block.open(draw.chance(50) ? format("while (tile < {})", all) : "while (true)");
    if (at->text == "while (true)") at->line(format("if (tile >= {}) break;", all));
  }
  at->line(format("dma.copy {}.subspan({}, {}).at(tile / {}, tile % {}) => held;", x.name, rows,
                  columns, per, per));
  const bool bulk = gen.hopper() && columns * size_bytes(type) % 16 == 0 &&
                    n.value * size_bytes(type) % 16 == 0 && draw.chance(50);
  at->line(format("{} held => {}.subspan({}, {}).at(tile / {}, tile % {});",
                  bulk ? "tma.copy" : "dma.copy", y.name, rows, columns, per, per));
  if (at->text.starts_with("while")) at->line(format("tile += {};", blocks));
}

// Events in rows, and threads that state how many they are.
void add_event_grid(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const Extent n = gen.dimension(draw.within(1, 100));
  const Param x = gen.input(type, {n});
  const Param y = gen.output(type, {n});
  Node& block = gen.out.function.open(format("parallel b by cdiv({}, 32) : block", n.text));
  block.line(format("shared {} [32] left {{{}}};", name(type),
                    type == DType::kBool  ? "false"
                    : type == DType::kF64 ? "0.0"
                    : is_float(type)      ? "0.0f"
                                          : "0"));
  const bool stated = draw.chance(50);
  block.line(stated ? "shared event<32> grid[2][3];" : "shared event grid[2][3];");
  const int i = draw.within(0, 1);
  const int j = draw.within(0, 2);
  Node& level = block.open("parallel w by 2 : group, t by 32 : thread");
  Node& first = level.open("inthreads.async (w == 0)");
  Exprs exprs(gen, {leaf(format("{}.at(b # t)", x.name), type)});
  first.line(format("if (b # t < {}) left.at(t) = {};", n.text, exprs.of(type, 2).text));
  first.line(format("trigger grid[{}][{}];", i, j));
  Node& second = level.open("inthreads.async (w == 1)");
  second.line(format("wait grid[{}][{}];", i, j));
  second.line(format("if (b # t < {}) {}.at(b # t) = left.at(t);", n.text, y.name));
}

}  // namespace

void add_extra(Gen& gen) {
  using Add = void (*)(Gen&);
  gen.draw.of({Add{add_returned}, Add{add_host_loop}, Add{add_once}, Add{add_persistent},
               Add{add_event_grid}})(gen);
}

}  // namespace kiln::programs
