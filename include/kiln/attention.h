// Attention on an NVIDIA GPU, for C (C11) and C++ (C++17).
//
//   kiln_attention_problem problem = {0};
//   problem.type = KILN_BF16;
//   problem.batch = 2, problem.queries = 4096, problem.heads = 16, problem.depth = 128;
//   problem.causal = 1;
//   kiln_attention_prepare(&problem);                     compiles; once, ahead of time
//   kiln_attention_operands operands = {0};
//   operands.q = q, operands.k = k, operands.v = v;       device pointers
//   operands.o = o, operands.lse = lse;
//   if (kiln_attention(&problem, &operands, stream) != KILN_OK) puts(kiln_last_error());
//
// It computes, for each batch b, head h and query i, over the keys j that the query sees,
//
//   s[j] = scale * sum over d of q[b, i, h, d] * k[b, j, h / (heads / key_heads), d]
//   s[j] = soft_cap * tanh(s[j] / soft_cap)                 where a soft cap is given
//   o[b, i, h, d] = sum over j of softmax(s)[j] * v[b, j, h / (heads / key_heads), d]
//   lse[b, h, i] = log(sum over j of exp(s[j]))
//
// with sums in f32; the softmax's weights are rounded to the tensors' type before they multiply v. A
// query sees all keys, or with `causal` those up to i + keys - queries: the last query sees the last
// key. With a window it sees those from i + keys - queries - left to i + keys - queries + right alone; of
// both, those that both let it see. A query that sees none has 0 in o and minus infinity in lse. Keys that
// no query of a tile sees cost nothing. The hyperbolic tangent of a soft cap is the hardware's, off by
// 2^-11 of itself at most: a score may be off by soft_cap * 2^-11.
//
// Sequences of any lengths need no padding: with `sequences` the rows of all lie one behind the other. q
// and o are [queries, heads, depth], k and v [keys, key_heads, depth] and lse [heads, queries], where
// queries and keys count all rows; sequence b has the rows from cu_seqlens_q[b] to cu_seqlens_q[b + 1],
// and its keys are those from cu_seqlens_k[b] to cu_seqlens_k[b + 1]. What is said above holds of each by
// itself, with its own numbers of queries and keys, each of which may be 0. Where they begin is read on the GPU:
// a problem is the same, and a CUDA graph serves, however the rows are divided. It is for the caller that
// they do not decrease; of sequences that share rows of q the results there are undefined. A number below
// 0 counts as 0, one beyond the rows as that. Rows of no sequence are not read, or what they hold plays
// no part, and those of o and lse stay as they are.
//
// Of tensors of 8 bits, KILN_E4M3, o is bf16, and each head of keys has three factors, as
// FlashAttention's descales: q, k and v are what they hold times q_scale, k_scale and v_scale of
// [b, h / (heads / key_heads)]. Those of q and k are 0 or more; below 0 results are undefined. Weights are
// rounded to 8 bits then, to 4 significant ones. v is transposed in a workspace first, in a launch of its
// own. Depths are 64, 128 and 256; there are no soft cap, no sequences and no gradients.
//
// Nothing here waits for the GPU. All functions may be called from any thread at any time. The device
// is the one whose context is the calling thread's, as in kiln/gemm.h. Results are the same from run
// to run. Nothing is printed.
#pragma once

#include "kiln/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a tensor [batch, rows, heads, depth] has its elements: those of one row and head are
// neighbours, and the others so many elements apart, in any order and with gaps. 0: without gaps from
// what stands behind it, so that {0} is a tensor without gaps. [batch, heads, rows, depth] has
// {heads * rows * depth, depth, rows * depth}. Each is a multiple of 16 bytes. Of value depth 192 and 256
// o has no gaps, nor of sequences, whose tensors have no `batch`.
typedef struct kiln_attention_spacing {
  int64_t batch;
  int64_t row;
  int64_t head;
} kiln_attention_spacing;

