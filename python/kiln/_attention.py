"""Attention of kiln/attention.h: what tensors of any framework come to, and what is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kiln import _core
from kiln._arrays import numpy_dtype
from kiln._calls import Asked, Family, Problem, Result, bytes_of, kernel_text
from kiln._launch import DeviceTensor, is_torch, number_of, seen_of, torch_dtype

_NAMES = ("q", "k", "v", "out")
FACTORS = ("q_scale", "k_scale", "v_scale")
_OF_8_BITS = "f8_e4m3"
_OF_16_BITS = ("bf16", "f16")
_TYPES = {"attention": (*_OF_16_BITS, _OF_8_BITS)}  # of other functions those of 16 bits
_DIMENSIONS = "[batch, rows, heads, depth]"
_ALL = -1  # keys on a side of a window
_KEYS_MAX = 2**31 - 1


class Options(NamedTuple):
    """What of a call decides how it is computed, besides its tensors."""

    causal: bool = False
    scale: float | None = None  # None: 1 / sqrt(depth)
    window: tuple[int, int] = (_ALL, _ALL)
    soft_cap: float = 0.0  # 0: none
    deterministic: bool = True  # of gradients: the same in each run


class Shape(NamedTuple):
    batch: int
    queries: int
    keys: int
    heads: int
    key_heads: int
    depth: int
    value_depth: int
    dtype: str

    @property
    def out(self) -> tuple[int, ...]:
        return (self.batch, self.queries, self.heads, self.value_depth)

    @property
    def query(self) -> tuple[int, ...]:
        return (self.batch, self.queries, self.heads, self.depth)

    @property
    def key(self) -> tuple[int, ...]:
        return (self.batch, self.keys, self.key_heads, self.depth)

    @property
    def value(self) -> tuple[int, ...]:
        return (self.batch, self.keys, self.key_heads, self.value_depth)

    @property
    def lse(self) -> tuple[int, ...]:
        return (self.batch, self.heads, self.queries)

    @property
    def factors(self) -> tuple[int, ...]:
        return (self.batch, self.key_heads)


def options_of(
    causal: bool = False,
    scale: float | None = None,
    window: Any = None,
    soft_cap: float | None = None,
    deterministic: bool = True,
) -> Options:
    for name, value in (("causal", causal), ("deterministic", deterministic)):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"`{name}` is {value!r}: True or False is needed")
    if scale is not None:
        scale = float(number_of("scale", scale))
        if not (math.isfinite(scale) and scale > 0):
            raise ValueError(f"`scale` is {scale}: a finite number above 0 is needed, or None for 1 / sqrt(depth)")
    cap = 0.0 if soft_cap is None else float(number_of("soft_cap", soft_cap))
    if not (math.isfinite(cap) and cap >= 0):
        raise ValueError(f"`soft_cap` is {cap}: a finite number above 0 is needed, or None for no cap")
    return Options(bool(causal), scale, _window_of(window), cap, bool(deterministic))


# A function and no member of Options: see kiln._calls.
def named_of(options: Options) -> dict[str, Any]:
    """As options_of takes them, and the operators of PyTorch; but for `deterministic`, which not all of those have."""
    window = None if options.window == (_ALL, _ALL) else list(options.window)
    return {"causal": options.causal, "scale": options.scale, "window": window, "soft_cap": options.soft_cap or None}


def _window_of(window: Any) -> tuple[int, int]:
    if window is None:
        return (_ALL, _ALL)
    sides = tuple(window) if isinstance(window, (tuple, list)) else ()
    if len(sides) != 2 or not all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in sides):
        raise TypeError(f"`window` is {window!r}: a pair of integers (left, right) is needed, or None for all keys")
    if min(sides) < _ALL:
        raise ValueError(f"`window` is {window!r}: 0 and more keys are possible on a side, and -1 for all")
    return (min(int(sides[0]), _KEYS_MAX), min(int(sides[1]), _KEYS_MAX))


def scale_of(shape: Shape, options: Options) -> float:
    return shape.depth**-0.5 if options.scale is None else options.scale


def result_type(dtype: str) -> str:
    """Of `out`, by that of `q`, `k` and `v`."""
    return "bf16" if dtype == _OF_8_BITS else dtype


def check_type(dtype: str, function: str) -> None:
    """Whether a function of kiln.ops takes tensors of it."""
    types = _TYPES.get(function, _OF_16_BITS)
    if dtype in types:
        return
    takes = ", ".join(types[:-1]) + " and " + types[-1]
    way_out = ": convert all of them, only `attention` has 8 bits" if dtype == _OF_8_BITS else ""
    raise TypeError(f"`q` holds {dtype}, and {function} takes {takes}{way_out}")


def check_types(tensors: Mapping[str, Any]) -> None:
    """Whether q, k and v have one, and `out` the one that goes with it."""
    dtype = tensors["q"].dtype
    for name in ("k", "v"):
        if tensors[name].dtype != dtype:
            raise TypeError(f"`q` holds {dtype} and `{name}` {tensors[name].dtype}: all have one type, convert one")
    if "out" in tensors and tensors["out"].dtype != result_type(dtype):
        raise TypeError(f"`q` holds {dtype} and `out` {tensors['out'].dtype}: {result_type(dtype)} is needed")


def shape_of(tensors: Mapping[str, Any], function: str = "attention") -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    for name in (each for each in _NAMES if each in tensors):
        if len(tensors[name].shape) != 4:
            raise ValueError(
                f"`{name}` has the shape {list(tensors[name].shape)}, and {_DIMENSIONS} is needed; "
                "of [batch, heads, rows, depth] pass `.transpose(1, 2)`, and of one batch `[None]`"
            )
    check_type(tensors["q"].dtype, function)
    check_types(tensors)
    q, k, v = (tensors[name].shape for name in ("q", "k", "v"))
    if tuple(k[:3]) != tuple(v[:3]):
        raise ValueError(
            f"`k` has the shape {list(k)} and `v` {list(v)}: both are [batch, keys, key heads, depth], "
            "and may differ in the depth alone"
        )
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
    if 0 in (k[1], q[3], v[3]):
        raise ValueError(f"`k` has the shape {list(k)}: one key and a depth of one are the least")
    shape = Shape(q[0], q[1], k[1], q[2], k[2], q[3], v[3], tensors["q"].dtype)
    if "out" in tensors and tuple(tensors["out"].shape) != shape.out:
        raise ValueError(f"`out` has the shape {list(tensors['out'].shape)}, and {list(shape.out)} is needed")
    _check_factors(tensors, shape)
    return shape


def _check_factors(tensors: Mapping[str, Any], shape: Shape) -> None:
    for name in (each for each in FACTORS if each in tensors):
        if shape.dtype != _OF_8_BITS:
            raise TypeError(f"`{name}` is a factor of tensors of {_OF_8_BITS}, and `q` holds {shape.dtype}: leave it away")
        tensor = tensors[name]
        if tensor.dtype != "f32" or tuple(tensor.shape) != shape.factors:
            raise ValueError(
                f"`{name}` is {tensor.dtype} {list(tensor.shape)}, and a factor of each head of `k`, "
                f"f32 {list(shape.factors)}, is needed"
            )


def check_given(given: Mapping[str, Any]) -> None:
    for name in ("q", "k", "v"):
        if given[name] is None:
            raise TypeError(f"`{name}` needs a tensor, and None is given")
    for name in FACTORS:
        if isinstance(given.get(name), (int, float, np.number)):
            raise TypeError(
                f"`{name}` is {given[name]!r}: a tensor f32 [batch, key heads] is needed, which is read on the GPU, "
                "or None where all are 1"
            )


def fields_of(tensors: Mapping[str, DeviceTensor], options: Options) -> dict[str, Any]:
    """The fields of kiln_attention_problem; tensors that lie otherwise than it can say are refused."""
    shape = shape_of(tensors)
    fields: dict[str, Any] = {"type": shape.dtype, "causal": options.causal, **shape._asdict()}
    del fields["dtype"]
    fields |= fields_of_options(options)
    for name in _NAMES:
        if name in tensors:
            fields["o" if name == "out" else name] = spacing_of(name, tensors[name])
    for name in (each for each in FACTORS if each in tensors):
        check_dense(name, tensors[name])
    return fields


def fields_of_options(options: Options) -> dict[str, Any]:
    fields: dict[str, Any] = {"soft_cap": options.soft_cap}
    if options.window != (_ALL, _ALL):
        fields |= {"window": True, "left": options.window[0], "right": options.window[1]}
    return fields


def spacing_of(name: str, tensor: DeviceTensor) -> tuple[int, ...]:
    """The steps of all dimensions but the last, the depth."""
    *steps, inner = tensor.strides
    element = bytes_of(tensor.dtype)
    text = f"`{name}` of shape {list(tensor.shape)} has strides {list(tensor.strides)}"
    if tensor.shape[-1] != 1 and inner != 1:
        raise ValueError(f"{text}, and the last one has to be 1: pass `.contiguous()`")
    for extent, stride in zip(tensor.shape, steps):
        if extent == 1 or 0 in tensor.shape:
            continue
        if stride <= 0:
            raise ValueError(
                f"{text}: those of dimensions with several elements are above 0; pass `.contiguous()`, "
                "and `k` and `v` with as many heads as they have"
            )
        if stride * element % 16:
            raise ValueError(
                f"{text}, of which {stride} elements are {stride * element} bytes, and multiples of 16 bytes are needed: "
                "pass `.contiguous()`"
            )
    return tuple(steps)


def check_dense(name: str, tensor: DeviceTensor) -> None:
    step = 1
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides)):
        if extent > 1 and stride != step and 0 not in tensor.shape:
            raise ValueError(
                f"`{name}` of shape {list(tensor.shape)} has strides {list(tensor.strides)}, and has to be without gaps: "
                "pass `.contiguous()`"
            )
        step *= extent


def reference(given: Mapping[str, Any], options: Options) -> tuple[Any, Any]:
    """Computes what `launch` does in fp64, rounded once, of tensors or arrays in any memory that can be read."""
    check_given(given)
    shape = shape_of(readable(given))
    value, lse = computed(shape, *_meant(given, shape), options)
    return rounded(value, result_type(shape.dtype), given["q"], given.get("out")), rounded(lse, "f32", given["q"], None)


def _meant(given: Mapping[str, Any], shape: Shape) -> tuple[np.ndarray, ...]:
    """The numbers of q, k and v, times their factors."""
    out = []
    for name, factor in zip(("q", "k", "v"), FACTORS):
        numbers = numbers_of(given[name])
        if given.get(factor) is not None:
            heads = numbers.shape[2] // max(shape.key_heads, 1)
            numbers = numbers * np.repeat(numbers_of(given[factor]), heads, axis=1)[:, None, :, None]
        out.append(numbers)
    return tuple(out)


def readable(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, as shape_of takes it; what this CPU cannot read is refused."""
    tensors = {name: value for name, value in given.items() if value is not None}
    for name, value in tensors.items():
        if not is_torch(value) and not isinstance(value, np.ndarray):
            raise TypeError(
                f"`{name}` is an object of {type(value).__name__}: an array of NumPy or a tensor of PyTorch is needed"
            )
    return {name: seen_of(name, value) for name, value in tensors.items()}


