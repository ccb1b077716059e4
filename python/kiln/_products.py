"""Products of kiln/gemm.h: what tensors of any framework come to, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kiln import _core
from kiln._arrays import kiln_dtype
from kiln._calls import Asked, Family, Problem, Result
from kiln._launch import DeviceTensor, has_gaps, number_of, torch_dtypes

_GROUP_ROWS = 128  # KILN_GEMM_GROUP_ROWS
_SCALE_BLOCK = 128
_ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "silu": 3}
_RESULTS = {"bf16": "bf16", "f16": "f16", "f32": "f32", "f8_e4m3": "bf16", "f8_e5m2": "bf16", "s8": "s32"}
_TYPES = ("bf16", "f16", "f32", "f8_e4m3", "f8_e5m2", "s8", "s32")
# Flags of kiln_gemm_problem.
_A_ALONG_M, _B_ALONG_N, _ALPHA, _BETA, _BIAS, _RESIDUAL, _BLOCK_SCALES, _INVARIANT, _SPARSE = (
    1 << i for i in range(9)
)
_ROWS_OF_GROUP, _GROUPS_APART, _GROUPS_ALONG_K = 512, 1024, 2048
# What a kind of product needs besides its factors.
_TABLES = {
    "k_grouped_gemm": ("rows_of_group",),
    "sparse_gemm": ("metadata",),
    "block_scaled_gemm": ("a_scale", "b_scale"),
}
_VECTORS = ("bias", "residual", "a_scale", "b_scale", "metadata", "group_of_tile", "rows_of_group")


class Options(NamedTuple):
    """What of a call decides how it is computed, besides its tensors."""

    kind: str  # "gemm", "grouped_gemm", "k_grouped_gemm", "sparse_gemm", "block_scaled_gemm"
    activation: str = "none"
    has_alpha: bool = False
    has_beta: bool = False
    dtype: str | None = None
    tf32: bool = False
    batch_invariant: bool = False
    apart: bool = False  # groups of rows


class Shape(NamedTuple):
    """What a product makes of shapes and types alone."""

    m: int
    n: int
    k: int
    batch: int
    result: tuple[int, ...]
    dtype: str  # of the result


class Matrix(NamedTuple):
    """How the last two dimensions lie."""

    by_rows: bool  # neighbours along the last one
    step: int  # from one row to the next, or from one column to the next; 0: without gaps


def options_of(kind: str, activation: str | None, alpha: float, beta: float, dtype: Any, **flags: bool) -> Options:
    number_of("alpha", alpha)
    name = activation or "none"
    if name not in _ACTIVATIONS:
        raise ValueError(f"`activation` is {name!r}: there are " + ", ".join(map(repr, _ACTIVATIONS)))
    return Options(kind, name, alpha != 1, beta != 0, None if dtype is None else dtype_name(dtype), **flags)


def dtype_name(dtype: Any) -> str:
    """kiln's name of a type of PyTorch or NumPy, or of a name."""
    if isinstance(dtype, str) and dtype in _TYPES:
        return dtype
    if type(dtype).__module__ == "torch":
        name = torch_dtypes().get(dtype, "")
    else:
        try:
            name = kiln_dtype(np.dtype(dtype))
        except TypeError:
            name = ""
    if name not in _TYPES:
        raise TypeError(f"`dtype` is {dtype}: a product has one of " + ", ".join(_TYPES))
    return name


def check_given(given: Mapping[str, Any], options: Options) -> None:
    for name in ("a", "b", *_TABLES.get(options.kind, ())):
        if given[name] is None:
            raise TypeError(f"`{shown(name, options)}` needs a tensor, and None is given")
    by_tile, by_rows, a_scale, b_scale = (
        given.get(name) is not None for name in ("group_of_tile", "rows_of_group", "a_scale", "b_scale")
    )
    if options.kind == "grouped_gemm" and by_tile == by_rows:
        number = "both are" if by_tile else "neither is"
        raise TypeError(f"`group_of_tile` or `rows_of_group` says which rows are a group's, and {number} given")
    if options.apart and by_tile:
        raise TypeError("`apart` is about groups that `rows_of_group` tells, and `group_of_tile` is given")
    if a_scale != b_scale:
        raise TypeError(f"`{'a_scale' if a_scale else 'b_scale'}` is given alone: both factors have scales, or none")


