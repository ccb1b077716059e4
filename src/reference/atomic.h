// An element that atomic operations update: what is left of it, whatever their order.
//
//   add 1 by thread 0, add 2 by thread 1                      sums and extremes: any order
//   max 5 by thread 0, add 1 by thread 1, nothing between     depends on the order: unknown
//   exch 7 by every thread                                    7 in any order
//
// Operations that something orders (a barrier, a launch) come one after the other, and so do those
// of one thread. What an operation returns depends on the order as soon as there are two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "reference/number.h"
#include "target/atomic.h"

namespace kiln::reference {

struct Update {
  target::Atomic kind = target::Atomic::kAdd;
  DType dtype = DType::kU32;
  Number value;
  Number compare = {};  // kCas
  double flushed = 0;   // smaller sums may become 0
};

// Who makes it: of two in one `phase` nothing orders those by different threads.
struct UpdateOrder {
  using Thread = std::tuple<std::int64_t, std::size_t, std::size_t>;  // block, instances, instance
  std::uint64_t phase = 0;
  Thread thread = {};
};

class Updated {
 public:
  // `content`: of the element so far, that this comes behind.
  Updated(const Number& content, const UpdateOrder& order) : content_(content), order_(order) {}

  // The content once the update has happened as well.
  [[nodiscard]] Number after(const Update& update, const UpdateOrder& order);

 private:
  // Of floats, added in any order.
  class Sum {
   public:
    explicit Sum(const Number& first) { include(first); }
    void add(const Update& update);
    [[nodiscard]] Number total() const;

   private:
    void include(const Number& term);

    DType dtype_ = DType::kF32;
    double value_ = 0;
    double magnitude_ = 0;  // of the finite terms
    double error_ = 0;
    double flushed_ = 0;
    std::int64_t additions_ = 0;
    bool whole_ = true;
  };

  [[nodiscard]] bool joins(const Update& update) const;

  Number content_;
  UpdateOrder order_;
  std::optional<Update> first_;
  std::optional<Sum> sum_;
  bool several_threads_ = false;
  bool several_kinds_ = false;  // the order of which matters
};

}  // namespace kiln::reference
