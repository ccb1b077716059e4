"""Arrays of NumPy and of DLPack as address, type and shape, and results as arrays of NumPy."""

from __future__ import annotations

import ctypes
import importlib
import math
from typing import Any, NamedTuple

import numpy as np

from kiln import _core

try:
    ml_dtypes: Any = importlib.import_module("ml_dtypes")
except ImportError:
    ml_dtypes = None

_NUMPY = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "int64": "s64",
    "uint64": "u64",
    "int32": "s32",
    "uint32": "u32",
    "int16": "s16",
    "uint16": "u16",
    "int8": "s8",
    "uint8": "u8",
    "bool": "bool",
}
# Those of ml_dtypes whose elements have the bits that kiln's have.
_ML_DTYPES = {
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e5m2": "f8_e5m2",
    "float8_e8m0fnu": "f8_ue8m0",
}
_KILN = {name: each for each, name in _NUMPY.items()} | {"tf32": "float32"}


class Array(NamedTuple):
    """An array as kiln._core takes it; `owner` keeps its memory alive."""

    address: int
    dtype: str
    shape: list[int]
    owner: Any


def is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) or (
        hasattr(value, "__dlpack__") and not isinstance(value, np.generic)
    )


def array_of(name: str, value: Any, is_written: bool) -> Array:
    """The array that is given for the parameter `name`."""
    if not isinstance(value, np.ndarray):
        address, dtype, shape, without_gaps = _describe(name, value)
    else:
        address, shape = value.ctypes.data, list(value.shape)
        dtype = kiln_dtype(value.dtype)
        without_gaps = value.flags.c_contiguous
        if is_written and not value.flags.writeable:
            raise ValueError(f"array `{name}` is read-only, and the kernel writes it")
        if not value.dtype.isnative:
            dtype = ""
    if not dtype:
        raise TypeError(f"array `{name}` holds {value.dtype}, which kiln has no type for")
    if not without_gaps:
        raise ValueError(
            f"array `{name}` has gaps or another order of dimensions: "
            "pass a copy that numpy.ascontiguousarray makes"
        )
    return Array(address, dtype, shape, value)


def _describe(name: str, value: Any) -> tuple[int, str, list[int], bool]:
    try:
        return _core.describe(value)
    except TypeError:
        raise TypeError(
            f"array `{name}` is of {type(value).__name__}, which is no array in this CPU's memory"
        ) from None


def kiln_dtype(dtype: np.dtype) -> str:
    """kiln's name of a type of NumPy; "" where it has none."""
    if dtype.name in _NUMPY:
        return _NUMPY[dtype.name]
    is_ml = ml_dtypes is not None and hasattr(ml_dtypes, dtype.name)
    return _ML_DTYPES.get(dtype.name, "") if is_ml else ""


def numpy_of(address: int, dtype: str, shape: list[int]) -> Any:
    """A copy of what lies there; a number where it has no dimensions.

    A type that neither NumPy nor ml_dtypes has comes as unsigned integers of its bits.
    """
    kind = numpy_dtype(dtype)
    count = math.prod(shape)
    if count == 0:
        return np.empty(shape, kind)
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    array = np.frombuffer(bytearray(memory), kind).reshape(shape)
    return array if shape else array[()]


def numpy_dtype(dtype: str) -> np.dtype:
    """The type of NumPy or ml_dtypes for kiln's `dtype`, else unsigned integers of its bits."""
    if dtype in _KILN:
        return np.dtype(_KILN[dtype])
    for name, each in _ML_DTYPES.items():
        if each == dtype and hasattr(ml_dtypes, name):
            return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(np.uint16 if dtype == "bf16" else np.uint8)
