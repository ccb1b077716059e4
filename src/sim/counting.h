// What a run that only counts leaves out.
//
//   binary exp            its value steers nothing (ir/steering.h): not computed
//   mma                   its issues are counted, nothing is multiplied
//   load of a_s[stage]    executed once by each warp and stage; from then on the same is counted again
//
// A memory operation counts the same again where its windows lie the same way to the edges of their
// buffers and to the banks and sectors of memory. What steers is executed as ever.
#pragma once

#include <unordered_map>
#include <vector>

#include "sim/machine.h"

namespace kiln::sim {

class Counting {
 public:
  Counting(const ir::Function& function, const Program& program);

  // Whether the instruction is done with, as only its number matters. If not it must be executed,
  // and then `learn` called.
  [[nodiscard]] bool count(Machine& machine, const Warp& warp, const Instruction& at);
  void learn(Machine& machine);

  // Whether what the operation writes matters.
  [[nodiscard]] bool steers(ir::OpId op) const { return steers_[op.index]; }

 private:
  enum class Mode : std::uint8_t { kExecute, kSkip, kIssue, kRemember };
  using Key = std::vector<std::int64_t>;
  struct HashOfKey {
    [[nodiscard]] std::size_t operator()(const Key& key) const;
  };

  [[nodiscard]] Mode mode_of(const Instruction& at) const;
  void set_key(const Program& program, const Warp& warp, const Instruction& at);
  void add_view(const View& view, const Warp& warp);

  std::vector<bool> steers_;  // by OpId
  std::vector<Mode> modes_;   // by instruction
  std::unordered_map<Key, Tally::Counted, HashOfKey> known_;
  Key key_;
  Tally::Counted mark_;
  bool learning_ = false;
};

}  // namespace kiln::sim
