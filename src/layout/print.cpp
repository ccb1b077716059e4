#include "layout/print.h"

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

Result<Layout> parse_layout(std::string_view text) {
  constexpr std::size_t kLengthMax = 4096;
  if (text.size() > kLengthMax) {
    return Unexpected{Error{
        format("a layout text of {} characters; at most {} are read", text.size(), kLengthMax), "",
        ""}};
  }
  const LayoutText parsed = parse_layout_text(text.data(), static_cast<int>(text.size()));
  if (parsed.error != nullptr) {
    return Unexpected{Error{"not a layout", std::string(text),
                            format("{} at character {}", parsed.error, parsed.position + 1)}};
  }
  return parsed.layout;
}

}  // namespace kiln
