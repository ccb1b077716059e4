// Copies on their way while the threads compute: futures that change places, and regions that meet
// at events.
#include <algorithm>

#include "programs/expr.h"
#include "programs/families.h"

namespace kiln::programs {

namespace {

// Rows of tiles that threads take in turn: the input [R, N], what is made of them [N] or [R, N].
struct Rows {
  DType type = DType::kF32;
  DType made = DType::kF32;
  int width = 32;  // of a tile, one element a thread
  Extent rows;
  Extent columns;
  Param x;
  Param y;
  bool sum = false;
  bool bulk = false;
};

Rows draw_rows(Gen& gen, int least_rows) {
  Draw& draw = gen.draw;
  Rows out;
  out.type = draw.of(storage_types());
  out.made = draw.of(storage_types());
  out.sum = draw.chance(50);
  // Tiles may begin behind the last row: never known when the program is compiled.
  out.rows = gen.dimension(draw.within(least_rows, least_rows + 7), 1000);
  out.bulk = gen.hopper() && draw.chance(50);
  // Buffers that bulk copies fill in turn begin at multiples of 128 bytes.
  if (out.bulk) out.width = std::max(32, 128 / size_bytes(out.type));
  int columns = out.width * draw.within(1, 3) - (draw.chance(60) ? draw.within(0, 31) : 0);
  if (out.bulk) columns = (columns + 15) / 16 * 16;
  out.columns = gen.dimension(columns, out.width);
  return out;
}

void make_params(Gen& gen, Rows& rows) {
  rows.x = gen.input(rows.type, {rows.rows, rows.columns});
  rows.y = rows.sum ? gen.output(DType::kS32, {rows.columns})
                    : gen.output(rows.made, {rows.rows, rows.columns});
}

std::string window(const Rows& rows, const std::string& row) {
  return format("{}.subspan(1, {}).at({}, b)", rows.x.name, rows.width, row);
}

void declare_sum(const Rows& rows, Node& at) {
  if (rows.sum) at.line("mutable int sum = 0;");
}

// The thread's element of a tile is added or stored. `column`: of the thread in the tile.
struct Use {
  std::string tile;
  std::string row;
  std::string column;
};
void use(Gen& gen, const Rows& rows, Node& at, const Use& of) {
  const auto& [tile, row, column] = of;
  const Value element = leaf(format("{}.at(0, {})", tile, column), rows.type);
  const Value mirrored = leaf(format("{}.at(0, {} - {})", tile, rows.width - 1, column), rows.type);
  Exprs exprs(gen, {element, mirrored});
  if (rows.sum) {
    at.line(format("sum = (sum * 3 + {}) % 10007;", exprs.index(512, 2).text));
    return;
  }
  at.line(format("if (b * {} + {} < {}) {}.at({}, b * {} + {}) = {};", rows.width, column,
                 rows.columns.text, rows.y.name, row, rows.width, column,
                 exprs.of(rows.made, 2).text));
}

void store_sum(const Rows& rows, Node& at, const std::string& column) {
  if (rows.sum)
    at.line(format("if (b * {} + {} < {}) {}.at(b * {} + {}) = sum;", rows.width, column,
                   rows.columns.text, rows.y.name, rows.width, column));
}

std::string head_of(const Rows& rows) {
  return format("parallel b by cdiv({}, {}) : block", rows.columns.text, rows.width);
}

// Names that change places: two of them by `swap`, three by `rotate`.
void add_names(Gen& gen) {
  Draw& draw = gen.draw;
  const int names = draw.within(2, 3);
  Rows rows = draw_rows(gen, names);
  make_params(gen, rows);
  const std::string copy = rows.bulk ? draw.of({"tma.copy.async", "tma.load.async"})
                                     : draw.of({"dma.copy.async", "dma.load.async"});
  const std::string any = rows.bulk ? "tma.any" : "dma.any";
  Node& body = gen.out.function.open(head_of(rows) + format(", t by {} : thread", rows.width));
  declare_sum(rows, body);
  Node& with = body.open(format("with r in [{}]", rows.rows.text));
  for (int i = 0; i + 1 < names; ++i)
    with.line(format("h{} = {} {} => shared;", i, copy, window(rows, format("{}", i))));
  with.line(format("h{} = {};", names - 1, any));
  Node& loop = with.open(format("foreach r(:-{})", names - 1));
  loop.line(
      format("h{} = {} {} => shared;", names - 1, copy, window(rows, format("r + {}", names - 1))));
  loop.line("wait h0;");
  use(gen, rows, loop, {"h0.data", "r", "t"});
  if (draw.chance(30)) loop.line("sync.shared;");
  loop.line(names == 2 ? "swap(h0, h1);" : "rotate(h0, h1, h2);");
  for (int i = 0; i + 1 < names; ++i) {
    with.line(format("wait h{};", i));
    use(gen, rows, with,
        {format("h{}.data", i), format("{} - {}", rows.rows.text, names - 1 - i), "t"});
  }
  store_sum(rows, body, "t");
}

// Several copies on their way, awaited together or one by one.
void add_together(Gen& gen) {
  Draw& draw = gen.draw;
  Rows rows = draw_rows(gen, 2);
  make_params(gen, rows);
  const std::string copy = rows.bulk ? "tma.copy.async" : "dma.copy.async";
  Node& body = gen.out.function.open(head_of(rows) + format(", t by {} : thread", rows.width));
  declare_sum(rows, body);
  Node& loop = body.open(format("foreach r in [{}]", rows.rows.text));
  loop.line(format("now = {} {} => shared;", copy, window(rows, "r")));
  const std::string late = format("{} - 1 - r", rows.rows.text);
  loop.line(format("other = {} {} => shared;", copy, window(rows, late)));
  if (draw.chance(50)) {
    loop.line("wait now, other;");
  } else {
    loop.line("wait other;");
    loop.line("wait now;");
  }
  const Value a = leaf("now.data.at(0, t)", rows.type);
  const Value c = leaf(format("other.data.at(0, {} - t)", rows.width - 1), rows.type);
  Exprs exprs(gen, {a, c});
  if (rows.sum) {
    loop.line(format("sum = (sum * 5 + {}) % 10007;", exprs.index(512, 2).text));
  } else {
    loop.line(format("if (b # t < {}) {}.at(r, b # t) = {};", rows.columns.text, rows.y.name,
                     exprs.of(rows.made, 3).text));
  }
  store_sum(rows, body, "t");
}

// Stages chosen by `select`, for reading and for writing.
void add_select(Gen& gen) {
  Draw& draw = gen.draw;
  const int stages = draw.within(2, 3);
  Rows rows = draw_rows(gen, 1);
  rows.bulk = false;
  rows.width = 32;
  make_params(gen, rows);
  std::string choices;
  Node& body = gen.out.function.open(head_of(rows) + format(", t by {} : thread", rows.width));
  for (int i = 0; i < stages; ++i) {
    body.line(format("shared {} [1, {}] s_{};", name(rows.type), rows.width, i));
    choices += format(", s_{}", i);
  }
  declare_sum(rows, body);
  body.line(format("dma.copy {} => s_0;", window(rows, "0")));
  Node& loop = body.open(format("foreach r in [{}]", rows.rows.text));
  loop.line(format("f_next = dma.copy.async {} => select((r + 1) % {}{});", window(rows, "r + 1"),
                   stages, choices));
  use(gen, rows, loop, {format("select(r % {}{})", stages, choices), "r", "t"});
  loop.line("wait f_next;");
  store_sum(rows, body, "t");
}

// --- events

struct Ring {
  int stages = 1;
  bool ready = false;  // the stages are empty from the start
  int form = 0;        // how slots are spelled: [k % S], .at(k), in turn, without an array
  [[nodiscard]] std::string slot(const std::string& event, const std::string& k) const {
    if (stages == 1 && form == 3) return event;
    if (form == 0) return format("{}[{} % {}]", event, k, stages);
    if (form == 2) return event;
    return format("{}.at({})", event, k);
  }
  [[nodiscard]] std::string stage(const std::string& buffer, const std::string& k) const {
    return stages == 1 ? buffer : format("{}[{} % {}]", buffer, k, stages);
  }
  [[nodiscard]] std::string array(const std::string& text) const {
    return stages == 1 ? text : format("{}[{}]", text, stages);
  }
};

Ring draw_ring(Draw& draw) {
  Ring out;
  out.stages = draw.within(1, 4);
  out.ready = draw.chance(60);
  out.form = out.stages == 1 ? 3 : draw.within(0, 1);
  return out;
}

void declare_ring(const Ring& ring, Node& at) {
  at.line(format("shared event {};", ring.array("full")));
  at.line(format("shared event {}{};", ring.array("empty"), ring.ready ? " = ready" : ""));
}

// The producer's part of one round.
void produce(const Rows& rows, const Ring& ring, Node& at, int how) {
  const std::string to = ring.stage("tile", "r");
  const std::string from = window(rows, "r");
  const std::string full = ring.slot("full", "r");
  at.line(format("wait {};", ring.slot("empty", "r")));
  const char* word = rows.bulk ? "tma.copy" : "dma.copy";
  if (how == 0 && !rows.bulk) {
    at.line(format("dma.copy {} => {};", from, to));
    at.line(format("trigger {};", full));
  } else if (how == 1) {
    at.line(format("{}.async<{}> {} => {};", word, full, from, to));
    at.line(format("trigger {};", full));
  } else {
    at.line(format("f = {}.async {} => {};", word, from, to));
    at.line(format("trigger {} after f;", full));
  }
}

// One warp loads, others use what it loaded.
void add_ring(Gen& gen) {
  Draw& draw = gen.draw;
  Rows rows = draw_rows(gen, 1);
  const int consumers = draw.within(1, 3);
  rows.width = 32 * consumers;
  if (rows.bulk || draw.chance(30)) {
    // Stages that bulk copies fill begin at multiples of 128 bytes.
    const int wanted = 128 / size_bytes(rows.type);
    if (rows.width % wanted != 0) rows.bulk = false;
  }
  rows.columns = gen.dimension((rows.width * draw.within(1, 2) - draw.within(0, 15) + 15) / 16 * 16,
                               rows.width);
  make_params(gen, rows);
  const Ring ring = draw_ring(draw);
  const int how = rows.bulk ? draw.within(1, 2) : draw.within(0, 2);
  Node& block = gen.out.function.open(head_of(rows));
  block.line(format("shared {} [1, {}] {};", name(rows.type), rows.width, ring.array("tile")));
  declare_ring(ring, block);
  Node& level = block.open(format("parallel w by {} : group, t by 32 : thread", consumers + 1));
  const bool last = draw.chance(30);  // the producer
  const std::string producer = last ? format("w == {}", consumers) : "w == 0";
  const std::string consumer =
      last ? format("w < {}", consumers) : draw.of({"w >= 1", "w > 0", "!(w == 0)"});
  Node& region = level.open(format("inthreads.async ({})", producer));
  produce(rows, ring, region.open(format("foreach r in [{}]", rows.rows.text)), how);
  Node& reader = level.open(format("inthreads.async ({})", consumer));
  declare_sum(rows, reader);
  if (!ring.ready) {
    if (ring.stages == 1 || draw.chance(50)) {
      reader.line("trigger empty;");
    } else {
      reader.line(format("foreach e in [{}] trigger empty[e];", ring.stages));
    }
  }
  reader.line(format("place = {};", last ? "w * 32 + t" : "(w - 1) * 32 + t"));
  Node& loop = reader.open(format("foreach r in [{}]", rows.rows.text));
  loop.line(gen.meet("wait", ring.slot("full", "r")));
  use(gen, rows, loop, {ring.stage("tile", "r"), "r", "place"});
  loop.line(gen.meet("trigger", ring.slot("empty", "r")));
  store_sum(rows, reader, "place");
}

// Three regions in a line: load, change, store.
void add_line(Gen& gen) {
  Draw& draw = gen.draw;
  Rows rows = draw_rows(gen, 1);
  rows.bulk = false;
  rows.width = 32;
  rows.sum = false;
  make_params(gen, rows);
  const Ring ring = draw_ring(draw);
  const Ring done{draw.within(1, 3), draw.chance(50), 1};
  Node& block = gen.out.function.open(head_of(rows));
  block.line(format("shared {} [1, 32] {};", name(rows.type), ring.array("tile")));
  block.line(format("shared {} [1, 32] {};", name(rows.made), done.array("made")));
  declare_ring(ring, block);
  block.line(format("shared event {};", done.array("done")));
  block.line(format("shared event {}{};", done.array("taken"), done.ready ? " = ready" : ""));
  const auto slot = [&](const char* event) {
    return done.stages == 1 ? std::string(event) : done.slot(event, "r");
  };
  Node& level = block.open("parallel w by 3 : group, t by 32 : thread");
  produce(rows, ring,
          level.open("inthreads.async (w == 0)").open(format("foreach r in [{}]", rows.rows.text)),
          draw.within(0, 2));
  Node& middle = level.open("inthreads.async (w == 1)");
  if (!ring.ready) middle.line("trigger empty;");
  Node& work = middle.open(format("foreach r in [{}]", rows.rows.text));
  work.line(format("wait {}, {};", ring.slot("full", "r"), slot("taken")));
  Exprs exprs(gen, {leaf(format("{}.at(0, t)", ring.stage("tile", "r")), rows.type),
                    leaf(format("{}.at(0, 31 - t)", ring.stage("tile", "r")), rows.type)});
  work.line(format("{}.at(0, 31 - t) = {};", done.stage("made", "r"), exprs.of(rows.made, 3).text));
  work.line(format("trigger {}, {};", ring.slot("empty", "r"), slot("done")));
  Node& last = level.open("inthreads.async (w == 2)");
  if (!done.ready) last.line("trigger taken;");
  Node& store = last.open(format("foreach r in [{}]", rows.rows.text));
  store.line(format("wait {};", slot("done")));
  store.line(
      format("dma.copy {} => {}.subspan(1, 32).at(r, b);", done.stage("made", "r"), rows.y.name));
  store.line(format("trigger {};", slot("taken")));
}

// Regions whose own threads meet: a named barrier each.
void add_region_barriers(Gen& gen) {
  Draw& draw = gen.draw;
  Rows rows = draw_rows(gen, 1);
  rows.bulk = false;
  rows.width = 32;
  rows.sum = false;
  rows.width = 64;
  rows.columns = gen.dimension(64 * draw.within(1, 2) - draw.within(0, 40), 64);
  make_params(gen, rows);
  const Ring ring{draw.within(2, 3), true, 1};
  Node& block = gen.out.function.open(head_of(rows));
  block.line(format("shared {} [1, 64] {};", name(rows.type), ring.array("tile")));
  block.line(format("shared {} [1, 64] work;", name(rows.made)));
  declare_ring(ring, block);
  Node& level = block.open("parallel w by 3 : group, t by 32 : thread");
  produce(rows, ring,
          level.open("inthreads.async (w == 0)").open(format("foreach r in [{}]", rows.rows.text)),
          draw.within(0, 2));
  Node& region = level.open("inthreads.async (w >= 1)");
  region.line("place = (w - 1) * 32 + t;");
  Node& loop = region.open(format("foreach r in [{}]", rows.rows.text));
  loop.line(gen.meet("wait", ring.slot("full", "r")));
  Exprs exprs(gen, {leaf(format("{}.at(0, place)", ring.stage("tile", "r")), rows.type)});
  loop.line(format("work.at(0, place) = {};", exprs.of(rows.made, 3).text));
  loop.line(gen.meet("trigger", ring.slot("empty", "r")));
  loop.line("sync.shared;");
  loop.line(format("if (b * 64 + place < {}) {}.at(r, b * 64 + place) = work.at(0, 63 - place);",
                   rows.columns.text, rows.y.name));
  loop.line("sync.shared;");
}

}  // namespace

void add_futures(Gen& gen) {
  using Add = void (*)(Gen&);
  gen.draw.of({Add{add_names}, Add{add_together}, Add{add_select}})(gen);
}

void add_events(Gen& gen) {
  using Add = void (*)(Gen&);
  gen.draw.of({Add{add_ring}, Add{add_ring}, Add{add_line}, Add{add_region_barriers}})(gen);
}

}  // namespace kiln::programs
