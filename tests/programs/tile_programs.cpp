// Programs of register tiles: units of any level whose tiles are loaded, computed and stored; products
// whose accumulators meet tiles and whose operands are tiles.
#include "programs/families.h"
#include "programs/tiles.h"

namespace kiln::programs {

namespace {

using D = DType;

// No s64 and u64 of any value: the simulator keeps elements of tiles as f64.
DType loaded_type(Draw& draw) {
  return draw.of({D::kF32, D::kF32, D::kF16, D::kBF16, D::kF64, D::kS32, D::kU32, D::kS8, D::kU8,
                  D::kS16, D::kE4M3});
}

// Extents of which a thread has at most 16 elements. Many are odd, so that no number of threads shares
// them evenly: primes, one more or less than a power of two, short rows and columns.
TileShape drawn_shape(Draw& draw, int threads) {
  const std::vector<TileShape> all = {
      {1, 1},   {3, 5},   {64, 1},  {1, 96},  {8, 100},  {16, 16},  {32, 8},   {5, 33},
      {128, 2}, {2, 256}, {64, 32}, {7, 7},   {16, 64},  {1, 500},  {4, 512},  {33, 31},
      {8, 8},   {64, 64}, {200, 3}, {17, 1},  {128, 16}, {1, 1024}, {1, 1023}, {4, 1000},
      {31, 1},  {1, 17},  {65, 2},  {13, 40}, {3, 341},  {127, 5},  {1, 257},  {6, 129},
      {2, 511}, {11, 64}, {64, 11}, {1, 4097}};
  std::vector<TileShape> fit;
  for (const TileShape& each : all) {
    if (each.rows * each.cols <= 16 * threads) fit.push_back(each);
  }
  const int kind = draw.within(0, 99);
  if (kind < 60) return draw.of(fit);
  if (kind < 85) return TileShape{draw.within(1, 20), draw.within(1, 20)};
  const int rows = draw.within(1, 12);
  return TileShape{rows, draw.within(1, 12 * threads / rows)};
}

// Units of one level that stand below each other in a block.
struct Level {
  int threads = 128;  // of a unit
  int units = 1;
  std::string attribute = {};
  std::string unit = {};  // "parallel w by 2 : group"; empty for the block
};

Level drawn_level(Gen& gen) {
  Draw& draw = gen.draw;
  Level out;
  const int kind = draw.within(0, 99);
  if (kind < 40) {
    out.threads = 32 * draw.of({1, 2, 3, 4, 4, 6, 8, 16});
    if (out.threads != 128 || draw.chance(50)) {
      out.attribute = format("[[threads({})]] ", out.threads);
    }
  } else if (kind < 75 || !gen.hopper()) {
    out.threads = 32;
    out.units = draw.of({1, 2, 3, 4});
    out.unit = format("parallel w by {} : group", out.units);
  } else {
    out.units = draw.of({1, 1, 2});
    out.unit = format("parallel w by {} : group-4", out.units);
  }
  return out;
}

int ragged(Draw& draw, int tile, int tiles) {
  return tile * tiles - (draw.chance(60) ? draw.within(0, tile - 1) : 0);
}

// Opens the block and the unit. The window's rows go from block to block.
Node& open_unit(Gen& gen, const Level& level, const std::string& grid, Node*& block) {
  block = &gen.out.function.open(format("{}parallel {} : block", level.attribute, grid));
  return level.unit.empty() ? *block : block->open(level.unit);
}

void add_tile_unit(Gen& gen) {
  Draw& draw = gen.draw;
  const Level level = drawn_level(gen);
  Window window{.tile = drawn_shape(draw, level.threads), .units = level.units};
  window.unit = level.unit.empty() ? "" : "w";
  const TileShape all = window.block_shape(window.tile);
  const int block_rows = draw.within(1, 3);
  const int columns = draw.within(1, 3);
  const bool loops = draw.chance(45);
  window.block_row = "b";
  window.m = gen.dimension(ragged(draw, all.rows, block_rows), all.rows);
  const Extent n = gen.dimension(ragged(draw, all.cols, columns), all.cols);
  const Extent one_tile = gen.dimension(ragged(draw, all.cols, 1), all.cols);
  window.row_tiles = gen.constant(static_cast<std::int64_t>(block_rows) * level.units);
  const std::string blocks = format("cdiv({}, {})", window.m.text, all.rows);
  Window inner = window;
  inner.n = n;
  inner.col_tiles = gen.constant(columns);
  inner.col = loops ? "k" : "c";
  window.col = "0";
  window.n = one_tile;
  window.col_tiles = {"1", 1};
  if (!loops) window = inner;
  Node* block = nullptr;
  Node& unit = open_unit(gen, level,
                         loops ? format("b by {}", blocks)
                               : format("{{b, c}} by [{}, cdiv({}, {})]", blocks, n.text, all.cols),
                         block);
  Tiles tiles(gen, *block, window);
  tiles.load(unit, loaded_type(draw), window.tile);
  const int loads = draw.within(0, 2);
  for (int i = 0; i < loads; ++i) {
    TileShape shape = window.tile;
    if (draw.chance(40)) (draw.chance(50) ? shape.rows : shape.cols) = 1;
    tiles.load(unit, loaded_type(draw), shape);
  }
  const int before = draw.within(1, loops ? 3 : 7);
  for (int i = 0; i < before; ++i) tiles.statement(unit);
  if (loops) {
    tiles.loop(unit, inner, columns);
    if (draw.chance(60)) tiles.statement(unit);
  }
  const int stores = draw.within(1, 3);
  for (int i = 0; i < stores; ++i) tiles.store(unit);
}

// Types and extents of a product of one unit.
struct TileProduct {
  DType a;
  DType c;
  int m;
  int n;
  int k;
};

TileProduct drawn_product(Gen& gen, bool wide) {
  Draw& draw = gen.draw;
  if (wide) {
    const DType a = draw.of({D::kBF16, D::kF16, D::kBF16, D::kS8});
    const int n = a == D::kS8 ? 16 * draw.within(1, 2) : 8 * draw.within(1, 8);
    const int k = (a == D::kS8 ? 32 : 16) * draw.of({2, 4});
    return {a, a == D::kS8 ? D::kS32 : D::kF32, 64, n, k};
  }
  std::vector<TileProduct> all;
  for (const DType a : {D::kF16, D::kBF16}) {
    for (const DType c : {D::kF32, D::kF16}) {
      if (a == D::kBF16 && c == D::kF16) continue;
      all.push_back({a, c, 16, 8, 16});
      all.push_back({a, c, 16, 8, 8});
      all.push_back({a, c, 16, 16, 16});
      all.push_back({a, c, 32, 8, 16});
    }
  }
  for (const DType a : {D::kS8, D::kU8}) {
    all.push_back({a, D::kS32, 16, 8, 32});
    all.push_back({a, D::kS32, 16, 16, 16});
  }
  all.push_back({D::kF64, D::kF64, 8, 8, 4});
  return draw.of(all);
}

std::string zero(DType c) { return c == D::kS32 ? "0" : c == D::kF64 ? "0.0" : "0.0f"; }

Value accumulated(const std::string& name, DType c) {
  Value out = leaf(name, c);
  out.exact = c == D::kS32;
  if (c == D::kS32) out.low = -(1 << 27), out.high = 1 << 27;
  return out;
}

class ProductOfTiles {
 public:
  explicit ProductOfTiles(Gen& gen)
      : gen_(gen), wide_(gen.hopper() && gen.draw.chance(55)), is_(drawn_product(gen, wide_)) {}