def shown(name: str, options: Options) -> str:
    """What the caller calls it."""
    return "packed" if options.kind == "sparse_gemm" and name == "a" else name


def check_out(beta: float, out: Any) -> None:
    number_of("beta", beta)
    if beta != 0 and out is None:
        raise ValueError(f"`beta` is {beta}, and there is no `out` that it multiplies: give out=")


def shape_of(tensors: Mapping[str, Any], options: Options) -> Shape:
    """Of tensors that have a shape and kiln's name of their type; what does not fit is refused."""
    a, b = tensors["a"], tensors["b"]
    _check_types(a, b, options)
    first = shown("a", options)
    for name, least in (("a", 2), ("b", 3 if options.kind == "grouped_gemm" else 2)):
        if len(tensors[name].shape) < least:
            name, seen = shown(name, options), list(tensors[name].shape)
            raise ValueError(f"`{name}` has the shape {seen}, and needs {least} dimensions or more")
    if options.kind != "gemm" and len(a.shape) != 2:
        raise ValueError(f"`{first}` has the shape {list(a.shape)}: kiln.ops.{options.kind} takes a matrix, pass `.flatten(0, -2)`")
    most = {"gemm": len(b.shape), "grouped_gemm": 3}.get(options.kind, 2)
    if len(b.shape) > most:
        raise ValueError(f"`b` has the shape {list(b.shape)}: kiln.ops.{options.kind} takes {most} dimensions")
    n, k = b.shape[-1], b.shape[-2]
    a_columns = 2 * a.shape[-1] if options.kind == "sparse_gemm" else a.shape[-1]
    if a_columns != k:
        raise ValueError(
            f"`{first}` of shape {list(a.shape)} has {a_columns} columns and `b` of shape {list(b.shape)} has {k} rows, "
            "which are to be as many; if `b` lies as [n, k], pass its transposed view, `b.T` or `b.mT`"
        )
    dtype = _result_type(a, tensors.get("out"), options)
    if options.kind == "k_grouped_gemm":
        groups = math.prod(tensors["rows_of_group"].shape)
        return Shape(a.shape[0], n, k, 1, (groups, a.shape[0], n), dtype)
    if options.kind == "gemm" and len(b.shape) > 2:
        if a.shape[:-2] != b.shape[:-2] or len(a.shape) != 3:
            raise ValueError(
                f"`a` of shape {list(a.shape)} and `b` of shape {list(b.shape)}: several products have one dimension "
                "in front, as long in both"
            )
        return Shape(a.shape[1], n, k, a.shape[0], (a.shape[0], a.shape[1], n), dtype)
    return Shape(math.prod(a.shape[:-1]), n, k, 1, (*a.shape[:-1], n), dtype)


def _check_types(a: Any, b: Any, options: Options) -> None:
    if a.dtype != b.dtype:
        raise TypeError(f"`{shown('a', options)}` holds {a.dtype} and `b` {b.dtype}: both factors have one type, convert one")
    if a.dtype not in _RESULTS:
        raise TypeError(f"`{shown('a', options)}` holds {a.dtype}, and factors are of " + ", ".join(_RESULTS))
    if a.dtype == "f32" and not options.tf32:
        raise TypeError(
            "f32 factors are multiplied as tf32, of 10 bits, which has to be asked for: pass tf32=True, or bf16 or f16"
        )


def _result_type(a: Any, out: Any, options: Options) -> str:
    if out is None:
        return options.dtype or _RESULTS[a.dtype]
    if options.dtype not in (None, out.dtype):
        raise TypeError(f"`out` holds {out.dtype}, and `dtype` asks for {options.dtype}")
    return out.dtype


