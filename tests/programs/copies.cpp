// Tiles that go from global memory through shared memory and back, by every form of view and copy.
#include <algorithm>

#include "programs/expr.h"
#include "programs/families.h"

namespace kiln::programs {

namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t product(const Sizes& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t each : sizes) out *= each;
  return out;
}

// What a launch of copies knows about itself.
struct Copies {
  DType type = DType::kF32;
  Sizes tile;                      // as loaded and stored
  std::vector<Extent> extents;     // of both tensors
  std::vector<std::string> index;  // of the tile, by dimension
  int threads = 0;                 // 0: the level below blocks is opened where it is needed
  std::string thread;              // the thread's number where the level is open
  Node* body = nullptr;
};

// A tile in shared memory: how it is spelled, and its extents.
struct Held {
  std::string name;
  Sizes sizes;
  bool by_elements = false;  // single threads wrote its elements
};

class Writer {
 public:
  explicit Writer(Gen& gen) : gen_(gen) {}

  void write() {
    open();
    Held held = load();
    const int steps = draw().within(0, 3);
    for (int i = 0; i < steps; ++i) held = move(held);
    store(held);
  }

 private:
  Draw& draw() { return gen_.draw; }
  Node& body() { return *copies_.body; }
  [[nodiscard]] std::int64_t row_bytes(const Sizes& sizes) const {
    return sizes.back() * size_bytes(copies_.type);
  }

  void open() {
    copies_.type = draw().of(storage_types());
    const int rank = draw().of({1, 2, 2, 2, 3, 4});
    std::int64_t left = 1024;
    const bool bulk = draw().chance(60);
    for (int d = 0; d < rank; ++d) {
      const bool last = d + 1 == rank;
      std::int64_t size = draw().of(std::vector<std::int64_t>{1, 2, 3, 4, 5, 8, 16});
      if (last) size = draw().of(std::vector<std::int64_t>{1, 3, 8, 16, 20, 32, 33, 64, 128});
      if (last && bulk) size = draw().of({16, 32, 64, 128});
      size = std::max<std::int64_t>(1, std::min(size, left));
      left /= size;
      copies_.tile.push_back(size);
      std::int64_t extent = size * draw().within(1, 3) -
                            (draw().chance(60) ? draw().within(0, static_cast<int>(size) - 1) : 0);
      if (last && bulk) extent = (extent + 15) / 16 * 16;
      copies_.extents.push_back(gen_.dimension(extent, size));
    }
    open_levels(rank);
  }

  void open_levels(int rank) {
    std::vector<std::string> axes, counts;
    std::vector<int> looped;
    for (int d = 0; d < rank; ++d) {
      copies_.index.push_back(gen_.name("i"));
      if (rank > 1 && (d >= 3 || draw().chance(25)) && static_cast<int>(looped.size()) + 1 < rank) {
        looped.push_back(d);
        continue;
      }
      axes.push_back(copies_.index.back());
      counts.push_back(count(d));
    }
    std::string head = format("parallel {{{}}} by [{}] : block", list(axes), list(counts));
    copies_.threads = draw().of({32, 64, 96, 128});
    const int form = draw().within(0, 2);
    if (form == 1) {
      copies_.thread = gen_.name("t");
      head += format(", {} by {} : thread", copies_.thread, copies_.threads);
    }
    copies_.body = &gen_.out.function.open(head);
    for (const int d : looped) {
      copies_.body = &copies_.body->open(
          format("foreach {} in [{}]", copies_.index[static_cast<std::size_t>(d)], count(d)));
    }
  }

  std::string count(int d) {
    const auto i = static_cast<std::size_t>(d);
    return format("cdiv({}, {})", copies_.extents[i].text, copies_.tile[i]);
  }

