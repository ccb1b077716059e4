// `kiln map`: which picture is asked for, and in which format. The pictures are made in explain/.
#include <algorithm>

#include "driver/commands.h"
#include "driver/map_options.h"
#include "explain/draw/memory.h"
#include "explain/draw/ownership.h"
#include "explain/draw/print.h"
#include "layout/print.h"
#include "support/dtype.h"
#include "support/format.h"

namespace kiln::driver {

namespace {

using explain::Picture;

struct Printer {
  std::string_view format;
  std::string (*print)(const Picture&);
  bool drawn;  // in two dimensions: operands may stand side by side
};
constexpr Printer kPrinters[] = {
    {"text", explain::to_text, false}, {"svg", explain::to_svg, true},
    {"html", explain::to_html, true},  {"latex", explain::to_latex, true},
    {"json", explain::to_json, false},
};

// Every element of `layout` must be in a block's shared memory.
Checked<void> check_memory(const Layout& layout, const std::string& text, int element_bytes,
                           Diagnostics& diags) {
  int bytes = 0;
  for (const target::Arch& arch : target::all_archs()) {
    bytes = std::max(bytes, arch.smem_per_block_max);
  }
  for (Index i = 0; i < size(layout); ++i) {
    const Index element = layout(i);
    if (element >= 0 && element < bytes / element_bytes) continue;
    return diags
        .report<diag::MapOutside>({}, format("`{}`", text), element,
                                  format("shared memory of {} bytes", bytes),
                                  bytes / element_bytes - 1)
        .help("indices alone, without banks, can be drawn for any layout")
        .emit();
  }
  return {};
}

Checked<Picture> memory_picture(MapReader& reader, const MapOptions& options,
                                const std::string& title, explain::Memory memory) {
  const Checked<Swizzle> swizzle = reader.swizzle(memory.element_bytes);
  if (!swizzle) return Unexpected{swizzle.error()};
  memory.swizzle = *swizzle;
  if (options.access.empty()) return explain::memory_picture(title, memory, nullptr);
  const Checked<explain::Access> access = reader.access(memory);
  if (!access) return Unexpected{access.error()};
  return explain::memory_picture(title, memory, &*access);
}

bool asks_for_memory(const MapOptions& options) {
  return options.banks || !options.smem.empty() || !options.swizzle.empty() ||
         !options.access.empty();
}

// The tile of one operand in shared memory, by rows unless --smem says otherwise.
Checked<Picture> operand_memory(MapReader& reader, const MapOptions& options,
                                const target::Mma& mma, target::Operand operand,
                                Diagnostics& diags) {
  const target::TileExtents tile = target::extents(mma, operand);
  const explain::AxisNames names = explain::axis_names(operand);
  explain::Memory memory;
  memory.row_name = names.row;
  memory.col_name = names.col;
  memory.element_bytes = size_bytes(target::dtype_of(mma, operand));
  memory.layout = make_layout(make_layout(tile.rows, tile.cols), make_layout(tile.cols, 1));
  const std::string text = options.smem.empty() ? to_text(memory.layout) : options.smem;
  if (!options.smem.empty()) {
    const Checked<Layout> smem = reader.layout(options.smem);
    if (!smem) return Unexpected{smem.error()};
    memory.layout = *smem;
    if (size(*smem, 0) != tile.rows || size(*smem) != static_cast<Index>(tile.rows) * tile.cols) {
      return diags
          .report<diag::MapSmemShape>({}, options.smem, size(*smem, 0),
                                      size(*smem) / size(*smem, 0), target::name(operand), mma.name,
                                      tile.rows, tile.cols)
          .help("by rows it is `--smem '({0},{1}):({1},1)'`", tile.rows, tile.cols)
          .emit();
    }
  }
  const auto fits = check_memory(memory.layout, text, memory.element_bytes, diags);
  if (!fits) return Unexpected{fits.error()};
  return memory_picture(reader, options,
                        format("{}, operand {} at {}", mma.name, target::name(operand), text),
                        memory);
}

Checked<Picture> ownership_picture(const target::Mma& mma, std::optional<target::Operand> operand,
                                   const explain::OwnershipOptions& how, Diagnostics& diags) {
  if (!operand || target::has_map(mma, *operand)) return explain::atom_picture(mma, operand, how);
  return diags.report<diag::MapOperandInShared>({}, target::name(*operand), mma.name)
      .help("A and C have maps: `--operand A`, `--operand C`")
      .emit();
}

Checked<Picture> atom_picture(MapReader& reader, const MapOptions& options, const target::Mma& mma,
                              const explain::OwnershipOptions& how, Diagnostics& diags) {
  const MapSubject subject =
      asks_for_memory(options) ? MapSubject::kOperandMemory : MapSubject::kOperands;
  if (const auto used = reader.refuse_unused(subject); !used) return Unexpected{used.error()};
  const auto operand = reader.operand();
  if (!operand) return Unexpected{operand.error()};
  if (subject == MapSubject::kOperands) return ownership_picture(mma, *operand, how, diags);
  if (*operand) return operand_memory(reader, options, mma, **operand, diags);
  const std::string_view asked = !options.access.empty()    ? "--access"
                                 : !options.swizzle.empty() ? "--swizzle"
                                 : !options.smem.empty()    ? "--smem"
                                                            : "--banks";
  return diags
      .report<diag::MapOptionNeeded>({}, asked, described(MapSubject::kOperands), "--operand")
      .help("a tile in shared memory is that of one operand: `--operand A`")
      .emit();
}

Checked<Picture> tile_picture(MapReader& reader, const MapOptions& options, const Layout& layout,
                              const explain::OwnershipOptions& how, Diagnostics& diags) {
  const auto tile = reader.tile();
  if (!tile) return Unexpected{tile.error()};
  const Index elements = static_cast<Index>(tile->rows) * tile->cols;
  for (Index i = 0; i < size(layout); ++i) {
    const Index element = layout(i);
    if (element >= 0 && element < elements) continue;
    return diags
        .report<diag::MapOutside>({}, format("`{}`", options.atom), element,
                                  format("`--tile {}`", options.tile), elements - 1)
        .help("the layout gives row + {} * column", tile->rows)
        .emit();
  }
  return explain::tile_picture(layout, *tile, how);
}

Checked<Picture> layout_picture(MapReader& reader, const MapOptions& options,
                                const explain::OwnershipOptions& how, Diagnostics& diags) {
  const MapSubject subject = options.tile.empty() ? MapSubject::kMemory : MapSubject::kTile;
  if (const auto used = reader.refuse_unused(subject); !used) return Unexpected{used.error()};
  const Checked<Layout> layout = reader.layout(options.atom);
  if (!layout) return Unexpected{layout.error()};
  if (subject == MapSubject::kTile) return tile_picture(reader, options, *layout, how, diags);
  if (!asks_for_memory(options) && options.dtype.empty()) {
    return explain::index_picture(to_text(*layout), *layout);
  }
  const Checked<int> bytes = reader.element_bytes();
  if (!bytes) return Unexpected{bytes.error()};
  const auto fits = check_memory(*layout, options.atom, *bytes, diags);
  if (!fits) return Unexpected{fits.error()};
  return memory_picture(reader, options, to_text(*layout),
                        {.layout = *layout, .element_bytes = *bytes});
}

Checked<Picture> copy_picture(MapReader& reader, const target::Copy& copy,
                              const explain::OwnershipOptions& how, Diagnostics& diags) {
  const auto used = reader.refuse_unused(MapSubject::kMatrixLoad);
  if (!used) return Unexpected{used.error()};
  if (copy.result_map.valid()) return explain::matrix_load_picture(copy, how);
  return diags.report<diag::MapNoMap>({}, copy.name, copy.bytes)
      .help("copies that have one: {}", matrix_loads())
      .emit();
}

// "m64nNk16.f32.f16" for all rows that differ in N alone.
std::string family_name(const target::Mma& mma) {
  std::string out(mma.name);
  if (!mma.reads_shared) return out;
  const std::string exact = format("n{}k", mma.shape.n);
  return out.replace(out.find(exact), exact.size(), "nNk");
}

Unexpected<Reported> unknown_atom(const std::string& text, Diagnostics& diags) {
  std::vector<std::string> names;
  std::vector<std::string> listed;
  for (const target::Mma& mma : target::all_mmas()) {
    names.emplace_back(mma.name);
    std::string family = family_name(mma);
    if (listed.empty() || listed.back() != family) listed.push_back(std::move(family));
  }
  for (const target::Copy& copy : target::all_copies()) {
    if (!copy.result_map.valid()) continue;
    names.emplace_back(copy.name);
    listed.emplace_back(copy.name);
  }
  const std::string guess = did_you_mean(text, names);
  const auto same = [](const std::string& name) { return name; };
  return diags.report<diag::OptionChoice>({}, "map", text, join(listed, ", ", same))
      .help_if(guess.empty() ? "or give a layout, as in `kiln map '(8,8):(8,1)'`" : guess)
      .emit();
}

Checked<Picture> picture_of(const MapOptions& options, const explain::OwnershipOptions& how,
                            Diagnostics& diags) {
  MapReader reader(options, diags);
  if (const target::Mma* mma = target::find_mma(options.atom)) {
    return atom_picture(reader, options, *mma, how, diags);
  }
  if (const target::Copy* copy = target::find_copy(options.atom)) {
    return copy_picture(reader, *copy, how, diags);
  }
  if (looks_like_layout(options.atom)) return layout_picture(reader, options, how, diags);
  return unknown_atom(options.atom, diags);
}

}  // namespace

io::Exit map(const MapOptions& options, io::Console& console) {
  Diagnostics diags;
  const auto* printer =
      std::find_if(std::begin(kPrinters), std::end(kPrinters),
                   [&](const Printer& one) { return one.format == options.format; });
  if (printer == std::end(kPrinters)) {
    diags.report<diag::OptionChoice>({}, "--format", options.format, "text, svg, html, latex, json")
        .emit();
    io::show(console, diags, {});
    return io::Exit::kUsage;
  }
  const bool page = printer->format == "html";
  const explain::OwnershipOptions how{.side_by_side = printer->drawn,
                                      .grids = page || !options.table,
                                      .tables = page || options.table};
  const Checked<Picture> picture = picture_of(options, how, diags);
  io::show(console, diags, {});
  if (!picture) return io::Exit::kUsage;
  return io::write_text(console, options.output, printer->print(*picture));
}

}  // namespace kiln::driver