  void write() {
    if (is_.c != D::kS32) gen_.out.exact = false;
    draw_sizes();
    Node& block =
        gen_.out.function.open(format("parallel {{b, c}} by [cdiv({}, {}), cdiv({}, {})] : block",
                                      m_.text, is_.m * units_, n_.text, is_.n));
    Node& unit = block.open(format("parallel w by {} : {}", units_, wide_ ? "group-4" : "group"));
    unit.line(format("acc = mma.fill.{} {};", name(is_.c), zero(is_.c)));
    Node& loop = unit.open(format("foreach k in [cdiv({}, {})]", k_.text, is_.k));
    multiply(block, loop);
    Tiles tiles(gen_, block, window_);
    tiles.add({.value = accumulated("acc", is_.c), .shape = window_.tile});
    tiles.load(unit, draw().chance(50) ? is_.c : loaded_type(draw()), window_.tile);
    if (draw().chance(50)) tiles.load(unit, loaded_type(draw()), {1, window_.tile.cols});
    if (draw().chance(50)) tiles.load(unit, loaded_type(draw()), {window_.tile.rows, 1});
    const int statements = draw().within(1, 5);
    for (int i = 0; i < statements; ++i) tiles.statement(unit);
    if (draw().chance(40)) chain(block, unit, tiles);
    const int stores = draw().within(1, 2);
    for (int i = 0; i < stores; ++i) tiles.store(unit);
    plain_store(unit);
  }

