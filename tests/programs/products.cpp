// Products of warps and of warpgroups, with everything around them.
#include <algorithm>
#include <array>
#include <span>

#include "programs/expr.h"
#include "programs/families.h"
#include "target/arch.h"

namespace kiln::programs {

namespace {

// A line of the manual's table: one `mma` statement.
struct Kind {
  DType a;
  DType b;
  DType c;
  int m;
  int n;
  int k;
  int from;  // sm_80, 89 or 90
  bool sparse = false;
};

struct Types {
  DType a;
  DType b;
  DType c;
};

using D = DType;
constexpr Types kHalves[] = {
    {D::kF16, D::kF16, D::kF16}, {D::kF16, D::kF16, D::kF32}, {D::kBF16, D::kBF16, D::kF32}};
constexpr Types kSingles[] = {{D::kF32, D::kF32, D::kF32}, {D::kTF32, D::kTF32, D::kF32}};
constexpr Types kIntegers[] = {{D::kS8, D::kS8, D::kS32},
                               {D::kU8, D::kU8, D::kS32},
                               {D::kS8, D::kU8, D::kS32},
                               {D::kU8, D::kS8, D::kS32}};
constexpr Types kEighths[] = {{D::kE4M3, D::kE4M3, D::kF32},
                              {D::kE5M2, D::kE5M2, D::kF32},
                              {D::kE4M3, D::kE5M2, D::kF16},
                              {D::kE5M2, D::kE4M3, D::kF32},
                              {D::kE4M3, D::kE4M3, D::kF16}};

void add_kinds(std::vector<Kind>& out, std::span<const Types> types,
               std::initializer_list<std::array<int, 3>> tiles, int from, bool sparse = false) {
  for (const Types& each : types) {
    for (const auto& tile : tiles)
      out.push_back({each.a, each.b, each.c, tile[0], tile[1], tile[2], from, sparse});
  }
}

std::vector<Kind> warp_kinds(const std::string& arch) {
  std::vector<Kind> all;
  add_kinds(all, kHalves, {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 8, 16}, {16, 8, 8}}, 80);
  add_kinds(all, std::span(kSingles).first(1), {{16, 16, 8}, {16, 8, 8}, {16, 8, 4}}, 80);
  add_kinds(all, kIntegers,
            {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 8, 32}, {16, 8, 16}, {8, 8, 16}}, 80);
  add_kinds(all, kEighths, {{16, 8, 32}}, 89);
  constexpr Types kDoubles[] = {{D::kF64, D::kF64, D::kF64}};
  add_kinds(all, kDoubles, {{8, 8, 4}}, 80);
  add_kinds(all, kDoubles, {{16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, 90);
  add_kinds(all, kHalves, {{16, 8, 16}, {16, 8, 32}}, 80, true);
  add_kinds(all, std::span(kSingles).first(1), {{16, 8, 8}, {16, 8, 16}}, 80, true);
  add_kinds(all, kIntegers, {{16, 8, 32}, {16, 8, 64}}, 80, true);
  add_kinds(all, std::span(kEighths).first(2), {{16, 8, 64}}, 89, true);
  const int capability = target::find_arch(arch)->capability;
  std::erase_if(all, [&](const Kind& kind) { return kind.from > capability; });
  return all;
}

std::string zero_sum(DType c) { return c == D::kS32 ? "0" : c == D::kF64 ? "0.0" : "0.0f"; }

std::string fill_of(Draw& draw, DType c) {
  const std::string start = draw.chance(80) ? zero_sum(c)
                            : c == D::kS32  ? "3"
                            : c == D::kF64  ? "1.5"
                                            : "1.5f";
  return format("mma.fill.{} {}", name(c), start);
}

// What an accumulator may be stored as.
DType stored_type(Draw& draw, DType c) {
  if (c == D::kS32 || c == D::kF64) return c;
  if (c == D::kF16) return draw.of({D::kF16, D::kF16, D::kF32});
  return draw.of({D::kF32, D::kF16, D::kBF16});
}

int ragged(Draw& draw, int tile, int tiles, int multiple) {
  int out = tile * tiles - (draw.chance(60) ? draw.within(0, tile - 1) : 0);
  out = (out + multiple - 1) / multiple * multiple;
  return std::max(out, multiple);
}

// One side: its tensor [outer, K] (row) or [K, outer] (col).
struct Operand {
  bool row = true;
  Param tensor;
  int outer = 0;  // of the block's tile
  int depth = 0;
  [[nodiscard]] std::string sizes() const {
    return row ? format("{}, {}", outer, depth) : format("{}, {}", depth, outer);
  }
  [[nodiscard]] std::string window(const std::string& at, const std::string& k) const {
    return row ? format("{}.subspan({}).at({}, {})", tensor.name, sizes(), at, k)
               : format("{}.subspan({}).at({}, {})", tensor.name, sizes(), k, at);
  }
  // Part `i` of so many rows, step `s` of so deep ones.
  [[nodiscard]] std::string part(const std::string& tile, int rows, int deep, const std::string& i,
                                 const std::string& s) const {
    return row ? format("{}.subspan({}, {}).at({}, {})", tile, rows, deep, i, s)
               : format("{}.subspan({}, {}).at({}, {})", tile, deep, rows, s, i);
  }
};

// `apply` with an expression of the element and what belongs to its column.
struct Epilogue {
  DType c;
  std::string column;  // of the tile's first
  Param bias;
  Extent n;
};
void add_apply(Gen& gen, Node& at, const Epilogue& how) {
  const auto& [type, column, bias, n] = how;
  Node& body = at.open("apply {i, j} in mc.span");
  body.line(format("column = {} + j;", column));
  body.line(format("mutable {} extra = {};", name(type), zero_sum(type)));
  body.line(format("if (column < {}) extra = {}.at(column);", n.text, bias.name));
  Value element = leaf("mc.at(i, j)", type);
  Value extra = leaf("extra", type);
  element.exact = extra.exact = type == D::kS32;
  Exprs exprs(gen, {element, extra, bounded("i", 7), bounded("j", 7)});
  body.line(format("mc.at(i, j) = {};", exprs.of(type, 2).text));
}

class WarpProduct {
 public:
  explicit WarpProduct(Gen& gen) : gen_(gen), kind_(gen.draw.of(warp_kinds(gen.out.arch))) {}

  void write() {
    if (kind_.c != D::kS32) gen_.out.exact = false;
    draw_sizes();
    make_params();
    // The hardware moves rows of 16 bytes and more.
    const auto inner = [&](const Operand& of) {
      return (of.row ? of.depth : of.outer) * size_bytes(kind_.a);
    };
    if (inner(a_) % 16 != 0 || inner(b_) % 16 != 0) bulk_ = false;
    Node& block =
        gen_.out.function.open(format("parallel {{bm, bn}} by [cdiv({}, {}), cdiv({}, {})] : block",
                                      m_.text, a_.outer, n_.text, b_.outer));
    if (through_shared_) {
      block.line(format("shared {} [{}] a_s;", name(kind_.a), a_shared_sizes()));
      block.line(format("shared {} [{}] b_s;", name(kind_.b), b_.sizes()));
    }
    if (store_shared_)
      block.line(format("shared {} [{}, {}] y_s;", name(y_.type), transposed_ ? b_.outer : a_.outer,
                        transposed_ ? a_.outer : b_.outer));
    Node& warps = block.open(format("parallel {{wm, wn}} by [{}, {}] : group", warps_m_, warps_n_));
    const std::string c = "mc";
    warps.line(format("{} = {};", c, fill_of(draw(), kind_.c)));
    if (two_) warps.line(format("md = {};", fill_of(draw(), kind_.c)));
    accumulate(warps);
    if (epilogue_)
      add_apply(gen_, warps, {kind_.c, format("bn * {} + wn * {}", b_.outer, kind_.n), bias_, n_});
    store(block, warps, c, y_);
    if (two_) warps.line(format("mma.store md, {};", global_part(second_)));
  }

 private:
  Draw& draw() { return gen_.draw; }
  std::string a_shared_sizes() const {
    return kind_.sparse ? format("{}, {}", a_.outer, a_.depth / 2) : a_.sizes();
  }

  void draw_sizes() {
    warps_m_ = draw().of({1, 1, 2, 3});
    warps_n_ = draw().of({1, 2});
    steps_ = draw().of({1, 2, 4});
    a_.outer = kind_.m * warps_m_;
    b_.outer = kind_.n * warps_n_;
    a_.depth = b_.depth = kind_.k * steps_;
    through_shared_ = draw().chance(80);
    store_shared_ = draw().chance(40);
    transposed_ = draw().chance(15);
    two_ = !transposed_ && draw().chance(20);
    epilogue_ = (kind_.c == D::kF32 || kind_.c == D::kS32) && draw().chance(30);
    a_.row = kind_.sparse || draw().chance(60);
    b_.row = draw().chance(60);
    bulk_ = gen_.hopper() && through_shared_ && !kind_.sparse && draw().chance(40);
  }

  void make_params() {
    const int multiple = bulk_ ? 16 : 1;
    // What is packed or described by fewer columns than K must end with K.
    const int k = kind_.sparse ? a_.depth * draw().within(1, 3)
                               : ragged(draw(), a_.depth, draw().within(1, 3), multiple);
    m_ = gen_.dimension(ragged(draw(), a_.outer, draw().within(1, 2), a_.row ? 1 : multiple),
                        a_.outer);
    n_ = gen_.dimension(ragged(draw(), b_.outer, draw().within(1, 2), b_.row ? 1 : multiple),
                        b_.outer);
    k_ = gen_.dimension(k, a_.depth);
    if (kind_.sparse) {
      a_.tensor = gen_.input(kind_.a, {m_, {format("{}", k / 2), k / 2}});
      const int share = kind_.a == D::kF32 ? 4 : 8;
      meta_ = gen_.param(kind_.a == D::kF32 ? "pairs" : "meta", D::kU8,
                         {m_, {format("{}", k / share), k / share}});
    } else {
      a_.tensor = gen_.input(kind_.a, a_.row ? std::vector{m_, k_} : std::vector{k_, m_});
    }
    b_.tensor = gen_.input(kind_.b, b_.row ? std::vector{n_, k_} : std::vector{k_, n_});
    if (epilogue_) bias_ = gen_.input(kind_.c, {n_});
    const DType type = stored_type(draw(), kind_.c);
    y_ = gen_.output(type, transposed_ ? std::vector{n_, m_} : std::vector{m_, n_});
    if (two_) second_ = gen_.output(stored_type(draw(), kind_.c), {m_, n_});
  }

  void accumulate(Node& warps) {
    Node& loop = warps.open(format("foreach k in [cdiv({}, {})]", k_.text, a_.depth));
    const std::string word = bulk_ ? "tma.copy" : "dma.copy";
    if (through_shared_) {
      loop.line(format("{} {} => a_s;", word,
                       kind_.sparse
                           ? format("{}.subspan({}).at(bm, k)", a_.tensor.name, a_shared_sizes())
                           : a_.window("bm", "k")));
      loop.line(format("{} {} => b_s;", word, b_.window("bn", "k")));
    }
    Node& steps = steps_ > 1 ? loop.open(format("foreach s in [{}]{}", steps_,
                                                draw().chance(20) ? " : unroll(2)" : ""))
                             : loop;
    const std::string s = steps_ > 1 ? "s" : "0";
    const std::string a = through_shared_ ? "a_s" : a_.window("bm", "k");
    const std::string b = through_shared_ ? "b_s" : b_.window("bn", "k");
    const int a_deep = kind_.sparse ? kind_.k / 2 : kind_.k;
    std::string a_from = through_shared_ || !kind_.sparse
                             ? a
                             : format("{}.subspan({}).at(bm, k)", a_.tensor.name, a_shared_sizes());
    steps.line(format("ma = mma.load {};", a_.part(a_from, kind_.m, a_deep, "wm", s)));
    steps.line(format("mb = mma.load {};", b_.part(b, kind_.n, kind_.k, "wn", s)));
    const std::string suffix = format("{}.{}", a_.row ? "row" : "col", b_.row ? "row" : "col");
    if (kind_.sparse) {
      const int share = kind_.a == D::kF32 ? 4 : 8;
      steps.line(format("me = mma.load {}.subspan({}, {}).at(bm * {} + wm, k * {} + {});",
                        meta_.name, kind_.m, kind_.k / share, warps_m_, steps_, s));
      steps.line(format("mma.{}.sp mc, ma, mb, me;", suffix));
      if (two_) steps.line(format("mma.{}.sp md, ma, mb, me;", suffix));
      return;
    }
    steps.line(format("mma.{} mc, ma, mb;", suffix));
    if (two_) steps.line(format("mma.{} md, ma, mb;", suffix));
  }

  std::string global_part(const Param& y) {
    return format("{}.subspan({}, {}).at(bm, bn).subspan({}, {}).at(wm, wn)", y.name, a_.outer,
                  b_.outer, kind_.m, kind_.n);
  }

  void store(Node& block, Node& warps, const std::string& c, const Param& y) {
    const std::string word = transposed_ ? "mma.store.transp" : "mma.store";
    if (!store_shared_) {
      const std::string to =
          transposed_ ? format("{}.subspan({}, {}).at(bn, bm).subspan({}, {}).at(wn, wm)", y.name,
                               b_.outer, a_.outer, kind_.n, kind_.m)
                      : global_part(y);
      warps.line(format("{} {}, {};", word, c, to));
      return;
    }
    warps.line(transposed_
                   ? format("{} {}, y_s.subspan({}, {}).at(wn, wm);", word, c, kind_.n, kind_.m)
                   : format("{} {}, y_s.subspan({}, {}).at(wm, wn);", word, c, kind_.m, kind_.n));
    block.line(
        transposed_
            ? format("dma.copy y_s => {}.subspan({}, {}).at(bn, bm);", y.name, b_.outer, a_.outer)
            : format("dma.copy y_s => {}.subspan({}, {}).at(bm, bn);", y.name, a_.outer, b_.outer));
  }

  Gen& gen_;
  Kind kind_;
  Operand a_, b_;
  Param y_, second_, bias_, meta_;
  Extent m_, n_, k_;
  int warps_m_ = 1, warps_n_ = 1, steps_ = 1;
  bool through_shared_ = true, store_shared_ = false, transposed_ = false, two_ = false,
       epilogue_ = false, bulk_ = false;
};

// --- warpgroups

std::vector<Kind> wide_kinds(Draw& draw) {
  std::vector<Kind> all;
  const int n = 8 * draw.within(1, draw.chance(30) ? 32 : 12);
  const auto add = [&](std::span<const Types> types, int k, bool sparse) {
    for (const Types& each : types) all.push_back({each.a, each.b, each.c, 64, n, k, 90, sparse});
  };
  for (const bool sparse : {false, true}) {
    const int times = sparse ? 2 : 1;
    add(kHalves, 16 * times, sparse);
    add(std::span(kSingles).first(1), 8 * times, sparse);
    add(kEighths, 32 * times, sparse);
    add(kIntegers, 32 * times, sparse);
  }
  std::vector<Kind> dense;
  std::copy_if(all.begin(), all.end(), std::back_inserter(dense),
               [](const Kind& kind) { return !kind.sparse; });
  return draw.chance(80) ? dense : all;
}

class WideProduct {
 public:
  explicit WideProduct(Gen& gen) : gen_(gen), kind_(gen.draw.of(wide_kinds(gen.draw))) {}

  void write() {
    if (kind_.c != D::kS32) gen_.out.exact = false;
    draw_sizes();
    make_params();
    if (ring_) {
      with_producer();
    } else {
      alone();
    }
  }

 private:
  Draw& draw() { return gen_.draw; }

  void draw_sizes() {
    if (kind_.c == D::kS32 && kind_.n > 32) kind_.n = kind_.n / 16 * 16;
    groups_ = draw().of({1, 1, 2});
    depth_ = kind_.k * draw().of({1, 2, 4});
    // Rows of what bulk copies bring have 16 bytes at least, and the hardware's swizzles 32.
    while (depth_ * size_bytes(kind_.a) < 64) depth_ *= 2;
    ring_ = !kind_.sparse && draw().chance(60);
    const bool halves = size_bytes(kind_.a) == 2;
    a_.row = kind_.sparse || !halves || draw().chance(70);
    b_.row = !halves || draw().chance(70);
    if (!a_.row) depth_ = std::max(depth_, 32);
    a_.outer = 64 * groups_;
    // Panels of a `col` operand are whole ones.
    if (!b_.row) kind_.n = draw().of({32, 64, 128});
    b_.outer = kind_.n;
    a_.depth = b_.depth = depth_;
    bulk_ = ring_ ? draw().chance(75) : draw().chance(50);
    epilogue_ = (kind_.c == D::kF32 || kind_.c == D::kS32) && draw().chance(30);
    scaled_ = kind_.c == D::kF32 && !kind_.sparse && draw().chance(15);
    cluster_ = ring_ && bulk_ && draw().chance(25);
    stages_ = draw().within(1, 3);
    while (stages_ > 1 && stages_ * (a_.outer + b_.outer) * depth_ * size_bytes(kind_.a) > 150000)
      --stages_;
  }

  void make_params() {
    // 16 bytes: of a row that bulk copies read, and of what they store.
    const int multiple = 16;
    const int k = kind_.sparse ? depth_ * draw().within(1, 3)
                               : ragged(draw(), depth_, draw().within(1, 4), multiple);
    m_ = gen_.dimension(cluster_
                            ? a_.outer * 2 - draw().within(0, 3) * 16
                            : ragged(draw(), a_.outer, draw().within(1, 2), a_.row ? 1 : multiple),
                        a_.outer);
    n_ = gen_.dimension(ragged(draw(), b_.outer, draw().within(1, 2), multiple), b_.outer);
    k_ = gen_.dimension(k, depth_);
    if (kind_.sparse) {
      a_.tensor = gen_.input(kind_.a, {m_, {format("{}", k / 2), k / 2}});
      const int share = kind_.a == D::kF32 ? 4 : 8;
      meta_ = gen_.param(kind_.a == D::kF32 ? "pairs" : "meta", D::kU8,
                         {m_, {format("{}", k / share), k / share}});
    } else {
      a_.tensor = gen_.input(kind_.a, a_.row ? std::vector{m_, k_} : std::vector{k_, m_});
    }
    b_.tensor = gen_.input(kind_.b, b_.row ? std::vector{n_, k_} : std::vector{k_, n_});
    if (epilogue_) bias_ = gen_.input(kind_.c, {n_});
    if (scaled_) scale_ = gen_.input(D::kF32, {m_, {"1", 1}});
    y_ = gen_.output(stored_type(draw(), kind_.c), {m_, n_});
  }

  std::string grid() {
    return format("parallel {{bm, bn}} by [cdiv({}, {}), cdiv({}, {})] : block", m_.text, a_.outer,
                  n_.text, b_.outer);
  }
  std::string a_sizes() const {
    return kind_.sparse ? format("{}, {}", a_.outer, depth_ / 2) : a_.sizes();
  }
  std::string a_window(const std::string& k) const {
    return kind_.sparse ? format("{}.subspan({}).at(bm, {})", a_.tensor.name, a_sizes(), k)
                        : a_.window("bm", k);
  }

  // The products on one stage.
  void multiply(Node& at, const std::string& a, const std::string& b, const std::string& p) {
    const std::string suffix = format("{}.{}", a_.row ? "row" : "col", b_.row ? "row" : "col");
    const int times = depth_ / kind_.k;
    if (kind_.sparse) {
      const int share = kind_.a == D::kF32 ? 4 : 8;
      at.line(format("ma = mma.load {}.subspan(64, {}).at({}, 0);", a, depth_ / 2, p));
      at.line(format("mb = mma.load {};", b));
      at.line(format("me = mma.load {}.subspan(64, {}).at(bm * {} + {}, k);", meta_.name,
                     depth_ / share, groups_, p));
      at.line(format("mma.{}.sp mc, ma, mb, me;", suffix));
      return;
    }
    if (groups_ == 1 && draw().chance(40)) {
      if (!scaled_ && draw().chance(25)) {
        at.line(format("done = mma.{}.async mc, {}, {};", suffix, a, b));
        at.line("wait done;");
        return;
      }
      at.line(format("mma.{} mc, {}, {};", suffix, a, b));
      if (!scaled_ && draw().chance(15)) {
        at.line("mma.commit;");
        at.line("mma.wait<0>;");
      }
      return;
    }
    const bool whole = draw().chance(40);
    Node& loop = whole ? at : at.open(format("foreach s in [{}]", times));
    const int deep = whole ? depth_ : kind_.k;
    const std::string s = whole ? "0" : "s";
    const std::string frag = a_.row && draw().chance(15) ? ".frag" : "";
    loop.line(format("ma = mma.load{} {};", frag, a_.part(a, 64, deep, p, s)));
    loop.line(format("mb = mma.load {};", b_.part(b, kind_.n, deep, "0", s)));
    loop.line(format("mma.{} mc, ma, mb;", suffix));
  }

  void finish(Node& at, const std::string& p, bool by_threads_of_one) {
    if (epilogue_) add_apply(gen_, at, {kind_.c, format("bn * {}", b_.outer), bias_, n_});
    const std::string to = format("{}.subspan({}, {}).at(bm, bn).subspan(64, {}).at({}, 0)",
                                  y_.name, a_.outer, b_.outer, kind_.n, p);
    if (out_shared_ && by_threads_of_one) {
      at.line("mma.store mc, y_s;");
      at.line(format("{} y_s => {}.subspan({}, {}).at(bm, bn);",
                     out_bulk_ ? "tma.copy" : "dma.copy", y_.name, a_.outer, b_.outer));
      return;
    }
    if (draw().chance(15)) {
      at.line(format("mma.store.mask mc, {}, {}{};", to, draw().within(1, 64),
                     draw().chance(50) ? format(", {}", draw().within(1, kind_.n)) : ""));
      return;
    }
    if (kind_.n % 16 == 0 && draw().chance(25)) {
      for (int half = 0; half < 2; ++half) {
        at.line(format("mma.store mc.subspan(_, {}).at(_, {}), {}.subspan(64, {}).at(0, {});",
                       kind_.n / 2, half, to, kind_.n / 2, half));
      }
      return;
    }
    at.line(format("mma.store mc, {};", to));
  }

  void declare_out(Node& block) {
    out_shared_ = groups_ == 1 && draw().chance(50) && kind_.n * size_bytes(y_.type) % 16 == 0;
    out_bulk_ = out_shared_ && draw().chance(60);
    if (out_shared_) block.line(format("shared {} [64, {}] y_s;", name(y_.type), kind_.n));
  }

  void alone() {
    Node& block = gen_.out.function.open(grid());
    block.line(format("shared {} [{}] a_s;", name(kind_.a), a_sizes()));
    block.line(format("shared {} [{}] b_s;", name(kind_.b), b_.sizes()));
    declare_out(block);
    const bool outside = draw().chance(40) && !epilogue_;  // the accumulator belongs to the block
    const std::string level = format("parallel p by {} : group-4", groups_);
    Node& body = outside ? block : block.open(level);
    body.line(format("mc = {};", fill_of(draw(), kind_.c)));
    Node& loop = body.open(format("foreach k in [cdiv({}, {})]", k_.text, depth_));
    const std::string word = bulk_ && !kind_.sparse ? "tma.copy" : "dma.copy";
    loop.line(format("{} {} => a_s;", word, a_window("k")));
    loop.line(format("{} {} => b_s;", word, b_.window("bn", "k")));
    Node& inner = outside ? loop.open(level) : loop;
    multiply(inner, "a_s", "b_s", groups_ == 1 ? "0" : "p");
    if (scaled_)
      inner.line(format("mma.scale mc, {}.subspan({}, 1).at(bm, 0).subspan(64, 1).at({}, 0), 0.5f;",
                        scale_.name, a_.outer, groups_ == 1 ? "0" : "p"));
    Node& last = outside ? block.open(level) : body;
    finish(last, groups_ == 1 ? "0" : "p", true);
  }

  void with_producer() {
    Node* top = &gen_.out.function;
    if (cluster_) top = &top->open("parallel {rank} by [2] : cluster");
    Node& block = top->open(grid());
    const std::string ring = stages_ == 1 ? "" : format("[{}]", stages_);
    block.line(format("shared {} [{}] a_s{};", name(kind_.a), a_.sizes(), ring));
    block.line(format("shared {} [{}] b_s{};", name(kind_.b), b_.sizes(), ring));
    declare_out(block);
    const bool ready = draw().chance(60);
    block.line(format("shared event full{};", ring));
    block.line(format("shared event empty{}{};", ring, ready ? " = ready" : ""));
    Node& level = block.open(format("parallel p by {} : group-4", groups_ + 1));
    const auto slot = [&](const char* event) {
      return stages_ == 1 ? std::string(event) : format("{}[k % {}]", event, stages_);
    };
    Node& producer = level.open("inthreads.async (p == 0)");
    const bool registers = draw().chance(20);
    if (registers) producer.line("call croq::cuda::setreg_dec(40);");
    Node& loads = producer.open(format("foreach k in [cdiv({}, {})]", k_.text, depth_));
    loads.line(format("wait {};", slot("empty")));
    load(loads, slot);
    Node& consumer = level.open("inthreads.async (p >= 1)");
    if (registers) consumer.line("call croq::cuda::setreg_inc(160);");
    if (!ready) consumer.line(cluster_ ? "trigger.cluster empty;" : "trigger empty;");
    consumer.line(format("mc = {};", fill_of(draw(), kind_.c)));
    Node& loop = consumer.open(format("foreach k in [cdiv({}, {})]", k_.text, depth_));
    loop.line(format("wait {};", slot("full")));
    multiply(loop, slot("a_s"), slot("b_s"), groups_ == 1 ? "0" : "p - 1");
    if (scaled_)
      loop.line(format("mma.scale mc, {}.subspan({}, 1).at(bm, 0).subspan(64, 1).at({}, 0), 0.5f;",
                       scale_.name, a_.outer, groups_ == 1 ? "0" : "p - 1"));
    if (draw().chance(50)) loop.line("mma.commit;");
    loop.line(format("trigger{} {};", cluster_ ? ".cluster" : "", slot("empty")));
    finish(consumer, groups_ == 1 ? "0" : "p - 1", true);
  }

  void load(Node& at, const auto& slot) {
    const std::string cast = cluster_ ? ".multicast" : "";
    const std::string full = slot("full");
    if (!bulk_) {
      at.line(format("dma.copy {} => {};", a_.window("bm", "k"), slot("a_s")));
      at.line(format("dma.copy {} => {};", b_.window("bn", "k"), slot("b_s")));
      at.line(format("trigger {};", full));
    } else if (draw().chance(50)) {
      at.line(format("tma.copy.async<{}> {} => {};", full, a_.window("bm", "k"), slot("a_s")));
      at.line(
          format("tma.copy.async<{}>{} {} => {};", full, cast, b_.window("bn", "k"), slot("b_s")));
      at.line(format("trigger {};", full));
    } else {
      at.line(format("a_f = tma.load.async{} {} => {};", draw().chance(20) ? ".evict_first" : "",
                     a_.window("bm", "k"), slot("a_s")));
      // One hint is all that a copy takes.
      const bool evicts = draw().chance(20) && !cluster_;
      at.line(format("b_f = tma.load.async{}{} {} => {};", evicts ? ".evict_last" : "", cast,
                     b_.window("bn", "k"), slot("b_s")));
      at.line(format("trigger {} after a_f, b_f;", full));
    }
  }

  Gen& gen_;
  Kind kind_;
  Operand a_, b_;
  Param y_, bias_, meta_, scale_;
  Extent m_, n_, k_;
  int groups_ = 1, depth_ = 16, stages_ = 1;
  bool ring_ = false, bulk_ = false, epilogue_ = false, scaled_ = false, cluster_ = false;
  bool out_shared_ = false, out_bulk_ = false;
};

}  // namespace

void add_product(Gen& gen) { WarpProduct(gen).write(); }
void add_wide_product(Gen& gen) { WideProduct(gen).write(); }

}  // namespace kiln::programs
