// Everything about a plan's launches but the operands: geometry, parameter slots and tensor maps,
// worked out once.
//
//   gemm_sm90 on 512 x 520 x 256
//     =>  one launch, grid 132, 384 threads; slots (map of a, map of b, map of c, 512, 256, 520)
//
// A kernel's parameters are bound by name:
//
//   tensors  a [M, K], b [N, K], c [M, N], residual [M, N], each with BATCH in front or not, and
//            LDA, LDB, LDC, LDR in the last place or not; a and b the other way round when the
//            problem has them so; bias [N]; a_scale, b_scale and partial of any shape, in
//            which KB and NB are blocks of 128 along k and n; of a sparse A packed [M, P] in the
//            place of a, and metadata [M, W], with P = K / 2 and W = K / 32; with groups
//            b [G, N, K], bias [G, N] and group_of_tile [cdiv(M, 128)] or rows_of_group [G];
//            a_pad [M, KP] and b_pad [N, KP], rows that a kernel has copied to whole lines of 128
//            bytes
//   scalars  alpha, beta (f32), and integers called like a dimension
//
// `partial`, a_pad, b_pad and what the host part allocates lie in the workspace. A kernel without
// BATCH is launched once for each product, one without the spacing's dimension sees gaps between
// rows through its tensor maps alone.
#pragma once

#include <vector>

#include "gemm/problem.h"
#include "gemm/program.h"
#include "runtime/launch.h"

namespace kiln::gemm {

enum class Role : std::uint8_t {
  kA,
  kB,
  kC,
  kBias,
  kResidual,
  kScaleA,
  kScaleB,
  kMetadata,
  kGroupOfTile,
  kRowsOfGroup,
  kWorkspace
};
inline constexpr std::size_t kRoleCount = 11;

// Where something lies: so many bytes after an operand or into the workspace.
struct Pointer {
  Role role = Role::kWorkspace;
  std::int64_t offset = 0;
};

enum class SlotSource : std::uint8_t { kBits, kPointer, kAlpha, kBeta, kMap };

// One parameter of a launch.
struct Slot {
  SlotSource source = SlotSource::kBits;
  std::uint64_t bits = 0;     // kBits
  DType dtype = DType::kF32;  // kAlpha, kBeta
  Pointer pointer = {};       // kPointer
  std::size_t map = 0;        // kMap: in the launch's `maps`
};

struct MapRecipe {
  std::string name;  // of the tensor
  Pointer pointer;
  runtime::TensorMapArguments arguments;  // all but the address
};

struct LaunchRecipe {
  runtime::Launch launch;
  std::vector<Slot> slots;
  std::vector<MapRecipe> maps;
};

inline constexpr std::size_t kSlotsMax = 48;         // of one launch
inline constexpr std::size_t kMapsMax = 8;           // of one launch
inline constexpr std::int64_t kWorkspaceUnit = 256;  // bytes; all in it begins at a multiple

struct Recipe {
  std::vector<LaunchRecipe> launches;  // in order
  std::size_t workspace_bytes = 0;
  std::int64_t repeats = 1;  // how often they run: once, or once for each product
  // Bytes from one repeat's operand to the next one's, by Role; 0 for the workspace.
  std::vector<std::int64_t> repeat_bytes;
  std::vector<bool> used;  // by Role: the kernel has such a parameter
};

// What is wrong with a workspace at this address, of so many bytes; empty when it will do.
[[nodiscard]] std::string workspace_mistake(std::size_t needed, runtime::cuda::DevicePtr address,
                                            std::size_t bytes);

// The problem is normalised. Errors: parameters or dimensions that do not follow the contract,
// types other than the problem's, something the problem has and the kernel lacks (beta, bias, gaps
// between rows...), a check of the kernel's that these extents fail, geometry that the device does
// not take.
[[nodiscard]] Result<Recipe> make_recipe(const Program& program, const Problem& problem,
                                         const target::Arch& arch);

}  // namespace kiln::gemm
