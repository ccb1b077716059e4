// Families of layouts to state laws over, and what the laws share.
//
//   for_each_shape(12, 2, f)      f(1), f(2), ..., f((1,1)), ..., f((2,6)), f((3,4)), ..., f((12,1))
//   for_each_layout(6, 1, f)      f(6:0), f(6:1), f(6:2), f(6:6), f(6:7), ..., extents up to 6
//   image((2,2):(1,4))            {0, 1, 4, 5}
//
// A family is exhaustive in what it names: every shape of up to `leaves_max` leaves whose extents
// multiply to at most `size_max`, and for each leaf of it, independently, every stride of
// stride_choices(shape). That covers compact, permuted, padded, overlapping, repeating (0) and
// ill-dividing layouts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "kiln/layout.h"
#include "layout/print.h"

// The sweep, built with optimisation, sets 64; the unit tests are smaller to stay quick when
// sanitized.
#ifndef KILN_LAYOUT_SIZE_MAX
#define KILN_LAYOUT_SIZE_MAX 12
#endif

namespace kiln {

inline constexpr Index kSizeMax = KILN_LAYOUT_SIZE_MAX;
inline constexpr int kLeavesInFamily = 3;

inline Layout read(std::string_view text) {
  Result<Layout> parsed = parse_layout(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? *parsed : Layout{};
}

// Flat shapes with compact strides. One leaf stands bare.
template <class Visit>
void for_each_shape(Index size_max, int leaves_max, const Visit& visit) {
  Layout shape;
  const auto extend = [&](const auto& self, Index room) -> void {
    for (Index extent = 1; extent <= room; ++extent) {
      shape.extents[shape.leaves++] = extent;
      Layout flat = shape;
      if (flat.leaves > 1) flat.opens[0] = flat.closes[flat.leaves - 1] = 1;
      visit(compact(flat));
      if (shape.leaves < leaves_max) self(self, room / extent);
      shape.extents[--shape.leaves] = 0;
    }
  };
  extend(extend, size_max);
}

// 0, each product of some of the extents (so 1, each extent, ..., the size), and one more than
// each.
inline std::vector<Index> stride_choices(const Layout& shape) {
  std::set<Index> out = {0};
  for (int subset = 0; subset < 1 << shape.leaves; ++subset) {
    Index product = 1;
    for (int i = 0; i < shape.leaves; ++i) {
      if ((subset >> i & 1) != 0) product *= shape.extents[i];
    }
    out.insert({product, product + 1});
  }
  return {out.begin(), out.end()};
}

// Every combination of strides. Stops at the first failure of the test that runs it.
template <class Visit>
void for_each_stride(Layout layout, const std::vector<Index>& choices, const Visit& visit,
                     int leaf = 0) {
  for (const Index stride : choices) {
    if (testing::Test::HasFailure()) return;
    layout.strides[leaf] = stride;
    if (leaf + 1 < layout.leaves) {
      for_each_stride(layout, choices, visit, leaf + 1);
    } else {
      visit(layout);
    }
  }
}

template <class Visit>
void for_each_layout(Index size_max, int leaves_max, const Visit& visit) {
  for_each_shape(size_max, leaves_max, [&](const Layout& shape) {
    for_each_stride(shape, stride_choices(shape), visit);
  });
}

// The ways to bracket the modes of a flat layout: (a,b,c), ((a,b),c), (a,(b,c)), ((a,b,c)), ...
inline std::vector<Layout> groupings(const Layout& flat) {
  std::vector<Layout> out = {flat};
  for (int begin = 0; begin < rank(flat); ++begin) {
    for (int end = begin + 1; end <= rank(flat); ++end) out.push_back(group(flat, begin, end));
  }
  return out;
}

// Layouts whose leaves take strides of their own shape's compact orders only, each step of it
// dense or doubled: what real tiles look like. Extents above 1.
template <class Visit>
void for_each_dense(Index size_max, int leaves_max, const Visit& visit) {
  for_each_shape(size_max, leaves_max, [&](const Layout& shape) {
    std::vector<int> order;
    for (int i = 0; i < shape.leaves; ++i) {
      if (shape.extents[i] == 1) return;
      order.push_back(i);
    }
    do {
      for (int padded = 0; padded < 1 << shape.leaves; ++padded) {
        Layout layout = shape;
        Index stride = 1;
        for (std::size_t i = 0; i < order.size(); ++i) {
          if ((padded >> i & 1) != 0) stride *= 2;
          layout.strides[order[i]] = stride;
          stride *= layout.extents[order[i]];
        }
        if (!testing::Test::HasFailure()) visit(layout);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  });
}

// Every index in order of the linear coordinate.
inline std::vector<Index> image(const Layout& layout) {
  std::vector<Index> out;
  for (Index i = 0; i < size(layout); ++i) out.push_back(layout(i));
  return out;
}

inline std::vector<Index> sorted_image(const Layout& layout) {
  std::vector<Index> out = image(layout);
  std::sort(out.begin(), out.end());
  return out;
}

// In ascending order, each once.
inline std::vector<Index> distinct(std::vector<Index> indices) {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

// For layouts without negative strides.
inline bool is_injective(const Layout& layout) {
  std::vector<bool> seen(static_cast<std::size_t>(cosize(layout)), false);
  for (Index i = 0; i < size(layout); ++i) {
    const auto at = static_cast<std::size_t>(layout(i));
    if (seen[at]) return false;
    seen[at] = true;
  }
  return true;
}

}  // namespace kiln
