#include "layout/indices.h"

namespace kiln {

std::vector<Index> indices_of(const Layout& layout) {
  if (!layout.valid()) return {};
  std::vector<Index> all = {0};
  all.reserve(static_cast<std::size_t>(size(layout)));
  for (int leaf = 0; leaf < layout.leaves; ++leaf) {
    const std::size_t before = all.size();
    for (Index i = 1; i < layout.extents[leaf]; ++i) {
      for (std::size_t at = 0; at < before; ++at) {
        all.push_back(all[at] + i * layout.strides[leaf]);
      }
    }
  }
  return all;
}

}  // namespace kiln
