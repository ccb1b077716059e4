// `kiln bench attention`, `attention-backward` and `attention-fp8`: the library's attention, its gradients, and attention of
// 8-bit floats beside that of bf16, timed by itself. Beside others it is measured by bench/peers/attention.py, as no library of
// C has the best of them.
//
// They are in bf16, or f8_e4m3, with batch * rows = 16384 and heads * depth = 2048: depths of 64, 128 and
// 256, 1024 to 16384 rows, with and without a causal mask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attention/problem.h"
#include "io/console.h"
#include "measure/options.h"

namespace kiln::measure {

// Is one of them what `options.program.file` names?
[[nodiscard]] bool is_attention(const BenchOptions& options);

// "attention, attention-backward, attention-fp8".
[[nodiscard]] std::string attention_suites();

// Those of a suite, in the order in which they are measured.
[[nodiscard]] std::vector<attention::Problem> attention_cases(std::string_view suite);
// "D=128,S=4096,B=4,H=16" and "bf16, causal".
[[nodiscard]] std::string shape_of(const attention::Problem& problem);
[[nodiscard]] std::string types_of(const attention::Problem& problem);

[[nodiscard]] io::Exit bench_attention(const BenchOptions& options, io::Console& console);

}  // namespace kiln::measure