 private:
  [[nodiscard]] Draw& draw() const { return gen_.draw; }

  void draw_sizes() {
    units_ = wide_ ? draw().of({1, 1, 2}) : draw().of({1, 1, 2, 3});
    const int rows = is_.m * units_;
    const int row_tiles = draw().within(1, 2);
    const int col_tiles = draw().within(1, 2);
    m_ = gen_.dimension(ragged(draw(), rows, row_tiles), rows);
    n_ = gen_.dimension(ragged(draw(), is_.n, col_tiles), is_.n);
    k_ = gen_.dimension(ragged(draw(), is_.k, draw().within(1, 3)), is_.k);
    window_ = {.tile = {is_.m, is_.n},
               .units = units_,
               .block_row = "b",
               .unit = "w",
               .col = "c",
               .m = m_,
               .n = n_,
               .row_tiles = gen_.constant(static_cast<std::int64_t>(row_tiles) * units_),
               .col_tiles = gen_.constant(col_tiles)};
  }

  // A side of the product as an operand: a tile that is loaded and computed, or what memory holds.
  // `view` is the unit's part.
  std::string computed(Node& at, const std::string& view, DType from, TileShape shape) {
    const std::string loaded = gen_.name("t");
    at.line(format("{} = frag.load {};", loaded, view));
    Window window = window_;
    window.tile = shape;
    Tiles tiles(gen_, at, window);
    tiles.add({.value = leaf(loaded, from), .shape = shape});
    auto made = tiles.expression(is_.a, shape, 2);
    // What is multiplied comes from memory.
    if (made && made->value.text.find(loaded) == std::string::npos) made.reset();
    const std::string text = made ? made->value.text : format("__to<{}>({})", name(is_.a), loaded);
    if (!made && is_integer(is_.a)) return loaded;
    if (draw().chance(50)) return text;
    const std::string operand = gen_.name("t");
    at.line(format("{} = {};", operand, text));
    return operand;
  }

