// How large the integers may be that `--fill integers` and `adversarial` give a kernel, and whether
// those it got could have told a type that is too narrow.
//
//   y.at(i) = x.at(i) + 1             s32 in, s32 out: all that an s32 holds, sums wrap
//   y.at(i) = __to<f32>(x.at(i))      the same: a conversion rounds once
//   y.at(i) += __to<f32>(x.at(i))     so far as the sums of floats stay exact
//   y.at(i) = w.at(x.at(i))           x decides what is read: nothing is known
#pragma once

#include <string>
#include <vector>

#include "ir/arguments.h"

namespace kiln::io {

// What is known of a parameter.
struct IntegerInput {
  bool steers = false;  // it decides where, how often or by how far something is done
  // Up to this magnitude results stay exact: infinity for all of the type, 0 where nothing is
  // known.
  double largest = 0;
};

// By parameter; of one that is no tensor of integers nothing is known. No sum of floats has more
// than `longest` terms.
[[nodiscard]] std::vector<IntegerInput> integer_inputs(const ir::Function& function,
                                                       std::int64_t longest);

// A tensor whose values leave half of its type's bits unused: what wraps in a type of half the
// width is what the kernel should give.
struct NarrowInput {
  std::string name;
  int used = 0;  // bits
  int bits = 0;
  bool could_be_wide = false;  // `--fill integers` draws values that need them
};

// Those of the tensors that the kernel reads.
[[nodiscard]] std::vector<NarrowInput> narrow_inputs(const ir::Function& function,
                                                     const ir::Arguments& arguments);

}  // namespace kiln::io
