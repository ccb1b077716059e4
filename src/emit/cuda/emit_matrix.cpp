// Fragments: filling, loading, multiplying, storing.
#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <utility>

#include "emit/cuda/emit_op.h"
#include "emit/cuda/instruction.h"
#include "emit/cuda/lane_map.h"
#include "emit/cuda/runs.h"
#include "ir/names.h"
#include "ir/registers.h"
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

// The load that says where a tile read in place is; null for registers.
const ir::Load* placed_by(const ir::Function& function, ValueId frag) {
  for (const Op& op : function.ops) {
    const auto* load = std::get_if<ir::Load>(&op.data);
    if (load != nullptr && load->frag == frag && load->in_shared) return load;
  }
  return nullptr;
}

// Whether elements of a register may be set while others of it are not: beyond the edge of a padded tile,
// or under a condition. A compiler may take what was never set to be whatever spares it an instruction,
// each time anew, and so may join such a register's other bytes to an element that was set.
bool may_be_set_in_part(const ir::Function& function, const Registers& registers) {
  if (!registers.packed()) return false;
  return registers.fragment.is_padded() || std::ranges::any_of(function.ops, [](const Op& op) {
           return std::holds_alternative<ir::If>(op.data);
         });
}

}  // namespace

void declare_fragment(Kernel& kernel, ValueId frag, const ir::Alloc& alloc) {
  if (placed_by(kernel.function, frag) != nullptr) return;  // declared by its load
  const Registers registers = registers_of(kernel.function, frag);
  const bool in_part = !alloc.initial.valid() && may_be_set_in_part(kernel.function, registers);
  kernel.out.line(format("{} {}[{}]{};", registers.type.type, kernel.name(frag), registers.count(),
                         in_part ? " = {}" : ""));
  if (alloc.initial.valid()) {
    kernel.requirements.headers.insert("fragment.cuh");
    kernel.out.line(
        format("kiln::fill({}, {});", kernel.name(frag), scalar(kernel, alloc.initial).text));
  }
}

void emit_op(Kernel& kernel, const Op&, const ir::Fill& fill) {
  if (fill.implied) return;
  kernel.requirements.headers.insert("fragment.cuh");
  kernel.out.line(
      format("kiln::fill({}, {});", kernel.name(fill.frag), scalar(kernel, fill.value).text));
  // Sums of 16 bits lie two to a register, all of which are copies of one: they are made in front of the
  // fence.
  const auto* alloc = kernel.function.def_as<ir::Alloc>(fill.frag);
  const bool in_flight = alloc->atom != nullptr && alloc->atom->asynchronous;
  if (!in_flight || info(kernel.function.frag_type(fill.frag).dtype).bits != 16) return;
  if (kernel.function.frag_type(fill.frag).role != ir::Role::kC) return;
  kernel.requirements.headers.insert("wgmma.cuh");
  kernel.out.line(format("kiln::wgmma_operand({});", kernel.name(fill.frag)));
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

// The instruction fills registers of 32 bits, whatever the elements of a tile are.
void emit_matrix_load(Kernel& kernel, const ir::Load& load) {
  const std::string_view own = registers_of(kernel.function, load.frag).type.type;
  const std::string_view wanted = register_type(DType::kU32).type;
  for (const MatrixIssue& issue : matrix_issues(kernel, load)) {
    const std::string to = format("&{}[{}]", kernel.name(load.frag), issue.first);
    kernel.out.call(
        kernel.requirements.require(*load.instruction),
        {own == wanted ? to : format("reinterpret_cast<{}*>({})", wanted, to), issue.row});
  }
}

// The part of an accumulator that a store writes.
target::FragmentColumns stored_part(const ir::Function& function, const ir::Store& store) {
  const auto part = ir::stored_registers(function, store);
  KILN_CHECK(part.has_value(), "columns from {} are no run of registers", store.first_column);
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
    kernel.out.call(kernel.requirements.require(*store.instruction), {issue.row, from});
  }
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
  const std::string limits = inside(kernel, view, index, load.guarded, load.before);
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

void emit_op(Kernel& kernel, const Op& op, const ir::Load& load) {
  if (load.in_shared) return emit_descriptor(kernel, load);
  if (kernel.function.frag_type(load.frag).role == ir::Role::kMetadata) {
    return emit_metadata_load(kernel, load);
  }
  if (load.instruction != nullptr) {
    return emit_matrix_load(kernel, load);
  }
  emit_runs(kernel, {.op = op,
                     .function = "load_run",
                     .frag = load.frag,
                     .view = load.view,
                     .transposed = registers_of(kernel.function, load.frag).swapped,
                     .length = load.element_run,
                     .wide = load.wide_run,
                     .guarded = load.guarded,
                     .before = load.before,
                     .part = {registers_of(kernel.function, load.frag).fragment, 0}});
}

// Digits that are bits of the lane's number are tested together: those of powers of two, and the last
// one in any case.
std::string first_holder(Kernel& kernel, const target::Fragment& fragment) {
  const std::vector<target::LaneDigit> digits = repeating_digits(fragment);
  if (digits.empty()) return "";
  const Expr lane = kernel.thread_in(fragment.lanes);
  const auto is_power = [](Index n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); };
  std::int64_t bits = 0;
  std::string out;
  for (const target::LaneDigit& digit : digits) {
    const bool last = digit.below * digit.extent == fragment.lanes;
    if (is_power(digit.below) && (last || is_power(digit.extent))) {
      const auto values = std::bit_ceil(static_cast<std::uint64_t>(digit.extent));
      bits |= digit.below * static_cast<std::int64_t>(values - 1);
      continue;
    }
    const Expr is_zero = mod(floor_div(lane, Expr(digit.below)), Expr(digit.extent));
    out += format("{}{} == 0", out.empty() ? "" : " && ", kernel.text(is_zero));
  }
  if (bits == 0) return out;
  return format("({} & {}) == 0{}{}", kernel.text(lane), bits, out.empty() ? "" : " && ", out);
}

