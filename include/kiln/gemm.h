// Products of matrices on an NVIDIA GPU, for C (C11) and C++ (C++17).
//
//   kiln_gemm_problem problem = {0};
//   problem.m = 4096, problem.n = 7168, problem.k = 2048;
//   problem.type_a = problem.type_b = problem.type_c = KILN_BF16;
//   size_t bytes;
//   kiln_gemm_prepare(&problem, &bytes);                  compiles; once, ahead of time
//   kiln_gemm_operands operands = {0};
//   operands.a = a, operands.b = b, operands.c = c;       device pointers
//   if (kiln_gemm(&problem, &operands, workspace, bytes, stream) != KILN_OK)
//     puts(kiln_last_error());
//
// It computes, for 0 <= i < m and 0 <= j < n,
//
//   C[i, j] = activation(alpha * sum over l of A[i, l] * B[j, l] + beta * C[i, j] + bias[j])
//             + residual[i, j]
//
// with the sum in f32 (in s32 for integers) and one rounding to C's type at the end. A is [m, k]
// and B is [n, k], both with neighbours along k, unless a flag turns them round; C and the residual
// are [m, n], neighbours along n. What the problem does not have is left out.
//
// With groups, as in a mixture of experts, B is [groups, n, k], and each KILN_GEMM_GROUP_ROWS rows
// of A, a tile, are multiplied with the matrix of one group, which the GPU looks up:
//
//   C[i, j] = activation(alpha * sum over l of A[i, l] * B[g, j, l] + beta * C[i, j] + bias[g, j])
//             + residual[i, j]          where g = group_of_tile[i / KILN_GEMM_GROUP_ROWS]
//
// Where g is no group's number the tile is passed over: A is not read, and C stays as it is. So m
// may be an upper bound, and how many rows a group has may be known on the GPU alone: each group
// begins with a new tile, and the tiles behind the last one have -1. Rows that fill up a group's
// last tile may be computed as all others are.
//
// Two flags say it by numbers of rows instead, rows_of_group, of which any may be 0: with
// KILN_GEMM_ROWS_OF_GROUP groups follow each other, each beginning with a new tile; with
// KILN_GEMM_GROUPS_APART each has room for m / groups rows, of which the first ones count.
//
// With KILN_GEMM_GROUPS_ALONG_K A is [m, k], B is [n, k] and C is [groups, m, n]:
//
//   C[g, i, j] = alpha * sum over group g's l of A[i, l] * B[j, l] + beta * C[g, i, j]
//
// rows_of_group says how much of k each group has, 0 for some perhaps; groups follow each other, and
// each begins with a multiple of 128. In what fills up a group's last 128, A or B is 0 and the other
// finite. Scale factors are one for each 128 of k of each row of A and of B. stride_c is from one
// group's C to the next.
//
// Nothing here waits for the GPU. All functions may be called from any thread at any time. The
// device is the one whose context is the calling thread's (cudaSetDevice), in its primary context,
// which is the one of the CUDA runtime; without a context it is the first device.
//
// Results are the same from run to run. Nothing is printed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_type {
  KILN_BF16 = 1,
  KILN_F16 = 2,
  KILN_F32 = 3,
  KILN_TF32 = 4,  // stored as f32; the factors' low 13 bits are ignored
  KILN_E4M3 = 5,
  KILN_E5M2 = 6,
  KILN_S8 = 7,
  KILN_S32 = 8
} kiln_type;

typedef enum kiln_activation {
  KILN_NO_ACTIVATION = 0,
  KILN_RELU = 1,
  KILN_GELU = 2,
  KILN_SILU = 3
} kiln_activation;

// Flags of a problem.
enum {
  KILN_GEMM_A_ALONG_M = 1,      // A is [k, m], neighbours along m
  KILN_GEMM_B_ALONG_N = 2,      // B is [k, n], neighbours along n
  KILN_GEMM_ALPHA = 4,          // operands.alpha counts; else alpha is 1
  KILN_GEMM_BETA = 8,           // operands.beta counts and C is read; else beta is 0
  KILN_GEMM_BIAS = 16,          // one element for each column of C, or [groups, n]; of C's type
  KILN_GEMM_RESIDUAL = 32,      // a matrix like C, of C's type
  KILN_GEMM_BLOCK_SCALES = 64,  // a_scale, b_scale: f32 factors of blocks of 128 along k, see below
  // Row i of C has the same bits for every m. Slower where a kernel made for this m is faster.
  KILN_GEMM_BATCH_INVARIANT = 128,
  // A is 2:4 sparse and lies along k: operands.a is what is kept, [m, k / 2], with lda from k / 2
  // on, and operands.metadata says where from. k is a multiple of 32.
  KILN_GEMM_A_SPARSE = 256,
  // With groups: operands.rows_of_group counts, and group_of_tile does not.
  KILN_GEMM_ROWS_OF_GROUP = 512,  // group g begins with the tile behind group g - 1's last one
  KILN_GEMM_GROUPS_APART = 1024,  // with row g * (m / groups); m is a multiple of 128 * groups
  // Groups have parts of k instead, as in the gradients of their weights, see below.
  KILN_GEMM_GROUPS_ALONG_K = 2048
};

// Rows of A that share an entry of group_of_tile.
#define KILN_GEMM_GROUP_ROWS 128