  // The tile of a tensor with the tensors' extents, at the tile's index.
  std::string window(const std::string& tensor, bool read) {
    const Sizes& tile = copies_.tile;
    std::vector<std::string> from, chunks;
    for (std::size_t d = 0; d < tile.size(); ++d) {
      from.push_back(format("{} * {}", copies_.index[d], tile[d]));
      chunks.push_back(copies_.index[d]);
    }
    switch (draw().within(0, read ? 5 : 4)) {
      case 0: return format("{}.view({}).from({})", tensor, list(tile), list(from));
      case 1: return format("{}.chunkat({})", tensor, list(chunks));
      case 2: {
        const std::string made = gen_.name("w");
        body().line(
            format("{} = {}.subspan({}).at({});", made, tensor, list(tile), list(copies_.index)));
        return made;
      }
      case 3:
        return format("{}.subspan({}).step({}).at({})", tensor, list(tile), list(tile),
                      list(copies_.index));
      default: return format("{}.subspan({}).at({})", tensor, list(tile), list(copies_.index));
    }
  }

  std::string word(const std::string& kind, const std::string& operation, const Sizes& sizes,
                   bool global_source) {
    std::string out = format("{}.{}", kind, operation);
    const std::int64_t bytes = row_bytes(sizes);
    if (draw().chance(25)) {
      for (const int swizzle : {128, 64, 32}) {
        if (bytes % swizzle == 0 && sizes.size() == 2 && sizes[0] * swizzle % 128 == 0 &&
            draw().chance(50)) {
          out += format(".swiz<{}>", swizzle);
          break;
        }
      }
    }
    if (kind == "tma" && draw().chance(20))
      out += draw().of({".promote<64>", ".promote<128>", ".promote<256>"});
    if (kind == "dma" && global_source && draw().chance(10)) out += ".zfill";
    return out;
  }

  // Whether a buffer of so many elements in each dimension, and `more`, is one of several that a
  // block has room for: four dimensions grow to many times their size, some architectures have 99
  // KB.
  [[nodiscard]] bool fits_a_block(Sizes sizes, std::int64_t more) const {
    constexpr std::int64_t kBytesMax = 24 * 1024;
    for (std::int64_t& size : sizes) size += more;
    return product(sizes) * size_bytes(copies_.type) <= kBytesMax;
  }

  // Whether rows of the tile may be loaded in bulk; whether they may be stored, the last of the
  // array whole units of 16 bytes too.
  [[nodiscard]] bool bulk_fits(bool stored = false) const {
    const std::int64_t bytes = row_bytes(copies_.tile);
    const std::int64_t pitch = copies_.extents.back().value * size_bytes(copies_.type);
    const bool one_row = copies_.tile.size() == 1 && !stored;
    return gen_.hopper() && bytes % 16 == 0 && (one_row || pitch % 16 == 0);
  }

  Held load() {
    const Param x = gen_.input(copies_.type, copies_.extents);
    const std::string from = window(x.name, true);
    const int kind = draw().within(0, 9);
    if (kind == 0) return padded(from);
    if (kind == 1 && copies_.tile.size() == 2) return warps(from);
    const bool bulk = bulk_fits() && draw().chance(50);
    std::string copy =
        word(bulk ? "tma" : "dma", bulk && draw().chance(50) ? "load" : "copy", copies_.tile, true);
    Held out{gen_.name("a"), copies_.tile};
    if (draw().chance(40)) {
      copy += ".async";
      body().line(format("{} = {} {} => shared;", out.name, copy, from));
      body().line(format("wait {};", out.name));
      out.name += draw().chance(30) ? ".data" : "";
    } else if (draw().chance(50)) {
      body().line(format("{} = {} {} => shared;", out.name, copy, from));
    } else {
      body().line(
          format("shared {} [{}] {};", kiln::name(copies_.type), list(out.sizes), out.name));
      body().line(format("{} {} => {};", copy, from, out.name));
    }
    return out;
  }

