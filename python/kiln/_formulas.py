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
    value, is_kept = _sums(numbers, seen, options)
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


def _sums(numbers: Mapping[str, np.ndarray], seen: Mapping[str, Seen], options: Options) -> tuple[np.ndarray, Any]:
    """The sums, and which elements stay as they are."""
    a, b = numbers["a"], numbers["b"]
    if options.kind == "sparse_gemm":
        a = expanded(a, numbers["metadata"].astype(np.uint32), seen["a"].dtype)
    scales = (numbers["a_scale"], numbers["b_scale"]) if "a_scale" in numbers else None
    if options.kind == "k_grouped_gemm":
        return _sums_along_k(numbers, scales), False
    if options.kind != "grouped_gemm":
        return _product(a, b, scales), False
    out = np.zeros((a.shape[0], b.shape[-1]))
    group_of = groups_of_rows(numbers, options)
    for group in np.unique(group_of[group_of >= 0]):
        rows = group_of == group
        mine = scales if scales is None else (scales[0][:, rows], scales[1][group])
        out[rows] = _product(a[rows], b[group], mine)
    return out, (group_of < 0)[:, None]


def _sums_along_k(numbers: Mapping[str, np.ndarray], scales: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    a, b = numbers["a"], numbers["b"]
    if scales is not None:
        a = a * np.repeat(scales[0], _SCALE_BLOCK, axis=0)[: a.shape[1]].T
        b = b * np.repeat(scales[1], _SCALE_BLOCK, axis=0)[: b.shape[0]]
    out, begin = [], 0
    for part in numbers["rows_of_group"]:
        end = begin + max(0, min(int(part), a.shape[1] - begin))
        out.append(a[:, begin:end] @ b[begin:end])
        begin += -(-(end - begin) // _GROUP_ROWS) * _GROUP_ROWS
    return np.array(out)


def groups_of_rows(numbers: Mapping[str, np.ndarray], options: Options) -> np.ndarray:
    """The group of each row of `a`; -1 where it is passed over. Of a tile of 128 rows all are computed."""
    m, groups = numbers["a"].shape[0], numbers["b"].shape[0]
    if "group_of_tile" in numbers:
        of_tile = numbers["group_of_tile"].astype(np.int64)
        of_tile = np.where((of_tile >= 0) & (of_tile < groups), of_tile, -1)
        return np.repeat(of_tile, _GROUP_ROWS)[:m]
    out, begin = np.full(m, -1), 0
    for group, rows in enumerate(numbers["rows_of_group"]):
        room = m // groups if options.apart else m - begin
        whole = -(-max(0, min(int(rows), room)) // _GROUP_ROWS) * _GROUP_ROWS
        out[begin : begin + whole] = group
        begin += room if options.apart else whole
    return out


def _product(a: np.ndarray, b: np.ndarray, scales: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    if scales is None:
        return a @ b
    a_scale, b_scale = scales
    columns = np.arange(b.shape[1]) // _SCALE_BLOCK
    out = np.zeros((a.shape[0], b.shape[1]))
    for block in range(len(a_scale)):
        part = slice(block * _SCALE_BLOCK, (block + 1) * _SCALE_BLOCK)
        out += (a[:, part] @ b[part]) * a_scale[block][:, None] * b_scale[columns, block]
    return out


def _bias(numbers: Mapping[str, np.ndarray], options: Options) -> np.ndarray:
    bias = numbers["bias"]
    if options.kind != "grouped_gemm":
        return bias
    return bias[np.maximum(groups_of_rows(numbers, options), 0)]


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
