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

namespace {

// supplier -> row + m * column of its word in the first step, as metadata_word gives it. Words go
// with suppliers digit by digit, as the map's first mode does.
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

// lane -> the supplier whose register it loads.
Layout loaded_suppliers(const SparseMetadata& metadata) {
  const Index fours = size(metadata.map, 0) / metadata.suppliers;
  return make_layout(make_layout(metadata.suppliers, 1), make_layout(4 / metadata.suppliers, 0),
                     make_layout(fours, metadata.suppliers));
}

// From row + m * group to row + m * byte, of even groups: a byte has two.
Layout bytes_of(Layout groups, const SparseMetadata& metadata) {
  for (int leaf = 0; leaf < groups.leaves; ++leaf) {
    Index& stride = groups.strides[leaf];
    const bool within_column = stride * groups.extents[leaf] <= metadata.m;
    KILN_CHECK(within_column || stride % (2 * metadata.m) == 0, "a byte of {} is torn",
               metadata.name);
    if (!within_column) stride /= 2;
  }
  return groups;
}

}  // namespace

MetadataLoad metadata_load(const Mma& mma, DType dtype) {
  const SparseMetadata& metadata = metadata_of(mma);
  const Layout suppliers = loaded_suppliers(metadata);
  if (dtype == DType::kU32) {
    const int columns = groups_of_row(metadata) / kNibblesOfRegister;
    KILN_CHECK(columns > 0, "a word is more than a step of {}", mma.name);
    const Layout words = composition(word_map(metadata), suppliers);
    return {.map = make_layout(words, make_layout(1, 0)),
            .rows = metadata.m,
            .parts = 1,
            .columns = columns};
  }
  constexpr int kBytes = kNibblesOfRegister / 2;
  const Layout lanes = composition(mode(metadata.map, 0), suppliers);
  const Layout bytes = composition(mode(metadata.map, 1), make_layout(kBytes, 2));
  return {.map = make_layout(bytes_of(lanes, metadata), bytes_of(bytes, metadata)),
          .rows = metadata.m,
          .parts = kBytes,
          .columns = groups_of_row(metadata) / 2};
}

int metadata_registers(const Mma& mma, DType dtype, std::int64_t columns) {
  return static_cast<int>(columns / metadata_load(mma, dtype).columns);
}

}  // namespace kiln::target
