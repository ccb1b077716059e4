// The layout algebra at compile time: a tile of 4 x 8 elements by rows.
#include <kiln/layout.h>

#include <cstdio>

int main() {
  using kiln::operator""_layout;
  constexpr kiln::Layout layout = "(4,8):(8,1)"_layout;
  static_assert(kiln::size(layout) == 32);
  std::printf("element (1, 2) lies at %d\n", static_cast<int>(layout(1, 2)));
  return layout(1, 2) == 10 ? 0 : 1;
}
