// Fragments: filling, loading, multiplying, storing.
#include <algorithm>
#include <iterator>
#include <set>

#include "emit/cuda/emit_op.h"
#include "emit/cuda/instruction.h"
#include "emit/cuda/lane_map.h"
#include "ir/strides.h"
#include "target/arch.h"
#include "target/descriptor.h"
#include "target/fragment.h"
#include "target/sparse.h"

namespace kiln::emit {

using ir::Expr;
using ir::Op;
using ir::ValueId;

namespace {

target::Operand operand_of(ir::Role role) {
  switch (role) {
    case ir::Role::kA: return target::Operand::kA;
    case ir::Role::kB: return target::Operand::kB;
    case ir::Role::kC: return target::Operand::kC;
    case ir::Role::kMetadata: break;
  }
  KILN_UNREACHABLE("a fragment of metadata");
}

// Whether the program wrote an operand with its contraction running down its rows.
bool is_transposed(const ir::Function& function, ValueId frag) {
  return std::ranges::any_of(function.ops, [&](const Op& op) {
    const auto* mma = std::get_if<ir::Mma>(&op.data);
    if (mma == nullptr) return false;
    return (mma->a == frag && mma->a_major == ir::Major::kCol) ||
           (mma->b == frag && mma->b_major == ir::Major::kCol);
  });
}

// The registers of one fragment value.
struct Registers {
  target::Fragment fragment;
  DType dtype;
  RegisterType type;

