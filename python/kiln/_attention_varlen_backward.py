"""Gradients of attention of sequences of any lengths, kiln_attention_backward of kiln/attention.h."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kiln import _attention_backward as batched
from kiln import _attention_varlen as forward
from kiln import _core
from kiln._attention import Options, check_dense, numbers_of, readable, rounded, spacing_of
from kiln._attention_varlen import STARTS, Shape, shape_of
from kiln._calls import Asked, Family, Problem, Result
from kiln._launch import DeviceTensor

NAMES = (*batched.NAMES, *STARTS)


def check(tensors: Mapping[str, Any]) -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    shape = shape_of({name: tensors[name] for name in ("q", "k", "v", "out", *STARTS)}, "attention_varlen_backward")
    dout, lse = tensors["dout"], tensors["lse"]
    if tuple(dout.shape) != shape.out:
        raise ValueError(f"`dout` has the shape {list(dout.shape)}, and {list(shape.out)}, that of `out`, is needed")
    if dout.dtype != shape.dtype:
        raise TypeError(f"`q` holds {shape.dtype} and `dout` {dout.dtype}: all have one type, convert one")
    if tuple(lse.shape) != shape.lse or lse.dtype != "f32":
        raise ValueError(
            f"`lse` is {lse.dtype} {list(lse.shape)}, and what attention_varlen gives with `return_lse=True`, "
            f"f32 {list(shape.lse)}, is needed"
        )
    return shape


def _fields_of(tensors: Mapping[str, DeviceTensor], options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_backward_problem; results have no gaps."""
    fields = forward.fields_of(tensors, options)
    check_dense("lse", tensors["lse"])
    return fields | {field: (0, *spacing_of(name, tensors[name])) for field, name in (("o", "out"), ("dout", "dout"))}


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any, Any]:
    """Computes what `launch` does in fp64, rounded once; rows of no sequence are zeros."""
    forward.check_given(given, NAMES)
    shape = check(readable(given))
    numbers = {name: numbers_of(given[name]) for name in batched.NAMES}
    made = {name: np.zeros(each) for name, each in (("q", shape.query), ("k", shape.key), ("v", shape.value))}
    for rows, keys, of_one in forward.sequences_of(given, shape):
        if 0 in (of_one.queries, of_one.keys):
            continue  # zeros
        own = {name: each[None, keys if name in ("k", "v") else rows] for name, each in numbers.items() if name != "lse"}
        found = batched.computed(of_one, own | {"lse": numbers["lse"][None, :, rows]}, options)
        for name, part, place in zip(made, found, (rows, keys, keys)):
            made[name][place] = part[0]
    dq, dk, dv = (rounded(each, shape.dtype, given["q"], None) for each in made.values())
    return dq, dk, dv


class _Backward(Family):
    first = "q"
    values = ("q", "k", "v", "out", "lse", "dout", "dq", "dk", "dv", "scale", *STARTS)
    factors = {"scale": "p"}
    tables = STARTS
    written = None
    what = "attention"
    writer = "attention"
    rows = 2

    def name(self, options: Options) -> str:
        return "attention_varlen_backward"

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        forward.check_given(given, NAMES)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = check(tensors)
        shapes = {"dq": shape.query, "dk": shape.key, "dv": shape.value}
        results = tuple(Result(name, shape.dtype, each, f"`{name}`") for name, each in shapes.items())
        fields = _fields_of(tensors, options)
        return Problem(results, fields if math.prod(shape.out) else None, forward.scale_of(shape, options))

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        return _core.prepare_attention_backward(fields, device)

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        return reference(asked.given, asked.options)

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _torch_attention_varlen  # after PyTorch, which it needs

        return _torch_attention_varlen.call_backward_operator(asked)


FAMILY = _Backward()


def asked_of(given: dict[str, Any], options: Options, stream: Any) -> Asked:
    return Asked(FAMILY, given, options, {"scale": options.scale}, stream, 3)
