"""Gradients of attention, kiln_attention_backward of kiln/attention.h: what tensors come to, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kiln import _core
from kiln import _attention as forward
from kiln._attention import (
    Options,
    Shape,
    capped,
    numbers_of,
    readable,
    rounded,
    scale_of,
    seen_keys,
    shape_of,
    spacing_of,
)
from kiln._calls import Asked, Family, Problem, Result
from kiln._launch import DeviceTensor

NAMES = ("dout", "q", "k", "v", "out", "lse")


def check(tensors: Mapping[str, Any]) -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    shape = shape_of({name: tensors[name] for name in ("q", "k", "v", "out")}, "attention_backward")
    dout, lse = tensors["dout"], tensors["lse"]
    if tuple(dout.shape) != shape.out:
        raise ValueError(f"`dout` has the shape {list(dout.shape)}, and {list(shape.out)}, that of `out`, is needed")
    if dout.dtype != shape.dtype:
        raise TypeError(f"`q` holds {shape.dtype} and `dout` {dout.dtype}: all have one type, convert one")
    if tuple(lse.shape) != shape.lse or lse.dtype != "f32":
        raise ValueError(
            f"`lse` is {lse.dtype} {list(lse.shape)}, and what attention gives with `return_lse=True`, "
            f"f32 {list(shape.lse)}, is needed"
        )
    return shape


def check_given(given: Mapping[str, Any]) -> None:
    for name in NAMES:
        if given[name] is None:
            raise TypeError(f"`{name}` needs a tensor, and None is given")


def _fields_of(tensors: Mapping[str, DeviceTensor], shape: Shape, options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_backward_problem; results have no gaps."""
    fields = forward.fields_of({name: tensors[name] for name in ("q", "k", "v", "out")}, options)
    lse = tensors["lse"]
    dense = (shape.heads * shape.queries, shape.queries, 1)
    if 0 not in lse.shape and any(extent > 1 and stride != step for extent, stride, step in zip(lse.shape, lse.strides, dense)):
        raise ValueError(f"`lse` has strides {list(lse.strides)}, and none of its rows has gaps: pass `.contiguous()`")
    return {**fields, "dout": spacing_of("dout", tensors["dout"]), "any_order": not options.deterministic}


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any, Any]:
    """Computes what `launch` does in fp64, rounded once, of tensors or arrays in any memory that can be read."""
    check_given(given)
    shape = check(readable(given))
    made = computed(shape, {name: numbers_of(given[name]) for name in NAMES}, options)
    dq, dk, dv = (rounded(each, shape.dtype, given["q"], None) for each in made)
    return dq, dk, dv


def computed(
    shape: Shape, given: Mapping[str, np.ndarray], options: Options
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dq, dk and dv of the arrays of NAMES, in fp64."""
    scale = scale_of(shape, options)
    dout, q, k, v, out = (given[name].transpose(0, 2, 1, 3) for name in NAMES[:-1])
    lse = given["lse"][..., None]
    group = shape.heads // shape.key_heads
    keys, values = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = capped(scale * (q @ keys.swapaxes(-1, -2)), options)
    seen = np.isfinite(lse) & seen_keys(shape, options)
    weights = np.exp(np.where(seen, scores - np.where(np.isfinite(lse), lse, 0), -np.inf))
    slopes = weights * (dout @ values.swapaxes(-1, -2) - (dout * out).sum(-1, keepdims=True))
    if options.soft_cap:
        slopes *= 1 - (scores / options.soft_cap) ** 2

    def of_heads(turned: np.ndarray) -> np.ndarray:
        """Heads that share are added up."""
        return turned.reshape(shape.batch, shape.key_heads, group, shape.keys, turned.shape[-1]).sum(2)

    dq = scale * (slopes @ keys)
    dk = of_heads(scale * (slopes.swapaxes(-1, -2) @ q))
    dv = of_heads(weights.swapaxes(-1, -2) @ dout)
    return dq.transpose(0, 2, 1, 3), dk.transpose(0, 2, 1, 3), dv.transpose(0, 2, 1, 3)


class _Backward(Family):
    first = "q"
    values = ("q", "k", "v", "out", "lse", "dout", "dq", "dk", "dv", "scale")
    factors = {"scale": "p"}
    written = None
    what = "attention"
    writer = "attention"
    rows = 2

    def name(self, options: Options) -> str:
        return "attention_backward"

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        check_given(given)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = check(tensors)
        shapes = {"dq": shape.query, "dk": shape.key, "dv": shape.value}
        results = tuple(Result(name, shape.dtype, each, f"`{name}`") for name, each in shapes.items())
        fields = _fields_of(tensors, shape, options)
        return Problem(results, fields if math.prod(shape.out) else None, scale_of(shape, options))

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        return _core.prepare_attention_backward(fields, device)

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        return reference(asked.given, asked.options)

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _torch_attention  # after PyTorch, which it needs

        return _torch_attention.call_backward_operator(asked)


FAMILY = _Backward()


def asked_of(given: dict[str, Any], options: Options, stream: Any) -> Asked:
    return Asked(FAMILY, given, options, {"scale": options.scale}, stream, 3)
