// Expressions that are right by construction: integers stay inside their type, divisors are not 0,
// shifts are shorter than the type, and what decides a condition is exact.
#pragma once

#include <vector>

#include "programs/gen.h"

namespace kiln::programs {

struct Value {
  std::string text = {};
  DType type = DType::kF32;
  double low = 0;  // of integers, inclusive
  double high = 0;
  bool exact = false;  // no rounding on the way here
};

[[nodiscard]] std::vector<DType> float_types();    // with arithmetic: f64, f32, f16, bf16
[[nodiscard]] std::vector<DType> integer_types();  // 8 to 64 bits
[[nodiscard]] std::vector<DType> storage_types();  // all of the above, 8-bit floats and bool
// What elements of a type are when they come from memory: everything the type holds.
[[nodiscard]] Value leaf(std::string text, DType type);
[[nodiscard]] Value bounded(std::string text, double high);  // an s32 from 0 to high

class Exprs {
 public:
  Exprs(Gen& gen, std::vector<Value> leaves) : leaves_(std::move(leaves)), gen_(gen) {}

  // Of exactly this type.
  Value of(DType type, int depth);
  Value condition(int depth);
  // An s32 from 0 to count - 1.
  Value index(std::int64_t count, int depth);
  void add(Value value) { leaves_.push_back(std::move(value)); }
  [[nodiscard]] std::size_t mark() const { return leaves_.size(); }
  void forget(std::size_t mark) { leaves_.resize(mark); }

 private:
  Value integer(DType type, int depth);   // s32, u32, s64, u64
  Value floating(DType type, int depth);  // f64, f32, f16, bf16
  Value floating_binary(DType type, int depth);
  Value function(DType type, int depth);
  Value integer_binary(DType type, int depth);
  Value arithmetic(DType type, Value a, Value b);
  Value bitwise(DType type, Value a, Value b);
  Value chosen(DType type, const Value& a, const Value& b, int depth);
  Value integer_leaf(DType type);
  Value floating_leaf(DType type);
  Value literal(DType type);
  // The value, reduced to 0 .. limit - 1 (a signed one to more than -limit).
  Value reduced(Value value, std::int64_t limit);
  Value not_negative(const Value& value, std::int64_t limit);
  const Value* find(bool (*wanted)(DType), bool exact);

  std::vector<Value> leaves_;
  Gen& gen_;
};

}  // namespace kiln::programs
