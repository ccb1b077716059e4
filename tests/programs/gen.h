// What the families of programs share: fresh names, extents, parameters.
#pragma once

#include <string>
#include <vector>

#include "programs/draw.h"
#include "programs/sample.h"
#include "support/dtype.h"
#include "support/format.h"

namespace kiln::programs {

// A number as the program spells it: "37", "M2", "T1".
struct Extent {
  std::string text;
  std::int64_t value = 0;
};

struct Param {
  std::string name;
  DType type = DType::kF32;
  std::vector<Extent> shape;
};

class Gen {
 public:
  Gen(Draw& draw_with, Sample& sample) : draw(draw_with), out(sample) {}

  Draw& draw;
  Sample& out;
  // What earlier launches wrote: later ones may read it.
  std::vector<Param> written = {};

  std::string name(const std::string& stem) { return format("{}{}", stem, next_++); }
  [[nodiscard]] bool hopper() const { return out.arch == "sm_90a"; }
  // A literal, a macro or a name of the command line; known when the program is compiled.
  Extent constant(std::int64_t value);
  // Of a parameter: often a dimension, always one when it is less than the tile taken from it.
  Extent dimension(std::int64_t value, std::int64_t tile = 1);
  Param param(const std::string& stem, DType type, std::vector<Extent> shape);
  Param input(DType type, std::vector<Extent> shape);
  Param output(DType type, std::vector<Extent> shape);
  Extent int_param(std::int64_t value);
  std::string float_param();
  // "wait e;", "trigger e;", or a call of a function that does it.
  std::string meet(const std::string& word, const std::string& event);

 private:
  int next_ = 0;
};

[[nodiscard]] inline std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
[[nodiscard]] std::string list(const std::vector<Extent>& extents);
[[nodiscard]] std::string list(const std::vector<std::int64_t>& numbers);
[[nodiscard]] std::string list(const std::vector<std::string>& texts);

}  // namespace kiln::programs