// What is computed. All that is 0 means the usual; the type, queries, heads and depth are always
// given. Window and soft cap are run-time numbers of a kernel: others of them compile nothing.
typedef struct kiln_attention_problem {
  int32_t type;       // of q, k, v and o: KILN_BF16 or KILN_F16; or KILN_E4M3, of q, k and v
  int32_t causal;     // 0 or 1
  int64_t batch;      // 0: one
  int64_t queries;    // rows of q and o
  int64_t keys;       // rows of k and v; 0: as many as queries
  int64_t heads;      // of q and o
  int64_t key_heads;  // of k and v, a divisor of heads; 0: as many as heads
  int64_t depth;      // of q and k: 64, 96, 128, 192 or 256; of gradients 64, 96, 128 or 256
  kiln_attention_spacing q;
  kiln_attention_spacing k;
  kiln_attention_spacing v;
  kiln_attention_spacing o;
  int64_t value_depth;  // of v and o; 0: as depth; otherwise 128, beside a depth of 192
  int32_t window;       // 0 or 1: whether left and right count, which else are 0
  float soft_cap;       // what scores stay below, at most 1e38; 0: they may be any
  int64_t left;         // a query sees so many keys in front of its own; -1: all
  int64_t right;        // the same behind it
  // Sequences of any lengths, one behind the other; batch is 0 or 1 then. 0: all of a batch have `queries`
  // rows, and `keys`.
  int64_t sequences;
  // 0 or 1: whether blocks may take work as they come to be free. Sequences of any lengths, and masks
  // that show later queries more keys, are faster then. The workspace that it takes is
  // kiln_attention_workspace's.
  int32_t balanced;
} kiln_attention_problem;

// Device pointers; q, k, v and o at multiples of 16 bytes.
typedef struct kiln_attention_operands {
  const void* q;
  const void* k;
  const void* v;
  void* o;                      // overlaps no other operand
  float* lse;                   // [batch, heads, queries] without gaps
  float scale;                  // more than 0; 0: 1 / sqrt(depth)
  const int32_t* cu_seqlens_q;  // [sequences + 1], beside sequences; else null
  const int32_t* cu_seqlens_k;
  // Of a balanced problem, and one of 8 bits: device memory at a multiple of 256 bytes. What it holds does
  // not matter; calls that run at the same time need one each.
  void* workspace;
  size_t workspace_bytes;
  // Of tensors of 8 bits, [batch, key_heads] each, or null where all are 1; else null.
  const float* q_scale;
  const float* k_scale;
  const float* v_scale;
} kiln_attention_operands;

// Chooses a kernel for the problem, compiles it (seconds, or next to nothing when the compile cache
// has it) and keeps it until the process ends. Optional: kiln_attention does it in the first call for
// a problem, but not while its stream is captured.
KILN_API kiln_status kiln_attention_prepare(const kiln_attention_problem* problem);

// How many bytes of workspace kiln_attention needs for the problem: few of a balanced one; of 8 bits a byte
// for each element of v besides, with keys filled up to a multiple of 16, and 4 for each factor; 0 of
// others. Prepares it.
KILN_API kiln_status kiln_attention_workspace(const kiln_attention_problem* problem,
                                              size_t* workspace_bytes);

// Starts it on `cuda_stream` (a cudaStream_t or CUstream; null: the default stream) and returns. Of a
// problem that is prepared, it neither allocates nor synchronises and may be captured in a CUDA graph;
// the graph holds the operands by address.
KILN_API kiln_status kiln_attention(const kiln_attention_problem* problem,
                                    const kiln_attention_operands* operands, void* cuda_stream);

// The kernel and the defines that the problem is computed with, for those who report timings:
// "attention_sm90 -D BLOCKS=132 ...". Prepares the problem. The text lives until the process ends; it
// is null when `status` (which may be null) is not KILN_OK.
KILN_API const char* kiln_attention_kernel(const kiln_attention_problem* problem,
                                           kiln_status* status);

// The gradients of q, k and v by that of o, `dout`: of what kiln_attention computes with the same
// scale, whose o and lse are given to it.
//
//   p[i, j] = exp(s[i, j] - lse[i]), 0 where the query does not see the key
//   ds[i, j] = p[i, j] * sum over d of dout[i, d] * (v[j, d] - o[i, d])
//   ds[i, j] = ds[i, j] * (1 - (s[i, j] / soft_cap)^2)      where a soft cap is given
//   dv[j] = sum of p[i, j] * dout[i],  dk[j] = scale * sum of ds[i, j] * q[i],  dq[i] = scale * sum of ds[i, j] * k[j]
//
// Of sequences of any lengths dq, dk and dv have the rows of q, k and v, without gaps; those of no sequence stay
// as they are. A sequence without queries has 0 in dk and dv, one without keys in dq.
//
// The sums of dk and dv go over the queries of all heads that share them, in the same order in each
// run, and so do those of dq unless the problem says `any_order`. They are in f32; p and ds are rounded to the tensors' type before they are multiplied.