void emit_op(Kernel& kernel, const Op& op, const ir::Store& store) {
  if (store.instruction != nullptr) return emit_matrix_store(kernel, store);
  const target::FragmentColumns part = stored_part(kernel.function, store);
  const std::string first = first_holder(kernel, part.fragment);
  if (!first.empty()) kernel.out.open(format("if ({}) {{", first));
  emit_runs(kernel, {.op = op,
                     .function = "store_run",
                     .frag = store.frag,
                     .view = store.view,
                     .transposed = store.transposed,
                     .length = store.element_run,
                     .wide = store.wide_run,
                     .guarded = store.guarded,
                     .before = store.before,
                     .part = part});
  if (!first.empty()) kernel.out.close();
}

void emit_op(Kernel& kernel, const Op& op, const ir::Apply& apply) {
  const Registers registers = registers_of(kernel.function, apply.frag);
  const target::Fragment& fragment = registers.fragment;
  PlaceExpr place = place_of_value(kernel, fragment, Expr::var(kernel.counter));
  const std::string& i = kernel.name(kernel.counter);
  if (apply.ones.valid()) {
    kernel.requirements.headers.insert("reduce.cuh");
    kernel.out.open(format("if (kiln::any_is_not(1, {})) {{", kernel.name(apply.ones)));
  }
  kernel.out.line("#pragma unroll");
  kernel.out.open(format("for (int {} = 0; {} < {}; ++{}) {{", i, i,
                         apply.pairs ? fragment.values / 2 : fragment.values, i));
  for (const auto& [var, at] : {std::pair{apply.row, &place.row}, {apply.col, &place.col}}) {
    if (!kernel.uses.vars[var.index]) continue;
    kernel.out.line(format("const int {} = {};", kernel.name(var), kernel.text(*at)));
    *at = Expr::var(var);
  }
  const std::string in_tile = ir::goes_beyond_unseen(kernel.function, apply)
                                  ? ""
                                  : within_edge(kernel, op, apply.frag, place);
  if (!in_tile.empty()) kernel.out.open(format("if ({}) {{", in_tile));
  const ValueId outer = std::exchange(kernel.applied, apply.frag);
  kernel.in_pairs = apply.pairs;
  emit_region(kernel, apply.body);
  kernel.applied = outer;
  kernel.in_pairs = false;
  if (!in_tile.empty()) kernel.out.close();
  kernel.out.close();
  if (apply.ones.valid()) kernel.out.close();
}

