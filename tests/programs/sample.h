// One random program: its text as a tree of statements, which the shrinker takes apart, and what it
// is called with.
//
//   Sample sample = draw_sample({.seed = 1}, 17);    the 17th of seed 1, the same everywhere
//   text(sample)                                    the `.co` file
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
  bool tiles = false;  // of the stream of tile programs
  std::string family;
  std::string arch;
  std::vector<std::string> macros;          // lines in front of the function
  std::vector<std::string> functions = {};  // that it calls
  std::vector<Definition> defines;          // of the command line
  std::vector<io::Assignment> shape;        // dimensions and scalars
  std::vector<std::string> params;
  Node function;  // its text is the name
  std::string result = "void";
  std::string returned = {};  // the buffer that the function gives back
  // Every operation has one exact result, so that two machines agree to the bit.
  bool exact = true;
};

// Which programs there are: those of all families, or of register tiles alone.
struct Stream {
  std::uint64_t seed = 1;
  std::string arch = {};  // empty: each sample chooses
  bool tiles = false;
};

[[nodiscard]] Sample draw_sample(const Stream& stream, std::uint64_t number);

[[nodiscard]] std::string text(const Sample& sample);
// The options of `kiln run` that the sample needs: "--arch sm_80 --shape M=5 -D T=4".
[[nodiscard]] std::string options_text(const Sample& sample);

}  // namespace kiln::programs
