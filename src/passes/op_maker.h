// How a pass makes operations that a program could have said by itself. Part of the passes `specialise` and `pipeline`.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::passes {

// Makes operations with the place of one statement, and collects them in order in `out_`.
class OpMaker {
 public:
  OpMaker(ir::Function& function, Span span) : function_(function), span_(span) {}

  ir::OpId make(ir::OpData data) { return function_.ops.push({span_, std::move(data), {}}); }
  void emit(ir::OpData data) { out_.push_back(make(std::move(data))); }
  // An operation behind those of `out`, and its result. Without a name it is numbered.
  ir::ValueId named(std::vector<ir::OpId>& out, ir::OpData data, ir::Type type,
                    const std::string& name);
  ir::ValueId emit_value(ir::OpData data, ir::Type type, const std::string& name = "") {
    return named(out_, std::move(data), std::move(type), name);
  }
  // An array of so many buffers like this one, which has its name and takes its place.
  ir::ValueId ring_of(std::vector<ir::OpId>& out, ir::ValueId buffer, std::int64_t stages);
  // The ring's buffer with this number, which stands for `buffer`.
  ir::ValueId stage_of(ir::ValueId buffer, ir::ValueId ring, const ir::Expr& number);

 protected:
  ir::Function& function_;
  Span span_;
  std::vector<ir::OpId> out_ = {};
};

// The shared buffers that begin without a value, and the events, of the region and those inside of it.
[[nodiscard]] std::vector<ir::OpId> shared_of(const ir::Function& function, ir::RegionId region);

// Takes the operation out of its region.
void remove_op(ir::Function& function, ir::OpId id);

// Puts others in its place.
void replace_op(ir::Function& function, ir::OpId id, const std::vector<ir::OpId>& with);

}  // namespace kiln::passes