  void multiply(Node& block, Node& loop) {
    const bool a_row = wide_ || draw().chance(60);
    const bool b_row = wide_ && size_bytes(is_.a) == 1 ? true : draw().chance(60);
    const bool tile_a = draw().chance(70);
    const bool tile_b = !wide_ && draw().chance(50);
    const DType from =
        tile_a && !is_integer(is_.a) ? draw().of({is_.a, D::kF32, D::kS8, D::kBF16}) : is_.a;
    const int rows = is_.m * units_;
    const Param a = gen_.input(from, a_row ? std::vector{m_, k_} : std::vector{k_, m_});
    const Param b = gen_.input(is_.a, b_row ? std::vector{n_, k_} : std::vector{k_, n_});
    const std::string a_block = a_row ? format("{}.subspan({}, {}).at(b, k)", a.name, rows, is_.k)
                                      : format("{}.subspan({}, {}).at(k, b)", a.name, is_.k, rows);
    const auto a_part = [&](const std::string& of) {
      return a_row ? format("{}.subspan({}, {}).at(w, 0)", of, is_.m, is_.k)
                   : format("{}.subspan({}, {}).at(0, w)", of, is_.k, is_.m);
    };
    const std::string b_block = b_row ? format("{}.subspan({}, {}).at(c, k)", b.name, is_.n, is_.k)
                                      : format("{}.subspan({}, {}).at(k, c)", b.name, is_.k, is_.n);
    std::string a_from = a_part(a_block);
    if (!tile_a && (wide_ || draw().chance(60))) {
      block.body.push_front({.text = format("shared {} [{}] a_s;", name(from),
                                            a_row ? list({rows, is_.k}) : list({is_.k, rows}))});
      loop.line(format("dma.copy {} => a_s;", a_block));
      a_from = a_part("a_s");
    }
    std::string b_from = b_block;
    if (!tile_b && (wide_ || draw().chance(60))) {
      block.body.push_front({.text = format("shared {} [{}] b_s;", name(is_.a),
                                            b_row ? list({is_.n, is_.k}) : list({is_.k, is_.n}))});
      loop.line(format("dma.copy {} => b_s;", b_block));
      b_from = "b_s";
    }
    const TileShape a_shape = a_row ? TileShape{is_.m, is_.k} : TileShape{is_.k, is_.m};
    const TileShape b_shape = b_row ? TileShape{is_.n, is_.k} : TileShape{is_.k, is_.n};
    const std::string left = tile_a ? computed(loop, a_from, from, a_shape) : operand(loop, a_from);
    const std::string right =
        tile_b ? computed(loop, b_from, is_.a, b_shape) : operand(loop, b_from);
    if (is_.c != D::kS32 && draw().chance(25)) loop.line("acc = acc * 0.5f;");
    loop.line(format("mma.{}.{} acc, {}, {};", a_row ? "row" : "col", b_row ? "row" : "col", left,
                     right));
  }

  std::string operand(Node& at, const std::string& view) {
    const std::string made = gen_.name("o");
    at.line(format("{} = mma.load {};", made, view));
    return made;
  }

  static std::string list(std::initializer_list<int> sizes) {
    return programs::list(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
  }

  // A second product, one of whose operands is made of the first one's result.
  void chain(Node& block, Node& unit, Tiles& tiles) {
    const bool fits =
        wide_ ? (is_.a != D::kS8 && is_.n % 16 == 0) : (is_.m == 16 && is_.n == 16 && is_.k == 16);
    if (!fits) return;
    const auto p = tiles.expression(is_.a, window_.tile, 2);
    if (!p) return;
    const int n = wide_ ? 8 * draw().of({1, 2, 4, 8}) : 16;
    const Param v = gen_.input(is_.a, {n_, gen_.dimension(n, n)});
    std::string from = format("{}.subspan({}, {}).at(c, 0)", v.name, is_.n, n);
    if (wide_) {
      block.body.push_front({.text = format("shared {} [{}] v_s;", name(is_.a), list({is_.n, n}))});
      unit.line(format("dma.copy {} => v_s;", from));
      from = "v_s";
    }
    unit.line(format("next = mma.fill.{} {};", name(is_.c), zero(is_.c)));
    unit.line(
        format("mma.row.col next, {}, {};", p->value.text, wide_ ? from : operand(unit, from)));
    const Param y = gen_.output(is_.c, {m_, gen_.constant(n * window_.col_tiles.value)});
    Window window = window_;
    window.tile = {is_.m, n};
    unit.line(format("frag.store next, {};", window.part(y.name, window.tile)));
  }

  void plain_store(Node& unit) {
    const Param y = gen_.output(is_.c, {m_, n_});
    unit.line(format("{}.store acc, {};", draw().of({"mma", "frag"}),
                     window_.part(y.name, window_.tile)));
  }

  Gen& gen_;
  bool wide_;
  TileProduct is_;
  Extent m_, n_, k_;
  Window window_;
  int units_ = 1;
};

void add_tile_product(Gen& gen) { ProductOfTiles(gen).write(); }

}  // namespace

void draw_tile_family(Gen& gen) {
  const bool product = gen.draw.chance(35);
  gen.out.family = product ? "tile_product" : "tiles";
  (product ? add_tile_product : add_tile_unit)(gen);
}

}  // namespace kiln::programs
