// Attention of one head in fp64, row by row, and how far a right kernel may be from it. The bounds are
// of what a kernel does with numbers, not of how it cuts the problem:
//
//   scores       products of the inputs, added up by its matrix instructions; scaled and shifted in f32, and capped by a
//                hyperbolic tangent of the hardware's
//   weights      exponentials in f32; rounded to the tensors' type before they multiply values
//   sums         added up in f32, and taken to a new maximum once for each 32 keys at most
//   results      rounded to the tensors' type
//
// Of tensors of 8 bits a bound that nothing can exceed would let all pass: weights are rounded by up to 1/16, and the matrix
// instructions keep 13 bits behind the leading one. There an error is taken as a sum of independent ones, and bounds are
// what it is all but never beyond.
//
// docs/numbers.md has the formulas.
#pragma once

#include <vector>

#include "attention/problem.h"
#include "reference/einsum.h"
#include "support/tensor.h"

namespace kiln::measure {

// Host copies of the tensors, without gaps, those of a forward problem or all. What a problem reads is
// finite.
struct AttentionTensors {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;
  Tensor lse;
  Tensor dout;
  Tensor dq;
  Tensor dk;
  Tensor dv;
  // Of tensors of 8 bits, [batch, key_heads]; without elements all are 1.
  Tensor q_scale = {};
  Tensor k_scale = {};
  Tensor v_scale = {};
};

// What decides the bounds, besides the problem.
struct AttentionNumerics {
  float scale = 1;
  reference::EinsumNumerics sums = {};  // of the kernel's matrix instructions
};

// A row of a result; `lse` of a forward pass.
struct ExactRow {
  std::vector<double> value;
  std::vector<double> bound;
  double lse = 0;
  double lse_bound = 0;
};

// Rows of one head, decoded.
struct DecodedRows {
  std::vector<double> values = {};
  std::vector<double> norms = {};  // Euclidean, of each row
  double norm_max = 0;
  double largest = 0;
  std::size_t depth = 0;

  [[nodiscard]] const double* row(std::size_t i) const { return values.data() + i * depth; }
};

// One head of q with the keys and values that it shares.
class AttentionHead {
 public:
  // `problem` is normalised and must outlive it.
  AttentionHead(const attention::Problem& problem, const AttentionTensors& tensors,
                const AttentionNumerics& numerics, std::int64_t batch, std::int64_t head);

  [[nodiscard]] ExactRow forward(std::int64_t query) const;
  // Of a backward problem: o and lse are taken as they are.
  [[nodiscard]] ExactRow dq(std::int64_t query) const;

  // The gradients of one key and its value, which all heads that share them add to.
  struct OfKey {
    ExactRow dk;
    ExactRow dv;
  };
  void add_to(std::int64_t key, OfKey& sums) const;
  // After all heads have added: scaled and rounded.
  void finish(OfKey& sums) const;

 private:
  struct SumError {  // of a sum of products of so many
    double relative = 0;
    double floor = 0;
  };
  struct Pair;   // what a query and a key have to do with each other
  struct Range;  // of keys, or of queries

  [[nodiscard]] SumError error_of(std::int64_t length) const;
  [[nodiscard]] std::int64_t behind() const;
  [[nodiscard]] Range seen_by(std::int64_t query) const;
  [[nodiscard]] Range seeing(std::int64_t key) const;
  [[nodiscard]] double capped(double score) const;
  [[nodiscard]] double lost_in_cap(double largest) const;
  [[nodiscard]] Pair pair(std::size_t query, std::size_t key) const;
  [[nodiscard]] double score_error(std::size_t query) const;
  void round(ExactRow& row) const;
  void weigh(ExactRow& row, std::int64_t first, std::vector<double>& weights) const;
  // The row has its values; `weights` are of the largest one, and of the keys from number `first` on.
  void bound_8_bits(ExactRow& row, std::size_t query, std::int64_t first,
                    const std::vector<double>& weights) const;

  const attention::Problem& problem_;
  double scale_;
  reference::EinsumNumerics numerics_;
  double unit_;         // of rounding to the tensors' type
  double lowest_;       // what may get lost below its smallest number
  double result_unit_;  // the same of results
  double result_lowest_;
  SumError of_depth_;
  DecodedRows q_;
  DecodedRows k_;
  DecodedRows v_;
  DecodedRows o_;
  DecodedRows dout_;
  std::vector<double> lse_;
  std::vector<double> delta_;  // of each query: its rows of o and dout
};

// Computes o and lse from q, k and v.
void fill_forward(const attention::Problem& problem, const AttentionNumerics& numerics,
                  AttentionTensors& tensors);

}  // namespace kiln::measure
