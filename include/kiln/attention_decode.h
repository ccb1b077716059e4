// Attention of few queries over a cache of keys and values on an NVIDIA GPU, for C (C11) and C++
// (C++17): what a model computes for the next words of its sequences.
//
//   kiln_attention_decode_problem problem = {0};
//   problem.type = KILN_BF16;
//   problem.batch = 64, problem.heads = 32, problem.key_heads = 8, problem.depth = 128;
//   problem.page_size = 64, problem.pages = 4096, problem.pages_of_sequence = 128;
//   size_t bytes = 0;
//   kiln_attention_decode_prepare(&problem, &bytes);      compiles; once, ahead of time
//   kiln_attention_decode_operands operands = {0};
//   operands.q = q, operands.k = k_cache, operands.v = v_cache;    device pointers, all of them
//   operands.lengths = lengths, operands.page_table = page_table;
//   operands.o = o, operands.lse = lse;
//   kiln_attention_decode(&problem, &operands, workspace, bytes, stream);
//
// It computes what kiln/attention.h does, of a sequence b with n = lengths[b] keys:
//
//   s[j] = scale * sum over d of q[b, i, h, d] * key(j)[d],  j below n
//   o[b, i, h, d] = sum over j of softmax(s)[j] * value(j)[d]
//   lse[b, h, i] = log(sum over j of exp(s[j]))
//
// where key(j) is k[page_table[b, j / page_size], j % page_size, g, d], or without pages k[b, j, g, d],
// with g = h / (heads / key_heads), and value(j) is the same of v. With `causal` query i sees the keys
// up to i + n - queries: the last query sees the last key. Of one query that is all. A query that sees
// no key, as all of a sequence of length 0, has 0 in o and minus infinity in lse.
//
// What of the cache is not in use may hold anything, and what of the table is not may be any number:
// no address is made of it. A length below 0 counts as 0, one beyond the room of a sequence as that.
//
// Nothing here waits for the GPU. All functions may be called from any thread at any time. The device
// is the one whose context is the calling thread's, as in kiln/gemm.h. Results are the same from run
// to run. Nothing is printed.
#pragma once

#include "kiln/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is computed. All that is 0 means the usual; the type, heads, depth, and keys or pages are always
// given. Lengths are no part of it: they are read on the GPU.
typedef struct kiln_attention_decode_problem {
  int32_t type;               // of q, k, v and o: KILN_BF16 or KILN_F16
  int32_t causal;             // 0 or 1; of one query it does not matter
  int64_t batch;              // sequences; 0: one
  int64_t queries;            // of each sequence; 0: one
  int64_t heads;              // of q and o
  int64_t key_heads;          // of k and v, a divisor of heads; 0: as many as heads
  int64_t depth;              // 64, 128 or 256
  int64_t keys;               // without pages: rows of k and v that each sequence has room for
  int64_t page_size;          // rows of a page, a multiple of 8; 0: without pages
  int64_t pages;              // of k and v
  int64_t pages_of_sequence;  // columns of page_table
  kiln_attention_spacing k;   // `batch` is from one page to the next
  kiln_attention_spacing v;
} kiln_attention_decode_problem;

// Device pointers; q, k, v and o at multiples of 16 bytes.
typedef struct kiln_attention_decode_operands {
  const void* q;  // [batch, queries, heads, depth] without gaps
  const void* k;  // [pages, page_size, key_heads, depth], or [batch, keys, key_heads, depth]
  const void* v;  // as k
  const int32_t* lengths;     // [batch]: keys in use, those of the queries themselves included
  const int32_t* page_table;  // [batch, pages_of_sequence] without gaps; null without pages
  void* o;                    // like q; overlaps no other operand
  float* lse;                 // [batch, heads, queries] without gaps
  float scale;                // more than 0; 0: 1 / sqrt(depth)
} kiln_attention_decode_operands;

// Chooses a kernel for the problem, compiles it (seconds, or next to nothing when the compile cache
// has it) and keeps it until the process ends. `workspace_bytes`, which may be null, receives what
// kiln_attention_decode needs, which may be 0. Optional: kiln_attention_decode does it in the first
// call for a problem, but not while its stream is captured.
KILN_API kiln_status kiln_attention_decode_prepare(const kiln_attention_decode_problem* problem,
                                                   size_t* workspace_bytes);

// Starts it on `cuda_stream` (a cudaStream_t or CUstream; null: the default stream) and returns: one
// launch, or two where several blocks share a sequence. Of a problem that is prepared, it neither
// allocates nor synchronises and may be captured in a CUDA graph; the graph holds the operands by
// address, and reads the lengths and the table anew each time. `workspace` is device memory at a
// multiple of 256 bytes, as large as kiln_attention_decode_prepare says. What it holds does not
// matter; calls that run at the same time need one each.
KILN_API kiln_status kiln_attention_decode(const kiln_attention_decode_problem* problem,
                                           const kiln_attention_decode_operands* operands,
                                           void* workspace, size_t workspace_bytes,
                                           void* cuda_stream);

// The kernel, the defines and the number of blocks for each sequence that the problem is computed
// with: "attention_decode_sm90 -D CAUSAL=true ..., splits=8". As kiln_attention_kernel.
KILN_API const char* kiln_attention_decode_kernel(const kiln_attention_decode_problem* problem,
                                                  kiln_status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#if defined(__cplusplus) && !defined(KILN_GEMM_C_ONLY)

namespace kiln {

using AttentionDecodeProblem = ::kiln_attention_decode_problem;
using AttentionDecodeOperands = ::kiln_attention_decode_operands;

// As kiln_attention_decode_prepare.
inline Status attention_decode_prepare(const AttentionDecodeProblem& problem,
                                       size_t* workspace_bytes = nullptr) {
  return {kiln_attention_decode_prepare(&problem, workspace_bytes)};
}

// As kiln_attention_decode.
inline Status attention_decode(const AttentionDecodeProblem& problem,
                               const AttentionDecodeOperands& operands, Workspace workspace,
                               void* cuda_stream = nullptr) {
  return {
      kiln_attention_decode(&problem, &operands, workspace.address, workspace.bytes, cuda_stream)};
}

}  // namespace kiln

#endif  // C++