namespace {

// The number `table[i]` as an expression of i, which counts in digits of those extents; nothing
// where no layout over them gives it.
std::optional<Expr> numbered(const std::vector<Index>& extents, const std::vector<int>& table,
                             const Expr& i) {
  detail::LayoutBuilder built;
  std::size_t step = 1;
  for (const Index extent : extents) {
    built.leaf(extent, extent == 1 ? 0 : table[step] - table[0]);
    step *= static_cast<std::size_t>(extent);
  }
  const Layout layout = built.done_flat();
  for (std::size_t v = 0; v < table.size(); ++v) {
    if (layout(static_cast<Index>(v)) + table[0] != table[v]) return std::nullopt;
  }
  constexpr int kNoColumns = 1 << 20;
  return place_of(coalesce(layout), kNoColumns, i).row + Expr(table[0]);
}

// Those of a fragment's values.
std::vector<Index> digits_of(const target::Fragment& fragment) {
  const Layout values = mode(fragment.tv, 1);
  return {&values.extents[0], &values.extents[0] + values.leaves};
}

// Those in which the table goes on evenly: 0 1 4 5 2 3 6 7 are 2, 2 and 2.
std::vector<Index> digits_of(const std::vector<int>& table) {
  std::vector<Index> out;
  std::size_t step = 1;
  while (step < table.size()) {
    const int stride = table[step] - table[0];
    const std::size_t most = table.size() / step;
    std::size_t extent = 2;
    while (extent < most && table[step * extent] - table[step * (extent - 1)] == stride) ++extent;
    while (most % extent != 0) --extent;
    if (extent == 1) return {static_cast<Index>(table.size())};
    out.push_back(static_cast<Index>(extent));
    step *= extent;
  }
  return out;
}

// `[](int i) { return i / 2 % 2; }`
std::string index_function(Kernel& kernel, const std::vector<Index>& digits,
                           const std::vector<int>& table) {
  const std::string& i = kernel.name(kernel.counter);
  const auto index = numbered(digits, table, Expr::var(kernel.counter));
  if (!index) {
    return format("[](int {}) {{ constexpr int at[] = {{{}}}; return at[{}]; }}", i,
                  join(table, ", ", [](int at) { return format("{}", at); }), i);
  }
  const std::string text = kernel.text(*index);
  return index->constant() ? format("[](int) {{ return {}; }}", text)
                           : format("[](int {}) {{ return {}; }}", i, text);
}

// The same, and -1 for what the last register has room for behind the fragment's values.
std::string index_in_registers(Kernel& kernel, const Registers& registers, std::vector<int> table) {
  using target::kRegisterBits;
  const auto values = static_cast<int>(table.size());
  const int bits = info(registers.dtype).bits;
  if (values * bits % kRegisterBits == 0 || !registers.packed()) {
    return index_function(kernel, digits_of(registers.fragment), table);
  }
  table.resize(static_cast<std::size_t>((values * bits + kRegisterBits - 1) / kRegisterBits *
                                        kRegisterBits / bits),
               -1);
  const std::string& i = kernel.name(kernel.counter);
  return format("[](int {}) {{ constexpr int at[] = {{{}}}; return at[{}]; }}", i,
                join(table, ", ", [](int at) { return format("{}", at); }), i);
}

// Of each pair the register that holds it, or the element that counts for both.
std::vector<int> first_of_pairs(const std::vector<int>& table) {
  std::vector<int> out;
  for (std::size_t v = 0; v < table.size(); v += 2) {
    out.push_back(table[v] == table[v + 1] ? table[v] : table[v] / 2);
  }
  return out;
}

// The number of the tile's element in its registers, or of the pair of elements.
Expr element_number(Kernel& kernel, ValueId frag) {
  if (frag == kernel.applied) return Expr::var(kernel.counter);
  const target::Fragment around = registers_of(kernel.function, kernel.applied).fragment;
  std::vector<int> table = values_beside(registers_of(kernel.function, frag).fragment, around);
  KILN_CHECK(!table.empty(), "`{}` is held by other lanes", kernel.function.values[frag].name);
  std::vector<Index> digits = digits_of(around);
  if (kernel.in_pairs) {
    digits[0] /= 2;
    table = first_of_pairs(table);
  }
  const auto index = numbered(digits, table, Expr::var(kernel.counter));
  KILN_CHECK(index.has_value(), "`{}` has its elements in no order of `{}`",
             kernel.function.values[frag].name, kernel.function.values[kernel.applied].name);
  return *index;
}

// Whether one element of the tile stands beside both of a pair.
bool is_for_both(Kernel& kernel, ValueId frag) {
  const auto fragment = [&](ValueId tile) { return registers_of(kernel.function, tile).fragment; };
  const std::vector<int> table = values_beside(fragment(frag), fragment(kernel.applied));
  return table[0] == table[1];
}

}  // namespace

