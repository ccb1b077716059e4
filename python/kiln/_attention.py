"""Attention of kiln/attention.h: what tensors of any framework come to, and what is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kiln import _core
from kiln._calls import Asked, Family, Problem, Result, kernel_text
from kiln._launch import DeviceTensor, is_torch, number_of, seen_of, torch_dtype

_NAMES = ("q", "k", "v", "out")
_TYPES = ("bf16", "f16")
_BYTES = 2
_DIMENSIONS = "[batch, rows, heads, depth]"


class Options(NamedTuple):
    """What of a call decides how it is computed, besides its tensors."""

    causal: bool = False
    scale: float | None = None  # None: 1 / sqrt(depth)


class Shape(NamedTuple):
    batch: int
    queries: int
    keys: int
    heads: int
    key_heads: int
    depth: int
    dtype: str

    @property
    def out(self) -> tuple[int, ...]:
        return (self.batch, self.queries, self.heads, self.depth)

    @property
    def key(self) -> tuple[int, ...]:
        return (self.batch, self.keys, self.key_heads, self.depth)

    @property
    def lse(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.queries)


def options_of(causal: bool, scale: float | None) -> Options:
    if not isinstance(causal, (bool, np.bool_)):
        raise TypeError(f"`causal` is {causal!r}: True or False is needed")
    if scale is None:
        return Options(bool(causal))
    value = float(number_of("scale", scale))
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"`scale` is {value}: a finite number above 0 is needed, or None for 1 / sqrt(depth)")
    return Options(bool(causal), value)


def scale_of(shape: Shape, options: Options) -> float:
    return shape.depth**-0.5 if options.scale is None else options.scale


def shape_of(tensors: Mapping[str, Any]) -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    for name, tensor in tensors.items():
        if len(tensor.shape) != 4:
            raise ValueError(
                f"`{name}` has the shape {list(tensor.shape)}, and {_DIMENSIONS} is needed; "
                "of [batch, heads, rows, depth] pass `.transpose(1, 2)`, and of one batch `[None]`"
            )
        if tensor.dtype != tensors["q"].dtype:
            raise TypeError(f"`q` holds {tensors['q'].dtype} and `{name}` {tensor.dtype}: all have one type, convert one")
    q, k, v = (tensors[name].shape for name in ("q", "k", "v"))
    if tensors["q"].dtype not in _TYPES:
        raise TypeError(f"`q` holds {tensors['q'].dtype}, and attention takes " + " and ".join(_TYPES))
    if tuple(k) != tuple(v):
        raise ValueError(f"`k` has the shape {list(k)} and `v` {list(v)}: both are [batch, keys, key heads, depth]")
    for place, what in ((0, "batches"), (3, "elements of depth")):
        if q[place] != k[place]:
            raise ValueError(
                f"`q` of shape {list(q)} has {q[place]} {what} and `k` of shape {list(k)} has {k[place]}, "
                "which are to be as many"
            )
    if k[2] == 0 or q[2] % k[2] != 0:
        raise ValueError(
            f"`q` has {q[2]} heads and `k` has {k[2]}, which do not divide them; {_DIMENSIONS} is needed, "
            "of [batch, heads, rows, depth] pass `.transpose(1, 2)`"
        )
    if k[1] == 0 or q[3] == 0:
        raise ValueError(f"`k` has the shape {list(k)}: one key and a depth of one are the least")
    if "out" in tensors and tuple(tensors["out"].shape) != tuple(q):
        raise ValueError(f"`out` has the shape {list(tensors['out'].shape)}, and {list(q)} is needed")
    return Shape(q[0], q[1], k[1], q[2], k[2], q[3], tensors["q"].dtype)


def check_given(given: Mapping[str, Any]) -> None:
    for name in ("q", "k", "v"):
        if given[name] is None:
            raise TypeError(f"`{name}` needs a tensor, and None is given")


def fields_of(tensors: Mapping[str, DeviceTensor], options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_problem; tensors that lie otherwise than it can say are refused."""
    shape = shape_of(tensors)
    fields: dict[str, Any] = {"type": shape.dtype, "causal": options.causal, **shape._asdict()}
    del fields["dtype"]
    for name in _NAMES:
        if name in tensors:
            fields["o" if name == "out" else name] = spacing_of(name, tensors[name])
    return fields


