// A statement of register tiles becomes the body of a function that is given what it names.
//
//   t3 = (t1 + t2);      =>      t3 = give0(t1, t2);
//   __co_device__ frag f32 [16, 8] give0(frag f32 [R1, 8] t1, frag t2) { return (t1 + t2); }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "programs/tiles.h"

namespace kiln::programs {

// What a statement may name.
struct Names {
  const std::vector<TileValue>& tiles;
  const Window& window;
};

struct Outlined {
  std::string before;  // the line of a template; empty without one
  std::string head;    // "give0(frag f32 [R1, 8] t1, frag t2)"
  std::string call;    // "give0(t1, t2)"

  // One more parameter, and its argument.
  void add(const std::string& parameter, const std::string& argument);
};

// Nothing for a text that names what no parameter can be.
[[nodiscard]] std::optional<Outlined> outlined(Gen& gen, const Names& names,
                                               const std::string& text);

}  // namespace kiln::programs