def computed(
    shape: Shape, q: np.ndarray, k: np.ndarray, v: np.ndarray, options: Options
) -> tuple[np.ndarray, np.ndarray]:
    """[batch, queries, heads, value depth] and [batch, heads, queries], in fp64."""
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    group = shape.heads // shape.key_heads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = capped(scale_of(shape, options) * (q @ k.swapaxes(-1, -2)), options)
    scores = np.where(seen_keys(shape, options), scores, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    sums = weights.sum(-1, keepdims=True)
    value = (weights @ v) / np.where(sums > 0, sums, 1)
    with np.errstate(divide="ignore"):
        lse = (np.log(sums) + largest)[..., 0]
    return value.transpose(0, 2, 1, 3), lse


def capped(scores: np.ndarray, options: Options) -> np.ndarray:
    return options.soft_cap * np.tanh(scores / options.soft_cap) if options.soft_cap else scores


def seen_keys(shape: Shape, options: Options) -> np.ndarray:
    """Whether a query sees a key, [queries, keys]."""
    own = np.arange(shape.queries)[:, None] + shape.keys - shape.queries
    key, (left, right) = np.arange(shape.keys), options.window
    seen = np.ones((shape.queries, shape.keys), bool)
    if options.causal:
        seen &= key <= own
    if left != _ALL:
        seen &= key >= own - left
    if right != _ALL:
        seen &= key <= own + right
    return seen


def numbers_of(value: Any) -> np.ndarray:
    return value.detach().cpu().double().numpy() if is_torch(value) else value.astype(np.float64)


def rounded(value: np.ndarray, dtype: str, like: Any, out: Any) -> Any:
    if is_torch(like):
        torch = sys.modules["torch"]
        made = torch.from_numpy(np.ascontiguousarray(value)).to(torch_dtype(dtype)).to(like.device)
        return made if out is None else out.copy_(made)
    made = value.astype(numpy_dtype(dtype))
    if out is None:
        return made
    out[...] = made
    return out


def results_of(shape: Any) -> tuple[Result, Result]:
    """What attention makes, of a shape that has `dtype`, `out` and `lse`."""
    return (
        Result("out", result_type(shape.dtype), shape.out, "the result"),
        Result("lse", "f32", shape.lse, "the logarithms of sums"),
    )


class _Attention(Family):
    first = "q"
    values = ("q", "k", "v", "out", "lse", "scale", "cu_seqlens_q", "cu_seqlens_k", *FACTORS)
    factors = {"scale": "p"}
    tables = FACTORS
    what = "attention"
    writer = "attention"
    rows = 2

    def name(self, options: Options) -> str:
        return "attention"

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        check_given(given)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = shape_of(tensors)
        fields = fields_of(tensors, options) | {"balanced": True}
        return Problem(results_of(shape), fields if math.prod(shape.out) else None, scale_of(shape, options))

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