def spacing_of(name: str, tensor: DeviceTensor) -> tuple[int, int, int]:
    batch, row, head, inner = tensor.strides
    text = f"`{name}` of shape {list(tensor.shape)} has strides {list(tensor.strides)}"
    if tensor.shape[3] != 1 and inner != 1:
        raise ValueError(f"{text}, and the last one has to be 1: pass `.contiguous()`")
    for extent, stride in zip(tensor.shape, (batch, row, head)):
        if extent == 1 or 0 in tensor.shape:
            continue
        if stride <= 0:
            raise ValueError(
                f"{text}: those of dimensions with several elements are above 0; pass `.contiguous()`, "
                "and `k` and `v` with as many heads as they have"
            )
        if stride * _BYTES % 16:
            raise ValueError(
                f"{text}, of which {stride} elements are {stride * _BYTES} bytes, and multiples of 16 bytes are needed: "
                "pass `.contiguous()`"
            )
    return (batch, row, head)


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any]:
    """Computes what `launch` does in fp64, rounded once, of tensors or arrays in any memory that can be read."""
    check_given(given)
    tensors = {name: value for name, value in given.items() if value is not None}
    for name, value in tensors.items():
        if not is_torch(value) and not isinstance(value, np.ndarray):
            raise TypeError(
                f"`{name}` is an object of {type(value).__name__}: an array of NumPy or a tensor of PyTorch is needed"
            )
    shape = shape_of({name: seen_of(name, value) for name, value in tensors.items()})
    q, k, v = (numbers_of(given[name]).transpose(0, 2, 1, 3) for name in ("q", "k", "v"))
    group = shape.heads // shape.key_heads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = scale_of(shape, options) * (q @ k.swapaxes(-1, -2))
    if options.causal:
        last = np.arange(shape.queries)[:, None] + shape.keys - shape.queries
        scores = np.where(np.arange(shape.keys) <= last, scores, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    sums = weights.sum(-1, keepdims=True)
    value = (weights @ v) / np.where(sums > 0, sums, 1)
    with np.errstate(divide="ignore"):
        lse = (np.log(sums) + largest)[..., 0]
    return rounded(value.transpose(0, 2, 1, 3), shape.dtype, given["q"], given.get("out")), rounded(
        lse, "f32", given["q"], None
    )


def numbers_of(value: Any) -> np.ndarray:
    return value.detach().cpu().double().numpy() if is_torch(value) else value.astype(np.float64)


def rounded(value: np.ndarray, dtype: str, like: Any, out: Any) -> Any:
    if is_torch(like):
        torch = sys.modules["torch"]
        made = torch.from_numpy(np.ascontiguousarray(value)).to(torch_dtype(dtype)).to(like.device)
        return made if out is None else out.copy_(made)
    made = value.astype(np.float32 if dtype == "f32" else like.dtype)
    if out is None:
        return made
    out[...] = made
    return out


class _Attention(Family):
    first = "q"
    values = ("q", "k", "v", "out", "lse", "scale")
    factors = {"scale": "p"}
    what = "attention"
    writer = "attention"
    rows = 2

    def name(self, options: Options) -> str:
        return "attention"

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        check_given(given)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = shape_of(tensors)
        results = (
            Result("out", shape.dtype, shape.out, "the result"),
            Result("lse", "f32", shape.lse, "the logarithms of sums"),
        )
        fields = fields_of(tensors, options)
        return Problem(results, fields if math.prod(shape.out) else None, scale_of(shape, options))

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        return _core.prepare_attention(fields, device)

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        return reference(asked.given, asked.options)

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _torch_attention  # after PyTorch, which it needs

        return _torch_attention.call_operator(asked)


FAMILY = _Attention()


def asked_of(given: dict[str, Any], options: Options, stream: Any, returned: int) -> Asked:
    return Asked(FAMILY, given, options, {"scale": options.scale}, stream, returned)


def kernel_of(given: dict[str, Any], options: Options) -> str:
    """The kernel and the defines that it is computed with, for those who report timings."""
    return kernel_text(asked_of(given, options, None, 1))
