#include "driver/map_options.h"

#include <array>

#include "explain/draw/picture.h"
#include "support/dtype.h"
#include "support/format.h"
#include "support/parse_number.h"
#include "target/copy.h"
#include "target/swizzle.h"

namespace kiln::driver {

namespace {

// A subject's bit in a set of them.
constexpr int of(MapSubject subject) { return static_cast<int>(subject); }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t at = text.find(separator); at != text.npos; at = text.find(separator)) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  out.push_back(text);
  return out;
}

}  // namespace

std::string_view described(MapSubject subject) {
  switch (subject) {
    case MapSubject::kOperands: return "a matrix instruction";
    case MapSubject::kOperandMemory: return "an operand in shared memory";
    case MapSubject::kMatrixLoad: return "an `ldmatrix` or `stmatrix`";
    case MapSubject::kTile: return "a layout of threads over a tile";
    case MapSubject::kMemory: break;
  }
  return "a layout in memory";
}

bool looks_like_layout(const std::string& text) {
  return text.empty() || text.find_first_of("(:0123456789- ") == 0;
}

std::string matrix_loads() {
  std::vector<std::string> names;
  for (const target::Copy& copy : target::all_copies()) {
    if (copy.result_map.valid()) names.emplace_back(copy.name);
  }
  return join(names, ", ", [](const std::string& text) { return text; });
}

Unexpected<Reported> MapReader::form(std::string_view option, const std::string& text,
                                     std::string_view wanted, std::string_view help) {
  return diags_.report<diag::OptionForm>({}, option, text, wanted).help("{}", help).emit();
}

Checked<void> MapReader::refuse_unused(MapSubject subject) {
  struct Given {
    std::string_view name;
    bool given;
    int subjects;
  };
  const Given all[] = {
      {"--operand", !options_.operand.empty(),
       of(MapSubject::kOperands) | of(MapSubject::kOperandMemory)},
      {"--table", options_.table, of(MapSubject::kOperands) | of(MapSubject::kTile)},
      {"--tile", !options_.tile.empty(), of(MapSubject::kTile)},
      {"--smem", !options_.smem.empty(), of(MapSubject::kOperandMemory)},
      {"--swizzle", !options_.swizzle.empty(),
       of(MapSubject::kOperandMemory) | of(MapSubject::kMemory)},
      {"--access", !options_.access.empty(),
       of(MapSubject::kOperandMemory) | of(MapSubject::kMemory)},
      {"--banks", options_.banks, of(MapSubject::kOperandMemory) | of(MapSubject::kMemory)},
      {"--dtype", !options_.dtype.empty(), of(MapSubject::kMemory)},
  };
  std::vector<std::string> fitting;
  for (const Given& one : all) {
    if ((one.subjects & of(subject)) != 0) fitting.push_back(format("`{}`", one.name));
  }
  fitting.emplace_back("`--format`");
  const auto same = [](const std::string& text) { return text; };
  for (const Given& one : all) {
    if (!one.given || (one.subjects & of(subject)) != 0) continue;
    return diags_.report<diag::MapOptionUnused>({}, one.name, described(subject))
        .help("what does: {}", join(fitting, ", ", same))
        .emit();
  }
  return {};
}

Checked<std::optional<target::Operand>> MapReader::operand() {
  if (options_.operand.empty()) return std::optional<target::Operand>{};
  if (const auto found = target::operand_from_name(options_.operand)) return found;
  return diags_.report<diag::OptionChoice>({}, "--operand", options_.operand, "A, B, C").emit();
}

Checked<Layout> MapReader::layout(const std::string& text) {
  const LayoutText parsed = parse_layout_text(text.data(), static_cast<int>(text.size()));
  if (parsed.error != nullptr) {
    return diags_.report<diag::MapLayoutSyntax>({}, text, parsed.error, parsed.position + 1)
        .help("a layout is written shape:strides, as in `((4,8),2):((16,1),8)`")
        .emit();
  }
  Index elements = 1;
  for (int i = 0; i < parsed.layout.leaves && elements <= explain::kCellsMax; ++i) {
    const Index extent = parsed.layout.extents[i];
    elements = extent > explain::kCellsMax ? extent : elements * extent;
  }
  if (elements <= explain::kCellsMax) return parsed.layout;
  return diags_
      .report<diag::MapTooLarge>({}, format("`{}`", text), format("at least {}", elements),
                                 explain::kCellsMax)
      .help("draw one tile of it")
      .emit();
}

