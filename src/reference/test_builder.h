// Builds tile IR by hand for this folder's tests: operations go into the innermost open region.
//
//   Builder b("twice");
//   const auto n = b.dim("N");
//   const auto x = b.param("x", DType::kF32, {n});
//   b.block({{"i", n}}, [&](auto vars) { ... });
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/arguments.h"
#include "ir/module.h"

namespace kiln::reference {

class Builder {
 public:
  using Axes = std::vector<std::pair<std::string, ir::Expr>>;
  using Vars = std::vector<ir::Expr>;

  explicit Builder(std::string name) {
    function.name = std::move(name);
    function.body = function.regions.push({});
    open_.push_back(function.body);
  }

  ir::Function function;

  ir::Expr dim(const std::string& name) {
    return ir::Expr::var(function.vars.push({name, ir::VarKind::kDim, 0, {}}));
  }
  ir::ValueId value(const std::string& name, ir::Type type) {
    return function.values.push({name, std::move(type), {}});
  }
  ir::ValueId param(const std::string& name, DType dtype, std::vector<ir::Expr> shape) {
    const ir::ValueId id = value(name, ir::ViewType{dtype, ir::Space::kGlobal, std::move(shape)});
    function.params.push_back(
        {.name = name, .span = {}, .value = id, .var = {}, .is_global = true});
    return id;
  }
  ir::OpId op(ir::OpData data) {
    ir::Op made;
    made.data = std::move(data);
    const ir::OpId id = function.ops.push(std::move(made));
    function.regions[open_.back()].ops.push_back(id);
    return id;
  }
  ir::ValueId result(ir::OpData data, ir::Type type, const std::string& name = "v") {
    const ir::ValueId id = value(name, std::move(type));
    const ir::OpId made = op(std::move(data));
    function.ops[made].result = id;
    function.values[id].def = made;
    return id;
  }
  ir::RegionId region(const std::function<void()>& body) {
    const ir::RegionId id = function.regions.push({});
    open_.push_back(id);
    body();
    open_.pop_back();
    return id;
  }

  void parallel(ir::Level level, const Axes& axes, const std::function<void(const Vars&)>& body) {
    ir::Parallel made;
    made.level = level;
    Vars vars;
    for (const auto& [name, extent] : axes) {
      made.vars.push_back(function.vars.push({name, ir::VarKind::kParallel, extent, {}}));
      vars.push_back(ir::Expr::var(made.vars.back()));
    }
    made.body = region([&] { body(vars); });
    op(std::move(made));
  }
  void loop(const ir::Expr& upper, const std::function<void(const ir::Expr&)>& body) {
    ir::For made;
    made.var = function.vars.push({"i", ir::VarKind::kLoop, upper, {}});
    made.upper = upper;
    made.body = region([&] { body(ir::Expr::var(made.var)); });
    op(std::move(made));
  }

  ir::ValueId view(ir::ValueId base, std::vector<ir::Expr> origin, std::vector<ir::Expr> shape) {
    const ir::ViewType& type = function.view_type(base);
    ir::ViewType out{type.dtype, type.space, std::move(shape)};
    return result(ir::Subview{base, std::move(origin)}, out, "view");
  }
  ir::ValueId buffer(ir::Space space, DType dtype, std::vector<ir::Expr> shape) {
    return result(ir::Alloc{}, ir::ViewType{dtype, space, std::move(shape)}, "buffer");
  }
  ir::ValueId cell(DType dtype, ir::ValueId initial) {
    ir::Alloc alloc;
    alloc.initial = initial;
    return result(std::move(alloc), ir::CellType{dtype}, "cell");
  }
  void copy(ir::ValueId src, ir::ValueId dst) {
    ir::Copy made;
    made.src = src;
    made.dst = dst;
    op(std::move(made));
  }
  void load(ir::ValueId frag, ir::ValueId view) {
    ir::Load made;
    made.frag = frag;
    made.view = view;
    op(std::move(made));
  }
  void mma(ir::ValueId c, ir::ValueId a, ir::ValueId b) {
    ir::Mma made;
    made.c = c;
    made.a = a;
    made.b = b;
    op(std::move(made));
  }
  void store(ir::ValueId frag, ir::ValueId view) {
    ir::Store made;
    made.frag = frag;
    made.view = view;
    op(std::move(made));
  }
  ir::ValueId frag(ir::Role role, DType dtype, std::int64_t rows, std::int64_t cols) {
    return result(ir::Alloc{}, ir::FragType{role, dtype, rows, cols}, "frag");
  }
  ir::ValueId constant(DType dtype, double number) {
    return result(ir::Const{number}, ir::ScalarType{dtype});
  }
  ir::ValueId index(const ir::Expr& expr) {
    return result(ir::Index{expr}, ir::ScalarType{DType::kS32});
  }
  ir::ValueId read(ir::ValueId view, std::vector<ir::Expr> at) {
    const DType dtype = function.view_type(view).dtype;
    return result(ir::Read{view, std::move(at)}, ir::ScalarType{dtype});
  }
  ir::ValueId binary(ir::BinaryKind kind, DType dtype, ir::ValueId left, ir::ValueId right) {
    return result(ir::Binary{kind, left, right}, ir::ScalarType{dtype});
  }

 private:
  std::vector<ir::RegionId> open_;
};

}  // namespace kiln::reference
