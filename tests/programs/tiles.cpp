// Statements of register tiles: loads, elementwise expressions, reductions, updates, loops that carry
// tiles, stores.
//
// An expression is one of Exprs whose leaves are names of tiles; each tile has the unit's rows or one
// row, and its columns or one, so that any two of them meet. Integers stay in range as those of Exprs
// do: a sum is one of numbers that were cut before.
#include "programs/tiles.h"

#include <algorithm>
#include <utility>

#include "programs/outline.h"

namespace kiln::programs {

namespace {

constexpr int kReducedMost = 1000;  // of integers that are added up

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether the text has the part as a word of its own; then it is blanked out.
bool take(std::string& text, const std::string& part) {
  bool found = false;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    const bool inside = (at > 0 && is_name(text[at - 1]) && is_name(part.front())) ||
                        (end < text.size() && is_name(text[end]) && is_name(part.back()));
    if (inside) continue;
    text.replace(at, part.size(), part.size(), ' ');
    found = true;
  }
  return found;
}

std::string sizes(TileShape shape) { return format("{}, {}", shape.rows, shape.cols); }

std::string cut(const Value& value, int limit) {
  if (value.high < limit && value.low > -limit) return value.text;
  const char* suffix = value.type == DType::kU32   ? "u"
                       : value.type == DType::kU64 ? "ull"
                       : value.type == DType::kS64 ? "ll"
                                                   : "";
  return format("({} % {}{})", value.text, limit, suffix);
}

std::string number(DType type, int value) {
  if (type == DType::kF64) return format("{}.0", value);
  return is_float(type) ? format("{}.0f", value) : format("__to<{}>({})", name(type), value);
}

}  // namespace

std::vector<Extent> Window::extents(TileShape shape) const {
  return {shape.rows == tile.rows ? m : row_tiles, shape.cols == tile.cols ? n : col_tiles};
}

TileShape Window::block_shape(TileShape shape) const { return {shape.rows * units, shape.cols}; }

std::string Window::block_part(const std::string& tensor, TileShape shape) const {
  return format("{}.subspan({}).at({}, {})", tensor, sizes(block_shape(shape)), block_row, col);
}

std::string Window::unit_part(const std::string& buffer, TileShape shape) const {
  return unit.empty() ? buffer : format("{}.subspan({}).at({}, 0)", buffer, sizes(shape), unit);
}

std::string Window::part(const std::string& tensor, TileShape shape) const {
  return unit_part(block_part(tensor, shape), shape);
}

DType Tiles::number_type() {
  return draw().of({DType::kF32, DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF64,
                    DType::kS32, DType::kS32, DType::kU32});
}

TileShape Tiles::part_shape() {
  TileShape out = window_.tile;
  if (draw().chance(20)) out.rows = 1;
  if (draw().chance(20)) out.cols = 1;
  return out;
}

std::vector<Value> Tiles::leaves() {
  std::vector<Value> out;
  for (const TileValue& tile : tiles_) out.push_back(tile.value);
  for (const TileValue& tile : tiles_) {
    if (!tile.named || tile.shape != window_.tile) continue;
    out.push_back(bounded(format("__index({}, 0)", tile.value.text), tile.shape.rows - 1));
    out.push_back(bounded(format("__index({}, 1)", tile.value.text), tile.shape.cols - 1));
    out.push_back(
        bounded(format("({} * {} + __index({}, 1))", window_.col, tile.shape.cols, tile.value.text),
                100000));
    break;
  }
  return out;
}

TileShape Tiles::shape_of(const std::string& text) const {
  std::string rest = text;
  TileShape out{0, 0};
  const auto join = [&](TileShape shape) {
    out = {std::max(out.rows, shape.rows), std::max(out.cols, shape.cols)};
  };
  for (const TileValue& tile : tiles_) {
    if (take(rest, format("__index({}, 0)", tile.value.text))) join({tile.shape.rows, 1});
    if (take(rest, format("__index({}, 1)", tile.value.text))) join({1, tile.shape.cols});
  }
  for (const TileValue& tile : tiles_) {
    if (take(rest, tile.value.text)) join(tile.shape);
  }
  return out;
}

