"""Attention over a cache, kiln/attention_decode.h, on tensors of any framework."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kiln import _core
from kiln._attention import Options, check_dense, check_type, numbers_of, readable, results_of, rounded, spacing_of
from kiln._calls import Asked, Family, Problem
from kiln._launch import DeviceTensor, is_torch

NAMES = ("q", "k_cache", "v_cache", "lengths", "page_table")
_NEEDED = ("q", "k_cache", "v_cache", "lengths")
_QUERIES = "[batch, queries, heads, depth]"


class Shape(NamedTuple):
    batch: int
    queries: int
    heads: int
    key_heads: int
    depth: int
    pages: int  # of the cache; without pages as many as sequences
    rows: int  # of a page; without pages those of a sequence
    pages_of_sequence: int  # 0: without pages
    dtype: str

    @property
    def out(self) -> tuple[int, ...]:
        return (self.batch, self.queries, self.heads, self.depth)

    @property
    def lse(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.queries)

    @property
    def room(self) -> int:
        """The keys that a sequence has room for."""
        return self.rows * max(1, self.pages_of_sequence)


def shape_of(tensors: Mapping[str, Any]) -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    q, k, v = (tensors[name] for name in ("q", "k_cache", "v_cache"))
    cache = "[pages, page size, key heads, depth]" if "page_table" in tensors else "[batch, keys, key heads, depth]"
    for name, what in (("q", _QUERIES), ("k_cache", cache), ("v_cache", cache)):
        tensor = tensors[name]
        if len(tensor.shape) != 4:
            raise ValueError(f"`{name}` has the shape {list(tensor.shape)}, and {what} is needed")
        if tensor.dtype != q.dtype:
            raise TypeError(f"`q` holds {q.dtype} and `{name}` {tensor.dtype}: all have one type, convert one")
    check_type(q.dtype, "attention_decode")
    if tuple(k.shape) != tuple(v.shape):
        raise ValueError(f"`k_cache` has the shape {list(k.shape)} and `v_cache` {list(v.shape)}: both are {cache}")
    batch, queries, heads, depth = q.shape
    if depth != k.shape[3]:
        raise ValueError(
            f"`q` of shape {list(q.shape)} has {depth} elements of depth and `k_cache` of shape {list(k.shape)} has "
            f"{k.shape[3]}, which are to be as many"
        )
    if k.shape[2] == 0 or heads % k.shape[2] != 0:
        raise ValueError(
            f"`q` has {heads} heads and `k_cache` has {k.shape[2]}, which do not divide them; {cache} is needed, "
            "of [.., key heads, rows, depth] pass `.transpose(1, 2)`"
        )
    if 0 in k.shape:
        raise ValueError(f"`k_cache` has the shape {list(k.shape)}: one key and a depth of one are the least")
    _check_numbers(tensors, batch, k.shape[0])
    if "out" in tensors and (tuple(tensors["out"].shape) != tuple(q.shape) or tensors["out"].dtype != q.dtype):
        out = tensors["out"]
        raise ValueError(f"`out` is {out.dtype} {list(out.shape)}, and {q.dtype} {list(q.shape)} is needed")
    each = tensors["page_table"].shape[1] if "page_table" in tensors else 0
    return Shape(batch, queries, heads, k.shape[2], depth, k.shape[0], k.shape[1], each, q.dtype)


def _check_numbers(tensors: Mapping[str, Any], batch: int, pages: int) -> None:
    lengths, table = tensors["lengths"], tensors.get("page_table")
    if tuple(lengths.shape) != (batch,) or lengths.dtype != "s32":
        raise ValueError(
            f"`lengths` is {lengths.dtype} {list(lengths.shape)}, and the keys of each sequence, s32 [{batch}], are needed"
        )
    if table is None:
        if pages != batch:
            raise ValueError(f"`q` has {batch} batches and `k_cache` has {pages}: give as many, or a `page_table`")
        return
    if len(table.shape) != 2 or table.shape[0] != batch or table.shape[1] == 0 or table.dtype != "s32":
        raise ValueError(
            f"`page_table` is {table.dtype} {list(table.shape)}, and the pages of each sequence, s32 [{batch}, n], are needed"
        )


def check_given(given: Mapping[str, Any]) -> None:
    for name in _NEEDED:
        if given[name] is None:
            raise TypeError(f"`{name}` needs a tensor, and None is given")


def scale_of(shape: Shape, options: Options) -> float:
    return shape.depth**-0.5 if options.scale is None else options.scale


def _fields_of(tensors: Mapping[str, DeviceTensor], options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_decode_problem; tensors that lie otherwise than it can say are refused."""
    shape = shape_of(tensors)
    for name, tensor in tensors.items():
        if name not in ("k_cache", "v_cache"):
            check_dense(name, tensor)
    fields: dict[str, Any] = {
        "type": shape.dtype,
        "causal": options.causal,
        "batch": shape.batch,
        "queries": shape.queries,
        "heads": shape.heads,
        "key_heads": shape.key_heads,
        "depth": shape.depth,
        "k": spacing_of("k_cache", tensors["k_cache"]),
        "v": spacing_of("v_cache", tensors["v_cache"]),
    }
    if shape.pages_of_sequence == 0:
        return {**fields, "keys": shape.rows}
    return {**fields, "page_size": shape.rows, "pages": shape.pages, "pages_of_sequence": shape.pages_of_sequence}


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any]:
    """Computes what `launch` does in fp64, rounded once, of tensors or arrays in any memory that can be read."""
    check_given(given)
    shape = shape_of(readable(given))
    q, k, v = (numbers_of(given[name]) for name in ("q", "k_cache", "v_cache"))
    table = np.arange(shape.batch)[:, None] if given.get("page_table") is None else _integers(given["page_table"])
    value, lse = np.zeros(shape.out), np.full(shape.lse, -np.inf)
    for b, length in enumerate(_integers(given["lengths"])):
        length = max(0, min(int(length), shape.room))
        pages = table[b, : -(-length // shape.rows)]
        keys, values = (x[pages].reshape(-1, shape.key_heads, shape.depth)[:length] for x in (k, v))
        value[b], lse[b] = _of_sequence(q[b], keys, values, scale_of(shape, options), options.causal)
    return rounded(value, shape.dtype, given["q"], given.get("out")), rounded(lse, "f32", given["q"], None)


def _of_sequence(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, causal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """[queries, heads, depth] and [heads, queries] of q [queries, heads, depth] and k and v [keys, key heads, depth]."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, axis=1).transpose(1, 0, 2) for x in (k, v))
    scores = scale * (q.transpose(1, 0, 2) @ k.swapaxes(-1, -2))
    if causal:
        last = np.arange(q.shape[0])[:, None] + k.shape[1] - q.shape[0]
        scores = np.where(np.arange(k.shape[1]) <= last, scores, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    sums = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(sums) + largest)[..., 0]
    return ((weights @ v) / np.where(sums > 0, sums, 1)).transpose(1, 0, 2), lse


def _integers(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if is_torch(value) else value


class _Decode(Family):
    first = "q"
    values = ("q", "k_cache", "v_cache", "lengths", "page_table", "out", "lse", "scale")
    factors = {"scale": "p"}
    tables = ("lengths", "page_table")
    what = "attention"
    writer = "attention"
    rows = 2

    def name(self, options: Options) -> str:
        return "attention_decode"

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        check_given(given)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = shape_of(tensors)
        fields = _fields_of(tensors, options)
        return Problem(results_of(shape), fields if math.prod(shape.out) else None, scale_of(shape, options))

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        return _core.prepare_attention_decode(fields, device)

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        return reference(asked.given, asked.options)

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _torch_attention_decode  # after PyTorch, which it needs

        return _torch_attention_decode.call_operator(asked)


FAMILY = _Decode()


def asked_of(given: dict[str, Any], options: Options, stream: Any, returned: int) -> Asked:
    return Asked(FAMILY, given, options, {"scale": options.scale}, stream, returned)
