// Many questions about what the threads of one unit do not share (prove.h asks a single one).
//
//   Varying varying(function);
//   varying.value(branch.condition, Level::kGroup)     whether a warp may part at the branch
//
// What one question has found out is kept for the next: all of them together cost about as much as
// the program is long. So no variable, assignment or jump may be added or moved in the meantime;
// barriers and waits may. While a function is still being built, each question is asked `anew`.
#pragma once

#include <map>
#include <memory>

#include "ir/module.h"

namespace kiln::ir {

class Varying {
 public:
  // What code in CUDA has written may differ; or may not, being a number that one thread has handed
  // to the others. Nobody looks into it.
  enum class OfCuda : std::uint8_t { kDiffers, kMayBeTheSame };

  explicit Varying(const Function& function, OfCuda of_cuda = OfCuda::kDiffers);
  ~Varying();
  Varying(const Varying&) = delete;
  Varying& operator=(const Varying&) = delete;

  // The answers of varies_in, value_varies_in and control_varies_in.
  [[nodiscard]] bool var(VarId var, Level unit);
  [[nodiscard]] bool value(ValueId value, Level unit);
  [[nodiscard]] bool control(OpId op, Level unit);

  // Forgets what it has found out, but for where variables are declared and cells assigned to:
  // operations may have been added since. None may have changed.
  Varying& anew();

 private:
  class Variation;
  Variation& in(Level unit);

  const Function& function_;
  OfCuda of_cuda_;
  std::map<Level, std::unique_ptr<Variation>> by_unit_;
};

// Whether the threads of the region are all those of some units.
[[nodiscard]] bool has_whole_units(const Inthreads& some, Level unit);

}  // namespace kiln::ir
