"""Gradients of attention, kiln_attention_backward of kiln/attention.h, on tensors of any framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from kiln import _core
from kiln._attention import (
    Options,
    Shape,
    address_of,
    capped,
    device_of,
    numbers_of,
    problem_of,
    rounded,
    scale_of,
    seen_by_plans,
    seen_keys,
    shape_of,
    spacing_of,
    tensor_of,
)
from kiln._launch import (
    DeviceError,
    DeviceTensor,
    allocator,
    current_stream,
    is_torch,
    on_stream,
    raise_status,
    seen_of,
    stream_handle,
)

NAMES = ("dout", "q", "k", "v", "out", "lse")
_IN_ORDER = ("q", "k", "v", "out", "lse", "dout")  # as the library has them


class Ready(NamedTuple):
    attention: _core.AttentionBackward | None  # None: a result has no elements
    make_results: tuple[Callable[[], Any], ...]
    make_workspace: Callable[[], Any] | None
    scale: float
    device: int


_plans: dict[Any, Ready] = {}


def check(tensors: Mapping[str, Any]) -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    shape = shape_of({name: tensors[name] for name in ("q", "k", "v", "out")})
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


def launch(given: Mapping[str, Any], options: Options, stream: Any) -> tuple[Any, Any, Any]:
    """Starts it on the tensors `given` by name; gives dq, dk and dv."""
    check_given(given)
    like = given["q"]
    handle = current_stream(like) if stream is None else stream_handle(stream)
    signatures, addresses = [], {}
    for name in NAMES:
        signature, addresses[name] = seen_by_plans(name, given[name], handle)
        signatures.append(signature)
    key = (tuple(signatures), options)
    ready = _plans.get(key)
    if ready is None:
        ready = _plans[key] = _prepare(given, options, handle)
    # The framework allocates for its current stream.
    with nullcontext() if stream is None else on_stream(like, ready.device, handle):
        dq, dk, dv = (make() for make in ready.make_results)
        workspace = None if ready.make_workspace is None else ready.make_workspace()
    if ready.attention is None:
        return dq, _zeros(dk), _zeros(dv)
    row = [addresses[name] for name in _IN_ORDER] + [address_of(each) for each in (dq, dk, dv)]
    place = 0 if workspace is None else address_of(workspace)
    status, error = ready.attention.launch(row, ready.scale, place, handle)
    if status != _core.OK:
        raise_status(status, error, ())
    return dq, dk, dv


def check_given(given: Mapping[str, Any]) -> None:
    for name in NAMES:
        if given[name] is None:
            raise TypeError(f"`{name}` needs a tensor, and None is given")


def _zeros(made: Any) -> Any:
    """Of keys where there are no queries."""
    if math.prod(made.shape) != 0:
        made[...] = 0
    return made


def _prepare(given: Mapping[str, Any], options: Options, handle: int) -> Ready:
    tensors = {name: tensor_of(name, given[name], None) for name in NAMES}
    device = device_of(tensors)
    shape = check(tensors)
    like = given["q"]
    shapes = {"dq": shape.query, "dk": shape.key, "dv": shape.value}
    make_results = tuple(allocator(like, device, shape.dtype, each, f"`{name}`") for name, each in shapes.items())
    fields = _fields_of(tensors, shape, options)
    scale = scale_of(shape, options)
    if math.prod(shape.out) == 0:
        return Ready(None, make_results, None, scale, device)
    if _core.is_capturing(handle):
        raise DeviceError(
            "kiln.ops.attention_backward is not prepared for these shapes, and its stream is captured in a graph: "
            "call it once before"
        )
    status, error, attention = _core.prepare_attention_backward(fields, device)
    if attention is None:
        raise_status(status, error, ())
    size = (attention.workspace,)
    make_workspace = allocator(like, device, "u8", size, f"the workspace of {size[0]} bytes") if size[0] else None
    return Ready(attention, make_results, make_workspace, scale, device)


def _fields_of(tensors: Mapping[str, DeviceTensor], shape: Shape, options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_backward_problem; results have no gaps."""
    fields = problem_of({name: tensors[name] for name in ("q", "k", "v", "out")}, options)
    lse = tensors["lse"]
    dense = (shape.heads * shape.queries, shape.queries, 1)
    if 0 not in lse.shape and any(extent > 1 and stride != step for extent, stride, step in zip(lse.shape, lse.strides, dense)):
        raise ValueError(f"`lse` has strides {list(lse.strides)}, and none of its rows has gaps: pass `.contiguous()`")
    return {**fields, "dout": spacing_of("dout", tensors["dout"])}


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any, Any]:
    """Computes what `launch` does in fp64, rounded once, of tensors or arrays in any memory that can be read."""
    check_given(given)
    for name in NAMES:
        if not is_torch(given[name]) and not isinstance(given[name], np.ndarray):
            raise TypeError(
                f"`{name}` is an object of {type(given[name]).__name__}: an array of NumPy or a tensor of PyTorch is needed"
            )
    shape = check({name: seen_of(name, given[name]) for name in NAMES})
    scale = scale_of(shape, options)
    dout, q, k, v, out = (numbers_of(given[name]).transpose(0, 2, 1, 3) for name in NAMES[:-1])
    lse = numbers_of(given["lse"])[..., None]
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
        return turned.reshape(shape.batch, shape.key_heads, group, shape.keys, -1).sum(2)

    dq = scale * (slopes @ keys)
    dk = of_heads(scale * (slopes.swapaxes(-1, -2) @ q))
    dv = of_heads(weights.swapaxes(-1, -2) @ dout)
    made = [rounded(each.transpose(0, 2, 1, 3), shape.dtype, given["q"], None) for each in (dq, dk, dv)]
    return made[0], made[1], made[2]
