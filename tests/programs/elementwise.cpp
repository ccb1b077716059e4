// Elementwise kernels: every thread computes elements from elements, with scalars, local arrays,
// conditions and loops of its own.
#include "programs/expr.h"
#include "programs/families.h"

namespace kiln::programs {

namespace {

// Where a thread is: its parallel levels, and the index of its element.
struct Place {
  Node* body = nullptr;
  std::vector<std::string> index;  // per dimension of the tensors
  std::vector<Extent> shape;
};

// One axis of blocks and threads for each dimension but the first, which may be a loop.
Place open_grid(Gen& gen, const Param* like) {
  Draw& draw = gen.draw;
  Place out;
  const int rank =
      like != nullptr ? static_cast<int>(like->shape.size()) : draw.of({1, 1, 2, 2, 3});
  Node* at = &gen.out.function;
  std::vector<std::string> blocks, counts, threads, tiles;
  std::string guard;
  const bool looped = rank > 1 && draw.chance(35);
  int left = 256;
  for (int d = 0; d < rank; ++d) {
    const int tile = draw.of(std::vector<int>{1, 2, 3, 4, 8, 16, 32, 64, 128});
    const int taken = std::max(1, std::min(tile, left));
    left /= taken;
    const Extent extent = like != nullptr ? like->shape[static_cast<std::size_t>(d)]
                                          : gen.dimension(draw.within(1, rank == 1 ? 300 : 20));
    out.shape.push_back(extent);
    if (looped && d == 0) continue;
    const Extent size = gen.constant(taken);
    const std::string b = gen.name("b");
    const std::string t = gen.name("t");
    blocks.push_back(b), threads.push_back(t), tiles.push_back(size.text);
    counts.push_back(format("cdiv({}, {})", extent.text, size.text));
    out.index.push_back(draw.chance(60) ? format("{} # {}", b, t)
                                        : format("{} * {} + {}", b, size.text, t));
    guard += format("{}{} < {}", guard.empty() ? "" : " && ", out.index.back(), extent.text);
  }
  const auto axes = [&](const std::vector<std::string>& names, const std::vector<std::string>& by) {
    return names.size() == 1 && draw.chance(60) ? format("{} by {}", names[0], by[0])
                                                : format("{{{}}} by [{}]", list(names), list(by));
  };
  if (draw.chance(50)) {
    at = &at->open(
        format("parallel {} : block, {} : thread", axes(blocks, counts), axes(threads, tiles)));
  } else {
    at = &at->open(format("parallel {} : block", axes(blocks, counts)));
    at = &at->open(
        format("parallel {}{}", axes(threads, tiles), draw.chance(50) ? " : thread" : ""));
  }
  at = &at->open(format("if ({})", guard));
  if (looped) {
    const std::string row = gen.name("r");
    at = &at->open(format("foreach {} in [{}]{}", row, out.shape[0].text,
                          out.shape[0].value > 1 && draw.chance(20) ? " : unroll(2)" : ""));
    out.index.insert(out.index.begin(), row);
  }
  out.body = at;
  return out;
}

class Body {
 public:
  Body(Gen& gen, Exprs& exprs) : gen_(gen), exprs_(exprs) {}

  void statements(Node& at, int count, int depth) {
    for (int i = 0; i < count; ++i) statement(at, depth);
  }

 private:
  struct Variable {
    std::string name;
    DType type;
    double limit;  // of integers: stays between -limit and limit, exclusive
  };

  Draw& draw() { return gen_.draw; }
  DType any_type() {
    return draw().chance(50) ? draw().of(float_types())
                             : draw().of({DType::kS32, DType::kU32, DType::kS64, DType::kU64,
                                          DType::kS32, DType::kS8, DType::kU16});
  }

  void declare(Node& at) {
    const DType type = draw().chance(15) ? DType::kBool : any_type();
    const Value value = exprs_.of(type, 3);
    const std::string made = gen_.name("v");
    const bool named = type == DType::kBool || draw().chance(70);
    at.line(
        format("{}{} = {};", named ? std::string(kiln::name(type)) + " " : "", made, value.text));
    Value known = value;
    known.text = made;
    exprs_.add(known);
  }

  void declare_mutable(Node& at) {
    const DType type = draw().of({DType::kF32, DType::kF64, DType::kS32, DType::kF16, DType::kS64});
    Variable made{gen_.name("m"), type, 1000};
    at.line(format("mutable {} {} = {};", kiln::name(type), made.name,
                   is_float(type) ? exprs_.of(type, 2).text : "7"));
    variables_.push_back(made);
    exprs_.add(value_of(made));
  }

  static Value value_of(const Variable& variable) {
    Value out = leaf(variable.name, variable.type);
    out.low = -variable.limit + 1, out.high = variable.limit - 1;
    out.exact = is_integer(variable.type);
    return out;
  }

  void assign(Node& at) {
    if (variables_.empty()) return declare_mutable(at);
    const Variable& to = draw().of(variables_);
    if (is_integer(to.type)) {
      if (draw().chance(25)) {
        at.line(format("{} = {} / 2;", to.name, to.name));
        at.line(format("{}{};", to.name, draw().of({"++", "--", " += 3", " -= 5"})));
        return;
      }
      const std::string ll = to.type == DType::kS64 ? "ll" : "";
      at.line(format("{} = ({}) % {}{};", to.name, exprs_.of(to.type, 3).text, 400, ll));
      return;
    }
    const std::string op = draw().of({"=", "+=", "-=", "*="});
    if (op != "=") gen_.out.exact = false;
    at.line(format("{} {} {};", to.name, op, exprs_.of(to.type, 2).text));
  }