TileValue Tiles::any_expression(DType type, int depth) {
  Exprs exprs(gen_, leaves());
  for (int tries = 0; tries < 8; ++tries) {
    const Value value = exprs.of(type, depth);
    const TileShape shape = shape_of(value.text);
    if (shape.rows > 0) return {.value = value, .shape = shape, .named = false};
  }
  TileValue out = draw().of(tiles_);
  if (is_integer(out.value.type) && is_integer(type)) {
    out.value.text = cut(out.value, 100);
    out.value.low = is_integer(type) && out.value.low < 0 ? -99 : 0;
    out.value.high = 99;
    if (out.value.low < 0 && info(type).kind != NumberKind::kSigned) {
      out.value.text = format("({} & 63)", out.value.text);
      out.value.low = 0, out.value.high = 63;
    }
  } else if (is_integer(type)) {
    out.value.text = format("({0} - {0} > {1} ? 1 : 0)", out.value.text, number(out.value.type, 1));
    out.value.low = 0, out.value.high = 1;
  }
  out.value.text = format("__to<{}>({})", name(type), out.value.text);
  out.value.exact = is_integer(type);
  out.value.type = type;
  out.named = false;
  return out;
}

std::optional<TileValue> Tiles::expression(DType type, TileShape shape, int depth) {
  for (int tries = 0; tries < 6; ++tries) {
    TileValue out = any_expression(type, depth);
    if (out.shape == shape) return out;
  }
  return std::nullopt;
}

std::string Tiles::given(const TileValue& made) {
  if (!draw().chance(12)) return made.value.text;
  const auto call = outlined(gen_, {tiles_, window_}, made.value.text);
  if (!call) return made.value.text;
  // What the expression gives may be of another type than what was asked for.
  const std::string type(name(made.value.type));
  gen_.out.functions.push_back(
      format("{}__co_device__ frag {} [{}] {} {{\n  return __to<{}>({});\n}}", call->before, type,
             sizes(made.shape), call->head, type, made.value.text));
  return call->call;
}

std::string Tiles::done(const std::string& statement, const std::string& view,
                        const TileValue& stored) {
  const auto plain = [&] {
    const std::size_t at = statement.find('$');
    return at == std::string::npos ? statement : std::string(statement).replace(at, 1, view);
  };
  if (!draw().chance(12)) return plain();
  auto call = outlined(gen_, {tiles_, window_}, statement);
  if (!call) return plain();
  std::string body = statement;
  if (!view.empty()) {
    body.replace(body.find('$'), 1, "to");
    call->add(format("global {} [{}] to", name(stored.value.type), sizes(stored.shape)), view);
  }
  gen_.out.functions.push_back(
      format("{}__co_device__ void {} {{\n  {}\n}}", call->before, call->head, body));
  return call->call + ";";
}

void Tiles::define(Node& at, const TileValue& made) {
  TileValue tile = made;
  // A name alone keeps its own type, also where a number of any type was asked for.
  for (const TileValue& other : tiles_) {
    if (other.value.text == made.value.text) tile.value.type = other.value.type;
  }
  tile.value.text = gen_.name("t");
  tile.named = tile.anchored = true;
  const char* word = draw().chance(10) ? "frag " : draw().chance(10) ? "mutable " : "";
  TileValue typed = made;
  typed.value.type = tile.value.type;
  const std::string text = given(typed);
  tile.typed = text != made.value.text || text.starts_with("__to<") || text.starts_with("frag.");
  at.line(format("{}{} = {};", word, tile.value.text, text));
  tiles_.push_back(tile);
}

void Tiles::load(Node& at, DType type, TileShape shape) {
  const Param x = gen_.input(type, window_.extents(shape));
  std::string from = window_.part(x.name, shape);
  if (draw().chance(30)) {
    const std::string buffer = gen_.name("held");
    block_.body.push_front({.text = format("shared {} [{}] {};", name(type),
                                           sizes(window_.block_shape(shape)), buffer)});
    at.line(format("dma.copy {} => {};", window_.block_part(x.name, shape), buffer));
    from = window_.unit_part(buffer, shape);
  }
  TileValue made{.value = leaf(format("frag.load {}", from), type), .shape = shape};
  if (is_float(type) && info(type).bits == 8) {
    made.value.text = format("__to<f32>({})", made.value.text);
    made.value.type = DType::kF32;
  }
  define(at, made);
}

void Tiles::fill(Node& at) {
  const DType type = number_type();
  const int value = draw().within(0, 5);
  TileValue made{.value = leaf("", type), .shape = part_shape()};
  made.value.text = format("frag.fill.{} [{}] {}", name(type), sizes(made.shape),
                           is_float(type) ? number(type, value) : format("{}", value));
  made.value.low = made.value.high = value;
  define(at, made);
}

