// What a program is compiled and its arguments are bound for.
#pragma once

#include <cstdint>

namespace kiln::io {

enum class Use : std::uint8_t {
  kRun,        // run and compared with the reference; inputs may come from `--in`
  kCount,      // run in the simulator alone
  kBench,      // measured: tensors get their types and shapes, and no contents
  kCall,       // called by a program, which gives every tensor: `path` of an input is its name
  kCallCount,  // run in the simulator alone, for a program
  kLaunch,     // the same with tensors that lie elsewhere: inputs and arguments have no contents
};

// Whether messages are in the words of a program's call, rather than in those of a command.
[[nodiscard]] constexpr bool is_call(Use use) {
  return use == Use::kCall || use == Use::kCallCount || use == Use::kLaunch;
}

}  // namespace kiln::io
