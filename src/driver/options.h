// What the command line says, one struct for each command, as text still: the commands parse and
// refuse. Empty means "not given".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/program.h"
#include "measure/options.h"

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
  std::vector<std::string> references = {};  // --ref output=ref.npy
  std::string tolerance = {};                // --tolerance A,R
  std::string check = {};                    // full, sample or none; empty: by size
  int schedules = 1;
  std::uint64_t max_steps = 1'000'000'000;  // of each schedule
  std::uint64_t max_memory = 0;             // bytes; 0: a share of the machine's
  std::vector<std::string> dumps = {};      // --dump acc@31
  bool json = false;
  std::string compiler = {};                // of a program with `main`
  std::vector<std::string> arguments = {};  // of the program's own
};

struct BuildOptions {
  io::ProgramOptions program = {};
  std::string on = "auto";
  std::string output = {};              // -o
  std::string compiler = {};            // --compiler; empty: CXX, else c++
  std::vector<std::string> flags = {};  // of the host compiler
};

struct EmitCommandOptions {
  io::ProgramOptions program = {};
  std::string output = {};  // -o
  // With `--header`; the architectures are then a list, "sm_90a,sm_80".
  std::string header = {};
  std::string name_space = {};  // of its functions; empty: none
  std::string source = {};      // empty: beside the header, with `.c`
  std::string depfile = {};     // empty: none
  std::string ahead = "auto";   // what makes machine code
};

struct IrOptions {
  io::ProgramOptions program = {};
  std::string after = {};  // a pass's name, "all" or empty: the last
  std::string as = "ir";   // ir or co: as text of the IR, or of the language
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
  std::uint64_t max_memory = 0;          // bytes; 0: a share of the machine's
  bool json = false;
  bool html = false;
  bool no_advice = false;   // attributes are not tried
  bool compile = false;     // registers are not estimated
  std::string output = {};  // -o
};

struct CacheOptions {
  io::ProgramOptions program = {};  // of `kiln cache warm`
};

}  // namespace kiln::driver