std::string element_index(Kernel& kernel, ValueId frag) {
  return kernel.text(element_number(kernel, frag));
}

std::string element_text(Kernel& kernel, ValueId frag) {
  const Registers registers = registers_of(kernel.function, frag);
  const Expr number = element_number(kernel, frag);
  const std::string index = kernel.text(number);
  const bool pair = kernel.in_pairs && !is_for_both(kernel, frag);
  if (!registers.packed()) {
    const std::string& name = kernel.name(frag);
    if (!kernel.in_pairs) return format("{}[{}]", name, index);
    if (!pair) return format("{0}[{1}], {0}[{1}]", name, index);
    return format("{0}[{1}], {0}[{2}]", name, kernel.text(2 * number), kernel.text(2 * number + 1));
  }
  kernel.requirements.headers.insert("fragment.cuh");
  if (pair) kernel.requirements.headers.insert("pair.cuh");
  return format("kiln::{}<{}>({}, {})", pair ? "pair" : "element", type_name(registers.dtype),
                kernel.name(frag), index);
}

void emit_op(Kernel& kernel, const Op&, const ir::SetElement& set) {
  const Registers registers = registers_of(kernel.function, set.frag);
  const std::string index = element_index(kernel, set.frag);
  const std::string value = scalar(kernel, set.value).text;
  if (!registers.packed()) {
    kernel.out.line(format("{}[{}] = {};", kernel.name(set.frag), index, value));
    return;
  }
  kernel.requirements.headers.insert(kernel.in_pairs ? "pair.cuh" : "fragment.cuh");
  kernel.out.line(format("kiln::{}<{}>({}, {}, {});", kernel.in_pairs ? "set_pair" : "set_element",
                         type_name(registers.dtype), kernel.name(set.frag), index, value));
}

void emit_op(Kernel& kernel, const Op& op, const ir::Reduce& reduce) {
  kernel.requirements.headers.insert("reduce.cuh");
  const Registers from = registers_of(kernel.function, reduce.source);
  const Registers to = registers_of(kernel.function, reduce.frag);
  const auto dimension = static_cast<int>(reduce.dimension);
  const std::vector<int> table = reduced_values(to.fragment, from.fragment, dimension);
  std::string types = format("{}, {}", type_name(to.dtype), type_name(from.dtype));
  for (const int lanes : ir::exchanges_of(kernel.function, reduce)) types += format(", {}", lanes);
  std::vector<std::string> arguments = {kernel.name(reduce.frag), kernel.name(reduce.source),
                                        index_in_registers(kernel, from, table)};
  const PlaceExpr place = place_of_value(kernel, from.fragment, Expr::var(kernel.counter));
  const Expr along = dimension == 0 ? place.row : place.col;
  const std::string& i = kernel.name(kernel.counter);
  if (reduce.kind == ir::ReduceKind::kArgMax) {
    arguments.push_back(format("[&](int {}) {{ return {}; }}", i, kernel.text(along)));
  }
  // What lies beyond the other edge is made into what does so, too.
  const std::string in_line = within_edge(kernel, op, reduce.source, dimension, along);
  if (!in_line.empty()) {
    const bool same = !along.uses(kernel.counter);
    arguments.push_back(format("[&](int{}) {{ return {}; }}", same ? "" : " " + i, in_line));
  }
  kernel.out.call(format("kiln::reduce_{}<{}>", ir::name_of(reduce.kind), types), arguments);
}

void emit_op(Kernel& kernel, const Op&, const ir::Scan& scan) {
  kernel.requirements.headers.insert("scan.cuh");
  const Registers from = registers_of(kernel.function, scan.source);
  const Registers to = registers_of(kernel.function, scan.frag);
  const auto lines = target::lines_along(from.fragment, static_cast<int>(scan.dimension));
  KILN_CHECK(lines.has_value(), "`{}` is not lined up", kernel.name(scan.source));
  std::string types = format("{}, {}, {}, {}", type_name(to.dtype), type_name(from.dtype),
                             lines->run, lines->blocks);
  for (const int lane : lines->lanes) types += format(", {}", lane);
  kernel.out.call(format("kiln::scan_sum<{}>", types),
                  {kernel.name(scan.frag), kernel.name(scan.source),
                   index_function(kernel, digits_of(lines->values), lines->values)});
}

