// Attention among the problems of `kiln bench random`: drawn, computed on the GPU, and compared to
// the last element with fp64 on the CPU, which the sizes are limited for.
//
//   draw_attention(seed, number, depths)
//     =>  attention bf16 batch=2 queries=40 keys=33 heads=4 key_heads=2 depth=64 causal scale=0.125
//         left=7 soft_cap=12.5 q=20480,64,2560 offset=16 seed=9
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/problem.h"
#include "measure/attention_exact.h"
#include "measure/random_report.h"
#include "runtime/gpu.h"

namespace kiln::measure {

inline constexpr std::string_view kAttentionWord =
    "attention";  // that a problem's text begins with
inline constexpr std::int64_t kAttentionRowsMax = 600;

struct RandomAttention {
  attention::Problem problem;
  float scale = 1;
  int offset = 0;          // bytes from a multiple of 256 to every tensor: a multiple of 16
  bool factors = false;    // of 8-bit floats: for each head of keys
  std::uint64_t seed = 0;  // of the values
  friend bool operator==(const RandomAttention&, const RandomAttention&) = default;
};

// Depths that the library has a kernel for on an architecture, by asking it.
struct ServedDepths {
  std::vector<std::int64_t> forward;
  std::vector<std::int64_t> backward;
  std::vector<std::int64_t> of_8_bits;  // forward, of f8_e4m3
};
[[nodiscard]] ServedDepths served_depths(const target::Arch& arch);

// Problem `number` of the seed, with one of these depths. Without depths of a kind there is none of that kind, but for forward
// ones, of which there must be some.
[[nodiscard]] RandomAttention draw_attention(std::uint64_t seed, std::uint64_t number,
                                             const ServedDepths& depths);

[[nodiscard]] std::string text(const RandomAttention& problem);
// What text() gives; none where it is no such text or no problem.
[[nodiscard]] std::optional<RandomAttention> parse_attention(std::string_view text);

// Values for what the problem reads; of gradients o and lse are those of fp64, rounded.
[[nodiscard]] AttentionTensors make_inputs(const RandomAttention& problem,
                                           const AttentionNumerics& numerics);

// Whether the library has attention for this GPU.
[[nodiscard]] bool has_attention(const runtime::Gpu& gpu);

// So many problems that are drawn, or the one that --only is the text of, to be checked some at a time.
class RandomAttentions {
 public:
  RandomAttentions(RandomReport& report, runtime::Gpu& gpu, std::int64_t count);
  ~RandomAttentions();

  [[nodiscard]] bool is_done() const;
  // So many at most, which are in memory together. Errors: what the driver says.
  [[nodiscard]] Result<void> check_some(std::int64_t most);

  [[nodiscard]] std::int64_t drawn() const;
  [[nodiscard]] std::size_t kernels() const;  // that were compiled

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace kiln::measure