  [[nodiscard]] int per(int values) const { return values * info(dtype).bits / type.bits; }
  [[nodiscard]] int count() const { return per(fragment.values); }
};

// A register for each repetition along K.
Registers metadata_registers(const target::Mma& atom, const ir::FragType& type) {
  Registers out{.fragment = {}, .dtype = DType::kU32, .type = register_type(DType::kU32)};
  out.fragment.lanes = atom.lanes;
  out.fragment.values = target::metadata_registers(atom, type.dtype, type.cols);
  return out;
}

Registers registers_of(const ir::Function& function, ValueId frag) {
  const auto* alloc = function.def_as<ir::Alloc>(frag);
  KILN_CHECK(alloc != nullptr && alloc->atom != nullptr, "fragment `{}` has no instruction",
             function.values[frag].name);
  const ir::FragType& type = function.frag_type(frag);
  if (type.role == ir::Role::kMetadata) return metadata_registers(*alloc->atom, type);
  const target::Operand operand = operand_of(type.role);
  const bool transposed = is_transposed(function, frag);
  const auto rows = static_cast<int>(transposed ? type.cols : type.rows);
  const auto cols = static_cast<int>(transposed ? type.rows : type.cols);
  const DType dtype = dtype_of(*alloc->atom, operand);
  return {.fragment = target::fragment_layout(*alloc->atom, operand, rows, cols),
          .dtype = dtype,
          .type = register_type(dtype)};
}

// The load that says where a tile read in place is; null for registers.
const ir::Load* placed_by(const ir::Function& function, ValueId frag) {
  for (const Op& op : function.ops) {
    const auto* load = std::get_if<ir::Load>(&op.data);
    if (load != nullptr && load->frag == frag && load->in_shared) return load;
  }
  return nullptr;
}

}  // namespace

void declare_fragment(Kernel& kernel, ValueId frag, const ir::Alloc& alloc) {
  if (placed_by(kernel.function, frag) != nullptr) return;  // declared by its load
  const Registers registers = registers_of(kernel.function, frag);
  kernel.out.line(format("{} {}[{}];", registers.type.type, kernel.name(frag), registers.count()));
  if (alloc.initial.valid()) {
    kernel.requirements.headers.insert("fragment.cuh");
    kernel.out.line(
        format("kiln::fill({}, {});", kernel.name(frag), scalar(kernel, alloc.initial).text));
  }
}

void emit_op(Kernel& kernel, const Op&, const ir::Fill& fill) {
  kernel.requirements.headers.insert("fragment.cuh");
  kernel.out.line(
      format("kiln::fill({}, {});", kernel.name(fill.frag), scalar(kernel, fill.value).text));
}

namespace {

constexpr int kMatrixRows = 8;

// One issue of a matrix instruction: its first matrix, which is the number of the first register,
// and the address that the lane gives; lane l gives that of row l % 8 of its matrix.
struct MatrixIssue {
  std::size_t first = 0;
  std::string row;
};

template <class Move>
std::vector<MatrixIssue> matrix_issues(Kernel& kernel, const Move& move) {
  const target::Copy& instruction = *move.instruction;
  kernel.requirements.require(instruction);
  kernel.requirements.headers.insert("memory.cuh");
  const ir::ResolvedView view = ir::resolve_view(kernel.function, move.view);
  const auto lanes = static_cast<std::int64_t>(size(instruction.address_map));
  const Expr lane =
      lanes < target::kWarpLanes ? mod(kernel.use_lane(), Expr(lanes)) : kernel.use_lane();
  const PlaceExpr row = place_of(instruction.address_map, kMatrixRows, lane);
  PlaceExpr of_warp;
  if (!move.warp_step.empty()) {
    const int threads = registers_of(kernel.function, move.frag).fragment.lanes;
    const Expr warp = floor_div(kernel.thread_in(threads), Expr(target::kWarpLanes));
    of_warp = {warp * Expr(move.warp_step[0]), warp * Expr(move.warp_step[1])};
  }
  const auto pairs = static_cast<std::size_t>(2 * instruction.matrices);
  KILN_CHECK(!move.matrices.empty() && move.matrices.size() % pairs == 0,
             "{} numbers for matrices, {} an issue", move.matrices.size(), pairs);
  std::vector<MatrixIssue> out;
  for (std::size_t first = 0; first < move.matrices.size(); first += pairs) {
    const PlaceExpr matrix = matrix_place(std::span(move.matrices).subspan(first, pairs), row.col);
    const std::string at =
        element(kernel, view, {of_warp.row + matrix.row + row.row, of_warp.col + matrix.col});
    out.push_back({.first = first / 2, .row = "&" + at});
  }
  return out;
}

void emit_matrix_load(Kernel& kernel, const ir::Load& load) {
  for (const MatrixIssue& issue : matrix_issues(kernel, load)) {
    kernel.out.call(wrapper_name(*load.instruction),
                    {format("&{}[{}]", kernel.name(load.frag), issue.first), issue.row});
  }
}

// The part of an accumulator that a store writes.
target::FragmentColumns stored_part(const ir::Function& function, const ir::Store& store) {
  const auto columns = static_cast<int>(ir::stored_columns(function, store));
  const auto part = target::columns_of(registers_of(function, store.frag).fragment,
                                       static_cast<int>(store.first_column), columns);
  KILN_CHECK(part.has_value(), "{} columns from {} are no run of registers", columns,
             store.first_column);
  return *part;
}

// Registers go as they are where they hold the elements of memory, else are made of those.
void emit_matrix_store(Kernel& kernel, const ir::Store& store) {
  const Registers whole = registers_of(kernel.function, store.frag);
  const int first_value = stored_part(kernel.function, store).first_value;
  const DType memory = kernel.function.view_type(store.view).dtype;
  const std::string& frag = kernel.name(store.frag);
  for (const MatrixIssue& issue : matrix_issues(kernel, store)) {
    const std::size_t first = issue.first + static_cast<std::size_t>(first_value) / 2;
    std::string from = format("&{}[{}]", frag, first);
    if (whole.dtype != memory) {
      kernel.requirements.headers.insert("fragment.cuh");
      from = format("kiln::packed<{}, {}, {}>({}, {}).registers", store.instruction->matrices,
                    type_name(memory), type_name(whole.dtype), frag, 2 * first);
    }
    kernel.out.call(wrapper_name(*store.instruction), {issue.row, from});
  }
}

// A fragment's values between registers and a window, run by run: one run is `length` consecutive
// elements of the window's rows.
struct Runs {
  const char* function;  // of fragment.cuh
  ValueId frag;
  ValueId view;
  bool transposed;  // the window's rows are the fragment's columns
  std::int64_t length;
  const std::vector<std::int64_t>& guarded;
  target::FragmentColumns part;  // what of the fragment is moved
};

// How many elements of the run that starts at `index` lie inside the window; "" when all do.
std::string run_count(Kernel& kernel, const Runs& runs, const ir::ResolvedView& view,
                      const std::vector<Expr>& index) {
  const bool rows_guarded = std::ranges::find(runs.guarded, 0) != runs.guarded.end();
  const bool cols_guarded = std::ranges::find(runs.guarded, 1) != runs.guarded.end();
  const std::string row_inside = rows_guarded ? inside(kernel, view, index, {0}) : "";
  std::string left = format("{}", runs.length);
  if (cols_guarded) {
    const std::size_t d = view.dropped + 1;
    Expr limit = view.limits[d][0];
    for (const Expr& other : view.limits[d]) limit = min(limit, other);
    left = kernel.text(limit - view.origin[d] - index[1]);
  }
  if (!row_inside.empty()) return format("{} ? {} : 0", row_inside, left);
  return cols_guarded ? left : "";
}

void emit_runs(Kernel& kernel, const Runs& runs) {
  kernel.requirements.headers.insert("fragment.cuh");
  const ir::ResolvedView view = ir::resolve_view(kernel.function, runs.view);
  const Registers registers = registers_of(kernel.function, runs.frag);
  const target::Fragment& fragment = runs.part.fragment;
  const Expr first_value = Expr(runs.length) * Expr::var(kernel.counter);
  const PlaceExpr of_lane =
      place_of(mode(fragment.tv, 0), fragment.rows, kernel.thread_in(fragment.lanes));
  const PlaceExpr of_value = place_of(mode(fragment.tv, 1), fragment.rows, first_value);
  std::vector<Expr> index = {of_lane.row + of_value.row, of_lane.col + of_value.col};
  if (runs.transposed) std::swap(index[0], index[1]);
  const std::string count = run_count(kernel, runs, view, index);
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

void emit_descriptor(Kernel& kernel, const ir::Load& load) {
  kernel.requirements.headers.insert("wgmma.cuh");
  const ir::ResolvedView view = ir::resolve_view(kernel.function, load.view);
  const ir::ViewType& root = kernel.function.view_type(view.root);
  const std::vector<Expr> extents(root.shape.begin(), root.shape.end() - 1);
  const std::vector<Expr> leading(view.origin.begin(), view.origin.end() - 1);
  const auto& alloc =
      *kernel.function.def_as<ir::Alloc>(ir::storage_of(kernel.function, view.root));
  const auto distances = target::encoded_distances(
      {.leading = load.leading, .stride = load.stride, .swizzle = alloc.swizzle},
      load.major == ir::Major::kCol);
  kernel.out.line(format("const kiln::u64 {} = kiln::matrix_descriptor<{}, {}>({}, {}, {});",
                         kernel.name(load.frag), distances.leading, distances.stride,
                         kernel.name(view.root), kernel.text(flat_index(extents, leading)),
                         kernel.text(view.origin.back())));
}

// One part of a lane's metadata: a byte of four, or the word; 0 outside the window's limits.
std::string metadata_part(Kernel& kernel, const ir::Load& load, const PlaceExpr& place) {
  const ir::ResolvedView view = ir::resolve_view(kernel.function, load.view);
  const std::vector<Expr> index = {place.row, place.col};
  const std::string part = element(kernel, view, index);
  const std::string limits = inside(kernel, view, index, load.guarded);
  return limits.empty() ? part : format("{} ? {} : 0", limits, part);
}

void emit_metadata_load(Kernel& kernel, const ir::Load& load) {
  const ir::FragType& type = kernel.function.frag_type(load.frag);
  const target::Mma& atom = *kernel.function.def_as<ir::Alloc>(load.frag)->atom;
  const target::MetadataLoad from = target::metadata_load(atom, type.dtype);
  const Registers registers = registers_of(kernel.function, load.frag);
  const PlaceExpr of_lane = place_of(mode(from.map, 0), from.rows, kernel.thread_in(atom.lanes));
  for (int k = 0; k < registers.fragment.values; ++k) {
    std::vector<std::string> parts;
    for (int part = 0; part < from.parts; ++part) {
      const PlaceExpr of_part = place_of(mode(from.map, 1), from.rows, Expr(part));
      parts.push_back(metadata_part(
          kernel, load,
          {of_lane.row + of_part.row, of_lane.col + of_part.col + Expr(k * from.columns)}));
    }
    const std::string target = format("{}[{}]", kernel.name(load.frag), k);
    if (from.parts == 1) {
      kernel.out.line(format("{} = {};", target, parts[0]));
      continue;
    }
    kernel.requirements.headers.insert("fragment.cuh");
    kernel.out.call(format("{} = kiln::pack_bytes", target), parts);
  }
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::Load& load) {
  if (load.in_shared) return emit_descriptor(kernel, load);
  if (kernel.function.frag_type(load.frag).role == ir::Role::kMetadata) {
    return emit_metadata_load(kernel, load);
  }
  if (load.instruction != nullptr) {
    return emit_matrix_load(kernel, load);
  }
  emit_runs(kernel, {.function = "load_run",
                     .frag = load.frag,
                     .view = load.view,
                     .transposed = is_transposed(kernel.function, load.frag),
                     .length = load.element_run,
                     .guarded = load.guarded,
                     .part = {registers_of(kernel.function, load.frag).fragment, 0}});
}

void emit_op(Kernel& kernel, const Op&, const ir::Store& store) {
  if (store.instruction != nullptr) return emit_matrix_store(kernel, store);
  emit_runs(kernel, {.function = "store_run",
                     .frag = store.frag,
                     .view = store.view,
                     .transposed = store.transposed,
                     .length = store.element_run,
                     .guarded = store.guarded,
                     .part = stored_part(kernel.function, store)});
}

void emit_op(Kernel& kernel, const Op&, const ir::Apply& apply) {
  const Registers registers = registers_of(kernel.function, apply.frag);
  const target::Fragment& fragment = registers.fragment;
  const PlaceExpr of_lane =
      place_of(mode(fragment.tv, 0), fragment.rows, kernel.thread_in(fragment.lanes));
  const PlaceExpr of_value =
      place_of(mode(fragment.tv, 1), fragment.rows, Expr::var(kernel.counter));
  const std::string& i = kernel.name(kernel.counter);
  kernel.out.line("#pragma unroll");
  kernel.out.open(format("for (int {} = 0; {} < {}; ++{}) {{", i, i, fragment.values, i));
  const std::pair<ir::VarId, Expr> places[] = {{apply.row, of_lane.row + of_value.row},
                                               {apply.col, of_lane.col + of_value.col}};
  for (const auto& [var, place] : places) {
    if (!kernel.uses.vars[var.index]) continue;
    kernel.out.line(format("const int {} = {};", kernel.name(var), kernel.text(place)));
  }
  emit_region(kernel, apply.body);
  kernel.out.close();
}

void emit_op(Kernel& kernel, const Op&, const ir::SetElement& set) {
  kernel.out.line(format("{}[{}] = {};", kernel.name(set.frag), kernel.name(kernel.counter),
                         scalar(kernel, set.value).text));
}

namespace {

// The rows of a lane's values, as multiples of a step: 8 * (i / 2 % 2) is number i / 2 % 2 of two.
// Rows at uneven distances are multiples of 1, with other lanes' rows between them.
struct LaneRows {
  std::int64_t step = 1;
  std::int64_t count = 1;
};

LaneRows lane_rows(const Expr& row, ir::VarId value, int values) {
  std::vector<std::int64_t> of(value.index + 1);
  std::set<std::int64_t> rows;
  for (of[value.index] = 0; of[value.index] < values; ++of[value.index]) {
    rows.insert(row.evaluate(of));
  }
  if (rows.size() < 2) return {};
  const std::int64_t step = *std::next(rows.begin()) - *rows.begin();
  const std::int64_t last = *rows.rbegin();
  const bool even = *rows.begin() == 0 && last == step * (std::ssize(rows) - 1);
  return even ? LaneRows{step, std::ssize(rows)} : LaneRows{1, last + 1};
}

}  // namespace

// Both accumulators have the same registers: one multiply-add each, by its row's factor, which is
// there before the products are. The other factor may come from global memory: nothing that needs
// it stands in front of the wait.
void emit_op(Kernel& kernel, const Op&, const ir::Scale& scale) {
  const ir::ResolvedView view = ir::resolve_view(kernel.function, scale.factors);
  const bool upright = kernel.function.view_type(scale.factors).shape[1].is(1);
  const Registers registers = registers_of(kernel.function, scale.c);
  const target::Fragment& fragment = registers.fragment;
  const Expr value = Expr::var(kernel.counter);
  const PlaceExpr of_lane =
      place_of(mode(fragment.tv, 0), fragment.rows, kernel.thread_in(fragment.lanes));
  const PlaceExpr of_value = place_of(mode(fragment.tv, 1), fragment.rows, value);
  const LaneRows rows = lane_rows(of_value.row, kernel.counter, fragment.values);
  const Expr row = of_lane.row + value * Expr(rows.step);
  const std::vector<Expr> index = upright ? std::vector{row, Expr(0)} : std::vector{Expr(0), row};
  const std::string factor = element(kernel, view, index);
  const std::string limits = inside(kernel, view, index, scale.guarded);
  const std::string& i = kernel.name(kernel.counter);
  const std::string& factors = kernel.name(kernel.factors);
  kernel.out.open("{");
  kernel.out.line(format("float {}[{}];", factors, rows.count));
  kernel.out.line("#pragma unroll");
  kernel.out.open(format("for (int {} = 0; {} < {}; ++{}) {{", i, i, rows.count, i));
  kernel.out.line(format("{}[{}] = {};", factors, i,
                         limits.empty() ? factor : format("{} ? {} : 0.0f", limits, factor)));
  kernel.out.close();
  if (scale.waits) emit_op(kernel, Op{}, ir::MmaWait{});
  const std::string sum = format("{}[{}]", kernel.name(scale.c), i);
  kernel.out.line("#pragma unroll");
  kernel.out.open(format("for (int {} = 0; {} < {}; ++{}) {{", i, i, fragment.values, i));
  kernel.out.line(format("{} = fmaf({}[{}] * {}, {}[{}], {});", sum, factors,
                         kernel.text(floor_div(of_value.row, Expr(rows.step))),
                         bracketed(scalar(kernel, scale.factor), Binding::kProduct),
                         kernel.name(scale.partial), i, sum));
  kernel.out.close();
  kernel.out.close();
}

namespace {

std::string atom_registers(Kernel& kernel, ValueId frag, const Registers& registers,
                           std::int64_t rep_row, std::int64_t rep_col) {
  const int value =
      target::first_value(registers.fragment, static_cast<int>(rep_row), static_cast<int>(rep_col));
  return format("&{}[{}]", kernel.name(frag), registers.per(value));
}

// A descriptor counts in units of 16 bytes.
std::string moved_descriptor(Kernel& kernel, ValueId frag, std::int64_t bytes) {
  return bytes == 0 ? kernel.name(frag) : format("{} + {}", kernel.name(frag), bytes / 16);
}

// One call for each repetition along K.
void emit_product(Kernel& kernel, const ir::Mma& mma) {
  const bool a_registers = mma.a_steps.empty();
  const auto col = [](ir::Major major) { return major == ir::Major::kCol ? 1 : 0; };
  std::string function =
      a_registers ? wrapper_name_with_registers(*mma.atom) : wrapper_name(*mma.atom);
  if (a_registers) {
    kernel.requirements.require_with_registers(*mma.atom);
  } else {
    kernel.requirements.require(*mma.atom);
  }
  if (mma.atom->transposes) {
    function += a_registers ? format("<{}>", col(mma.b_major))
                            : format("<{}, {}>", col(mma.a_major), col(mma.b_major));
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(mma.repeats[2]); ++k) {
    const std::string a = a_registers
                              ? atom_registers(kernel, mma.a, registers_of(kernel.function, mma.a),
                                               0, static_cast<std::int64_t>(k))
                              : moved_descriptor(kernel, mma.a, mma.a_steps[k]);
    const std::string metadata =
        mma.metadata.valid() ? format(", {}[{}]", kernel.name(mma.metadata), k) : "";
    kernel.out.line(format("{}({}, {}, {}{});", function, kernel.name(mma.c), a,
                           moved_descriptor(kernel, mma.b, mma.b_steps[k]), metadata));
  }
}

}  // namespace

// One call for each repetition of the instruction, contraction innermost.
void emit_op(Kernel& kernel, const Op&, const ir::Mma& mma) {
  if (mma.atom->reads_shared) return emit_product(kernel, mma);
  kernel.requirements.require(*mma.atom);
  const Registers a = registers_of(kernel.function, mma.a);
  const Registers b = registers_of(kernel.function, mma.b);
  const Registers c = registers_of(kernel.function, mma.c);
  for (std::int64_t m = 0; m < mma.repeats[0]; ++m) {
    for (std::int64_t n = 0; n < mma.repeats[1]; ++n) {
      for (std::int64_t k = 0; k < mma.repeats[2]; ++k) {
        const std::string metadata =
            mma.metadata.valid() ? format(", {}[{}]", kernel.name(mma.metadata), k) : "";
        kernel.out.line(format("{}({}, {}, {}{});", wrapper_name(*mma.atom),
                               atom_registers(kernel, mma.c, c, m, n),
                               atom_registers(kernel, mma.a, a, m, k),
                               atom_registers(kernel, mma.b, b, n, k), metadata));
      }
    }
  }
}

}  // namespace kiln::emit
