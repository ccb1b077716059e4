#include "passes/op_maker.h"

#include "passes/cloner.h"

namespace kiln::passes {

ir::ValueId OpMaker::named(std::vector<ir::OpId>& out, ir::OpData data, ir::Type type,
                           const std::string& name) {
  const ir::OpId op = make(std::move(data));
  const std::string wanted = name.empty() ? "0" : name;
  const ir::ValueId value =
      function_.values.push({unique_value_name(function_, wanted), std::move(type), op});
  function_.ops[op].result = value;
  out.push_back(op);
  return value;
}

ir::ValueId OpMaker::ring_of(std::vector<ir::OpId>& out, ir::ValueId buffer, std::int64_t stages) {
  const ir::OpId def = function_.values[buffer].def;
  ir::Alloc alloc = std::get<ir::Alloc>(function_.ops[def].data);
  ir::ViewType type = function_.view_type(buffer);
  type.shape.insert(type.shape.begin(), ir::Expr(stages));
  const std::string name = function_.values[buffer].name;
  remove_op(function_, def);
  // The ring takes the buffer's name.
  function_.values[buffer].name = format("{}_alone", name);
  alloc.initial = {};
  return named(out, std::move(alloc), std::move(type), name);
}

ir::ValueId OpMaker::stage_of(ir::ValueId buffer, ir::ValueId ring, const ir::Expr& number) {
  const ir::ViewType type = function_.view_type(buffer);
  std::vector<ir::Expr> origin(type.shape.size() + 1, ir::Expr(0));
  origin[0] = number;
  return emit_value(ir::Subview{ring, std::move(origin), 1}, type);
}

std::vector<ir::OpId> shared_of(const ir::Function& function, ir::RegionId region) {
  std::vector<ir::OpId> out;
  ir::walk(function, region, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    const auto* alloc = std::get_if<ir::Alloc>(&op.data);
    const auto* view =
        alloc == nullptr ? nullptr : std::get_if<ir::ViewType>(&function.type(op.result));
    const bool is_shared =
        view != nullptr && view->space == ir::Space::kShared && !alloc->initial.valid();
    if (is_shared || op.kind() == ir::OpKind::kEvent) out.push_back(id);
  });
  return out;
}

void remove_op(ir::Function& function, ir::OpId id) {
  for (std::uint32_t r = 0; r < function.regions.size(); ++r) {
    std::erase(function.regions[ir::RegionId{r}].ops, id);
  }
}

void replace_op(ir::Function& function, ir::OpId id, const std::vector<ir::OpId>& with) {
  for (ir::Region& region : function.regions) {
    const auto at = std::ranges::find(region.ops, id);
    if (at == region.ops.end()) continue;
    region.ops.insert(region.ops.erase(at), with.begin(), with.end());
    return;
  }
}

}  // namespace kiln::passes