// What is computed. All that is 0 means the usual; m, n, k and the types are always given. Lengths
// and distances count elements.
typedef struct kiln_gemm_problem {
  int64_t m;
  int64_t n;
  int64_t k;
  int32_t type_a;  // a kiln_type, as are the others
  int32_t type_b;
  int32_t type_c;
  uint32_t flags;
  int32_t activation;  // a kiln_activation
  // Bytes, a power of two: all operands' addresses are multiples of it. 0: 16.
  int32_t alignment;
  // From one row of memory to the next. 0: without gaps.
  int64_t lda;
  int64_t ldb;
  int64_t ldc;
  int64_t ldr;  // of the residual
  // Several products of the same shape. 0: one.
  int64_t batch;
  // From one product's matrix to the next one's, when there are several. 0: without gaps. The bias
  // is the same for all.
  int64_t stride_a;
  int64_t stride_b;
  int64_t stride_c;
  int64_t stride_r;
  // So many matrices B, of which each tile of rows of A is multiplied with one; stride_b is from
  // one to the next. 0: no groups. Not with several products.
  int64_t groups;
} kiln_gemm_problem;

// Device pointers and factors. A pointer that the problem has no use for may be null.
typedef struct kiln_gemm_operands {
  const void* a;
  const void* b;
  void* c;  // read too with KILN_GEMM_BETA; overlaps no other operand but the residual, if equal
  const void* bias;
  const void* residual;
  // With KILN_GEMM_BLOCK_SCALES: f32 [ceil(k / 128), m] and [ceil(n / 128), ceil(k / 128)], the
  // second with groups [groups, ceil(n / 128), ceil(k / 128)], and with those along k
  // [ceil(k / 128), n].
  const void* a_scale;
  const void* b_scale;
  // With KILN_GEMM_A_SPARSE: uint32_t [m, k / 32], as kiln::sparse::pack_words makes them
  // (kiln/sparse.h; kRows for 8-bit types, else kRowPairs); of a batch one product's behind the
  // other's.
  const void* metadata;
  // With groups: int32_t [ceil(m / KILN_GEMM_GROUP_ROWS)], 0 to groups - 1, or anything else (-1,
  // say) for a tile that is passed over. At a multiple of 4 bytes, whatever problem.alignment is.
  // Read when the product runs: work before it on the stream may write it.
  const int32_t* group_of_tile;
  float alpha;
  float beta;
  // With KILN_GEMM_ROWS_OF_GROUP, _GROUPS_APART or _GROUPS_ALONG_K: int32_t [groups], else as
  // group_of_tile. Below 0 counts as 0, and what is beyond m, or a group's room, does not count.
  const int32_t* rows_of_group;
} kiln_gemm_operands;

// Chooses a kernel for the problem, compiles it (a fraction of a second, or next to nothing when
// the compile cache has it) and keeps it until the process ends. `workspace_bytes`, which may be
// null, receives what kiln_gemm needs. Optional: kiln_gemm does it in the first call for a problem,
// but not while its stream is captured.
KILN_API kiln_status kiln_gemm_prepare(const kiln_gemm_problem* problem, size_t* workspace_bytes);

// Bytes of device memory that kiln_gemm needs for the problem, often 0. Prepares the problem.
KILN_API kiln_status kiln_gemm_workspace(const kiln_gemm_problem* problem, size_t* bytes);

// Starts the product on `cuda_stream` (a cudaStream_t or CUstream; null: the default stream) and
// returns. Of a problem that is prepared, it neither allocates nor synchronises and may be captured
// in a CUDA graph; the graph holds the operands and the workspace by address.
//
// `workspace` is device memory at a multiple of 256 bytes, as large as kiln_gemm_workspace says; it
// may be null when that is 0. What it holds does not matter before nor after. Products that run at
// the same time, on several streams, need one each.
//
// Operands at addresses that are no multiples of problem.alignment get another kernel, which counts
// as another problem: it is prepared, and may need more workspace.
KILN_API kiln_status kiln_gemm(const kiln_gemm_problem* problem, const kiln_gemm_operands* operands,
                               void* workspace, size_t workspace_bytes, void* cuda_stream);

// The kernel and the defines that the problem is computed with, for those who report timings:
// "gemm_sm90 -D BLOCKS=132 ...". Prepares the problem. The text lives until the process ends; it is
// null when `status` (which may be null) is not KILN_OK.
KILN_API const char* kiln_gemm_kernel(const kiln_gemm_problem* problem, kiln_status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

// Where only the functions of C are wanted: kiln's own sources.
#if defined(__cplusplus) && !defined(KILN_GEMM_C_ONLY)

namespace kiln {

using GemmProblem = ::kiln_gemm_problem;
using GemmOperands = ::kiln_gemm_operands;

struct Workspace {
  void* address = nullptr;
  size_t bytes = 0;
};

struct [[nodiscard]] Status {
  kiln_status code = KILN_OK;
  [[nodiscard]] bool ok() const { return code == KILN_OK; }
  // Of the calling thread's last failure.
  [[nodiscard]] const char* message() const { return ok() ? "" : kiln_last_error(); }
};

// As kiln_gemm_prepare.
inline Status gemm_prepare(const GemmProblem& problem) {
  return {kiln_gemm_prepare(&problem, nullptr)};
}

// As kiln_gemm_workspace.
inline Status gemm_workspace(const GemmProblem& problem, size_t& bytes) {
  return {kiln_gemm_workspace(&problem, &bytes)};
}

// As kiln_gemm.
inline Status gemm(const GemmProblem& problem, const GemmOperands& operands,
                   Workspace workspace = {}, void* cuda_stream = nullptr) {
  return {kiln_gemm(&problem, &operands, workspace.address, workspace.bytes, cuda_stream)};
}

}  // namespace kiln

#endif  // C++
