#include "passes/select_atoms.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/effects.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

void set_atom(ir::Function& function, ir::ValueId frag, const target::Mma* atom) {
  const ir::OpId def = function.values[frag].def;
  auto* alloc = def.valid() ? std::get_if<ir::Alloc>(&function.ops[def].data) : nullptr;
  KILN_CHECK(alloc != nullptr, "fragment {} has no alloc", function.values[frag].name);
  if (alloc->atom == nullptr) alloc->atom = atom;
}

// M, N and K as the operands have them.
target::MmaShape request_of(const ir::Function& function, const ir::Mma& mma) {
  const ir::FragType& a = function.frag_type(mma.a);
  const ir::FragType& b = function.frag_type(mma.b);
  const bool a_row = mma.a_major == ir::Major::kRow;
  const bool b_row = mma.b_major == ir::Major::kRow;
  return {static_cast<int>(a_row ? a.rows : a.cols), static_cast<int>(b_row ? b.rows : b.cols),
          static_cast<int>(b_row ? b.cols : b.rows)};
}

// Computes c^T = b * a^T instead of c = a * b: operands change places, the accumulator its rows
// with its columns, also for the coordinates of an `apply`, and what is stored is transposed.
void exchange(ir::Function& function, ir::Mma& mma) {
  const auto type_of = [&](ir::ValueId frag) -> ir::FragType& {
    return std::get<ir::FragType>(function.values[frag].type);
  };
  std::swap(mma.a, mma.b);
  std::swap(mma.a_major, mma.b_major);
  type_of(mma.a).role = ir::Role::kA;
  type_of(mma.b).role = ir::Role::kB;
  ir::FragType& c = type_of(mma.c);
  // Another `mma` on the same accumulator has turned it already.
  if (c.rows == request_of(function, mma).m) return;
  std::swap(c.rows, c.cols);
  for (ir::Op& op : function.ops) {
    auto* store = std::get_if<ir::Store>(&op.data);
    if (store != nullptr && store->frag == mma.c) store->transposed = !store->transposed;
    auto* each = std::get_if<ir::Apply>(&op.data);
    if (each != nullptr && each->frag == mma.c) std::swap(each->row, each->col);
  }
}

target::Scope scope_of(ir::Level unit) {
  return unit == ir::Level::kGroup4 ? target::Scope::kWarpgroup : target::Scope::kWarp;
}

// Whether the product is exchanged.
bool select(const target::Arch& arch, ir::Function& function, ir::Mma& mma) {
  const target::MmaShape shape = request_of(function, mma);
  const target::MmaTypes types = {scope_of(mma.unit), function.frag_type(mma.a).dtype,
                                  function.frag_type(mma.b).dtype, mma.metadata.valid()};
  const target::Mma* atom = target::find_mma(arch, types, {function.frag_type(mma.c).dtype, shape});
  KILN_CHECK(atom != nullptr, "no instruction for a {}x{}x{} mma that sema let through", shape.m,
             shape.n, shape.k);
  mma.atom = atom;
  const bool exchanged = target::serves_exchanged(*atom, shape);
  if (exchanged) exchange(function, mma);
  const target::MmaShape tile = request_of(function, mma);
  mma.repeats = {tile.m / atom->shape.m, tile.n / atom->shape.n, tile.k / atom->shape.k};
  for (ir::ValueId frag : {mma.a, mma.b, mma.c, mma.metadata}) {
    if (frag.valid()) set_atom(function, frag, atom);
  }
  return exchanged;
}

// What an operation does to the rows or columns of a tile, by name.
std::string_view use_of_lines(const ir::Op& op) {
  constexpr std::pair<ir::OpKind, std::string_view> kUses[] = {
      {ir::OpKind::kScale, "scaling"},
      {ir::OpKind::kLoad, "loading"},
      {ir::OpKind::kReduce, "reducing"},
      {ir::OpKind::kScan, "scanning"},
      {ir::OpKind::kRecast, "recasting"},
      {ir::OpKind::kConvert, "multiplying"},
      {ir::OpKind::kApply, "computing a tile from"},
  };
  const auto* use =
      std::ranges::find(kUses, op.kind(), &std::pair<ir::OpKind, std::string_view>::first);
  return use == std::end(kUses) ? "" : use->second;
}

