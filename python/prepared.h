// What kiln.ops prepares once and starts often: a problem of the library on a device, and where its
// operands lie beside the one that is written.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "kiln/attention.h"
#include "kiln/attention_decode.h"
#include "kiln/gemm.h"
#include "kiln/kiln.h"
#include "on_device.h"

namespace kiln::python {

struct Prepared {
  std::variant<kiln_gemm_problem, kiln_attention_problem, kiln_attention_backward_problem,
               kiln_attention_decode_problem>
      problem;
  int device = 0;
  std::size_t workspace = 0;
};

// How many values a problem's start takes at most.
inline constexpr std::size_t kValuesMax = 12;

// `values` are, each operand 0 that the problem has not,
//   of a product              a, b, c, the bias, the residual, the scale factors of a and b, the metadata,
//                             the numbers of groups, those of their rows; alpha and beta
//   of attention              q, k, v, o, lse; the scale; where sequences begin, of q and k; the factors of q, k and v
//   of attention's gradients  q, k, v, o, lse, dout, dq, dk, dv; the scale; where sequences begin
//   of attention over a cache q, k, v, the lengths, the table of pages, o, lse; the scale
Ended start(const Prepared& prepared, std::span<const kiln_value> values, void* workspace,
            void* stream);

// Status, error and Prepared or None: what `prepare(workspace)` of the library says of the problem.
template <class Problem, class Prepare>
nanobind::tuple prepared(int device, const Problem& problem, Prepare prepare) {
  Prepared made{.problem = problem, .device = device};
  Ended ended;
  {
    nanobind::gil_scoped_release others_go_on;
    ended = on_device(device, [&] { return prepare(made.workspace); });
  }
  nanobind::object object = nanobind::none();
  if (ended.status == KILN_OK) object = nanobind::cast(made);
  return nanobind::make_tuple(static_cast<int>(ended.status), ended.error, object);
}

// The bytes that a tensor takes: all of them, and those between the first and the last of one row.
struct Reach {
  std::uint64_t all = 0;
  std::uint64_t row = 0;
};

// A tensor beside the one that is written.
struct Neighbour {
  std::size_t place = 0;  // of its value
  Reach reach;
  std::uint64_t step = 0;     // from row to row, where it is that of the written one too; else 0
  bool may_coincide = false;  // it may be the written one itself
};

struct Apart {
  std::size_t place = 0;  // of the one that is written
  Reach reach;
  std::vector<Neighbour> others;

  // The place of one that shares memory with the written one.
  [[nodiscard]] std::optional<std::size_t> shared(std::span<const kiln_value> values) const;
};

}  // namespace kiln::python
