#include "target/atomic.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::target {
namespace {

TEST(Atomic, RowsStandInTheOrderOfTheirKindsAndHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < all_atomics().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(all_atomics()[i].kind), i);
    EXPECT_TRUE(names.insert(all_atomics()[i].name).second);
    EXPECT_FALSE(all_atomics()[i].types.empty());
  }
}

TEST(Atomic, FloatsAreAddedAndReplacedOnly) {
  EXPECT_TRUE(supports(Atomic::kAdd, DType::kF16) && supports(Atomic::kExch, DType::kF32));
  EXPECT_FALSE(supports(Atomic::kMin, DType::kF32) || supports(Atomic::kCas, DType::kF32));
  EXPECT_TRUE(supports(Atomic::kCas, DType::kU16));
  EXPECT_FALSE(supports(Atomic::kAdd, DType::kU16) || supports(Atomic::kAdd, DType::kS8));
}

}  // namespace
}  // namespace kiln::target
