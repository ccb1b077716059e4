// Threads that meet in shared memory: sums, scans, stencils, rounds over two buffers.
#include "programs/expr.h"
#include "programs/families.h"

namespace kiln::programs {

namespace {

DType number_type(Draw& draw) {
  return draw.of(
      {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kS32, DType::kU32, DType::kS64});
}

std::string zero(DType type) { return type == DType::kF64 ? "0.0" : is_float(type) ? "0.0f" : "0"; }

// "a = a + b" in the type, of what stays small.
std::string combined(Gen& gen, DType type, const std::string& a, const std::string& b, int kind) {
  const std::string to = format("__to<{}>", name(type));
  // Sums round, and either zero may be the larger one.
  if (is_float(type)) gen.out.exact = false;
  if (kind == 0) {
    return is_float(type) ? format("{}({} + {})", to, a, b)
                          : format("{}(({} + {}) % 1000)", to, a, b);
  }
  return format("{}({}, {})", kind == 1 ? "__max" : "__min", a, b);
}

std::string small(DType type, const std::string& text) {
  return is_float(type) ? text : format("__to<{}>({} % 1000)", name(type), text);
}

// `part` holds one value for each thread; what the block makes of it goes to `y`.
void tree(Gen& gen, bool scan) {
  Draw& draw = gen.draw;
  const DType type = number_type(draw);
  const int log = draw.within(3, 8);
  const int threads = 1 << log;
  const int blocks = draw.within(1, 4);
  const int extent = threads * blocks - draw.within(0, threads - 1);
  const Extent n = gen.dimension(extent);
  const Param x = gen.input(type, {n});
  const Param y = gen.output(type, {scan ? n : gen.dimension(up(extent, threads))});
  const int kind = draw.within(0, 2);
  Node& block =
      gen.out.function.open(format("parallel b by cdiv({}, {}) : block", n.text, threads));
  block.line(format("shared {} [{}] part {{{}}};", name(type), threads, zero(type)));
  Node& body = block.open(format("parallel t by {} : thread", threads));
  body.line(format("if (b # t < {}) part.at(t) = {};", n.text,
                   small(type, format("{}.at(b # t)", x.name))));
  body.line("sync.shared;");
  Node& loop = body.open(format("foreach step in [{}]", log));
  if (scan) {
    loop.line(format("{} other = part.at(t);", name(type)));
    loop.line("if (t >= (1 << step)) other = " +
              combined(gen, type, "other", "part.at(t - (1 << step))", kind) + ";");
    loop.line("sync.shared;");
    loop.line("part.at(t) = other;");
    loop.line(draw.of({"sync.shared;", "sync.barrier : block;"}));
    body.line(format("if (b # t < {}) {}.at(b # t) = part.at(t);", n.text, y.name));
    return;
  }
  loop.line(format(
      "if (t < ({} >> step)) part.at(t) = {};", threads / 2,
      combined(gen, type, "part.at(t)", format("part.at(t + ({} >> step))", threads / 2), kind)));
  loop.line("sync.shared;");
  body.line(format("if (t == 0) {}.at(b) = part.at(0);", y.name));
}

void add_tree(Gen& gen) { tree(gen, false); }
void add_scan(Gen& gen) { tree(gen, true); }

// Tiles with a border, and an expression of neighbours.
void add_stencil(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const int rows = draw.of({2, 4, 8});
  const int columns = draw.of({8, 16, 32});
  const int reach = draw.within(1, 2);
  const Extent h =
      gen.dimension(rows * draw.within(1, 3) - draw.within(0, rows - 1), rows + 2 * reach);
  const Extent w =
      gen.dimension(columns * draw.within(1, 3) - draw.within(0, columns - 1), columns + 2 * reach);
  const Param x = gen.input(type, {h, w});
  const Param y = gen.output(draw.of(storage_types()), {h, w});
  Node& block = gen.out.function.open(format(
      "parallel {{i, j}} by [cdiv({}, {}), cdiv({}, {})] : block", h.text, rows, w.text, columns));
  block.line(format("tile = dma.copy {}.subspan({}, {}).step({}, {}).at(i, j) => shared;", x.name,
                    rows + 2 * reach, columns + 2 * reach, rows, columns));
  Node& body = block.open(format("parallel {{r, c}} by [{}, {}] : thread", rows, columns));
  std::vector<Value> leaves = {bounded("(i # r)", 100), bounded("(j # c)", 200)};
  for (int i = 0; i < 3; ++i) {
    leaves.push_back(leaf(format("tile.data.at(r + {}, c + {})", draw.within(0, 2 * reach),
                                 draw.within(0, 2 * reach)),
                          type));
  }
  Exprs exprs(gen, leaves);
  body.line(format("if (i # r < {} && j # c < {}) {}.at(i # r, j # c) = {};", h.text, w.text,
                   y.name, exprs.of(y.type, 3).text));
}

// Rounds from one buffer into the other, with reads across all threads.
void add_rounds(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type =
      draw.of({DType::kS32, DType::kU32, DType::kS64, DType::kU8, DType::kS16, DType::kF16});
  const int threads = draw.of({32, 48, 64, 128, 256});
  const Extent n = gen.dimension(threads * draw.within(1, 3) - draw.within(0, threads - 1));
  const Param x = gen.input(type, {n});
  const Param y = gen.output(type, {n});
  const int rounds = draw.within(1, 4);
  Node& block =
      gen.out.function.open(format("parallel b by cdiv({}, {}) : block", n.text, threads));
  block.line(format("shared {} [{}] a {{{}}};", name(type), threads, zero(type)));
  block.line(format("shared {} [{}] c {{{}}};", name(type), threads, zero(type)));
  Node& body = block.open(format("parallel t by {} : thread", threads));
  body.line(format("if (b # t < {}) a.at(t) = {}.at(b # t);", n.text, x.name));
  body.line("sync.shared;");
  Node& loop =
      body.open(draw.chance(50) ? format("foreach k in [{}]", rounds)
                                : format("foreach k in [{}] : unroll({})", rounds, rounds));
  const auto step = [&](const std::string& from, const std::string& to) {
    const std::string other =
        format("{}.at({})", from,
               draw.of({format("{} - t", threads - 1), format("(t + k + 1) % {}", threads),
                        format("(t * 7 + {}) % {}", draw.within(0, 9), threads)}));
    Value mine = leaf(from + ".at(t)", type);
    Value theirs = leaf(other, type);
    mine.exact = theirs.exact = is_integer(type);  // rounded in the round before
    Exprs exprs(gen, {mine, theirs, bounded("t", threads - 1), bounded("k", rounds)});
    Node& at = draw.chance(30) ? loop.open(format("if ({})", exprs.condition(1).text)) : loop;
    at.line(format("{}.at(t) = {};", to, exprs.of(type, 2).text));
    loop.line("sync.shared;");
  };
  step("a", "c");
  step("c", "a");
  body.line(format("if (b # t < {}) {}.at(b # t) = a.at(t);", n.text, y.name));
}

// Two halves of the block, one behind the other, without events.
void add_halves(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const int warps = draw.of({2, 4, 6, 8});
  const int half = warps / 2 * 32;
  const Extent n = gen.dimension(half * draw.within(1, 3) - draw.within(0, half - 1));
  const Param x = gen.input(type, {n});
  const Param y = gen.output(draw.of(storage_types()), {n});
  Node& block = gen.out.function.open(format("parallel b by cdiv({}, {}) : block", n.text, half));
  block.line(format("shared {} [{}] tile {{{}}};", name(type), half,
                    type == DType::kBool ? "false" : zero(type)));
  Node& body = block.open(format("parallel w by {} : group, t by 32 : thread", warps));
  Node& first = body.open(format("inthreads (w < {})", warps / 2));
  first.line(format("if (b * {} + w # t < {}) tile.at(w # t) = {}.at(b * {} + w # t);", half,
                    n.text, x.name, half));
  Node& second = body.open(format("inthreads (w >= {})", warps / 2));
  const std::string at = format("b * {} + w # t - {}", half, half);
  Exprs exprs(gen, {leaf(format("tile.at({} - w # t)", 2 * half - 1), type),
                    leaf(format("tile.at(w # t - {})", half), type)});
  second.line(
      format("if ({} < {}) {}.at({}) = {};", at, n.text, y.name, at, exprs.of(y.type, 2).text));
}

// Each thread a row of its own in local memory.
void add_local_rows(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const int width = draw.of({1, 2, 4, 7, 8, 16});
  const int threads = draw.of({32, 64, 20});
  const Extent m = gen.dimension(draw.within(1, 100), threads);
  const Param x = gen.input(type, {m, gen.constant(width)});
  const Param y = gen.output(draw.of(storage_types()), {m});
  Node& body = gen.out.function.open(
      format("parallel b by cdiv({}, {}) : block, t by {} : thread", m.text, threads, threads));
  body.line(format("row = dma.copy {}.subspan(1, {}).at(b # t, 0) => local;", x.name, width));
  Node& inside = body.open(format("if (b # t < {})", m.text));
  Exprs exprs(
      gen, {leaf(format("row.data.at(0, {})", draw.within(0, width - 1)), type),
            leaf(format("row.data.at(0, (b # t) % {})", width), type), bounded("t", threads - 1)});
  inside.line(format("{}.at(b # t) = {};", y.name, exprs.of(y.type, 3).text));
}

// A launch whose host part computes and loops, through a buffer of the function's own.
void add_host(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const Extent n = gen.dimension(draw.within(1, 200));
  const Param x = gen.input(type, {n});
  const Param y = gen.output(draw.of(storage_types()), {n});
  const std::string between = gen.name("tmp");
  const DType middle = draw.of(storage_types());
  Node& function = gen.out.function;
  function.line(format("{} [{}] {};", name(middle), n.text, between));
  function.line(format("int blocks{} = cdiv({}, 64);", between, n.text));
  Exprs first(gen, {leaf(format("{}.at(b # t)", x.name), type), bounded("(b # t)", 200)});
  function.open(format("parallel b by blocks{} : block, t by 64 : thread", between))
      .line(
          format("if (b # t < {}) {}.at(b # t) = {};", n.text, between, first.of(middle, 2).text));
  Value mine = leaf(format("{}.at(b # t)", between), middle);
  Value other = leaf(format("{}.at({} - 1 - b # t)", between, n.text), middle);
  mine.exact = other.exact = is_integer(middle);
  Exprs second(gen, {mine, other});
  function.open(format("parallel b by blocks{} : block, t by 64 : thread", between))
      .line(
          format("if (b # t < {}) {}.at(b # t) = {};", n.text, y.name, second.of(y.type, 2).text));
}

// The rest that whole tiles leave over.
void add_rest(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const int tile = draw.of({16, 32, 64});
  const Extent n = gen.dimension(tile * draw.within(1, 3) + draw.within(1, tile - 1), 1000);
  const Param x = gen.input(type, {n});
  const Param y = gen.output(type, {n});
  Node& block = gen.out.function.open(format("parallel b by cdiv({}, {}) : block", n.text, tile));
  block.line(format("shared {} [{}] a;", name(type), tile));
  block.line(format("shared {} [{}] c;", name(type), tile));
  block.open(format("if (b < {} / {})", n.text, tile))
      .line(format("dma.copy {}.subspan({}).at(b) => a;", x.name, tile));
  block.open("else").line(format("dma.copy {}.modspan({}) => a;", x.name, tile));
  Exprs exprs(gen, {leaf(format("a.at({} - t)", tile - 1), type)});
  block.open(format("parallel t by {} : thread", tile))
      .line(format("c.at({} - t) = {};", tile - 1, exprs.of(type, 2).text));
  block.open(format("if (b < {} / {})", n.text, tile))
      .line(format("dma.copy c => {}.subspan({}).at(b);", y.name, tile));
  block.open("else").line(
      format("dma.copy c.view({} % {}) => {}.modspan({});", n.text, tile, y.name, tile));
}

// One buffer seen under two shapes, and elements some distance apart.
void add_shapes(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of(storage_types());
  const int rows = draw.of({2, 4, 8});
  const int columns = draw.of({4, 8, 16});
  const int blocks = draw.within(1, 4);
  const int stride = draw.within(1, 3);
  const int all = blocks * rows * columns * stride;
  // A parameter may choose where to begin; without one all that there is must be read.
  const bool from_parameter = draw.chance(50);
  const Param x = gen.input(type, {gen.constant(from_parameter ? all + 5 : all)});
  const Param y =
      gen.output(type, {gen.constant(blocks), gen.constant(rows), gen.constant(columns)});
  const std::string offset = from_parameter ? gen.int_param(draw.within(0, 5)).text : "0";
  Node& block = gen.out.function.open(format("parallel b by {} : block", blocks));
  block.line(format("shared {} [{}] line;", name(type), rows * columns));
  block.line(format("dma.copy {}.view({} : {}).from(b * {} + {}) => line;", x.name, rows * columns,
                    stride, rows * columns * stride, offset));
  block.line(format("shared {} [1, {}, {}] box;", name(type), rows, columns));
  if (draw.chance(50)) {
    Node& body = block.open(format("parallel t by {} : thread", rows * columns));
    body.line(
        format("box.span_as({}).at({} - t) = line.at(t);", rows * columns, rows * columns - 1));
  } else {
    block.line(format("dma.copy line.span_as(1, {}, {}) => box;", rows, columns));
  }
  block.line(format("dma.copy box => {}.subspan(1, {}, {}).at(b, 0, 0);", y.name, rows, columns));
}

// Bins that many threads update atomically in shared memory, then the blocks in global memory; of
// one kind, whose order is no matter.
void add_votes(Gen& gen) {
  Draw& draw = gen.draw;
  const DType type = draw.of({DType::kS32, DType::kU32, DType::kS64, DType::kU64, DType::kF32,
                              DType::kF64, DType::kF16, DType::kBF16});
  const std::string kind = is_float(type)
                               ? draw.of({"add", "sub"})
                               : draw.of({"add", "sub", "min", "max", "and", "or", "xor"});
  if (is_float(type)) gen.out.exact = false;
  const int threads = draw.of({32, 48, 64, 128, 256});
  const int bins = draw.within(1, threads);
  const Extent n = gen.dimension(threads * draw.within(1, 4) - draw.within(0, threads - 1));
  const Param x = gen.input(type, {n});
  const bool by_data = draw.chance(40);
  const std::string key =
      by_data ? format("__to<s32>({}.at(b # t))", gen.input(DType::kU8, {n}).name) : "t";
  const Param y = gen.output(type, {gen.constant(bins)});
  Node& block =
      gen.out.function.open(format("parallel b by cdiv({}, {}) : block", n.text, threads));
  block.line(format("shared {} [{}] part {{{}}};", name(type), bins, zero(type)));
  Node* body = &block.open(format("parallel t by {} : thread", threads));
  body->line(format("if (b # t < {}) __atomic_{}(part.at({} * {} % {}), {}.at(b # t));", n.text,
                    kind, key, draw.within(1, 5), bins, x.name));
  if (draw.chance(50)) {
    body->line("sync.shared;");
  } else {
    body = &block.open(format("parallel t by {} : thread", threads));
  }
  body->line(format("if (t < {}) __atomic_{}({}.at(t), part.at(t));", bins, kind, y.name));
}

}  // namespace

void add_block(Gen& gen) {
  using Add = void (*)(Gen&);
  gen.draw.of({Add{add_tree}, Add{add_scan}, Add{add_stencil}, Add{add_rounds}, Add{add_halves},
               Add{add_local_rows}, Add{add_host}, Add{add_rest}, Add{add_shapes},
               Add{add_votes}})(gen);
}

}  // namespace kiln::programs
