// A program to try, with what its command line would say, and the collection of them that mutants
// are made from.
//
//   const std::vector<Program> seeds = read_seeds(root);   // every .co and .kir of the repository
//   serialised(seeds[0])    // "// FUZZ: --arch sm_80 -D T=16 --shape M=64,N=64\n__co__ void ..."
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::fuzz {

struct Program {
  std::string name;  // "examples/matmul_wmma.co"; of a mutant that of its seed
  std::string text;
  std::string arch = "sm_90a";
  std::vector<std::string> defines = {};  // "T=16"
  std::string shapes = {};                // "M=64,N=64"; may be empty
  // Files that it includes: path beside the program, text.
  std::vector<std::pair<std::string, std::string>> included = {};

  [[nodiscard]] bool is_ir() const { return name.ends_with(".kir"); }
};

// The programs of the repository, in the order of their paths; comments that only tests read are
// left out.
[[nodiscard]] std::vector<Program> read_seeds(const std::filesystem::path& root);

// The programs of one folder that `serialised` wrote.
[[nodiscard]] std::vector<Program> read_corpus(const std::filesystem::path& folder);

[[nodiscard]] std::string serialised(const Program& program);
[[nodiscard]] Program deserialised(std::string name, std::string_view text);

}  // namespace kiln::fuzz