  void branch(Node& at, int depth) {
    Node& then = at.open(format("if ({})", exprs_.condition(2).text));
    inner(then, depth);
    if (draw().chance(50)) {
      Node& other = at.open("else");
      inner(other, depth);
    }
  }

  void inner(Node& at, int depth) {
    const std::size_t mark = exprs_.mark();
    const std::size_t variables = variables_.size();
    statements(at, draw().within(1, 3), depth - 1);
    exprs_.forget(mark);
    variables_.resize(variables);
  }

  void leave(Node& at) {
    if (draw().chance(70)) return;
    at.open(format("if ({})", exprs_.condition(1).text)).line(draw().of({"break;", "continue;"}));
  }

  void loop(Node& at, int depth) {
    const std::size_t mark = exprs_.mark();
    const std::string i = gen_.name("i");
    const int count = draw().within(1, 6);
    if (draw().chance(70)) {
      Node* in = &at;
      std::string head = format("foreach {} in [{}]", i, count);
      if (count > 2 && draw().chance(30)) {
        in = &at.open(format("with {} in [{}]", i, count));
        head = format("foreach {}({})", i, draw().of({"1:", ":-1", "1:-1", "0:-1:2", "1::2"}));
      } else if (draw().chance(20)) {
        head += format(" : unroll({})", draw().within(1, count));
      } else if (draw().chance(20)) {
        const std::string j = gen_.name("j");
        head = format("foreach {{{}, {}}} in [{}, {}]", i, j, count, 2);
        exprs_.add(bounded(j, 1));
      }
      Node& body = in->open(head);
      exprs_.add(bounded(i, count - 1));
      leave(body);
      inner(body, depth);
      exprs_.forget(mark);
      return;
    }
    at.line(format("mutable int {} = 0;", i));
    Node& body = at.open(draw().chance(70) ? format("while ({} < {})", i, count) : "while (true)");
    if (body.text == "while (true)") body.open(format("if ({} >= {})", i, count)).line("break;");
    body.line(format("{};", draw().of({i + "++", i + " += 1", i + " += 2"})));
    exprs_.add(bounded(i, count + 1));
    leave(body);
    inner(body, depth);
    exprs_.forget(mark);
  }

  void array(Node& at) {
    const DType type = draw().of({DType::kF32, DType::kF16, DType::kS32, DType::kU8, DType::kF64});
    const int count = draw().within(2, 6);
    const std::string made = gen_.name("l");
    at.line(format("local {} [{}] {} {{{}}};", kiln::name(type), count, made,
                   is_float(type) ? type == DType::kF64 ? "0.0" : "0.0f" : "0"));
    const std::string i = gen_.name("i");
    const std::size_t mark = exprs_.mark();
    Node& body = at.open(format("foreach {} in [{}]", i, count));
    exprs_.add(bounded(i, count - 1));
    body.line(format("{}.at({}) = {};", made, i, exprs_.of(type, 2).text));
    exprs_.forget(mark);
    Value read = leaf(format("{}.at({})", made, exprs_.index(count, 2).text), type);
    read.exact = is_integer(type);
    exprs_.add(read);
  }

  void statement(Node& at, int depth) {
    switch (draw().within(0, depth > 0 ? 9 : 5)) {
      case 0:
      case 1:
      case 2: return declare(at);
      case 3: return declare_mutable(at);
      case 4:
      case 5: return assign(at);
      case 6: return branch(at, depth);
      case 7:
      case 8: return loop(at, depth);
      default: return array(at);
    }
  }

  Gen& gen_;
  Exprs& exprs_;
  std::vector<Variable> variables_;
};

}  // namespace

void add_elementwise(Gen& gen) {
  Draw& draw = gen.draw;
  std::vector<Value> leaves;
  const std::string factor = draw.chance(40) ? gen.float_param() : "";
  if (!factor.empty()) leaves.push_back(leaf(factor, DType::kF32));
  if (draw.chance(30)) {
    const Extent n = gen.int_param(draw.within(0, 50));
    leaves.push_back(bounded(n.text, static_cast<double>(n.value)));
  }
  // What an earlier launch wrote, where there is one.
  const Param* like = gen.written.empty() || draw.chance(40) ? nullptr : &draw.of(gen.written);
  if (like != nullptr && like->shape.size() > 3) like = nullptr;
  const Param earlier = like == nullptr ? Param{} : *like;
  Place place = open_grid(gen, like == nullptr ? nullptr : &earlier);
  const std::string at = list(place.index);
  if (like != nullptr) {
    leaves.push_back(leaf(format("{}.at({})", earlier.name, at), earlier.type));
    leaves.back().exact = is_integer(earlier.type);
  }
  const int inputs = draw.within(1, 4);
  for (int i = 0; i < inputs; ++i) {
    const Param x = gen.input(draw.of(storage_types()), place.shape);
    leaves.push_back(leaf(format("{}.at({})", x.name, at), x.type));
  }
  for (std::size_t d = 0; d < place.shape.size(); ++d) {
    leaves.push_back(
        bounded(format("({})", place.index[d]), static_cast<double>(place.shape[d].value - 1)));
  }
  Exprs exprs(gen, leaves);
  Body body(gen, exprs);
  body.statements(*place.body, draw.within(0, 5), 2);
  const int outputs = draw.within(1, 3);
  for (int i = 0; i < outputs; ++i) {
    const Param y = gen.output(draw.of(storage_types()), place.shape);
    place.body->line(format("{}.at({}) = {};", y.name, at, exprs.of(y.type, 3).text));
    if (draw.chance(30)) {
      const Value own = leaf(format("{}.at({})", y.name, at), y.type);
      if (is_integer(y.type)) {
        Exprs again(gen, {own});
        place.body->line(format("{}.at({}) = {};", y.name, at, again.of(y.type, 2).text));
      }
    }
  }
}

}  // namespace kiln::programs