void emit_op(Kernel& kernel, const Op& op, const ir::Vote& vote) {
  kernel.requirements.headers.insert("reduce.cuh");
  kernel.out.line(format("const bool {} = kiln::any_is_not(0, {});", kernel.name(op.result),
                         kernel.name(vote.frag)));
}

void emit_op(Kernel& kernel, const Op&, const ir::Convert& convert) {
  kernel.requirements.headers.insert("fragment.cuh");
  const Registers from = registers_of(kernel.function, convert.source);
  const Registers to = registers_of(kernel.function, convert.frag);
  const std::vector<int> table =
      ir::moved_values(ir::tile_registers(kernel.function, convert.source),
                       ir::tile_registers(kernel.function, convert.frag));
  const ir::QuadMoves quads = ir::quad_moves(kernel.function, convert);
  if (table.empty()) {
    kernel.requirements.headers.insert("quad.cuh");
    kernel.out.call(quads.whole ? "kiln::transpose_in_quads" : "kiln::convert_in_quads",
                    {kernel.name(convert.frag), kernel.name(convert.source),
                     index_function(kernel, {std::ssize(quads.registers)}, quads.registers)});
  } else {
    kernel.out.call(format("kiln::convert_layout<{}, {}, {}>", to.fragment.values,
                           type_name(to.dtype), type_name(from.dtype)),
                    {kernel.name(convert.frag), kernel.name(convert.source),
                     index_function(kernel, digits_of(to.fragment), table)});
  }
  const ir::FragType& type = kernel.function.frag_type(convert.frag);
  if (type.role != ir::Role::kA || to.fragment.lanes != target::kWarpgroupLanes) return;
  // A fence follows, and orders what the compiler leaves in front of it.
  kernel.requirements.headers.insert("wgmma.cuh");
  kernel.out.line(format("kiln::wgmma_operand({});", kernel.name(convert.frag)));
}