// What is computed: the problem whose gradients they are, and how their tensors lie. Of depth 256 dk and
// dv have no gaps.
typedef struct kiln_attention_backward_problem {
  kiln_attention_problem forward;
  kiln_attention_spacing dout;
  kiln_attention_spacing dq;
  kiln_attention_spacing dk;
  kiln_attention_spacing dv;
  // Not 0: dq may be added up in any order, so that it differs in its last bits from run to run. Some
  // problems are faster then, and take 4 bytes more of workspace for each element of dq.
  int any_order;
} kiln_attention_backward_problem;

// Device pointers, all but lse and cu_seqlens at multiples of 16 bytes.
typedef struct kiln_attention_backward_operands {
  const void* q;
  const void* k;
  const void* v;
  const void* o;
  const float* lse;
  const void* dout;             // like o
  void* dq;                     // like q; what is written overlaps no other operand
  void* dk;                     // like k
  void* dv;                     // like v
  float scale;                  // as it was of kiln_attention
  const int32_t* cu_seqlens_q;  // as they were, beside sequences; else null
  const int32_t* cu_seqlens_k;
} kiln_attention_backward_operands;

// As kiln_attention_prepare. `workspace_bytes`, which may be null, receives what
// kiln_attention_backward needs: about 8 bytes for each query of each head, and of sequences 1024 more for
// each and its heads.
KILN_API kiln_status kiln_attention_backward_prepare(const kiln_attention_backward_problem* problem,
                                                     size_t* workspace_bytes);

// As kiln_attention; it is three launches. `workspace` is device memory at a multiple of 256 bytes, as
// large as kiln_attention_backward_prepare says. What it holds does not matter; calls that run at the
// same time need one each.
KILN_API kiln_status kiln_attention_backward(const kiln_attention_backward_problem* problem,
                                             const kiln_attention_backward_operands* operands,
                                             void* workspace, size_t workspace_bytes,
                                             void* cuda_stream);

// As kiln_attention_kernel.
KILN_API const char* kiln_attention_backward_kernel(const kiln_attention_backward_problem* problem,
                                                    kiln_status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#if defined(__cplusplus) && !defined(KILN_GEMM_C_ONLY)

namespace kiln {

using AttentionProblem = ::kiln_attention_problem;
using AttentionOperands = ::kiln_attention_operands;

// As kiln_attention_prepare.
inline Status attention_prepare(const AttentionProblem& problem) {
  return {kiln_attention_prepare(&problem)};
}

// As kiln_attention_workspace.
inline Status attention_workspace(const AttentionProblem& problem, size_t* workspace_bytes) {
  return {kiln_attention_workspace(&problem, workspace_bytes)};
}

// As kiln_attention.
inline Status attention(const AttentionProblem& problem, const AttentionOperands& operands,
                        void* cuda_stream = nullptr) {
  return {kiln_attention(&problem, &operands, cuda_stream)};
}

using AttentionBackwardProblem = ::kiln_attention_backward_problem;
using AttentionBackwardOperands = ::kiln_attention_backward_operands;

// As kiln_attention_backward_prepare.
inline Status attention_backward_prepare(const AttentionBackwardProblem& problem,
                                         size_t* workspace_bytes = nullptr) {
  return {kiln_attention_backward_prepare(&problem, workspace_bytes)};
}

// As kiln_attention_backward.
inline Status attention_backward(const AttentionBackwardProblem& problem,
                                 const AttentionBackwardOperands& operands, Workspace workspace,
                                 void* cuda_stream = nullptr) {
  return {kiln_attention_backward(&problem, &operands, workspace.address, workspace.bytes,
                                  cuda_stream)};
}

}  // namespace kiln

#endif  // C++
