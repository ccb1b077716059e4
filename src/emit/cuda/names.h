// Names of the emitted program: the user's own, changed only where C++ would not take them.
//
//   NameTable names;
//   names.claim("tile")  == "tile"      names.claim("for") == "for_"      names.claim("3") == "v3"
//   names.claim("tile")  == "tile_2"    each claimed name is given out once
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kiln::emit {

// `name` as an identifier of CUDA C++ that is no keyword and no name the emitted text uses itself.
[[nodiscard]] std::string legal_name(std::string_view name);

// The same for a kernel: nor one of the C library, whose functions have C linkage as kernels do.
[[nodiscard]] std::string kernel_name(std::string_view name);

class NameTable {
 public:
  // A legal name like `wanted` that nobody has claimed before.
  std::string claim(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace kiln::emit
