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

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `text` with nothing in it but letters, digits and underscores, and a letter in front.
[[nodiscard]] std::string word_of(std::string_view text);

// `name` as an identifier of CUDA C++ that is_reserved (reserved.h) does not name.
[[nodiscard]] std::string legal_name(std::string_view name);

// `name` as the name of a kernel: an identifier that neither is_reserved nor is_global names.
[[nodiscard]] std::string kernel_name(std::string_view name);

// Of the host function that launches a kernel.
[[nodiscard]] std::string launcher_name(std::string_view kernel);

class NameTable {
 public:
  // A legal name like `wanted` that nobody has claimed before.
  std::string claim(std::string_view wanted);
  // Nobody gets it from here on. False: somebody has it, or it is no legal name.
  bool keep(const std::string& name);
  // A kernel's; its launcher's is claimed with it.
  std::string claim_kernel(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace kiln::emit