def fields_of(tensors: Mapping[str, DeviceTensor], shape: Shape, options: Options) -> dict[str, int | str]:
    """The fields of kiln_gemm_problem; tensors that do not fit are refused."""
    a, b = tensors["a"], tensors["b"]
    kind = "tf32" if a.dtype == "f32" else a.dtype
    fields: dict[str, Any] = {"m": shape.m, "n": shape.n, "k": shape.k, "batch": shape.batch}
    fields |= {"type_a": kind, "type_b": kind, "type_c": shape.dtype, "activation": _ACTIVATIONS[options.activation]}
    is_batch = shape.batch > 1 or len(shape.result) == 3 == len(b.shape)
    a_lies = _lies("a", a if is_batch else _folded("a", a), True)
    b_lies = _lies("b", b, False)
    fields |= {"lda": a_lies.step, "ldb": b_lies.step}
    flags = 0 if a_lies.by_rows else _A_ALONG_M
    flags |= _B_ALONG_N if b_lies.by_rows else 0
    flags |= options.has_alpha * _ALPHA | options.has_beta * _BETA | options.batch_invariant * _INVARIANT
    if is_batch:
        fields |= {"stride_a": a.strides[0], "stride_b": b.strides[0]}
    if options.kind == "grouped_gemm":
        fields |= {"groups": b.shape[0], "stride_b": b.strides[0] if b.shape[0] > 1 else 0}
    if options.kind == "k_grouped_gemm":
        fields["groups"] = shape.result[0]
    flags |= _add_likes(fields, tensors, shape, is_batch)
    flags |= _flags_of_others(tensors, shape, options)
    fields["flags"] = flags
    return fields


def _add_likes(fields: dict[str, Any], tensors: Mapping[str, DeviceTensor], shape: Shape, is_batch: bool) -> int:
    """The matrices that are like the result."""
    for name, step, stride in (("out", "ldc", "stride_c"), ("residual", "ldr", "stride_r")):
        tensor = tensors.get(name)
        if tensor is None:
            continue
        lies = _lies(name, tensor if is_batch else _folded(name, tensor), True)
        if not lies.by_rows:
            raise ValueError(_strides_text(name, tensor) + ", and its neighbours have to lie along the last dimension")
        fields[step] = lies.step
        if is_batch:
            fields[stride] = tensor.strides[0]
    return _RESIDUAL if "residual" in tensors else 0


