// One kernel while it is being written: names, what surrounds the current operation, and the
// spelling of views and scalars. The functions that emit operations (emit_op.h) take it first.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "emit/cuda/instruction.h"
#include "emit/cuda/launch_plan.h"
#include "emit/cuda/names.h"
#include "emit/cuda/shorthand.h"
#include "emit/cuda/spell.h"
#include "emit/cuda/uses.h"
#include "emit/cuda/writer.h"
#include "ir/module.h"
#include "ir/never_negative.h"

namespace kiln::emit {

// What the kernels of a file need at its top.
struct Requirements {
  std::set<std::string> headers;                // "copy.cuh"
  std::map<std::string, std::string> wrappers;  // of instructions, by name

  // The instruction's wrapper: its name.
  std::string require(const auto& instruction) {
    const std::string name = wrapper_name(instruction);
    if (!wrappers.contains(name)) wrappers[name] = wrapper(instruction);
    return name;
  }
};

struct TextOptions {
  bool line_directives = false;
  std::vector<Shorthand> names = {};  // that the text may use
};

struct Kernel {
  Kernel(const ir::Function& function, const LaunchPlan& plan, const Sources& sources,
         Requirements& requirements, TextOptions options);

  const ir::Function& function;
  const LaunchPlan& plan;
  const Sources& sources;
  Requirements& requirements;
  KernelUses uses;
  std::vector<bool> inlined;  // by ValueId
  Writer out;

  std::vector<std::string> value_names;  // by ValueId
  std::vector<std::string> var_names;    // by VarId, then of the shorthands, then those below
  Shorthands shorthands;
  ir::NeverNegative counters;          // variables that nothing bounds
  std::set<ir::VarId> dividends = {};  // variables of which something is divided
  ir::VarId thread;                    // threadIdx.x
  ir::VarId lane;                      // thread % 32
  ir::VarId warp;                      // thread / 32, uniform
  ir::VarId counter;                   // of a loop the emitter writes itself
  ir::VarId inner_counter;             // of one in it
  std::string row_name;      // of a pointer to a row of a window, where its elements go one by one
  std::string count_name;    // of how many elements there are of each run in such a row
  ir::ValueId applied = {};  // the register tile that the apply around goes through
  bool in_pairs = false;     // it goes two elements at a time
  ir::VarId factors;         // of a lane's rows, where sums are scaled
  ir::VarId rank;            // of the block in its cluster
  std::vector<std::string> phase_names;  // by ValueId: the parities of events waited for in turn
  // Names by which texts of the program call something else than a variable of the kernel, with the
  // blocks in which they were declared so far.
  std::map<std::string, std::vector<Writer::Block>> declared;
  bool needs_thread = false;
  bool needs_lane = false;
  bool needs_warp = false;
  bool needs_shared = false;  // the address of shared memory, also where nothing lies there
  bool needs_rank = false;
  // Whether threads read other blocks' shared memory.
  [[nodiscard]] bool reads_other_blocks() const;

  std::int64_t unit = 0;  // threads of the instance the current operation runs in; 0: the block
  const ir::Inthreads* region = nullptr;  // the innermost one that the operation stands in
  bool elected_here = false;              // the text stands under the condition of elected()

  // The thread's, the lane's, the warp's and the block's number as an expression; the kernel then
  // declares them.
  ir::Expr use_thread();
  ir::Expr use_lane();
  ir::Expr use_warp();
  ir::Expr use_rank();
  // The thread's number inside a unit of so many threads (0: the block).
  ir::Expr thread_in(std::int64_t unit_threads);

  [[nodiscard]] Spelled spelled(const ir::Expr& expr);
  [[nodiscard]] Spelled spelled_as_it_is(const ir::Expr& expr);  // without names of formulas
  [[nodiscard]] VarFacts facts() const;
  // It may need more than 32 bits.
  [[nodiscard]] bool is_wide(ir::VarId var) const;
  // Its text is computed in 64 bits, not in int.
  [[nodiscard]] bool is_wide(const ir::Expr& expr) const;
  [[nodiscard]] std::string text(const ir::Expr& expr) { return spelled(expr).text; }
  // The text of an expression that is computed in 64 bits: a distance between elements.
  [[nodiscard]] std::string wide_text(const ir::Expr& expr);
  // The same as readable text, of an expression that is no constant.
  [[nodiscard]] Spelled spelled_in_64_bits(const ir::Expr& expr);
  // An integer list "{M, K}", every element an int.
  [[nodiscard]] std::string braced(const std::vector<ir::Expr>& exprs);
  [[nodiscard]] const std::string& name(ir::ValueId value) const {
    return value_names[value.index];
  }
  [[nodiscard]] const std::string& name(ir::VarId var) const { return var_names[var.index]; }

  // The kernel's variable that is what a text of the program means by a value: a cell, an array, a pointer,
  // a number; null: there is none.
  [[nodiscard]] std::string* variable_of(ir::ValueId value);
  // Names in texts of the program are theirs.
  void keep_names_of_texts(NameTable& table);

  // Element `index` (one expression per dimension) of a whole buffer, of the thread's own block or of
  // the one that has rank `block` in the cluster.
  [[nodiscard]] std::string element(ir::ValueId root, const std::vector<ir::Expr>& index,
                                    const std::optional<ir::Expr>& block = {});
  // Whether the rows of a global buffer begin at multiples of `run` elements, asked at run time.
  [[nodiscard]] std::string rows_aligned(ir::ValueId root, std::int64_t run);
};

// Element `index` of a window of a buffer; `index` has the window's rank.
[[nodiscard]] std::string element(Kernel& kernel, const ir::ResolvedView& view,
                                  const std::vector<ir::Expr>& index,
                                  const std::optional<ir::Expr>& block = {});

// "row < M && col < K" over the window's guarded dimensions; "" when nothing needs comparing.
[[nodiscard]] std::string inside(Kernel& kernel, const ir::ResolvedView& view,
                                 const std::vector<ir::Expr>& index,
                                 const std::vector<std::int64_t>& guarded,
                                 const std::vector<std::int64_t>& before = {});

// The element number in a dense row-major array of this shape.
[[nodiscard]] ir::Expr flat_index(const std::vector<ir::Expr>& shape,
                                  const std::vector<ir::Expr>& index);
// Its inverse, for constant or symbolic extents.
[[nodiscard]] std::vector<ir::Expr> unflatten(const std::vector<ir::Expr>& shape,
                                              const ir::Expr& flat);

// The rows and the row length of a shared tile of this shape; extents must be constant.
struct TileShape {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
};
[[nodiscard]] TileShape tile_shape(const ir::ViewType& view);

}  // namespace kiln::emit
