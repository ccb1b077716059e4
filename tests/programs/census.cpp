#include "programs/census.h"

#include "ir/names.h"
#include "support/format.h"
#include "target/mma.h"

namespace kiln::programs {

namespace {

using Names = std::set<std::string>;

void count_type(const ir::Type& type, Names& out) {
  if (const auto* view = std::get_if<ir::ViewType>(&type)) {
    out.insert(format("type.{}", name(view->dtype)));
    out.insert(format("rank.{}", view->shape.size()));
    out.insert(format("space.{}", ir::name_of(view->space)));
  }
  if (const auto* cell = std::get_if<ir::CellType>(&type)) {
    out.insert(format("cell.{}", name(cell->dtype)));
  }
}

void count_copy(const ir::Copy& copy, const ir::Function& function, Names& out) {
  const auto space = [&](ir::ValueId value) {
    return ir::name_of(function.view_type(value).space);
  };
  out.insert(format("copy.{}.{}-{}{}", ir::name_of(copy.way), space(copy.src), space(copy.dst),
                    copy.async ? ".async" : ""));
  if (!copy.permutation.empty()) out.insert("copy.transposed");
  if (copy.multicast) out.insert("copy.multicast");
  if (copy.adds) out.insert("copy.adds");
  if (copy.eviction != ir::Eviction::kNormal) out.insert("copy.eviction");
  if (copy.promotion != 0) out.insert("copy.promotion");
  if (!copy.guarded.empty()) out.insert("copy.guarded");
  if (!copy.tile_guarded.empty()) out.insert("copy.tile_guarded");
}

void count_scalar(const ir::Function& function, const ir::Op& op, Names& out) {
  if (const auto* unary = std::get_if<ir::Unary>(&op.data)) {
    out.insert(format("unary.{}", ir::name_of(unary->kind)));
  }
  if (const auto* binary = std::get_if<ir::Binary>(&op.data)) {
    out.insert(format("binary.{}", ir::name_of(binary->kind)));
  }
  if (const auto* cast = std::get_if<ir::Cast>(&op.data)) {
    const auto* from = std::get_if<ir::ScalarType>(&function.type(cast->operand));
    const auto* to = std::get_if<ir::ScalarType>(&function.type(op.result));
    if (from != nullptr && to != nullptr) {
      out.insert(format("cast.{}-{}", name(from->dtype), name(to->dtype)));
    }
  }
}

void count_matrix(const ir::Op& op, Names& out) {
  if (const auto* mma = std::get_if<ir::Mma>(&op.data); mma != nullptr && mma->atom != nullptr) {
    out.insert(format("row.{}", mma->atom->name));
    out.insert(format("mma.{}.{}", ir::name_of(mma->a_major), ir::name_of(mma->b_major)));
    if (mma->metadata.valid()) out.insert("mma.sparse");
  }
  if (const auto* load = std::get_if<ir::Load>(&op.data)) {
    out.insert(load->in_shared                ? "load.in_shared"
               : load->instruction == nullptr ? "load.plain"
                                              : format("load.{}", load->instruction->name));
  }
  if (const auto* store = std::get_if<ir::Store>(&op.data)) {
    out.insert(store->instruction == nullptr ? "store.plain"
                                             : format("store.{}", store->instruction->name));
    if (store->transposed) out.insert("store.transposed");
    if (store->masked) out.insert("store.masked");
  }
}

void count_op(const ir::Function& function, const ir::Op& op, Names& out) {
  if (std::holds_alternative<ir::NoOp>(op.data)) return;
  out.insert(format("op.{}", ir::mnemonic(op.kind())));
  if (op.result.valid()) count_type(function.type(op.result), out);
  if (const auto* copy = std::get_if<ir::Copy>(&op.data)) count_copy(*copy, function, out);
  if (const auto* alloc = std::get_if<ir::Alloc>(&op.data);
      alloc != nullptr && alloc->swizzle > 0) {
    out.insert(format("swizzle.{}", alloc->swizzle));
  }
  count_scalar(function, op, out);
  count_matrix(op, out);
}

}  // namespace

std::set<std::string> census(const ir::Module& tile, const ir::Module& decided) {
  Names out;
  for (const ir::Module* module : {&tile, &decided}) {
    for (const ir::Function& function : module->functions) {
      for (const ir::Param& param : function.params) count_type(function.type(param.value), out);
      ir::walk(function, function.body,
               [&](ir::OpId id) { count_op(function, function.ops[id], out); });
    }
  }
  return out;
}

std::set<std::string> everything() {
  Names out;
  for (const auto& row : ir::enum_names<ir::OpKind>()) out.insert(format("op.{}", row.name));
  for (const auto& row : ir::enum_names<ir::UnaryKind>()) out.insert(format("unary.{}", row.name));
  for (const auto& row : ir::enum_names<ir::BinaryKind>())
    out.insert(format("binary.{}", row.name));
  for (const target::Mma& row : target::all_mmas()) out.insert(format("row.{}", row.name));
  for (int d = 0; d < kDTypeCount; ++d) {
    if (!is_sub_byte(static_cast<DType>(d))) {
      out.insert(format("type.{}", name(static_cast<DType>(d))));
    }
  }
  return out;
}

}  // namespace kiln::programs
