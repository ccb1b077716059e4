#include "passes/group_products.h"

#include "ir/effects.h"
#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"

namespace kiln::passes {

namespace {

class Grouper {
 public:
  explicit Grouper(ir::Function& function) : function_(function) {}

  void run(ir::RegionId region) {
    const std::vector<ir::OpId> ops = function_.regions[region].ops;
    std::vector<ir::OpId> out;
    std::size_t end_of_run = 0;  // in `out`: behind the last product of an open run
    const auto close = [&] {
      if (end_of_run != 0 && !program_commits_) insert(out, end_of_run, ir::MmaCommit{});
      end_of_run = 0;
    };
    for (const ir::OpId id : ops) {
      const Kind kind = kind_of(id);
      if (kind == Kind::kOther) close();
      if (kind == Kind::kProducts && end_of_run == 0) insert(out, out.size(), ir::MmaFence{}, id);
      out.push_back(id);
      if (kind == Kind::kProducts) end_of_run = out.size();
      if (kind != Kind::kOther) continue;
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) run(inner);
    }
    close();
    function_.regions[region].ops = std::move(out);
  }

  // What rows or columns are made into between the products and a wait that the program states is computed there.
  void compute_first(ir::RegionId region) {
    ir::ValueId made;
    for (const ir::OpId id : function_.regions[region].ops) {
      ir::Op& op = function_.ops[id];
      if (const auto* reduce = std::get_if<ir::Reduce>(&op.data)) made = reduce->frag;
      if (op.kind() == ir::OpKind::kMmaCommit) made = {};
      if (auto* wait = std::get_if<ir::MmaWait>(&op.data)) {
        if (wait->stated) wait->first = made;
        made = {};
      }
      for (const ir::RegionId inner : ir::regions_of(op)) compute_first(inner);
    }
  }

  void look(ir::RegionId body) {
    ir::walk(function_, body, [&](ir::OpId id) {
      const auto* commit = std::get_if<ir::MmaCommit>(&function_.ops[id].data);
      program_commits_ = program_commits_ || commit != nullptr;
    });
  }

 private:
  enum class Kind : std::uint8_t { kProducts, kNeutral, kOther };

  Kind kind_of(ir::OpId id) const {
    const ir::Op& op = function_.ops[id];
    if (is_asynchronous(op)) return Kind::kProducts;
    if (const auto* load = std::get_if<ir::Load>(&op.data)) {
      return load->in_shared ? Kind::kNeutral : Kind::kOther;
    }
    const bool nested = op.kind() == ir::OpKind::kFor || op.kind() == ir::OpKind::kParallel;
    if (!nested) return is_neutral(op) ? Kind::kNeutral : Kind::kOther;
    bool products = false;
    for (const ir::RegionId region : ir::regions_of(op)) {
      for (const ir::OpId inner : function_.regions[region].ops) {
        const Kind kind = kind_of(inner);
        if (kind == Kind::kOther) return Kind::kOther;
        products = products || kind == Kind::kProducts;
      }
    }
    return products ? Kind::kProducts : Kind::kNeutral;
  }

  // Computes indices, or declares what costs nothing.
  bool is_neutral(const ir::Op& op) const {
    const ir::OpKind kind = op.kind();
    if (kind == ir::OpKind::kAlloc) {
      return std::holds_alternative<ir::FragType>(function_.type(op.result));
    }
    return ir::is_pure(kind) || kind == ir::OpKind::kSubview || kind == ir::OpKind::kAlias ||
           kind == ir::OpKind::kBind;
  }

  void insert(std::vector<ir::OpId>& ops, std::size_t at, ir::OpData data, ir::OpId beside = {}) {
    const ir::OpId neighbour = beside.valid() ? beside : ops[at - 1];
    const Span span = function_.ops[neighbour].span;
    const ir::OpId id = function_.ops.push({span, std::move(data), {}});
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), id);
  }

  ir::Function& function_;
  bool program_commits_ = false;
};

}  // namespace

Checked<bool> group_products(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    const ir::RegionId body = body_of(function, launch);
    Grouper grouper(function);
    grouper.look(body);
    grouper.run(body);
    grouper.compute_first(body);
  });
  return true;
}

}  // namespace kiln::passes
