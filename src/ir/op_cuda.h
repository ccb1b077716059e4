// The operation of what the program says in CUDA; the others are in op.h, which says how they are made.
#pragma once

#include <string>
#include <vector>

#include "ir/traits.h"
#include "support/ids.h"

namespace kiln::ir {

// A text that stands in the kernel as it is: each thread that comes here runs it. Nothing of it is
// understood. It may read and write all of what it is passed, any part of it; it waits for nothing,
// and nothing that is decided depends on it.
//
//   cuda what="`call f`" text="%_ = f<4>(%_, %#);" passed=[%c, %x] numbers=[%n]
//     with cell %c, view %x, scalar %n:   c = f<4>(x + 64 * row, n);
//   cuda what="`__cpp__`" text="s[0] += n;" passed=[%s] numbers=[%n] names=["s", "n"]
//
// What is passed is a cell, a view (a pointer to its first element) or a register tile (the array of
// what this thread has of it). Each has a place in the text, `%_`, as each number has, `%#`; `%%` is a
// percent sign. Or the text calls them by names of its own. Elements of shared memory that is passed
// lie row by row.
struct Cuda {
  std::string what;  // for messages
  std::string text;
  std::vector<ValueId> passed;
  std::vector<ValueId> numbers;    // scalars
  std::vector<std::string> names;  // of what is passed and of numbers, in this order
  // What it does in this language, which is run where there is no GPU; invalid: nobody says.
  RegionId stand_in;
  static void fields(auto& s, auto&& v) {
    v("what", s.what), v("text", s.text), v("passed", s.passed), v("numbers", s.numbers),
        v("names", s.names), v("stand_in", s.stand_in);
  }
  static void touches(const auto& s, auto&& t) {
    for (const ValueId value : s.passed) {
      t({.value = value, .use = Use::kUpdates, .chooses = true, .beyond = Beyond::kCarries});
    }
  }
};

}  // namespace kiln::ir
