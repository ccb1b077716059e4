"""Kiln's library of matrix products and attention, on tensors of PyTorch, CuPy or Numba in a GPU's memory.

    c = kiln.ops.gemm(a, b)                                            # a @ b
    y = kiln.ops.gemm(x, w.T, bias=bias, activation="gelu")            # as a layer computes it
    kiln.ops.gemm(x, w.T, out=y, beta=1.0)                             # y += x @ w.T
    o = kiln.ops.attention(q, k, v, causal=True)                       # [batch, rows, heads, depth]
    o = kiln.ops.attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k)  # [rows of all sequences, heads, depth]
    o = kiln.ops.attention_decode(q, k_cache, v_cache, lengths, page_table)

Each product computes `activation(alpha * sums + beta * out + bias) + residual`, with sums in f32 and
one rounding at the end; what is not given is left out. Neighbours lie along either of a factor's last
two dimensions: a transposed view costs nothing. `out` receives the result and is returned; without it
the framework allocates one. The work goes to the framework's current stream, or to `stream=`, and
nothing waits for it. The first call for some shapes and types compiles; a stream is captured in a CUDA
graph only after that.

`kiln.ops.gemm.reference(...)` computes the same on this CPU in fp64, of arrays of NumPy or tensors of
PyTorch, for tests.

With tensors of PyTorch `gemm` has gradients, of `a`, `b`, `bias` and `residual`, and `attention` and
`attention_varlen`, of `q`, `k` and `v`; all are operators that `torch.compile` knows: torch.ops.kiln.gemm and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kiln import _attention, _attention_backward, _attention_decode, _attention_varlen, _attention_varlen_backward
from kiln import _core, _products
from kiln._calls import Asked, operation
from kiln._launch import is_torch, seen_of
from kiln._products import asked_of, check_out, options_of

__all__ = [
    "attention",
    "attention_backward",
    "attention_decode",
    "attention_varlen",
    "attention_varlen_backward",
    "block_scaled_gemm",
    "gemm",
    "grouped_gemm",
    "k_grouped_gemm",
    "prune",
    "sparse_gemm",
]

# Each function says what it asks for; kiln._calls.Operation carries it out.


@operation(_products.FAMILY)
def gemm(
    a: Any,
    b: Any,
    *,
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    dtype: Any = None,
    tf32: bool = False,
    batch_invariant: bool = False,
    stream: Any = None,
) -> Asked:
    """`a` [..., m, k] times `b` [k, n], or [batch, k, n] with `a` [batch, m, k].

    Factors are bf16, f16, f32 (with `tf32=True`), f8_e4m3, f8_e5m2 or s8, both of one type. The
    result is of `out`'s type, or `dtype`: that of the factors, and bf16 of floats of 8 bits, s32 of
    integers, if nothing is said; f32 is possible of all floats. `bias` [n] and `residual`, like the
    result, are of the result's type. `activation` is "relu", "gelu" or "silu". With `batch_invariant`
    a row has the same bits whatever m is.
    """
    check_out(beta, out)
    options = options_of("gemm", activation, alpha, beta, dtype, tf32=tf32, batch_invariant=batch_invariant)
    given = {"a": a, "b": b, "bias": bias, "residual": residual, "out": out}
    return asked_of(given, options, alpha, beta, stream)


@operation(_products.FAMILY)
def grouped_gemm(
    a: Any,
    b: Any,
    group_of_tile: Any = None,
    *,
    rows_of_group: Any = None,
    apart: bool = False,
    a_scale: Any = None,
    b_scale: Any = None,
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    dtype: Any = None,
    stream: Any = None,
) -> Asked:
    """Each tile of 128 rows of `a` [m, k] times the matrix of its group, of `b` [groups, k, n].

    `group_of_tile`, int32 [ceil(m / 128)], is read when the product runs. A number that is no
    group's, as -1, passes its tile over: those rows of `out` stay as they are, and of a new result
    they hold anything. `b`'s matrices lie along k: `w.mT` of `w` [groups, n, k]. `bias` is
    [groups, n]. The rest is as in `gemm`.

    `rows_of_group`, int32 [groups], may say it instead: how many rows each group has, 0 for many
    perhaps. Groups then follow each other, each beginning with a new tile; with `apart` each has room
    for m / groups rows, of which the first ones count. Floats of 8 bits may have factors: `a_scale`
    [ceil(k / 128), m] and `b_scale` [groups, ceil(n / 128), ceil(k / 128)], as in `block_scaled_gemm`.
    """
    check_out(beta, out)
    options = options_of("grouped_gemm", activation, alpha, beta, dtype, apart=apart)
    given = {"a": a, "b": b, "group_of_tile": group_of_tile, "rows_of_group": rows_of_group, "out": out}
    given |= {"a_scale": a_scale, "b_scale": b_scale, "bias": bias, "residual": residual}
    return asked_of(given, options, alpha, beta, stream)


@operation(_products.FAMILY)
def k_grouped_gemm(
    a: Any,
    b: Any,
    rows_of_group: Any,
    *,
    a_scale: Any = None,
    b_scale: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    dtype: Any = None,
    stream: Any = None,
) -> Asked:
    """`a` [m, k] times `b` [k, n], of each group its part of k alone: [groups, m, n], as weights' gradients are.

    `rows_of_group`, int32 [groups], is read when the product runs. Groups follow each other, each
    beginning with a multiple of 128; in what fills up a group's last 128 `a` or `b` is 0, the other
    finite. Without any of k a group's result is 0. With `y` [k, m] and `x` [k, n] of sorted rows,
    `k_grouped_gemm(y.T, x, rows)` is the gradient of each group's weights. Floats of 8 bits lie along
    k and may have factors: `a_scale` [ceil(k / 128), m] and `b_scale` [ceil(k / 128), n].
    """
    check_out(beta, out)
    options = options_of("k_grouped_gemm", None, alpha, beta, dtype)
    given = {"a": a, "b": b, "rows_of_group": rows_of_group, "a_scale": a_scale, "b_scale": b_scale, "out": out}
    return asked_of(given, options, alpha, beta, stream)


@operation(_products.FAMILY)
def sparse_gemm(
    packed: Any,
    metadata: Any,
    b: Any,
    *,
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    dtype: Any = None,
    stream: Any = None,
) -> Asked:
    """A 2:4 sparse matrix [m, k], of which `packed` [m, k / 2] is what is kept, times `b` [k, n].

    `packed` and `metadata` (uint32 or int32 [m, k / 32]) are what `prune` makes. The rest is as in
    `gemm`; `bias` is [n].
    """
    check_out(beta, out)
    options = options_of("sparse_gemm", activation, alpha, beta, dtype)
    given = {"a": packed, "b": b, "metadata": metadata, "bias": bias, "residual": residual, "out": out}
    return asked_of(given, options, alpha, beta, stream)


@operation(_products.FAMILY)
def block_scaled_gemm(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    *,
    bias: Any = None,
    residual: Any = None,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Any = None,
    dtype: Any = None,
    stream: Any = None,
) -> Asked:
    """`a` [m, k] times `b` [k, n], floats of 8 bits with f32 factors of blocks of 128 along k.

    `a_scale` is [ceil(k / 128), m], `b_scale` [ceil(n / 128), ceil(k / 128)]. The rest is as in
    `gemm`.
    """
    check_out(beta, out)
    options = options_of("block_scaled_gemm", activation, alpha, beta, dtype)
    given = {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale, "bias": bias, "residual": residual, "out": out}
    return asked_of(given, options, alpha, beta, stream)


@operation(_attention.FAMILY)
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int, int] | None = None,
    soft_cap: float | None = None,
    q_scale: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    deterministic: bool = True,
    out: Any = None,
    return_lse: bool = False,
    stream: Any = None,
) -> Asked:
    """`softmax(scale * q @ k.T) @ v` of each head, of `q` [batch, queries, heads, depth] and `k` and `v`
    [batch, keys, key heads, depth].

    Tensors are bf16 or f16, the depth is 64, 96, 128, 192 or 256, and key heads divide heads: neighbouring heads of
    `q` share one of `k` and `v`. Beside a depth of 192 `v` may have one of 128, which is the result's. They may lie in
    any order with steps of whole 16 bytes: of [batch, heads, rows, depth] pass `.transpose(1, 2)`, of rows of q, k and v
    side by side their slices; where the values' depth is 192 or 256 `out` has no gaps. With `causal` query i sees the
    keys up to i + keys - queries, the last one all; with `window`, a pair (left, right), those from i + keys - queries -
    left to i + keys - queries + right, where -1 is no bound; with both those that both let it see. A query that sees
    none gives 0. `scale` is 1 / sqrt(depth) if nothing is said. With `soft_cap` scores, times `scale` then, become
    soft_cap * tanh(score / soft_cap). `out` receives the result and is returned; `return_lse` gives `(out, lse)`, where
    lse, f32 [batch, heads, queries], is the logarithm of each row's sum of exponentials. The result is the same in each run; `deterministic` is what
    `attention_backward` is told of it where autograd of PyTorch computes gradients.

    Tensors may be f8_e4m3 too, of depth 64, 128 and 256, without a soft cap and without gradients; the result is bf16 then.
    They are what they hold times `q_scale`, `k_scale` and `v_scale`, f32 [batch, key heads] each, read on the GPU and without
    gaps: the factors of each head of `k` and of the heads of `q` that share it, which FlashAttention-3 calls descales. Those of
    `q` and `k` are 0 or more; all are 1 of what is not given. The softmax's weights are rounded to 8 bits as well, and a call
    allocates as many bytes as `v` has.
    """
    given = {"q": q, "k": k, "v": v, "q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale, "out": out}
    options = _attention.options_of(causal, scale, window, soft_cap, deterministic)
    return _attention.asked_of(given, options, stream, 2 if return_lse else 1)


@operation(_attention_varlen.FAMILY)
def attention_varlen(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int, int] | None = None,
    soft_cap: float | None = None,
    out: Any = None,
    return_lse: bool = False,
    stream: Any = None,
) -> Asked:
    """`attention` of sequences of any lengths that lie one behind the other, without padding: of `q` [queries, heads, depth]
    and `k` and `v` [keys, key heads, depth] with the rows of all, out is [queries, heads, depth of v].

    `cu_seqlens_q` and `cu_seqlens_k`, s32 [sequences + 1], are where sequences begin and the last one ends: the queries of
    sequence b are rows cu_seqlens_q[b] to cu_seqlens_q[b + 1] of `q`, and its keys the rows cu_seqlens_k[b] to
    cu_seqlens_k[b + 1]. They are read on the GPU: nothing waits for them, no longest length is needed, and a CUDA graph
    sees what they hold when it runs. Numbers do not decrease. A sequence may have no queries, or no keys: its queries give 0, and
    minus infinity in lse, which is f32 [heads, queries]. Masks and windows go by each sequence's own lengths: with `causal`
    its last query sees its last key. What rows of no sequence hold plays no part; those of `out` stay as they are, and of a
    new result they hold anything. `out` and both `cu_seqlens` have no gaps. The rest is as of `attention`.
    """
    given = {"q": q, "k": k, "v": v, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "out": out}
    options = _attention.options_of(causal, scale, window, soft_cap)
    return _attention_varlen.asked_of(given, options, stream, 2 if return_lse else 1)


@operation(_attention_varlen_backward.FAMILY)
def attention_varlen_backward(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int, int] | None = None,
    soft_cap: float | None = None,
    stream: Any = None,
) -> Asked:
    """`(dq, dk, dv)`: the gradients of `attention_varlen`'s `q`, `k` and `v` by `dout`, as those of `attention_backward`.

    What rows of no sequence hold plays no part, and those of the results hold anything.
    """
    given = {"dout": dout, "q": q, "k": k, "v": v, "out": out, "lse": lse}
    given |= {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    return _attention_varlen_backward.asked_of(given, _attention.options_of(causal, scale, window, soft_cap), stream)


@operation(_attention_backward.FAMILY)
def attention_backward(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int, int] | None = None,
    soft_cap: float | None = None,
    deterministic: bool = True,
    stream: Any = None,
) -> Asked:
    """`(dq, dk, dv)`: the gradients of `attention`'s `q`, `k` and `v` by `dout`, that of its result.

    `out` and `lse` are what `attention(..., return_lse=True)` gave, with the same `causal`, `scale`, `window` and
    `soft_cap`; `dout` is of their type and of the shape of `out`, and lies as `attention`'s tensors may. The depth is 64,
    96, 128 or 256, that of the values as well. Heads of `q` that share one of `k`
    and `v` add up in its gradients. The results have no gaps. They are the same in each run; without `deterministic`
    `dq` may differ in its last bits, which is faster for some problems. Autograd of PyTorch calls this by itself.
    """
    given = {"dout": dout, "q": q, "k": k, "v": v, "out": out, "lse": lse}
    options = _attention.options_of(causal, scale, window, soft_cap, deterministic)
    return _attention_backward.asked_of(given, options, stream)


@operation(_attention_decode.FAMILY)
def attention_decode(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    lengths: Any,
    page_table: Any = None,
    *,
    causal: bool = True,
    scale: float | None = None,
    out: Any = None,
    return_lse: bool = False,
    stream: Any = None,
) -> Asked:
    """`attention` of few queries, `q` [batch, queries, heads, depth], over the keys and values of a cache.

    `lengths`, s32 [batch], says how many keys each sequence has. With `page_table`, s32 [batch, n], the caches are
    [pages, page size, key heads, depth]: key t of sequence b is row t % page size of page page_table[b, t // page
    size], and the page size is a multiple of 8. Without, they are [batch, keys, key heads, depth]. What of a cache is
    not in use may hold anything, and of the table any number. With `causal` query i sees the keys up to i + length -
    queries, the last one all; a query that sees none gives 0, and minus infinity in lse.

    Heads that share a key head are computed together, so that each key is read once, and several blocks share a
    sequence where there are few. `lengths` and `page_table` are read on the GPU: nothing waits for them, and a CUDA
    graph sees what they hold when it runs. Caches may lie in any order with steps of whole 16 bytes: of [pages, key
    heads, page size, depth] pass `.transpose(1, 2)`, of one tensor of keys and values its halves; what else there is
    has no gaps. The rest is as of `attention`, without gradients.
    """
    given = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "lengths": lengths, "page_table": page_table, "out": out}
    return _attention_decode.asked_of(given, _attention.options_of(causal, scale), stream, 2 if return_lse else 1)


def prune(weights: Any) -> tuple[Any, Any]:
    """`packed` and `metadata` for `sparse_gemm`, of a matrix [m, k] in this CPU's memory.

    Of four neighbours along a row the two of largest magnitude are kept. `weights` is an array of
    NumPy or a tensor of PyTorch of 8 or 16 bits, and so is what is given; k is a multiple of 32, and of
    a type of 16 bits m is one of 16. A matrix that is 2:4 sparse already loses nothing.
    """
    seen = seen_of("weights", weights)
    if len(seen.shape) != 2:
        raise ValueError(f"`weights` has the shape {list(seen.shape)}, and a matrix is pruned")
    rows, columns = seen.shape
    unit = 16 if seen.dtype in ("bf16", "f16") else 1
    if rows % unit or columns % 32:
        raise ValueError(
            f"`weights` is [{rows}, {columns}]: rows are a multiple of {unit} and columns of 32, fill it up with zeros"
        )
    if is_torch(weights):
        if weights.device.type != "cpu":
            raise ValueError(f"`weights` lies on the device `{weights.device}`, and is pruned on this CPU: pass `.cpu()`")
        import torch

        bits = weights.detach().contiguous().view(torch.int16 if weights.itemsize == 2 else torch.uint8).numpy()
    else:
        bits = weights
    dense = np.array(bits, order="C")  # a copy, which is pruned
    packed = np.empty((rows, columns // 2), dense.dtype)
    nibbles, words = np.empty((rows, columns // 8), np.uint8), np.empty((rows, columns // 32), np.uint32)
    error = _core.prune(seen.dtype, [each.ctypes.data for each in (dense, packed, nibbles, words)], rows, columns)
    if error:
        raise TypeError(f"`weights`, {seen.dtype} [{rows}, {columns}], cannot be sparse: {error}")
    if not is_torch(weights):
        return packed, words
    return torch.from_numpy(packed).view(weights.dtype), torch.from_numpy(words.view(np.int32))
