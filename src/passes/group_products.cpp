#include "passes/group_products.h"

#include <algorithm>
#include <vector>

#include "ir/effects.h"
#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"
#include "target/registers.h"

namespace kiln::passes {

namespace {

// Products of so many columns have run by the time that rows are made into their largest elements, at 4 cycles each.
constexpr std::int64_t kColumnsOfShortProducts = 64;
constexpr int kRegisterBits = 8 * target::kRegisterBytes;

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

  // Between products and a wait that the program states, what rows or columns are made into is computed in front of the wait,
  // if that takes no longer than the products. What the program keeps of it is held there where sums of products are computed
  // with behind the wait: that work and the rest run at the same time then.
  void order_around_waits(ir::RegionId region) {
    const std::vector<ir::OpId>& ops = function_.regions[region].ops;
    ir::ValueId sums;               // of the last products
    ir::ValueId made;               // since then
    std::vector<ir::ValueId> kept;  // the one that was written last, last
    for (std::size_t at = 0; at < ops.size(); ++at) {
      ir::Op& op = function_.ops[ops[at]];
      if (is_asynchronous(op)) sums = std::get<ir::Mma>(op.data).c;
      if (const auto* reduce = std::get_if<ir::Reduce>(&op.data)) made = reduce->frag;
      if (const auto* apply = std::get_if<ir::Apply>(&op.data); apply != nullptr && made.valid()) {
        if (is_kept(apply->frag, made, region)) {
          std::erase(kept, apply->frag);
          kept.push_back(apply->frag);
        }
      }
      auto* wait = std::get_if<ir::MmaWait>(&op.data);
      if (wait != nullptr && wait->stated && sums.valid() && made.valid()) {
        const bool fits = info(function_.frag_type(made).dtype).bits <= kRegisterBits;
        if (fits && function_.frag_type(sums).cols > kColumnsOfShortProducts) wait->first = made;
        if (is_computed_with(sums, ops, at + 1)) wait->held.assign(kept.rbegin(), kept.rend());
      }
      if (wait != nullptr || op.kind() == ir::OpKind::kMmaCommit) made = {}, kept.clear();
      for (const ir::RegionId inner : ir::regions_of(op)) order_around_waits(inner);
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

  // Whether its elements are, from there on and before it is a product's.
  bool is_computed_with(ir::ValueId frag, const std::vector<ir::OpId>& ops,
                        std::size_t from) const {
    for (std::size_t at = from; at < ops.size(); ++at) {
      const ir::OpData& data = function_.ops[ops[at]].data;
      if (std::holds_alternative<ir::Mma>(data)) return false;
      const auto* apply = std::get_if<ir::Apply>(&data);
      if (apply != nullptr && apply->frag == frag) return true;
    }
    return false;
  }

  // Whether it is a tile of 32-bit elements as `made` is, and made in another region than this.
  bool is_kept(ir::ValueId tile, ir::ValueId made, ir::RegionId region) const {
    const ir::FragType& type = function_.frag_type(tile);
    const ir::FragType& rows = function_.frag_type(made);
    const bool alike = type.role == rows.role && type.rows == rows.rows && type.cols == rows.cols;
    if (!alike || info(type.dtype).bits != kRegisterBits) return false;
    return std::ranges::none_of(function_.regions[region].ops,
                                [&](ir::OpId id) { return function_.ops[id].result == tile; });
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
    grouper.order_around_waits(body);
  });
  return true;
}

}  // namespace kiln::passes
