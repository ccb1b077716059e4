// What a function is called with, shared by the simulator, the reference interpreter and the GPU.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"
#include "support/tensor.h"

namespace kiln::ir {

struct Arguments {
  // By VarId: values of the dimensions and integer parameters; other entries are unused.
  std::vector<std::int64_t> vars;
  // By parameter index. Views: the tensor, updated in place. Floating scalars: `scalar`.
  struct Value {
    Tensor tensor;
    double scalar = 0;
  };
  std::vector<Value> params;
  // The function's returned buffer or scalar, when it returns one.
  Value returned;
};

// Which parameters (by index) the function writes, i.e. its outputs: copied back and compared.
[[nodiscard]] std::vector<std::size_t> written_params(const Function& function);
// Those it reads.
[[nodiscard]] std::vector<std::size_t> read_params(const Function& function);
// Those whose contents a call gives: all but what is only written.
[[nodiscard]] std::vector<std::size_t> given_params(const Function& function);

// Those (by index) whose contents the values may depend on: through scalars, cells, copies and
// products, not through the conditions and the indices of what is done.
[[nodiscard]] std::vector<std::size_t> params_behind(const Function& function,
                                                     const std::vector<ValueId>& values);

// Whether the check is met with these values of the variables, by VarId.
[[nodiscard]] bool holds(const EntryCheck& check, const std::vector<std::int64_t>& vars);

}  // namespace kiln::ir
