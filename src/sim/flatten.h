// The flattener's state, shared by its files: control flow (flatten.cpp), memory operations
// (flatten_memory.cpp) and matrix operations (flatten_matrix.cpp).
#pragma once

#include <map>

#include "sim/program.h"

namespace kiln::sim {

class Flattener {
 public:
  Flattener(const ir::Function& function, const HostState& host, Tally& tally, bool on_host);

  Program take() { return std::move(program_); }
  void block(const ir::Parallel& launch, std::uint32_t threads);
  [[nodiscard]] std::uint32_t whole_grid(const ir::Parallel& launch) const;
  void set_axes(const ir::Parallel& launch);
  void region(ir::RegionId id);
  void stop();

 private:
  // One for each kind of operation.
  void op(const ir::Parallel& data);
  void op(const ir::For& data);
  void op(const ir::If& data);
  void op(const ir::Once& data);
  void op(const ir::Return& data);
  void op(const ir::Loop& data);
  void op(const ir::Break&) { leave(Leave::kBreak); }
  void op(const ir::Continue&) { leave(Leave::kContinue); }
  void op(const ir::Yield&) { leave(Leave::kYield); }
  void op(const ir::Alloc& data);
  void op(const ir::Subview&) {}  // a view costs nothing: see make_view
  void op(const ir::Alias&) {}    // nor does another shape for memory
  void op(const ir::Splat& data);
  void op(const ir::Copy& data);
  void op(const ir::CopyWait& data);
  void op(const ir::Barrier& data);
  void op(const ir::Read& data);
  void op(const ir::Write& data);
  void op(const ir::Atomic& data);
  void op(const ir::Fill& data);
  void op(const ir::Load& data);
  void op(const ir::Mma& data);
  void op(const ir::Store& data);
  void op(const ir::Scale& data);
  void op(const ir::Apply& data);
  void op(const ir::Element& data);
  void op(const ir::SetElement& data);
  void op(const ir::Reduce& data);
  void op(const ir::Vote& data);
  void op(const ir::Scan& data);
  void op(const ir::Convert& data);
  void op(const ir::Recast& data);
  void op(const ir::MmaFence&) { emit(Code::kMmaFence, 0); }
  void op(const ir::MmaCommit&) { emit(Code::kMmaCommit, 0); }
  void op(const ir::MmaWait& data);
  void op(const ir::ProxyFence& data) { emit(Code::kProxyFence, data.global ? 1 : 0); }
  void op(const ir::Const& data);
  void op(const ir::Index& data);
  void op(const ir::Bind& data);
  void op(const ir::Unary& data);
  void op(const ir::Binary& data);
  void op(const ir::Cast& data);
  void op(const ir::Bitcast& data);
  void op(const ir::Choose& data);
  void op(const ir::Fma& data);
  void op(const ir::Get& data);
  void op(const ir::Set& data);
  void op(const ir::Assert& data);
  void op(const ir::Print& data);
  // What is to be shown behind the current operation.
  void dumps();
  void op(const ir::Cuda& data);
  void op(const ir::NoOp&) {}
  // What the rest of the pipeline does not make yet.
  void op(const ir::Inthreads& data);
  void op(const ir::Event& data);
  void op(const ir::Trigger& data);
  void op(const ir::EventWait& data);
  // Gone once everything is decided.
  void op(const ir::Future&) {}
  void op(const ir::FutureWait&) {}
  void op(const ir::Exchange&) {}
  void op(const ir::BulkWait& data);
  void op(const ir::Registers& data) {
    emit_plan(Code::kRegisters, program_.registers_set, RegistersPlan{data.count, data.increases});
  }

  // A construct that pushes a mask: from begin_body on, what leaves its body goes to the next
  // instruction when no lane is left; end_body says that this is it. `rejoin` behind the end goes
  // on outside only where a lane has come back.
  void begin_body(bool is_loop);
  void end_body();
  void rejoin();
  // Whether some lane may leave the current operation's body before its end.
  [[nodiscard]] bool is_left() const;
  void leave(Leave how);
  std::size_t emit(Code code, std::size_t plan);
  // Later instructions of the code begin here.
  [[nodiscard]] std::uint32_t here() const;
  template <class Plan>
  void emit_plan(Code code, std::vector<Plan>& plans, Plan plan) {
    plans.push_back(std::move(plan));
    emit(code, plans.size() - 1);
  }

  [[nodiscard]] DType dtype(ir::ValueId value) const;
  [[nodiscard]] ir::ValueId result() const { return function_.ops[current_].result; }
  [[nodiscard]] bool uniform(ir::ValueId value) const { return uniform_[value.index]; }
  void scalar(ScalarPlan plan, std::initializer_list<ir::ValueId> operands);

  [[nodiscard]] View view(ir::ValueId value);
  [[nodiscard]] ElementPlan element(ir::ValueId view_id, const std::vector<ir::Expr>& index,
                                    ir::ValueId value, bool writes);
  void allocate(const ir::Alloc& data, const ir::ViewType& type, InitialisePlan& plan);

  [[nodiscard]] std::uint32_t fragment(ir::ValueId value);
  const target::MmaExecutor* executor(const target::Mma& atom);
  void load_metadata(const ir::Load& data);
  void product(const ir::Mma& data);
  void bulk_copy(const ir::Copy& data);
  [[nodiscard]] ProductOperand operand(ir::ValueId frag, ir::Major major,
                                       const std::vector<std::int64_t>& steps);
  void leave_to_first(TilePlan& plan, const target::Fragment& map) const;
  [[nodiscard]] std::uint32_t applied_register(ir::ValueId tile) const;
  void plain_places(TilePlan& plan, ir::ValueId frag, const target::Fragment& map,
                    bool swapped) const;
  void applied_body(const ir::Apply& data);
  void write_once(const ir::Write& data);
  template <class Move>
  void matrix_places(TilePlan& plan, const Move& data);

  const ir::Function& function_;
  const HostState& host_;
  Tally& tally_;
  bool on_host_;
  VarFacts facts_;
  std::vector<bool> uniform_;               // by ValueId
  std::vector<std::uint32_t> fragment_of_;  // by ValueId
  std::vector<const Buffer*> buffer_of_;    // by ValueId
  std::vector<const Buffer*> tile_of_;      // by ValueId: of fragments read in place
  std::vector<std::uint32_t> units_;        // threads of the enclosing units, innermost last
  Participants region_;                     // the innermost `inthreads` region's, or the block's
  std::vector<std::uint32_t> event_of_;     // by ValueId
  // The register of its tile that an apply is at, and for each the ones of other tiles that go with
  // it.
  struct Applied {
    std::size_t value = 0;
    std::map<ir::ValueId, std::vector<int>> values = {};
    std::vector<Place> holders = {};  // by lane, {-1, -1}: an earlier one holds the same elements
  };
  Applied applied_ = {};
  ir::OpId current_;
  // The bodies around the current operation: instructions that go to a body's end.
  struct Body {
    bool is_loop = false;
    std::vector<std::size_t> to_end = {};
  };
  std::vector<Body> bodies_ = {Body{}};
  Program program_;
  std::vector<std::int64_t> cluster_ = {};  // blocks by axis of the launch
};

[[nodiscard]] std::uint32_t guard_mask(const std::vector<std::int64_t>& guarded);

}  // namespace kiln::sim
