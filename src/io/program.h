// A `.co` file (or IR text, `.kir`), read and compiled as far as a command needs.
//
//   auto program = compile(options, Depth::kDecided, console);
//   program->tile.functions[0]      what the reference interpreter runs
//   program->decided.functions[0]   what the simulator and the emitter read; same OpIds
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/console.h"
#include "io/use.h"
#include "ir/module.h"
#include "passes/pass_table.h"
#include "syntax/ast.h"

namespace kiln::io {

// What every command that reads a `.co` file takes.
struct ProgramOptions {
  std::string file = {};
  std::string arch = {};                  // --arch sm_80
  std::vector<std::string> defines = {};  // -D NAME=VALUE
  std::vector<std::string> folders = {};  // -I FOLDER, in whose files `#include` may be found
  std::optional<std::string> text = {};   // the program; none: what `file` holds
};

// A template parameter of a kernel, with the values that `[[tune(...)]]` names.
struct Tunable {
  std::string kernel;
  std::string name;
  std::vector<std::string> values;  // as they are written
};

struct Program {
  const target::Arch* arch = nullptr;
  Sources sources;
  Diagnostics diags;  // of the program: warnings when it compiled
  ir::Module tile;
  ir::Module decided;
  std::vector<Tunable> tunables = {};
  ast::Ast tree = {};  // of a `.co` file
};

struct CompileOptions {
  passes::PassOptions passes = {};
  // The only kernel of the file that is analysed and decided, if it has one of this name: the others
  // need not fit the architecture. Empty: all of them.
  std::string kernel = {};
};

// The row named by `--arch`; for an empty name that of the machine's GPU, else the newest. An
// unknown name is reported.
[[nodiscard]] Checked<const target::Arch*> choose_arch(const std::string& name, Diagnostics& diags);

// Reads, parses, analyses and decides. `program` holds sources and diagnostics also when this fails
// (so that they can be shown). The error is the world's failure.
[[nodiscard]] Result<Exit> compile(const ProgramOptions& options, const CompileOptions& how,
                                   Program& program);

// The same; nothing is written but the world's failures.
[[nodiscard]] Exit compile(const ProgramOptions& options, const CompileOptions& how,
                           Program& program, Console& console);

// A file with those that it includes.
struct WholeText {
  std::string text;                // of all of them
  std::vector<std::string> files;  // that were read: where they were found, the file itself first
};

// What the text calls its files.
enum class Names : std::uint8_t {
  kAsFound,  // by the paths by which they were read
  kInside,   // by paths from the folder of the file, or from those of `-I`: for other machines
};

// The text of the file, with those of the `.co` files that it includes in the places of their
// `#include`, between `#line`s that keep every line's place.
[[nodiscard]] Result<WholeText> whole_text(const ProgramOptions& options,
                                           Names names = Names::kAsFound);

// The function called `name`, or the only one when the name is empty; reported otherwise, in the words of who
// asks.
[[nodiscard]] Checked<std::size_t> choose_kernel(const Program& program, const std::string& file,
                                                 const std::string& name, Diagnostics& diags,
                                                 Use use = Use::kRun);

}  // namespace kiln::io