Checked<target::TileExtents> MapReader::tile() {
  const auto parts = split(options_.tile, 'x');
  const auto rows = parse_number<int>(parts.front());
  const auto cols = parse_number<int>(parts.back());
  if (parts.size() != 2 || !rows || !cols || *rows < 1 || *cols < 1) {
    return form("--tile", options_.tile, "ROWSxCOLS", "as in `--tile 16x8`");
  }
  const Index elements = static_cast<Index>(*rows) * *cols;
  if (elements <= explain::kCellsMax) return target::TileExtents{*rows, *cols};
  return diags_
      .report<diag::MapTooLarge>({}, format("`--tile {}`", options_.tile), elements,
                                 explain::kCellsMax)
      .emit();
}

Checked<int> MapReader::element_bytes() {
  if (options_.dtype.empty()) return size_bytes(DType::kF16);
  if (const auto dtype = dtype_from_name(options_.dtype)) return size_bytes(*dtype);
  const auto bytes = parse_number<int>(options_.dtype);
  for (const int width : {1, 2, 4, 8, 16}) {
    if (bytes == width) return width;
  }
  return form("--dtype", options_.dtype, "a type or a number of bytes",
              "as in `--dtype f16`, or 1, 2, 4, 8 or 16 bytes");
}

Checked<Swizzle> MapReader::swizzle_bits(const std::vector<std::string_view>& parts) {
  constexpr int kBitsMax = 20;
  std::array<int, 3> numbers = {};
  bool good = parts.size() == numbers.size();
  for (std::size_t i = 0; good && i < numbers.size(); ++i) {
    const auto number = parse_number<int>(parts[i]);
    good = number && *number >= 0 && *number <= kBitsMax;
    if (good) numbers[i] = *number;
  }
  if (good && numbers[2] >= numbers[0]) return Swizzle{numbers[0], numbers[1], numbers[2]};
  return form("--swizzle", options_.swizzle, "32, 64, 128, none or BITS,BASE,SHIFT",
              "SHIFT is at least BITS: `--swizzle 3,4,3` is `--swizzle 128`");
}

Checked<Swizzle> MapReader::swizzle(int element_bytes) {
  Swizzle out = target::find_swizzle(0)->swizzle;
  bool named = options_.swizzle.empty();
  for (const target::SmemSwizzle& row : target::all_swizzles()) {
    if (row.name != options_.swizzle) continue;
    out = row.swizzle;
    named = true;
  }
  if (!named) {
    const Checked<Swizzle> bits = swizzle_bits(split(options_.swizzle, ','));
    if (!bits) return bits;
    out = *bits;
  }
  const int piece = 1 << out.base;
  if (out.bits == 0 || piece >= element_bytes) return out;
  return diags_
      .report<diag::MapSwizzleTears>({}, format("--swizzle {}", options_.swizzle), piece,
                                     element_bytes)
      .help("swizzles permute byte addresses: a base of 4 moves 16 bytes")
      .emit();
}

Checked<explain::Access> MapReader::access(const explain::Memory& memory) {
  if (looks_like_layout(options_.access)) {
    const Checked<Layout> lanes = layout(options_.access);
    if (!lanes) return Unexpected{lanes.error()};
    return explain::access_from_layout(memory, *lanes, options_.access, diags_);
  }
  const target::Copy* copy = target::find_copy(options_.access);
  if (copy != nullptr && copy->address_map.valid()) {
    return explain::access_from_matrix_load(memory, *copy, diags_);
  }
  return diags_.report<diag::OptionChoice>({}, "--access", options_.access, matrix_loads())
      .help("or give a layout: lane -> row + {} * column", explain::memory_rows(memory))
      .emit();
}

}  // namespace kiln::driver
