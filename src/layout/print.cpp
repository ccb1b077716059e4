#include "layout/print.h"

#include <algorithm>

#include "support/format.h"

namespace kiln {

namespace {

// The tree of brackets of `layout` around the given numbers.
std::string tree_text(const Layout& layout, const Index* numbers) {
  std::string out;
  for (int i = 0; i < layout.leaves; ++i) {
    if (i > 0) out += ',';
    out.append(layout.opens[i], '(');
    out += std::to_string(numbers[i]);
    out.append(layout.closes[i], ')');
  }
  return out;
}

// Room for the indices and coordinates of a table.
struct TableWidths {
  std::size_t row = 1;   // of the row numbers
  std::size_t cell = 1;  // of the indices and the column numbers
};

std::string right_aligned(Index number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width > digits.size() ? width - digits.size() : 0, ' ') + digits;
}

TableWidths table_widths(const Swizzled& swizzled, Index rows, Index columns) {
  TableWidths out;
  out.row = std::to_string(rows - 1).size();
  out.cell = std::to_string(columns - 1).size();
  for (Index i = 0; i < rows * columns; ++i) {
    out.cell = std::max(out.cell, std::to_string(swizzled(i)).size());
  }
  return out;
}

std::string table_rule(const TableWidths& widths, Index columns) {
  std::string out(widths.row + 2, ' ');
  for (Index column = 0; column < columns; ++column) out += '+' + std::string(widths.cell + 2, '-');
  return out + "+\n";
}

Error not_a_layout(std::string_view text, const char* error, int position) {
  return {"not a layout", std::string(text), format("{} at character {}", error, position + 1)};
}

constexpr std::size_t kLengthMax = 4096;

Error too_long(std::string_view text) {
  return {format("a layout text of {} characters; at most {} are read", text.size(), kLengthMax),
          "", ""};
}

}  // namespace

std::string shape_to_text(const Layout& layout) { return tree_text(layout, layout.extents); }

std::string strides_to_text(const Layout& layout) { return tree_text(layout, layout.strides); }

std::string to_text(const Layout& layout) {
  if (!layout.valid()) return "invalid";
  return shape_to_text(layout) + ":" + strides_to_text(layout);
}

std::string to_text(const Swizzle& swizzle) {
  return format("Swizzle<{},{},{}>", swizzle.bits, swizzle.base, swizzle.shift);
}

std::string to_text(const Swizzled& swizzled) {
  if (!swizzled.valid()) return "invalid";
  const std::string plain = to_text(swizzled.layout);
  return swizzled.swizzle == Swizzle{} ? plain : to_text(swizzled.swizzle) + " o " + plain;
}

std::string to_text(const Tiler& tiler) {
  if (!tiler.valid()) return "invalid";
  std::string out;
  for (int i = 0; i < rank(tiler); ++i) out += (i > 0 ? ", " : "") + to_text(mode(tiler.modes, i));
  return "<" + out + ">";
}

std::string layout_table(const Swizzled& swizzled) {
  constexpr int kModesMax = 2;
  if (!swizzled.valid() || rank(swizzled) > kModesMax) return "";
  const Index rows = size(swizzled, 0);
  const Index columns = size(swizzled) / rows;
  const TableWidths widths = table_widths(swizzled, rows, columns);
  const std::string rule = table_rule(widths, columns);
  std::string out(widths.row + 1, ' ');
  for (Index column = 0; column < columns; ++column) {
    out += "  " + right_aligned(column, widths.cell + 1);
  }
  out += '\n' + rule;
  for (Index row = 0; row < rows; ++row) {
    out += ' ' + right_aligned(row, widths.row) + ' ';
    for (Index column = 0; column < columns; ++column) {
      out += "| " + right_aligned(swizzled(row + rows * column), widths.cell) + ' ';
    }
    out += "|\n" + rule;
  }
  return out;
}

Result<Layout> parse_layout(std::string_view text) {
  if (text.size() > kLengthMax) return Unexpected{too_long(text)};
  const LayoutText parsed = parse_layout_text(text.data(), static_cast<int>(text.size()));
  if (parsed.error != nullptr) {
    return Unexpected{not_a_layout(text, parsed.error, parsed.position)};
  }
  return parsed.layout;
}

Result<Swizzled> parse_swizzled(std::string_view text) {
  if (text.size() > kLengthMax) return Unexpected{too_long(text)};
  const SwizzledText parsed = parse_swizzled_text(text.data(), static_cast<int>(text.size()));
  if (parsed.error != nullptr) {
    return Unexpected{not_a_layout(text, parsed.error, parsed.position)};
  }
  return parsed.swizzled;
}

}  // namespace kiln