void Tiles::elementwise(Node& at) {
  define(at, any_expression(number_type(), draw().within(1, 3)));
}

std::optional<TileValue> Tiles::reduction(const TileValue& source, int dimension) {
  const Value& x = source.value;
  const bool integer = is_integer(x.type);
  const int count = dimension == 0 ? source.shape.rows : source.shape.cols;
  TileValue out{.value = x, .shape = source.shape, .named = false};
  (dimension == 0 ? out.shape.rows : out.shape.cols) = 1;
  const auto call = [&](const char* kind, const std::string& of) {
    out.value.text = format("__reduce_{}({}, {})", kind, of, dimension);
  };
  if (!integer) gen_.out.exact = false;
  switch (draw().within(0, 6)) {
    case 0:
    case 1: call("max", x.text); return out;
    case 2: call("min", x.text); return out;
    case 3:
    case 4:
      if (integer && info(x.type).bits < 32) return std::nullopt;
      call("sum", integer ? cut(x, kReducedMost) : x.text);
      out.value.low = x.low < 0 ? -1.0 * kReducedMost * count : 0;
      out.value.high = 1.0 * kReducedMost * count;
      break;
    case 5:
      if (integer && (info(x.type).bits < 32 || count > 60)) return std::nullopt;
      call("prod", integer ? cut(x, 2)
                           : format("({} > {} ? {} : {})", x.exact ? x.text : "0",
                                    x.exact ? number(x.type, 1) : "1", number(x.type, 2), x.text));
      if (!integer && !x.exact) call("prod", x.text);
      out.value.low = -1, out.value.high = 1;
      break;
    default:
      call("argmax", x.text);
      out.value.type = DType::kS32;
      out.value.low = 0, out.value.high = count - 1;
      return out;
  }
  if (!integer) {
    out.value.exact = false;
    if (info(x.type).bits < 32) out.value.type = DType::kF32;
  }
  return out;
}

void Tiles::reduce(Node& at) {
  if (draw().chance(20)) {
    TileValue made = any_expression(DType::kS32, 1);
    Exprs exprs(gen_, leaves());
    const std::string condition = exprs.condition(2).text;
    const TileShape shape = shape_of(condition);
    if (shape.rows == 0) return;
    const int dimension = draw().within(0, 1);
    made.shape = shape;
    (dimension == 0 ? made.shape.rows : made.shape.cols) = 1;
    made.value = bounded(
        format("__reduce_{}({} ? 1 : 0, {})", draw().of({"any", "all"}), condition, dimension), 1);
    return define(at, made);
  }
  const TileValue source =
      draw().chance(50) ? draw().of(tiles_) : any_expression(number_type(), draw().within(1, 2));
  if (auto made = reduction(source, draw().within(0, 1))) define(at, *made);
}

// `t = e;` and `t += e;` of a tile that there is already.
void Tiles::update(Node& at) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    if (tiles_[i].anchored) found.push_back(i);
  }
  if (found.empty()) return;
  const std::size_t which = draw().of(found);
  TileValue target = tiles_[which];
  const auto fits = [&](TileShape shape) {
    return (shape.rows == target.shape.rows || shape.rows == 1) &&
           (shape.cols == target.shape.cols || shape.cols == 1);
  };
  const DType type = target.value.type;
  for (int tries = 0; tries < 5; ++tries) {
    const TileValue made = any_expression(type, 2);
    if (!fits(made.shape)) continue;
    if (draw().chance(50)) {
      at.line(done(format("{} = {};", target.value.text, made.value.text)));
      target.value.exact = made.value.exact;
      target.value.low = std::min(target.value.low, made.value.low);
      target.value.high = std::max(target.value.high, made.value.high);
    } else if (is_float(type)) {
      at.line(done(
          format("{} {} {};", target.value.text, draw().of({"+=", "-=", "*="}), made.value.text)));
      gen_.out.exact = target.value.exact = false;
    } else if (info(type).bits >= 32 && target.value.high < 1e6 && target.value.low > -1e6) {
      at.line(done(format("{} += {};", target.value.text, cut(made.value, kReducedMost))));
      target.value.high += kReducedMost;
      target.value.low -= made.value.low < 0 ? kReducedMost : 0;
    } else {
      continue;
    }
    tiles_[which] = target;
    return;
  }
}

