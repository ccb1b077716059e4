"""The products of kiln.ops in fp64 on this CPU, rounded once to the result's type: their `reference`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kiln._arrays import numpy_dtype
from kiln._launch import Seen, is_torch, seen_of, torch_dtype
from kiln._products import Options, check_given, check_others, shape_of

_GROUP_ROWS = 128
_SCALE_BLOCK = 128
_TF32_BITS = np.uint32(0xFFFFE000)


def reference(given: Mapping[str, Any], options: Options, factors: tuple[float, float]) -> Any:
    """Computes what kiln._products.launch does, of tensors or arrays in any memory that can be read."""
    check_given(given, options)
    tensors = {name: value for name, value in given.items() if value is not None}
    for name, value in tensors.items():
        if not is_torch(value) and not isinstance(value, np.ndarray):
            raise TypeError(
                f"`{name}` is an object of {type(value).__name__}: an array of NumPy or a tensor of PyTorch is needed"
            )
    seen = {name: seen_of(name, value) for name, value in tensors.items()}
    shape = shape_of(seen, options)
    check_others(seen, shape, options)
    numbers = {name: _numbers(value) for name, value in tensors.items()}
    alpha, beta = factors
    if options.tf32:
        numbers |= {name: _as_tf32(numbers[name]) for name in ("a", "b")}
    out = numbers.get("out")
    value, is_kept = _sums(numbers, seen, options, shape.k)
    value = alpha * value.reshape(shape.result)
    if beta != 0 and out is not None:
        value = value + beta * out
    if "bias" in numbers:
        value = value + _bias(numbers, options)
    value = _ACTIVATIONS[options.activation](value)
    if "residual" in numbers:
        value = value + numbers["residual"]
    value = np.where(is_kept, 0 if out is None else out, value)
    return _rounded(value, shape.dtype, given["a"], given.get("out"))


def _numbers(value: Any) -> np.ndarray:
    if is_torch(value):
        torch = sys.modules["torch"]
        value = value.detach().cpu()
        whole = value.dtype in (torch.int8, torch.int32, torch.uint32)
        return (value.to(torch.int64) if whole else value.double()).numpy()
    return value.astype(np.int64 if value.dtype.kind in "iu" else np.float64)


def _as_tf32(numbers: np.ndarray) -> np.ndarray:
    bits = numbers.astype(np.float32).view(np.uint32) & _TF32_BITS
    return bits.view(np.float32).astype(np.float64)


def _sums(
    numbers: Mapping[str, np.ndarray], seen: Mapping[str, Seen], options: Options, k: int
) -> tuple[np.ndarray, Any]:
    """The sums, and which elements stay as they are."""
    a, b = numbers["a"], numbers["b"]
    if options.kind == "sparse_gemm":
        a = expanded(a, numbers["metadata"].astype(np.uint32), seen["a"].dtype)
    if options.kind == "block_scaled_gemm":
        return _scaled_sums(numbers, k), False
    if options.kind != "grouped_gemm":
        return a @ b, False
    out = np.zeros((a.shape[0], b.shape[-1]))
    is_kept = np.ones((a.shape[0], 1), bool)
    for tile, group in enumerate(numbers["group_of_tile"]):
        if not 0 <= group < b.shape[0]:
            continue
        rows = slice(tile * _GROUP_ROWS, (tile + 1) * _GROUP_ROWS)
        out[rows] = a[rows] @ b[int(group)]
        is_kept[rows] = False
    return out, is_kept


def _scaled_sums(numbers: Mapping[str, np.ndarray], k: int) -> np.ndarray:
    a, b, a_scale, b_scale = (numbers[name] for name in ("a", "b", "a_scale", "b_scale"))
    columns = np.arange(b.shape[1]) // _SCALE_BLOCK
    out = np.zeros((a.shape[0], b.shape[1]))
    for block in range(-(-k // _SCALE_BLOCK)):
        part = slice(block * _SCALE_BLOCK, (block + 1) * _SCALE_BLOCK)
        out += (a[:, part] @ b[part]) * a_scale[block][:, None] * b_scale[columns, block]
    return out


def _bias(numbers: Mapping[str, np.ndarray], options: Options) -> np.ndarray:
    bias = numbers["bias"]
    if options.kind != "grouped_gemm":
        return bias
    groups = np.clip(numbers["group_of_tile"], 0, bias.shape[0] - 1).astype(np.int64)
    return np.repeat(bias[groups], _GROUP_ROWS, axis=0)[: numbers["a"].shape[0]]


def expanded(packed: np.ndarray, words: np.ndarray, dtype: str) -> np.ndarray:
    """The matrix [m, k] of which `packed` is what is kept, and `words` say where from (kiln/sparse.h)."""
    rows, kept = packed.shape
    nibbles = (_bytes_of(words, dtype)[..., None] >> np.array([0, 4], np.uint8) & 15).reshape(rows, kept // 2)
    out = np.zeros((rows, kept // 2, 4), packed.dtype)
    pairs = packed.reshape(rows, kept // 2, 2)
    np.put_along_axis(out, (nibbles & 3)[..., None].astype(np.int64), pairs[..., :1], axis=2)
    np.put_along_axis(out, (nibbles >> 2)[..., None].astype(np.int64), pairs[..., 1:], axis=2)
    return out.reshape(rows, 2 * kept)


def _bytes_of(words: np.ndarray, dtype: str) -> np.ndarray:
    """[m, k / 8] of words [m, k / 32] in the order in which the lanes of a warp load them."""
    rows, columns = words.shape
    raw = np.ascontiguousarray(words.astype("<u4")).view(np.uint8).reshape(rows, columns, 4)
    if dtype not in ("bf16", "f16"):
        return raw.reshape(rows, 4 * columns)
    # Word row 2r of 16 has bytes 0 and 1 of rows r and r + 8, word row 2r + 1 their bytes 2 and 3.
    block = raw.reshape(rows // 16, 8, 2, columns, 2, 2)
    return np.ascontiguousarray(block.transpose(0, 4, 1, 3, 2, 5)).reshape(rows, 4 * columns)


def _gelu(x: np.ndarray) -> np.ndarray:
    erf = np.frompyfunc(math.erf, 1, 1)
    return x * (1 + np.asarray(erf(x / math.sqrt(2))).astype(np.float64)) / 2


_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": _gelu,
    "silu": lambda x: x * (np.tanh(x / 2) + 1) / 2,
}


def _rounded(value: np.ndarray, dtype: str, like: Any, out: Any) -> Any:
    if is_torch(like):
        torch = sys.modules["torch"]
        made = torch.from_numpy(np.ascontiguousarray(value)).to(torch_dtype(dtype))
        return made if out is None else out.copy_(made)
    made = value.astype(numpy_dtype(dtype))
    if out is None:
        return made
    out[...] = made
    return out