// An exchanged accumulator of which an operation speaks as of one that is not, or beside tiles that are not: a row's factor
// would be that of a column. An `apply` to exchanged accumulators alone is turned around with them.
ir::ValueId taken_upright(const ir::Function& function, const std::set<ir::ValueId>& exchanged,
                          const ir::Op& op) {
  if (use_of_lines(op).empty()) return {};
  std::vector<ir::ValueId> tiles;
  if (const auto* apply = std::get_if<ir::Apply>(&op.data)) {
    tiles = ir::tiles_in(function, *apply);
    const auto is_exchanged = [&](ir::ValueId tile) { return exchanged.contains(tile); };
    if (std::ranges::all_of(tiles, is_exchanged)) return {};
  } else {
    ir::for_each_touch(op, [&](const ir::Touch& touch) { tiles.push_back(touch.value); });
  }
  for (const ir::ValueId tile : tiles) {
    if (exchanged.contains(tile)) return tile;
  }
  return {};
}

bool uses_are_upright(const ir::Function& function, const std::set<ir::ValueId>& exchanged,
                      Diagnostics& diags) {
  bool upright = true;
  for (const ir::Op& op : function.ops) {
    const ir::ValueId tile = taken_upright(function, exchanged, op);
    if (!tile.valid()) continue;
    const ir::FragType& type = function.frag_type(tile);
    const bool scales = op.kind() == ir::OpKind::kScale;
    (void)diags
        .report<diag::NotSupportedYet>(
            op.span, format("{} an accumulator of {}x{}", use_of_lines(op), type.cols, type.rows))
        .help("{}", scales ? "multiply its elements in an `apply`"
                           : "store it to shared memory and load it from there, or use tiles of "
                             "16x16")
        .emit();
    upright = false;
  }
  return upright;
}

void drop_waits(ir::Function& function, ir::RegionId region) {
  for (const ir::OpId id : function.regions[region].ops) {
    for (const ir::RegionId inner : ir::regions_of(function.ops[id])) drop_waits(function, inner);
  }
  std::erase_if(function.regions[region].ops, [&](ir::OpId id) {
    const ir::OpKind kind = function.ops[id].kind();
    return kind == ir::OpKind::kMmaCommit || kind == ir::OpKind::kMmaWait;
  });
}

// Where no product of a kernel is asynchronous, `mma.commit` and `mma.wait` have nothing to close or wait for.
void drop_idle_waits(ir::Function& function, ir::RegionId body) {
  bool idle = true;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* mma = std::get_if<ir::Mma>(&function.ops[id].data);
    idle = idle && (mma == nullptr || !mma->is_asynchronous());
  });
  if (idle) drop_waits(function, body);
}

}  // namespace

Checked<bool> select_atoms(ir::Module& module, Diagnostics& diags) {
  bool fine = true;
  for (ir::Function& function : module.functions) {
    std::set<ir::ValueId> exchanged;
    for (ir::Op& op : function.ops) {
      auto* mma = std::get_if<ir::Mma>(&op.data);
      if (mma != nullptr && select(*module.arch, function, *mma)) exchanged.insert(mma->c);
    }
    if (!uses_are_upright(function, exchanged, diags)) {
      fine = false;
      continue;
    }
    for (const ir::Op& op : function.ops) {
      // Both accumulators have the registers of the products that the partial one sums.
      const auto* scale = std::get_if<ir::Scale>(&op.data);
      if (scale == nullptr) continue;
      set_atom(function, scale->c, function.def_as<ir::Alloc>(scale->partial)->atom);
    }
  }
  if (!fine) return diags.failed();
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    drop_idle_waits(function, body_of(function, launch));
  });
  return true;
}

}  // namespace kiln::passes
