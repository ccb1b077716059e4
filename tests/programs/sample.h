// One random program: its text as a tree of statements, which the shrinker takes apart, and what it
// is called with.
//
//   Sample sample = draw_sample(1, 17, "sm_90a");    the 17th of seed 1, the same everywhere
//   text(sample)                                     the `.co` file
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "io/assignments.h"

namespace kiln::programs {

// A statement, or the head of one with a body: `foreach i in [4]`.
struct Node {
  std::string text;
  bool has_body = false;
  std::list<Node> body = {};

  Node& line(std::string statement);
  Node& open(std::string head);
};

struct Sample {
  std::uint64_t seed = 0;
  std::uint64_t number = 0;
  std::string family;
  std::string arch;
  std::vector<std::string> macros;    // lines in front of the function
  std::vector<Definition> defines;    // of the command line
  std::vector<io::Assignment> shape;  // dimensions and scalars
  std::vector<std::string> params;
  Node function;  // its text is the name
  std::string result = "void";
  std::string returned = {};  // the buffer that the function gives back
  // Every operation has one exact result, so that two machines agree to the bit.
  bool exact = true;
};

// `arch` empty: the sample chooses.
[[nodiscard]] Sample draw_sample(std::uint64_t seed, std::uint64_t number, const std::string& arch);

[[nodiscard]] std::string text(const Sample& sample);
// The options of `kiln run` that the sample needs: "--arch sm_80 --shape M=5 -D T=4".
[[nodiscard]] std::string options_text(const Sample& sample);

}  // namespace kiln::programs