// What a condition of the whole unit leaves as it was, or sets.
void Tiles::under_condition(Node& at) {
  const std::vector<TileValue> before = tiles_;
  Node& body = at.open(format("if ({} % 2 == {})", window_.block_row, draw().within(0, 1)));
  update(body);
  if (draw().chance(50)) update(body);
  for (std::size_t i = 0; i < before.size(); ++i) {
    Value& value = tiles_[i].value;
    value.exact = value.exact && before[i].value.exact;
    value.low = std::min(value.low, before[i].value.low);
    value.high = std::max(value.high, before[i].value.high);
  }
  tiles_.resize(before.size());
}

// A tile whose type and extents are written down.
void Tiles::declared(Node& at) {
  const DType type = number_type();
  TileValue made = any_expression(type, 2);
  const std::string text = made.value.text;
  made.shape = {made.shape.rows == 1 ? part_shape().rows : made.shape.rows,
                made.shape.cols == 1 ? part_shape().cols : made.shape.cols};
  made.value.text = gen_.name("t");
  made.named = made.anchored = made.typed = true;
  if (draw().chance(50)) {
    at.line(format("frag {} [{}] {} = {};", name(type), sizes(made.shape), made.value.text, text));
  } else {
    at.line(format("frag {} [{}] {} {{{}}};", name(type), sizes(made.shape), made.value.text,
                   is_float(type) ? number(type, 1) : "1"));
    at.line(format("{} = {};", made.value.text, text));
  }
  tiles_.push_back(made);
}

// The bits of a tile of integers as elements of another width, and what is computed with those.
void Tiles::bits(Node& at) {
  std::vector<TileValue> found;
  for (const TileValue& tile : tiles_) {
    const bool known = tile.named && tile.value.exact && is_integer(tile.value.type);
    if (known && info(tile.value.type).bits <= 32) found.push_back(tile);
  }
  if (found.empty()) return;
  TileValue made = draw().of(found);
  const DType own = made.value.type;
  std::string& text = made.value.text;
  const int each = 32 / info(own).bits;
  made.named = false;
  if (each > 1) {
    if (made.shape.cols % each != 0) return;
    text = format("__bitcast<{}>(__bitcast<u32>({}) {})", name(own), text,
                  draw().of({">> 3", "+ 5", "^ 65535"}));
    made.value = leaf(text, own);
    return define(at, made);
  }
  if (draw().chance(40)) {
    const DType part = draw().of({DType::kU16, DType::kS16, DType::kU8, DType::kS8});
    text = format("__bitcast<{0}>(__bitcast<{1}>({2}) {3} __to<{1}>({4})) % 1000", name(own),
                  name(part), text, draw().of({"&", "^", "|"}), draw().within(0, 127));
    made.value.low = own == DType::kS32 ? -999 : 0;
    made.value.high = 999;
    return define(at, made);
  }
  // Numbers from 1 to 2 of every pattern.
  const bool brain = draw().chance(60);
  const std::string pair =
      format("__bitcast<{}>(({} & {}) | {})", brain ? "bf16" : "f16", text,
             brain ? "0x007f007f" : "0x03ff03ff", brain ? "0x3f803f80" : "0x3c003c00");
  const std::string number = draw().chance(50) ? format("{} * 4.0f - 6.0f", pair)
                                               : format("__fmaf({}, 4.0f, -6.0f)", pair);
  if (draw().chance(50)) {
    text = format("__bitcast<{}>({}) % 1000", name(own), number);
    made.value.low = own == DType::kS32 ? -999 : 0;
    made.value.high = 999;
    return define(at, made);
  }
  text = format("__reduce_sum({}, 1)", number);
  made.value = leaf(text, DType::kF32);
  made.value.exact = gen_.out.exact = false;
  made.shape.cols = 1;
  define(at, made);
}

void Tiles::statement(Node& at) {
  const int kind = draw().within(0, 99);
  if (draw().chance(8)) return bits(at);
  if (kind < 10) return fill(at);
  if (kind < 40) return elementwise(at);
  if (kind < 65) return reduce(at);
  if (kind < 82) return update(at);
  if (kind < 88) return under_condition(at);
  return declared(at);
}