// Where an element's parts are the register that holds it, in order, nothing happens but a change of names.
void emit_op(Kernel& kernel, const Op&, const ir::Recast& recast) {
  kernel.requirements.headers.insert("fragment.cuh");
  const ir::RecastSides sides = ir::sides_of(kernel.function, recast);
  const Registers wide = registers_of(kernel.function, sides.wide);
  const Registers narrow = registers_of(kernel.function, sides.narrow);
  std::vector<int> table;
  for (const ir::ValuePart& at :
       ir::parts_of_values(ir::tile_registers(kernel.function, sides.wide),
                           ir::tile_registers(kernel.function, sides.narrow), sides.count)) {
    table.push_back(sides.count * at.value + at.part);
  }
  const bool splits = sides.narrow == recast.frag;
  kernel.out.call(format("kiln::{}<{}, {}, {}>", splits ? "split_elements" : "join_elements",
                         narrow.fragment.values, type_name((splits ? narrow : wide).dtype),
                         type_name((splits ? wide : narrow).dtype)),
                  {kernel.name(recast.frag), kernel.name(recast.source),
                   index_function(kernel, digits_of(narrow.fragment), table)});
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

// One element of the sum; two of f16 share a register.
void emit_sum(Kernel& kernel, const ir::Scale& scale, const Registers& registers,
              const std::string& factor) {
  const std::string& i = kernel.name(kernel.counter);
  const std::string& sum = kernel.name(scale.c);
  const std::string& part = kernel.name(scale.partial);
  if (!registers.packed()) {
    kernel.out.line(format("{}[{}] = fmaf({}, {}[{}], {}[{}]);", sum, i, factor, part, i, sum, i));
    return;
  }
  kernel.requirements.headers.insert("fragment.cuh");
  const std::string type = type_name(registers.dtype);
  const auto element = [&](const std::string& of) {
    return format("kiln::to<float>(kiln::element<{}>({}, {}))", type, of, i);
  };
  kernel.out.line(format("kiln::set_element({}, {}, kiln::to<{}>(fmaf({}, {}, {})));", sum, i, type,
                         factor, element(part), element(sum)));
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
  const std::string limits = inside(kernel, view, index, scale.guarded, scale.before);
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
  kernel.out.line("#pragma unroll");
  kernel.out.open(format("for (int {} = 0; {} < {}; ++{}) {{", i, i, fragment.values, i));
  emit_sum(kernel, scale, registers,
           format("{}[{}] * {}", factors, kernel.text(floor_div(of_value.row, Expr(rows.step))),
                  bracketed(scalar(kernel, scale.factor), Binding::kProduct)));
  kernel.out.close();
  kernel.out.close();
}

namespace {

// The first of the registers of a repetition of the instruction.
std::int64_t first_register(const Registers& registers, std::int64_t rep_row,
                            std::int64_t rep_col) {
  return registers.per(target::first_value(registers.fragment, static_cast<int>(rep_row),
                                           static_cast<int>(rep_col)));
}

std::string atom_registers(Kernel& kernel, ValueId frag, const Registers& registers,
                           std::int64_t rep_row, std::int64_t rep_col) {
  return format("&{}[{}]", kernel.name(frag), first_register(registers, rep_row, rep_col));
}

// An operand at each step: the array or the descriptor, and where its numbers or its tile begin.
void add_operand(std::vector<std::string>& arguments, const std::string& name,
                 const std::vector<std::int64_t>& starts, bool registers) {
  if (starts.size() > 1) {
    arguments.push_back(name);
    arguments.push_back(format(
        "{{{}}}", join(starts, ", ", [](std::int64_t start) { return format("{}", start); })));
  } else if (registers) {
    arguments.push_back(format("&{}[{}]", name, starts[0]));
  } else {
    arguments.push_back(starts[0] == 0 ? name : format("{} + {}", name, starts[0]));
  }
}

// One call for all repetitions along K.
void emit_product(Kernel& kernel, const ir::Mma& mma) {
  constexpr int kUnit = 16;  // bytes that a descriptor counts in
  const bool a_registers = mma.a_steps.empty();
  const auto steps = static_cast<int>(mma.repeats[2]);
  std::string function = kernel.requirements.require(
      StepsOf{.mma = *mma.atom, .a_registers = a_registers, .steps = steps});
  const auto col = [](ir::Major major) { return major == ir::Major::kCol ? 1 : 0; };
  if (mma.atom->transposes) {
    function += a_registers ? format("<{}>", col(mma.b_major))
                            : format("<{}, {}>", col(mma.a_major), col(mma.b_major));
  }
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  std::vector<std::int64_t> metadata;
  for (int i = 0; i < steps; ++i) {
    const std::int64_t part = mma.part(i);
    const auto k = static_cast<std::size_t>(part);
    a.push_back(a_registers ? first_register(registers_of(kernel.function, mma.a), 0, part)
                            : mma.a_steps[k] / kUnit);
    b.push_back(mma.b_steps[k] / kUnit);
    metadata.push_back(part);
  }
  std::vector<std::string> arguments = {kernel.name(mma.c)};
  add_operand(arguments, kernel.name(mma.a), a, a_registers);
  add_operand(arguments, kernel.name(mma.b), b, false);
  if (mma.metadata.valid()) add_operand(arguments, kernel.name(mma.metadata), metadata, true);
  // Whether products are added to what the sum is so far.
  if (!mma.adds.is(1)) {
    arguments.push_back(mma.adds.is(0) ? "false" : format("{} > 0", kernel.text(mma.adds)));
  }
  kernel.out.call(function, arguments);
}

}  // namespace

// One call for each repetition of the instruction, contraction innermost.
void emit_op(Kernel& kernel, const Op&, const ir::Mma& mma) {
  if (mma.atom->reads_shared) return emit_product(kernel, mma);
  const std::string function = kernel.requirements.require(*mma.atom);
  const Registers a = registers_of(kernel.function, mma.a);
  const Registers b = registers_of(kernel.function, mma.b);
  const Registers c = registers_of(kernel.function, mma.c);
  for (std::int64_t m = 0; m < mma.repeats[0]; ++m) {
    for (std::int64_t n = 0; n < mma.repeats[1]; ++n) {
      for (std::int64_t i = 0; i < mma.repeats[2]; ++i) {
        const std::int64_t k = mma.part(i);
        const std::string metadata =
            mma.metadata.valid() ? format(", {}[{}]", kernel.name(mma.metadata), k) : "";
        kernel.out.line(format("{}({}, {}, {}{});", function,
                               atom_registers(kernel, mma.c, c, m, n),
                               atom_registers(kernel, mma.a, a, m, k),
                               atom_registers(kernel, mma.b, b, n, k), metadata));
      }
    }
  }
}

}  // namespace kiln::emit
