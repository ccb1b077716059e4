"""Attention of kiln/attention.h of sequences of any lengths, one behind the other, on tensors of any framework."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from kiln import _attention as batched
from kiln import _core
from kiln._attention import (
    Options,
    check_dense,
    check_type,
    check_types,
    numbers_of,
    readable,
    results_of,
    rounded,
    spacing_of,
)
from kiln._calls import Asked, Family, Problem
from kiln._launch import DeviceTensor, is_torch

NAMES = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")
STARTS = ("cu_seqlens_q", "cu_seqlens_k")


class Shape(NamedTuple):
    queries: int  # rows of all sequences
    keys: int
    heads: int
    key_heads: int
    depth: int
    value_depth: int
    sequences: int
    dtype: str

    @property
    def out(self) -> tuple[int, ...]:
        return (self.queries, self.heads, self.value_depth)

    @property
    def query(self) -> tuple[int, ...]:
        return (self.queries, self.heads, self.depth)

    @property
    def key(self) -> tuple[int, ...]:
        return (self.keys, self.key_heads, self.depth)

    @property
    def value(self) -> tuple[int, ...]:
        return (self.keys, self.key_heads, self.value_depth)

    @property
    def lse(self) -> tuple[int, ...]:
        return (self.heads, self.queries)


def shape_of(tensors: Mapping[str, Any], function: str = "attention_varlen") -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    dtype = tensors["q"].dtype
    for name in ("q", "k", "v", "out"):
        if name not in tensors:
            continue
        tensor, rows = tensors[name], "keys" if name in ("k", "v") else "queries"
        if len(tensor.shape) != 3:
            raise ValueError(
                f"`{name}` has the shape {list(tensor.shape)}, and [{rows} of all sequences, heads, depth] is needed; "
                "sequences of one length are a batch of `kiln.ops.attention`"
            )
    check_type(dtype, function)
    check_types(tensors)
    q, k, v = (tensors[name].shape for name in ("q", "k", "v"))
    if tuple(k[:2]) != tuple(v[:2]):
        raise ValueError(
            f"`k` has the shape {list(k)} and `v` {list(v)}: both are [keys, key heads, depth], and may differ in the depth alone"
        )
    if q[2] != k[2]:
        raise ValueError(
            f"`q` of shape {list(q)} has {q[2]} elements of depth and `k` of shape {list(k)} has {k[2]}, which are to be as many"
        )
    if k[1] == 0 or q[1] % k[1] != 0:
        raise ValueError(f"`q` has {q[1]} heads and `k` has {k[1]}, which do not divide them")
    if 0 in (k[0], q[2], v[2]):
        raise ValueError(f"`k` has the shape {list(k)}: one key and a depth of one are the least")
    shape = Shape(q[0], k[0], q[1], k[1], q[2], v[2], _sequences_of(tensors), dtype)
    if "out" in tensors and tuple(tensors["out"].shape) != shape.out:
        raise ValueError(f"`out` has the shape {list(tensors['out'].shape)}, and {list(shape.out)} is needed")
    return shape


def _sequences_of(tensors: Mapping[str, Any]) -> int:
    for name in STARTS:
        tensor = tensors[name]
        if tensor.dtype != "s32" or len(tensor.shape) != 1 or tensor.shape[0] < 2:
            raise ValueError(
                f"`{name}` is {tensor.dtype} {list(tensor.shape)}, and where each sequence begins and the last one ends, "
                "s32 [sequences + 1], is needed"
            )
    counts = [tensors[name].shape[0] - 1 for name in STARTS]
    if counts[0] != counts[1]:
        raise ValueError(f"`cu_seqlens_q` is of {counts[0]} sequences and `cu_seqlens_k` of {counts[1]}: they have both")
    return counts[0]


def check_given(given: Mapping[str, Any], names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        if given[name] is None:
            raise TypeError(f"`{name}` needs a tensor, and None is given")


def scale_of(shape: Shape, options: Options) -> float:
    return shape.depth**-0.5 if options.scale is None else options.scale


def fields_of(tensors: Mapping[str, DeviceTensor], options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_problem but for `out`; tensors that lie otherwise than it can say are refused."""
    shape = shape_of(tensors)
    for name in STARTS:
        check_dense(name, tensors[name])
    fields: dict[str, Any] = {"type": shape.dtype, "causal": options.causal, **shape._asdict()}
    del fields["dtype"]
    fields |= batched.fields_of_options(options)
    return fields | {name: (0, *spacing_of(name, tensors[name])) for name in ("q", "k", "v")}


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any]:
    """Computes what `launch` does in fp64, rounded once, of tensors or arrays in any memory that can be read."""
    check_given(given)
    shape = shape_of(readable(given))
    q, k, v = (numbers_of(given[name]) for name in ("q", "k", "v"))
    out = given.get("out")
    # Of no sequence what was there stays.
    value = np.zeros(shape.out) if out is None else numbers_of(out).copy()
    lse = np.full(shape.lse, -np.inf)
    for rows, keys, of_one in sequences_of(given, shape):
        if of_one.queries > 0:
            found, logs = batched.computed(of_one, q[None, rows], k[None, keys], v[None, keys], options)
            value[rows], lse[:, rows] = found[0], logs[0]
    return rounded(value, shape.dtype, given["q"], out), rounded(lse, "f32", given["q"], None)


def sequences_of(given: Mapping[str, Any], shape: Shape) -> Iterator[tuple[slice, slice, batched.Shape]]:
    """Of each sequence its rows, those of its keys, and what it is as a batch of one."""
    rows, keys = (
        np.clip(_integers(given[name]), 0, most).tolist() for name, most in zip(STARTS, (shape.queries, shape.keys))
    )
    for begin, end, first, last in zip(rows, rows[1:], keys, keys[1:]):
        queries, seen = max(0, end - begin), max(0, last - first)
        of_one = (1, queries, seen, shape.heads, shape.key_heads, shape.depth, shape.value_depth, shape.dtype)
        yield slice(begin, begin + queries), slice(first, first + seen), batched.Shape(*of_one)


def _integers(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if is_torch(value) else value


class _Varlen(Family):
    first = "q"
    values = ("q", "k", "v", "out", "lse", "scale", "cu_seqlens_q", "cu_seqlens_k")
    factors = {"scale": "p"}
    tables = STARTS
    what = "attention"
    writer = "attention"
    rows = 2

    def name(self, options: Options) -> str:
        return "attention_varlen"

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        check_given(given)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = shape_of(tensors)
        fields = fields_of(tensors, options) | {"balanced": True}
        if "out" in tensors:
            check_dense("out", tensors["out"])
        return Problem(results_of(shape), fields if math.prod(shape.out) else None, scale_of(shape, options))

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        return _core.prepare_attention(fields, device)

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        return reference(asked.given, asked.options)

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _torch_attention_varlen  # after PyTorch, which it needs

        return _torch_attention_varlen.call_operator(asked)


FAMILY = _Varlen()


def asked_of(given: dict[str, Any], options: Options, stream: Any, returned: int) -> Asked:
    return Asked(FAMILY, given, options, {"scale": options.scale}, stream, returned)