// The largest and the sum of powers so far, of each row.
void Tiles::online(Node& loop, const std::string& source, const TileValue& peak,
                   const TileValue& sum) {
  const std::string next = gen_.name("next");
  const std::string share = gen_.name("share");
  const std::string& m = peak.value.text;
  const std::string& l = sum.value.text;
  loop.line(format("{} = __max({}, __reduce_max({}, 1));", next, m, source));
  loop.line(format("{} = __exp2f(({} - {}) * 0.125f);", share, source, next));
  loop.line(format("{0} = {0} * __exp2f(({1} - {2}) * 0.125f) + __reduce_sum({3}, 1);", l, m, next,
                   share));
  loop.line(format("{} = {};", m, next));
  tiles_.push_back({.value = {.text = share, .type = DType::kF32}, .shape = window_.tile});
}

void Tiles::loop(Node& at, const Window& inner, int count) {
  const TileShape row{window_.tile.rows, 1};
  TileValue peak{.value = leaf(gen_.name("m"), DType::kF32), .shape = row};
  TileValue sum{.value = leaf(gen_.name("l"), DType::kF32), .shape = row};
  TileValue counted{.value = leaf(gen_.name("c"), DType::kS32), .shape = part_shape()};
  peak.value.exact = sum.value.exact = false;
  counted.value.low = -999, counted.value.high = 999;
  const bool softmax = draw().chance(60);
  if (softmax) {
    at.line(format("{} = frag.fill.f32 [{}] {};", peak.value.text, sizes(row),
                   draw().of({"-inf", "-100000.0f", "-__inf<f32>()"})));
    at.line(format("{} = frag.fill.f32 [{}] 0.0f;", sum.value.text, sizes(row)));
  }
  at.line(format("{} = frag.fill.s32 [{}] {};", counted.value.text, sizes(counted.shape),
                 draw().within(0, 3)));
  Node& body = at.open(format("foreach {} in [{}]{}", inner.col, count,
                              count > 1 && draw().chance(15) ? " : unroll(2)" : ""));
  const Window outer = std::exchange(window_, inner);
  in_loop_ = true;
  const std::vector<TileValue> outside = tiles_;
  for (TileValue& tile : tiles_) tile.anchored = false;  // what is carried keeps its range
  tiles_.push_back(counted);
  load(body, draw().of({DType::kF32, DType::kF16, DType::kBF16, DType::kS32, DType::kS8}),
       window_.tile);
  const int statements = draw().within(1, 3);
  for (int i = 0; i < statements; ++i) statement(body);
  if (softmax) {
    std::optional<TileValue> source = expression(DType::kF32, window_.tile, 2);
    if (!source) {
      source = tiles_[outside.size() + 1];
      source->value.text = format("__to<f32>({})", source->value.text);
    }
    const std::string name = gen_.name("x");
    body.line(format("{} = {};", name, source->value.text));
    online(body, name, peak, sum);
    gen_.out.exact = false;
  }
  if (auto more = any_expression(DType::kS32, 2);
      (more.shape.rows == 1 || more.shape.rows == counted.shape.rows) &&
      (more.shape.cols == 1 || more.shape.cols == counted.shape.cols)) {
    body.line(format("{0} = ({0} + {1}) % 1000;", counted.value.text, cut(more.value, 1000)));
  }
  if (draw().chance(40)) store(body);
  tiles_ = outside;
  in_loop_ = false;
  window_ = outer;
  tiles_.push_back(counted);
  if (softmax) {
    tiles_.push_back(peak);
    tiles_.push_back(sum);
  }
}

void Tiles::store(Node& at) {
  const DType type = draw().of({DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kS32,
                                DType::kU32, DType::kS8, DType::kU8});
  TileValue made =
      draw().chance(60) ? any_expression(type, draw().within(1, 2)) : draw().of(tiles_);
  const Param y = gen_.output(made.value.type, window_.extents(made.shape));
  if (!in_loop_ && draw().chance(25)) {
    const std::string buffer = gen_.name("held");
    block_.body.push_front({.text = format("shared {} [{}] {};", name(made.value.type),
                                           sizes(window_.block_shape(made.shape)), buffer)});
    at.line(format("frag.store {}, {};", made.value.text, window_.unit_part(buffer, made.shape)));
    block_.line(format("dma.copy {} => {};", buffer, window_.block_part(y.name, made.shape)));
    return;
  }
  at.line(
      done(format("frag.store {}, $;", made.value.text), window_.part(y.name, made.shape), made));
}

}  // namespace kiln::programs
