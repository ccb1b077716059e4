#include "emit/cuda/runs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/prove.h"
#include "ir/strides.h"
#include "target/sparse.h"

namespace kiln::emit {

using ir::Expr;
using ir::Op;
using ir::ValueId;

namespace {

// What the registers hold: an operand of an instruction what it takes.
DType element_type(const ir::FragType& type, const ir::Alloc& alloc) {
  switch (type.role) {
    case ir::Role::kA: return alloc.atom->a;
    case ir::Role::kB: return alloc.atom->b;
    case ir::Role::kC: return alloc.atom->acc;
    case ir::Role::kTile: return type.dtype;
    case ir::Role::kMetadata: break;
  }
  KILN_UNREACHABLE("a fragment of metadata");
}

// A register for each repetition along K.
Registers metadata_registers(const target::Mma& atom, const ir::FragType& type) {
  Registers out{.fragment = {}, .dtype = DType::kU32, .type = register_type(DType::kU32)};
  out.fragment.lanes = atom.lanes;
  out.fragment.values = target::metadata_registers(atom, type.dtype, type.cols);
  return out;
}

std::string both(const std::string& one, const std::string& other) {
  return one.empty() || other.empty() ? one + other : one + " && " + other;
}

// Whether a run lies inside its columns' limits or outside, and never across one: it starts at a
// multiple of its length, and so do they. Aligned rows without gaps end at such a one.
bool is_whole(const Kernel& kernel, const Runs& runs, const ir::ResolvedView& view) {
  const std::size_t d = view.dropped + 1;
  const Expr& extent = kernel.function.view_type(view.root).shape[d];
  const auto* alias = kernel.function.def_as<ir::Alias>(view.root);
  const bool has_gaps = alias != nullptr && !alias->strides.empty();
  return std::ranges::all_of(view.limits[d], [&](const Expr& limit) {
    return ir::always_divisible(limit, runs.length) ||
           (runs.in_aligned_rows && !has_gaps && limit == extent);
  });
}

// How many elements of the run that starts at `index` lie inside the window, and in the tile (where
// `in_tile` holds); "" when all do. A run that begins before the window's base lies there whole.
std::string run_count(Kernel& kernel, const Runs& runs, const ir::ResolvedView& view,
                      const std::vector<Expr>& index, const std::string& in_tile) {
  const bool rows_guarded = std::ranges::find(runs.guarded, 0) != runs.guarded.end();
  const bool cols_guarded = std::ranges::find(runs.guarded, 1) != runs.guarded.end();
  const std::vector<std::int64_t> rows(rows_guarded ? 1 : 0, 0);
  std::string row_inside = both(inside(kernel, view, index, rows, runs.before), in_tile);
  std::string left = format("{}", runs.length);
  if (cols_guarded && runs.length > 1 && is_whole(kernel, runs, view)) {
    row_inside = both(row_inside, inside(kernel, view, index, std::vector<std::int64_t>{1}, {}));
  } else if (cols_guarded) {
    const std::size_t d = view.dropped + 1;
    Expr limit = view.limits[d][0];
    for (const Expr& other : view.limits[d]) limit = min(limit, other);
    left = kernel.text(limit - view.origin[d] - index[1]);
  }
  if (!row_inside.empty()) return format("{} ? {} : 0", row_inside, left);
  return cols_guarded ? left : "";
}

constexpr std::int64_t kRowsMax = 8;

// Of `runs` runs each lies in one of a few rows of the window, two at least, that come again and
// again, and those of a row in its order from run 0 on: how many rows. 0: it is otherwise. `index`
// says where a run lies, by the kernel's counter.
std::int64_t rows_of_runs(const Kernel& kernel, const std::vector<Expr>& index, std::int64_t runs) {
  const auto at = [&](const Expr& expr, std::int64_t run) {
    return expr.substitute([&](ir::VarId var) {
      return var == kernel.counter ? std::optional(Expr(run)) : std::nullopt;
    });
  };
  for (std::int64_t rows = 2; rows <= kRowsMax && rows < runs; ++rows) {
    if (runs % rows != 0) continue;
    bool fits = true;
    for (std::int64_t run = 0; run < runs && fits; ++run) {
      fits = at(index[0], run) == at(index[0], run % rows) &&
             at(index[1], run) == at(index[1], run - run % rows);
    }
    if (fits) return rows;
  }
  return 0;
}

// Whether neighbours in the window's rows are neighbours in global memory, which then a pointer to a row's first element
// reaches them all from.
bool rows_have_no_gaps(const ir::Function& function, const ir::ResolvedView& view) {
  if (function.view_type(view.root).space != ir::Space::kGlobal) return false;
  const auto* alias = function.def_as<ir::Alias>(view.root);
  return alias == nullptr || alias->strides.empty() || alias->strides.back().is(1);
}

struct RowsOfRuns {
  std::int64_t rows;
  std::string count;  // how many elements of each run of a row there are
};

// Runs that lie in so many rows, some of which may be outside: the rows one after the other, so that where a row begins and
// whether it is inside are computed once.
void emit_row_by_row(Kernel& kernel, const Runs& runs, const ir::ResolvedView& view,
                     const std::vector<Expr>& index, const RowsOfRuns& of) {
  const auto column_of_run = [&](const Expr& run) {
    return index[1].substitute(
        [&](ir::VarId var) { return var == kernel.counter ? std::optional(run) : std::nullopt; });
  };
  const auto loop = [&](ir::VarId var, std::int64_t times) {
    kernel.out.line("#pragma unroll");
    kernel.out.open(format("for (int {0} = 0; {0} < {1}; ++{0}) {{", kernel.name(var), times));
  };
  const Expr row = Expr::var(kernel.counter);
  const Expr first_of_column = Expr(of.rows) * Expr::var(kernel.inner_counter);
  const Expr column = column_of_run(first_of_column) - column_of_run(Expr(0));
  const Expr value = Expr(runs.length) * (first_of_column + row) + Expr(runs.part.first_value);
  loop(kernel.counter, of.rows);
  kernel.out.line(format("auto* const {} = &{};", kernel.row_name,
                         element(kernel, view, {index[0], column_of_run(Expr(0))})));
  kernel.out.line(format("const int {} = {};", kernel.count_name, of.count));
  loop(kernel.inner_counter, runs.part.fragment.values / runs.length / of.rows);
  kernel.out.call(
      format("kiln::{}<{}, {}>", runs.function, runs.length,
             type_name(registers_of(kernel.function, runs.frag).dtype)),
      {kernel.name(runs.frag), kernel.text(value),
       format("{} + {}", kernel.row_name, bracketed(kernel.spelled(column), Binding::kSum)),
       kernel.count_name});
  kernel.out.close();
  kernel.out.close();
}

}  // namespace

Registers registers_of(const ir::Function& function, ValueId frag) {
  const ir::FragType& type = function.frag_type(frag);
  const auto* alloc = function.def_as<ir::Alloc>(frag);
  if (type.role == ir::Role::kMetadata) return metadata_registers(*alloc->atom, type);
  const ir::TileRegisters registers = ir::tile_registers(function, frag);
  const DType dtype = element_type(type, *alloc);
  return {.fragment = registers.map,
          .swapped = registers.swapped,
          .dtype = dtype,
          .type = register_type(dtype)};
}

PlaceExpr place_of_value(Kernel& kernel, const target::Fragment& fragment, const Expr& value) {
  const PlaceExpr of_lane =
      place_of(mode(fragment.tv, 0), fragment.rows, kernel.thread_in(fragment.lanes));
  const PlaceExpr of_value = place_of(mode(fragment.tv, 1), fragment.rows, value);
  return {of_lane.row + of_value.row, of_lane.col + of_value.col};
}

std::string within_edge(Kernel& kernel, const Op& op, ValueId tile, int dimension, const Expr& at) {
  const auto edge = ir::minded_edge(kernel.function, op, tile);
  if (!edge) return "";
  const target::Fragment map = registers_of(kernel.function, tile).fragment;
  const int own = dimension == 0 ? edge->row : edge->col;
  return own == (dimension == 0 ? map.rows : map.cols) ? ""
                                                       : format("{} < {}", kernel.text(at), own);
}

std::string within_edge(Kernel& kernel, const Op& op, ValueId tile, const PlaceExpr& place) {
  return both(within_edge(kernel, op, tile, 0, place.row),
              within_edge(kernel, op, tile, 1, place.col));
}

namespace {

void emit_runs_of_length(Kernel& kernel, const Runs& runs, const ir::ResolvedView& view) {
  const Registers registers = registers_of(kernel.function, runs.frag);
  const target::Fragment& fragment = runs.part.fragment;
  const Expr first_value = Expr(runs.length) * Expr::var(kernel.counter);
  const PlaceExpr place = place_of_value(kernel, fragment, first_value);
  std::vector<Expr> index = {place.row, place.col};
  if (runs.transposed) std::swap(index[0], index[1]);
  const std::string count =
      run_count(kernel, runs, view, index, within_edge(kernel, runs.op, runs.frag, place));
  const int column = runs.transposed ? 0 : 1;
  const bool by_column =
      std::ranges::count(runs.guarded, 1) + std::ranges::count(runs.before, 1) > 0 ||
      !within_edge(kernel, runs.op, runs.frag, column, index[1]).empty();
  const std::int64_t rows = count.empty() || by_column || !rows_have_no_gaps(kernel.function, view)
                                ? 0
                                : rows_of_runs(kernel, index, fragment.values / runs.length);
  if (rows > 0) return emit_row_by_row(kernel, runs, view, index, {rows, count});
  const std::string& i = kernel.name(kernel.counter);
  std::vector<std::string> arguments = {kernel.name(runs.frag),
                                        kernel.text(first_value + Expr(runs.part.first_value)),
                                        "&" + element(kernel, view, index)};
  if (!count.empty()) arguments.push_back(count);
  kernel.out.line("#pragma unroll");
  kernel.out.open(
      format("for (int {} = 0; {} < {}; ++{}) {{", i, i, fragment.values / runs.length, i));
  kernel.out.call(
      format("kiln::{}<{}, {}>", runs.function, runs.length, type_name(registers.dtype)),
      arguments);
  kernel.out.close();
}

}  // namespace

void emit_runs(Kernel& kernel, const Runs& runs) {
  kernel.requirements.headers.insert("fragment.cuh");
  const ir::ResolvedView view = ir::resolve_view(kernel.function, runs.view);
  if (runs.wide == 0) return emit_runs_of_length(kernel, runs, view);
  Runs wide = runs;
  wide.length = runs.wide;
  wide.in_aligned_rows = true;
  kernel.out.open(format("if ({}) {{", kernel.rows_aligned(view.root, runs.wide)));
  emit_runs_of_length(kernel, wide, view);
  kernel.out.between("} else {");
  emit_runs_of_length(kernel, runs, view);
  kernel.out.close();
}

}  // namespace kiln::emit
