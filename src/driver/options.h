// What the command line says, one struct for each command, as text still: the commands parse and
// refuse. Empty means "not given".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/program.h"

namespace kiln::driver {

struct CheckOptions {
  io::ProgramOptions program = {};
  bool json = false;
};

struct RunOptions {
  io::ProgramOptions program = {};
  std::string kernel = {};
  std::string on = "auto";
  std::vector<std::string> shapes = {};   // --shape M=512,N=512
  std::vector<std::string> inputs = {};   // --in lhs=a.npy
  std::vector<std::string> outputs = {};  // --out output=c.npy
  std::string fill = "normal";
  std::uint64_t seed = 0;
  std::string expect = {};
  int schedules = 1;
  std::uint64_t max_steps = 1'000'000'000;  // of each schedule
  std::uint64_t max_memory = 0;             // bytes; 0: a share of the machine's
  bool json = false;
};

struct EmitCommandOptions {
  io::ProgramOptions program = {};
  std::string output = {};  // -o
};

struct IrOptions {
  io::ProgramOptions program = {};
  std::string after = {};  // a pass's name, "all" or empty: the last
};

struct AtomsOptions {
  std::string arch = {};  // empty: all
  bool json = false;
};

struct MapOptions {
  std::string atom = {};     // a matrix instruction, an `ldmatrix` or a layout
  std::string operand = {};  // empty: all three
  std::string format = "text";
  std::string tile = {};     // --tile 16x8
  std::string smem = {};     // --smem LAYOUT
  std::string swizzle = {};  // --swizzle 128 or 3,4,3
  std::string dtype = {};    // --dtype f16, or a number of bytes
  std::string access = {};   // --access LAYOUT or ldmatrix.x4
  bool banks = false;
  bool table = false;
  std::string output = {};
};

struct PruneOptions {
  std::string file = {};
  std::string packed = {};    // -o
  std::string metadata = {};  // --metadata
  std::string dense = {};     // --dense; empty: not written
  std::string form = "u8";    // of the metadata: u8 or u32
  std::string type = {};      // empty: as the file says
  bool keep = false;          // --no-prune: the matrix is 2:4 already
};

struct ExplainOptions {
  io::ProgramOptions program = {};
  std::string kernel = {};
  std::vector<std::string> shapes = {};  // empty: a few full tiles
  bool json = false;
  bool html = false;
  std::string output = {};  // -o
};

struct BenchOptions {
  io::ProgramOptions program = {};  // its file may be a suite's name
  std::string kernel = {};
  std::vector<std::string> shapes =
      {};                 // of a file: each is one problem; of a suite: which to keep
  std::string only = {};  // of a suite: text that a problem's line must have
  std::string expect = {};
  int count = 0;  // of `random`: problems; 0: as many as it usually has
  std::uint64_t seed = 0;
  int repeats = 9;
  double batch_seconds = 0.02;
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
  std::string expect = {};
  std::uint64_t seed = 0;
  int keep = 0;             // candidates that are measured; 0: the form's own number
  bool resume = false;      // pass over problems that the table has
  std::string output = {};  // -o, the table
  std::string json = {};    // a file to append to
};

struct CacheOptions {
  io::ProgramOptions program = {};  // of `kiln cache warm`
};

}  // namespace kiln::driver