def _others(tensors: Mapping[str, Any], shape: Shape, options: Options) -> list[tuple[str, tuple[int, ...], str, int]]:
    """Of each vector or table: its name, shape, type and flag."""
    m, n, k = shape.m, shape.n, shape.k
    blocks = -(-k // _SCALE_BLOCK)
    groups = {"grouped_gemm": tensors["b"].shape[:1], "k_grouped_gemm": shape.result[:1]}.get(options.kind, ())
    along_k = options.kind == "k_grouped_gemm"
    panels = (blocks, n) if along_k else (*groups, -(-n // _SCALE_BLOCK), blocks)
    told = _GROUPS_ALONG_K if along_k else _GROUPS_APART if options.apart else _ROWS_OF_GROUP
    out = [("bias", (*groups, n), shape.dtype, _BIAS)]
    out.append(("group_of_tile", (-(-m // _GROUP_ROWS),), "s32", 0))
    out.append(("rows_of_group", tuple(groups), "s32", told))
    out.append(("a_scale", (blocks, m), "f32", _BLOCK_SCALES))
    out.append(("b_scale", panels, "f32", _BLOCK_SCALES))
    if options.kind == "sparse_gemm":
        dtype = "s32" if tensors["metadata"].dtype == "s32" else "u32"  # PyTorch's usual 32 bits
        out.append(("metadata", (m, k // 32), dtype, _SPARSE))
    return [row for row in out if row[0] in tensors]


def check_others(tensors: Mapping[str, Any], shape: Shape, options: Options) -> None:
    """Shapes and types of all but the factors."""
    if options.apart:
        _check_room(shape.m, tensors["b"].shape[0])
    for name, extents, dtype, _ in _others(tensors, shape, options):
        _check(name, tensors[name], extents, dtype)
    for name in ("out", "residual"):
        if name in tensors:
            _check(name, tensors[name], shape.result, shape.dtype)


def _check_room(rows: int, groups: int) -> None:
    if groups == 0 or rows % (groups * _GROUP_ROWS) == 0:
        return
    wanted = -(-rows // (groups * _GROUP_ROWS)) * groups * _GROUP_ROWS
    raise ValueError(
        f"`a` has {rows} rows for {groups} groups apart, which have room for a multiple of {_GROUP_ROWS} each: "
        f"give it {wanted}"
    )


def _flags_of_others(tensors: Mapping[str, DeviceTensor], shape: Shape, options: Options) -> int:
    flags = 0
    for name, _, _, flag in _others(tensors, shape, options):
        if has_gaps(tensors[name]):
            raise ValueError(_strides_text(name, tensors[name]) + ": pass a copy without gaps, `.contiguous()`")
        flags |= flag
    return flags


def _check(name: str, tensor: Any, shape: tuple[int, ...], dtype: str) -> None:
    if tensor.dtype != dtype:
        raise TypeError(f"`{name}` holds {tensor.dtype}, and {dtype} is needed: convert it")
    if tuple(tensor.shape) != tuple(shape):
        turned = tuple(tensor.shape) == tuple(shape)[::-1]
        way_out = "; pass `.T.contiguous()`" if turned else ""
        raise ValueError(f"`{name}` has the shape {list(tensor.shape)}, and {list(shape)} is needed{way_out}")


def _strides_text(name: str, tensor: DeviceTensor) -> str:
    return f"`{name}` of shape {list(tensor.shape)} has strides {list(tensor.strides)}"


def _lies(name: str, tensor: DeviceTensor, rows_first: bool) -> Matrix:
    (rows, columns), (row_stride, column_stride) = tensor.shape[-2:], tensor.strides[-2:]
    by_rows = (columns == 1 or column_stride == 1) and (rows == 1 or row_stride >= columns)
    by_columns = (rows == 1 or row_stride == 1) and (columns == 1 or column_stride >= rows)
    if by_rows and (rows_first or not by_columns):
        return Matrix(True, row_stride if rows > 1 else 0)
    if by_columns:
        return Matrix(False, column_stride if columns > 1 else 0)
    raise ValueError(
        _strides_text(name, tensor)
        + f": of its last two, one has to be 1 and the other at least {columns} (rows) or {rows} (columns); "
        "pass `.contiguous()`"
    )


def _folded(name: str, tensor: DeviceTensor) -> DeviceTensor:
    """The leading dimensions as one, without a copy."""
    if len(tensor.shape) <= 2 or (name == "b"):
        return tensor
    shape, strides = tensor.shape[:-1], tensor.strides[:-1]
    step = 0
    length = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent == 1:
            continue
        if step == 0:
            step = stride
        elif stride != step * length:
            raise ValueError(
                _strides_text(name, tensor)
                + f": all but the last dimension count as rows, which lie {step} and {stride} and not "
                f"{step} and {step * length} apart; pass `.contiguous()`"
            )
        length *= extent
    rows = math.prod(shape)
    return tensor._replace(shape=(rows, tensor.shape[-1]), strides=(step or tensor.shape[-1], tensor.strides[-1]))


class _Products(Family):
    first = "a"
    values = ("a", "b", "out", *_VECTORS, "alpha", "beta")
    factors = {"alpha": "f", "beta": "f"}
    tables = ("group_of_tile", "rows_of_group")
    aliases = {"packed": "a"}
    what = "a product"
    writer = "the product"
    rows = 1

    def name(self, options: Options) -> str:
        return options.kind

    def shown(self, name: str, options: Options) -> str:
        return shown(name, options)

    def check_given(self, given: Mapping[str, Any], options: Options) -> None:
        check_given(given, options)

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Options, alignment: int) -> Problem:
        shape = shape_of(tensors, options)
        check_others(tensors, shape, options)
        results = (Result("out", shape.dtype, shape.result, "the product"),)
        if math.prod(shape.result) == 0:
            return Problem(results, None)
        return Problem(results, {**fields_of(tensors, shape, options), "alignment": alignment})

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        return _core.prepare_product(fields, device)

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _formulas  # which is about these products

        return (_formulas.reference(asked.given, asked.options, (asked.factors["alpha"], asked.factors["beta"])),)

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        from kiln import _torch_products  # after PyTorch, which it needs

        return (_torch_products.call_operator(asked),)


FAMILY = _Products()


def asked_of(given: dict[str, Any], options: Options, alpha: float, beta: float, stream: Any) -> Asked:
    return Asked(FAMILY, given, options, {"alpha": alpha, "beta": beta}, stream)