  // With a border of a constant, of which the store leaves nothing.
  Held padded(const std::string& from) {
    std::vector<std::string> low, high, between;
    Held out{gen_.name("p"), {}};
    std::vector<std::string> origin;
    // All borders drawn, every dimension has four elements more.
    const bool small = fits_a_block(copies_.tile, 4);
    for (const std::int64_t size : copies_.tile) {
      const int before = small ? draw().within(0, 2) : 0;
      const int after = small ? draw().within(0, 2) : 0;
      low.push_back(format("{}", before)), high.push_back(format("{}", after)),
          between.push_back("0");
      origin.push_back(format("{}", before));
      out.sizes.push_back(size + before + after);
    }
    const std::string value = copies_.type == DType::kF64    ? "0.0"
                              : is_float(copies_.type)       ? draw().of({"0.0f", "1.0f"})
                              : copies_.type == DType::kBool ? "false"
                                                             : "1";
    body().line(format("{} = dma.pad<{{{}}}, {{{}}}, {{{}}}, {}> {} => shared;", out.name,
                       list(low), list(high), list(between), value, from));
    Held inner{gen_.name("a"), copies_.tile};
    body().line(
        format("shared {} [{}] {};", kiln::name(copies_.type), list(inner.sizes), inner.name));
    body().line(format("dma.copy {}.view({}).from({}) => {};", out.name, list(copies_.tile),
                       list(origin), inner.name));
    return inner;
  }

  // Each warp (or thread) copies its own rows.
  Held warps(const std::string& from) {
    Held out{gen_.name("a"), copies_.tile};
    const int count = copies_.threads / 32;
    body().line(format("shared {} [{}] {};", kiln::name(copies_.type), list(out.sizes), out.name));
    if (!copies_.thread.empty() || copies_.tile[0] % count != 0) {
      body().line(format("dma.copy {} => {};", from, out.name));
      return out;
    }
    const std::string w = gen_.name("w");
    Node& level = body().open(format("parallel {} by {} : group", w, count));
    level.line(format("dma.copy {}.chunkat({}, _) => {}.chunkat({}, _);", from, w, out.name, w));
    return out;
  }

  Held declared(const Sizes& sizes) {
    Held out{gen_.name("c"), sizes};
    body().line(format("shared {} [{}] {};", kiln::name(copies_.type), list(sizes), out.name));
    return out;
  }

  // From shared memory to shared memory.
  Held move(const Held& from) {
    switch (draw().within(0, 4)) {
      case 0: {
        const Held to = declared(from.sizes);
        body().line(format("dma.copy {} => {};", from.name, to.name));
        return to;
      }
      case 1: return in_parts(from);
      case 2: return turned_twice(from);
      case 3: return by_elements(from);
      default: return in_slot(from);
    }
  }

  // Halves (or thirds) change places.
  Held in_parts(const Held& from) {
    const Held to = declared(from.sizes);
    std::vector<std::string> at, to_at;
    Sizes part;
    std::vector<std::string> names, counts;
    for (const std::int64_t size : from.sizes) {
      const std::int64_t pieces = size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : 1;
      part.push_back(size / pieces);
      const std::string k = gen_.name("k");
      names.push_back(k), counts.push_back(format("{}", pieces));
      at.push_back(k);
      to_at.push_back(draw().chance(50) ? format("{} - {}", pieces - 1, k) : k);
    }
    Node& loop = body().open(format("foreach {{{}}} in [{}]", list(names), list(counts)));
    loop.line(format("dma.copy {}.subspan({}).at({}) => {}.subspan({}).at({});", from.name,
                     list(part), list(at), to.name, list(part), list(to_at)));
    return to;
  }

  Held turned_twice(const Held& from) {
    if (from.sizes.size() != 2) return move_plain(from);
    Held turned = declared({from.sizes[1], from.sizes[0]});
    body().line(format("dma.transp<1, 0> {} => {};", from.name, turned.name));
    const Held to = declared(from.sizes);
    body().line(format("dma.transp<1, 0> {} => {};", turned.name, to.name));
    return to;
  }

  Held move_plain(const Held& from) {
    const Held to = declared(from.sizes);
    body().line(format("dma.copy {} => {};", from.name, to.name));
    return to;
  }

