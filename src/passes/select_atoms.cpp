#include "passes/select_atoms.h"

namespace kiln::passes {

namespace {

void set_atom(ir::Function& function, ir::ValueId frag, const target::Mma* atom) {
  const ir::OpId def = function.values[frag].def;
  auto* alloc = def.valid() ? std::get_if<ir::Alloc>(&function.ops[def].data) : nullptr;
  KILN_CHECK(alloc != nullptr, "fragment {} has no alloc", function.values[frag].name);
  if (alloc->atom == nullptr) alloc->atom = atom;
}

void select(const target::Arch& arch, ir::Function& function, ir::Mma& mma) {
  const ir::FragType& a = function.frag_type(mma.a);
  const ir::FragType& b = function.frag_type(mma.b);
  const ir::FragType& c = function.frag_type(mma.c);
  const std::int64_t k = mma.a_major == ir::Major::kRow ? a.cols : a.rows;
  const target::MmaShape shape{static_cast<int>(c.rows), static_cast<int>(c.cols),
                               static_cast<int>(k)};
  const target::Mma* atom =
      target::find_mma(arch, target::Scope::kWarp, a.dtype, b.dtype, c.dtype, shape);
  KILN_CHECK(atom != nullptr, "no instruction for a {}x{}x{} mma that sema let through", shape.m,
             shape.n, shape.k);
  mma.atom = atom;
  mma.repeats = {shape.m / atom->shape.m, shape.n / atom->shape.n, shape.k / atom->shape.k};
  for (ir::ValueId frag : {mma.a, mma.b, mma.c}) set_atom(function, frag, atom);
}

}  // namespace

Checked<bool> select_atoms(ir::Module& module, Diagnostics&) {
  for (ir::Function& function : module.functions) {
    for (ir::Op& op : function.ops) {
      if (auto* mma = std::get_if<ir::Mma>(&op.data)) select(*module.arch, function, *mma);
    }
  }
  return true;
}

}  // namespace kiln::passes
