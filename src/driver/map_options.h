// The options of `kiln map`, from text to types.
//
//   MapReader reader({.atom = "(8,8):(8,1)", .swizzle = "128", .dtype = "16"}, diags);
//   reader.element_bytes()    16
//   reader.swizzle(16)        Swizzle{3, 4, 3}
//   reader.tile()             reported: `--tile ` is not of the form ROWSxCOLS
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "driver/options.h"
#include "explain/draw/access.h"
#include "target/mma.h"

namespace kiln::driver {

// What ATOM turned out to be; an option goes with some of them.
enum class MapSubject : std::uint8_t {
  kOperands = 1,       // a matrix instruction: who owns what
  kOperandMemory = 2,  // the tile of one of its operands in shared memory
  kMatrixLoad = 4,
  kTile = 8,     // a layout that is (lane, value) -> element of --tile
  kMemory = 16,  // a layout: its indices, or a tile in shared memory
};
[[nodiscard]] std::string_view described(MapSubject subject);

// Whether the text is meant as a layout: names of instructions begin with a letter.
[[nodiscard]] bool looks_like_layout(const std::string& text);

// "ldmatrix.x1, ldmatrix.x2, ...": the copies with a map.
[[nodiscard]] std::string matrix_loads();

// Reads one call's options. Every function reports what it refuses.
class MapReader {
 public:
  MapReader(const MapOptions& options, Diagnostics& diags) : options_(options), diags_(diags) {}

  // No option may be given that says nothing about the subject.
  Checked<void> refuse_unused(MapSubject subject);
  Checked<std::optional<target::Operand>> operand();  // none: all three
  Checked<Layout> layout(const std::string& text);    // of at most explain::kCellsMax elements
  Checked<target::TileExtents> tile();
  Checked<int> element_bytes();
  Checked<Swizzle> swizzle(int element_bytes);
  Checked<explain::Access> access(const explain::Memory& memory);

 private:
  Checked<Swizzle> swizzle_bits(const std::vector<std::string_view>& parts);
  Unexpected<Reported> form(std::string_view option, const std::string& text,
                            std::string_view wanted, std::string_view help);

  const MapOptions& options_;
  Diagnostics& diags_;
};

}  // namespace kiln::driver
