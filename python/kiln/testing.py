"""Checks and times of kernels against functions that compute the same.

    kiln.testing.check(prog.softmax, (x, y), reference=lambda x, y: torch.softmax(x, dim=1))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kiln._program import Kernel

__all__ = ["check"]


def check(
    kernel: Kernel,
    arguments: Sequence[Any] | Mapping[str, Any],
    *,
    reference: Callable[..., Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Runs the kernel on these arguments and compares what it writes and returns.

    Tensors on a GPU are launched on, arrays in this CPU's memory are simulated, with all of the
    simulator's checks. `reference` gets the same arguments, as they were before, and gives what the
    kernel writes, in the order of its parameters, and then what it returns; without it they are those
    of `kernel.reference`, on arrays in this CPU's memory. The arguments hold the kernel's results
    afterwards.

    Raises AssertionError that says which output differs, where and by how much. The tolerances are
    those of the output's type: 2^-7 for bf16, 2^-10 for f16, 2^-3 for floats of 8 bits, 1e-4 for f32,
    relative and of the largest element.
    """
    bound = kernel._bind(() if isinstance(arguments, Mapping) else tuple(arguments), dict(
        arguments if isinstance(arguments, Mapping) else {}))
    before = {name: _copy(value) for name, value in bound.items()}
    outputs = [each for each in kernel.parameters if each.is_written]
    on_gpu = any(_is_on_gpu(value) for value in bound.values())
    if on_gpu:
        returned = kernel(**bound)
    else:
        report = kernel.simulate(**bound)
        assert report.ok, f"the simulator finds mistakes\n{report}"
        returned = report.result
    expected = _expected(kernel, before, reference)
    found = [(each.name, each.dtype, bound[each.name]) for each in outputs]
    if kernel.result is not None:
        found.append((kernel.result.name, kernel.result.dtype, returned))
    if len(found) != len(expected):
        raise AssertionError(f"kernel `{kernel.name}` has {len(found)} outputs, and the reference gives {len(expected)}")
    for (name, dtype, value), right in zip(found, expected):
        tolerance = _TOLERANCES.get(dtype, 0.0)
        _compare(name, _as_f64(value), _as_f64(right), tolerance if rtol is None else rtol, tolerance, atol)


_TOLERANCES = {"f64": 1e-9, "f32": 1e-4, "tf32": 2**-9, "f16": 2**-10, "bf16": 2**-7, "f8_e4m3": 2**-3, "f8_e5m2": 2**-2}


def _expected(kernel: Kernel, before: dict[str, Any], reference: Callable[..., Any] | None) -> list[Any]:
    if reference is not None:
        code = getattr(reference, "__code__", None)  # what is not of Python has none
        by_name = code is not None and code.co_kwonlyargcount > 0
        given = reference(**before) if by_name else reference(*before.values())
        return list(given) if isinstance(given, (tuple, list)) else [given]
    if any(_is_on_gpu(value) for value in before.values()):
        before = {name: value.cpu() if _is_on_gpu(value) else value for name, value in before.items()}
    report = kernel.reference(**before)
    out = [before[each.name] for each in kernel.parameters if each.is_written]
    return out if kernel.result is None else [*out, report.result]


def _is_on_gpu(value: Any) -> bool:
    return bool(getattr(value, "is_cuda", False)) or hasattr(value, "__cuda_array_interface__")


def _copy(value: Any) -> Any:
    for name in ("clone", "copy"):
        if hasattr(value, name):
            return getattr(value, name)()
    return value


def _as_f64(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().double().numpy()
    elif hasattr(value, "get"):  # of CuPy
        value = value.get()
    return np.asarray(value).astype(np.float64)


def _compare(name: str, left: np.ndarray, right: np.ndarray, rtol: float, ratol: float, atol: float | None) -> None:
    if left.shape != right.shape:
        raise AssertionError(f"`{name}` has shape {list(left.shape)}, and the reference has {list(right.shape)}")
    if left.size == 0:
        return
    largest = float(np.max(np.abs(right[np.isfinite(right)]), initial=0.0))
    allowed = rtol * np.abs(right) + (ratol * largest if atol is None else atol)
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(left - right) <= allowed) | (left == right) | (np.isnan(left) & np.isnan(right)))
    if not wrong.any():
        return
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise AssertionError(
        f"`{name}` differs in {int(wrong.sum())} of {left.size} elements, first at {list(at)}: "
        f"{left[at]:.6g}, the reference {right[at]:.6g}, at most {allowed[at]:.2g} apart"
    )
