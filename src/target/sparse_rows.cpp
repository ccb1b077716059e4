// Metadata of the rows of the instruction table. (sparse.cpp is also compiled into a GPU test,
// where these checks cannot be.)
#include "support/check.h"
#include "target/sparse.h"

namespace kiln::target {

const SparseMetadata& metadata_of(const Mma& mma) {
  const SparseMetadata* row = find_sparse_metadata(mma.scope, mma.shape.k, info(mma.a).bits);
  KILN_CHECK(mma.sparse && row != nullptr, "{} has no metadata", mma.name);
  return *row;
}

// Words go with suppliers digit by digit, as the map's first mode does.
Layout word_map(const SparseMetadata& metadata) {
  const Layout suppliers = mode(metadata.map, 0);
  const auto place = [&](int supplier) {
    const auto word =
        metadata_word(metadata, 0, lane_of_supplier(metadata, 0, supplier), 0).value();
    return Index{word.row} + Index{metadata.m} * word.col;
  };
  detail::LayoutBuilder out;
  int below = 1;
  for (int leaf = 0; leaf < suppliers.leaves; ++leaf) {
    const auto extent = static_cast<int>(suppliers.extents[leaf]);
    out.leaf(extent, extent > 1 ? place(below) : 0);
    below *= extent;
  }
  const Layout map = out.done_flat();
  for (int supplier = 0; supplier < below; ++supplier) {
    KILN_CHECK(map(supplier) == place(supplier), "words of {} do not follow its suppliers",
               metadata.name);
  }
  return map;
}

int words_of_step(const SparseMetadata& metadata) {
  return groups_of_row(metadata) / kNibblesOfRegister;
}

}  // namespace kiln::target