  // Into one of an array of buffers, or a part of a larger one.
  Held in_slot(const Held& from) {
    const std::string made = gen_.name("r");
    if (draw().chance(50) || product(from.sizes) > 2048) {
      const int count = draw().within(2, 3);
      body().line(format("shared {} [{}] {}[{}];", kiln::name(copies_.type), list(from.sizes), made,
                         count));
      const Held to{format("{}[{}]", made, draw().within(0, count - 1)), from.sizes};
      body().line(format("dma.copy {} => {};", from.name, to.name));
      return to;
    }
    Sizes larger = from.sizes;
    Sizes origin;
    for (std::int64_t& size : larger) {
      const int before = draw().within(0, 3);
      origin.push_back(before);
      size += before + draw().within(0, 2);
    }
    if (!fits_a_block(larger, 0)) {
      larger = from.sizes;
      origin.assign(larger.size(), 0);
    }
    body().line(format("shared {} [{}] {};", kiln::name(copies_.type), list(larger), made));
    const Held to{format("{}.view({}).from({})", made, list(from.sizes), list(origin)), from.sizes};
    body().line(format("dma.copy {} => {};", from.name, to.name));
    return to;
  }

  // The index of element `e` of a tile, in the order of memory or from its end.
  std::vector<std::string> coordinates(const Sizes& sizes, const std::string& e) {
    std::vector<std::string> out;
    std::int64_t below = product(sizes);
    for (const std::int64_t size : sizes) {
      below /= size;
      out.push_back(format("{} / {} % {}", e, below, size));
    }
    return out;
  }

  // The threads move and change single elements.
  Held by_elements(const Held& from) {
    Held to = declared(from.sizes);
    to.by_elements = true;
    // In one `parallel` the threads do not wait for each other's elements by themselves.
    const bool meets = from.by_elements && !copies_.thread.empty();
    if (meets) body().line("sync.shared;");
    const std::int64_t count = product(from.sizes);
    std::string t = copies_.thread;
    Node* at = &body();
    if (t.empty()) {
      t = gen_.name("t");
      at = &at->open(format("parallel {} by {} : thread", t, copies_.threads));
    }
    const std::string e = gen_.name("e");
    Node& loop = at->open(format("foreach {} in [{}]", e, up(count, copies_.threads)));
    const std::string number = gen_.name("n");
    loop.line(format("{} = {} * {} + {};", number, e, copies_.threads, t));
    Node& inside = loop.open(format("if ({} < {})", number, count));
    const std::string reversed = gen_.name("n");
    inside.line(format("{} = {} - {};", reversed, count - 1, number));
    const std::string read =
        format("{}.at({})", from.name,
               list(coordinates(from.sizes, draw().chance(60) ? reversed : number)));
    Exprs exprs(gen_, {leaf(read, copies_.type)});
    const bool changed = draw().chance(60);
    inside.line(format("{}.at({}) = {};", to.name, list(coordinates(to.sizes, number)),
                       changed ? exprs.of(copies_.type, 2).text : read));
    if (meets) body().line("sync.shared;");
    return to;
  }

  void store(const Held& from) {
    const Param y = gen_.output(copies_.type, copies_.extents);
    const std::string to = window(y.name, false);
    if (from.name.find_first_of(".[") != std::string::npos || !bulk_fits(true) ||
        draw().chance(50)) {
      body().line(format("dma.copy {} => {};", from.name, to));
      return;
    }
    if (draw().chance(30)) {
      const std::string f = gen_.name("future");
      body().line(format("{} = tma.copy.async {} => {};", f, from.name, to));
      body().line(format("wait {};", f));
      return;
    }
    body().line(format("tma.copy {} => {};", from.name, to));
  }

  Gen& gen_;
  Copies copies_;
};

}  // namespace

void add_copies(Gen& gen) { Writer(gen).write(); }

}  // namespace kiln::programs
