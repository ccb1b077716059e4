// What the command line says of `kiln bench` and `kiln tune`, as text still. Empty means "not
// given".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/program.h"

namespace kiln::measure {

struct BenchOptions {
  io::ProgramOptions program = {};  // its file may be a suite's name
  std::string kernel = {};
  std::vector<std::string> shapes =
      {};                 // of a file: each is one problem; of a suite: which to keep
  std::string only = {};  // of a suite: text that a problem's line must have
  std::string expect = {};
  int count = 0;       // of `random`: problems; 0: as many as it usually has
  double seconds = 0;  // of `random`: after which no further problem is begun; 0: none
  std::uint64_t seed = 0;
  int repeats = 9;
  double batch_seconds = 0.02;
  bool graphs = false;      // launches are started in CUDA graphs
  bool power = false;       // energy is measured too
  bool unchecked = false;   // of a file: results are not compared
  std::string json = {};    // a file to append to
  std::string plot = {};    // a file of results to draw, instead of measuring
  std::string output = {};  // -o, of the plot
};

struct TuneOptions {
  io::ProgramOptions program = {};  // its file may be a suite's name
  std::string kernel = {};
  std::vector<std::string> shapes = {};    // of a file: the problem; of a suite: which to keep
  std::vector<std::string> over = {};      // of a file: --over STAGES=2:6
  std::vector<std::string> problems = {};  // of the library: --problem 'bf16,bf16,bf16 M=64,...'
  std::string only = {};                   // of a suite: text that a problem's line must have
  bool no_attributes = false;  // of a file: those of its loops and launches stay as they are
  std::string expect = {};
  std::uint64_t seed = 0;
  int keep = 0;             // candidates that are measured; 0: the form's own number
  bool resume = false;      // pass over problems that the table has
  std::string output = {};  // -o, the table
  std::string json = {};    // a file to append to
};

}  // namespace kiln::measure
