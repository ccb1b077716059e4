"""Calls of kiln.ops: what is looked at once of tensors that lie alike, and what every call does.

    kiln.ops.gemm(a, b)     kiln._core.Launcher knows tensors that lie like these: it makes the result and launches
      not known yet         the function of kiln.ops says what is asked (Asked), whose family checks it and makes a
                            problem of it; that is prepared (Ready) and launched, and the Launcher is told
      autograd, a compiler  the family calls its operator of PyTorch, which comes back here without them

A Launcher knows a call by the types, shapes, strides and device of all tensors, the options, which factors are the
usual ones and how the addresses are aligned: all that a problem is made of. Where the tensors begin, and whether the
one that is written shares memory with another, is looked at in every call.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, Generic, NamedTuple, NoReturn, ParamSpec

import numpy as np

from kiln import _core
from kiln._launch import (
    DeviceError,
    DeviceTensor,
    Known,
    Slot,
    allocator,
    current_stream,
    is_torch,
    know,
    on_stream,
    raise_status,
    stream_handle,
    strided_tensor,
)

P = ParamSpec("P")

_PLANS_MAX = 1024
_ALIGNMENT_MAX = 16
_BYTES = {"f8_e4m3": 1, "f8_e5m2": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2}
_OTHER_BYTES = 4  # of types that tensors of kiln.ops have
_STREAM = "stream"


class Result(NamedTuple):
    """A tensor that a call makes."""

    name: str  # among the family's values
    dtype: str
    shape: tuple[int, ...]
    what: str


class Problem(NamedTuple):
    """What tensors and options come to."""

    results: tuple[Result, ...]
    fields: dict[str, Any] | None  # of the library's problem; None: a result has no elements
    usual: float = 0.0  # of a factor that is None


class Family:
    """Functions of kiln.ops that are prepared and launched alike."""

    first: str  # the tensor that says where a call runs
    values: tuple[str, ...]  # in the order of kiln._core.Prepared.launch
    factors: Mapping[str, str] = {}  # those that are numbers, with the kind of their slot
    tables: tuple[str, ...] = ()  # those whose elements are read one by one
    written: str | None = "out"  # what a caller may give to receive the result
    aliases: Mapping[str, str] = {}  # names that a function has for values
    what: str  # as in "runs on one"
    writer: str  # as in "which ... writes"
    rows: int  # dimensions behind those whose elements count as rows

    def name(self, options: Any) -> str:
        raise NotImplementedError

    def shown(self, name: str, options: Any) -> str:
        """What the caller calls a tensor."""
        return name

    def check_given(self, given: Mapping[str, Any], options: Any) -> None:
        raise NotImplementedError

    def problem_of(self, tensors: Mapping[str, DeviceTensor], options: Any, alignment: int) -> Problem:
        """Tensors that do not fit are refused."""
        raise NotImplementedError

    def prepare(self, fields: dict[str, Any], device: int) -> tuple[int, str, _core.Prepared | None]:
        raise NotImplementedError

    def reference(self, asked: Asked) -> tuple[Any, ...]:
        """The results on this CPU."""
        raise NotImplementedError

    def call_operator(self, asked: Asked) -> tuple[Any, ...]:
        """The results by its operator of PyTorch."""
        raise NotImplementedError


class Asked(NamedTuple):
    """What a call asks for."""

    family: Family
    given: dict[str, Any]  # tensors by name; None where none is given
    options: Any  # what decides besides
    factors: dict[str, float | None]
    stream: Any
    returned: int = 1  # of the results


# Functions and no members: the compiler of PyTorch follows those of a NamedTuple in its newer releases alone.
def _like(asked: Asked) -> Any:
    return asked.given[asked.family.first]


def _answer(asked: Asked, results: tuple[Any, ...]) -> Any:
    return results[0] if asked.returned == 1 else results[: asked.returned]


class Ready(NamedTuple):
    prepared: _core.Prepared | None  # None: a result has no elements
    makes: tuple[tuple[str, Callable[[], Any]], ...]  # of results that nobody gave
    make_workspace: Callable[[], Any] | None
    results: tuple[str, ...]
    usual: float
    device: int
    apart: _core.Apart | None


_plans: dict[Any, Ready] = {}


def bytes_of(dtype: str) -> int:
    """Of an element."""
    return _BYTES.get(dtype, _OTHER_BYTES)


def is_traced() -> bool:
    """Whether the compiler of PyTorch follows this code."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def _is_torch_on_gpu(value: Any) -> bool:
    return is_torch(value) and value.is_cuda


def needs_gradient(asked: Asked) -> bool:
    """Whether autograd has to see the call."""
    if not _is_torch_on_gpu(_like(asked)) or not sys.modules["torch"].is_grad_enabled():
        return False
    family, given = asked.family, asked.given
    wants = [name for name, value in given.items() if is_torch(value) and value.requires_grad]
    if wants and family.written is not None and given[family.written] is not None:
        raise ValueError(f"`{wants[0]}` needs a gradient, and {family.what} into `out` has none: leave `out` away, or detach it")
    return bool(wants)


class Operation(Generic[P]):
    """A function of kiln.ops, and as `reference` the same on this CPU. `asked` says what a call asks for."""

    def __init__(self, family: Family, asked: Callable[P, Asked]) -> None:
        self.asked = asked
        self._launches = _Launches(family, asked)
        functools.update_wrapper(self, asked)
        self.__signature__ = inspect.signature(asked).replace(return_annotation=Any)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Any:
        return self._in_graph(*arguments, **named) if is_traced() else self._launches(*arguments, **named)

    def reference(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """The same on this CPU, in fp64 and rounded once; `stream` does not count."""
        asked = self.asked(*arguments, **named)
        return _answer(asked, asked.family.reference(asked))

    def unseen(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """The same of tensors of PyTorch for which autograd has seen the call."""
        with sys.modules["torch"].no_grad():
            return self._launches(*arguments, **named)

    def _in_graph(self, *arguments: Any, **named: Any) -> Any:
        asked = self.asked(*arguments, **named)
        written = asked.family.written
        if _is_torch_on_gpu(_like(asked)) and (written is None or asked.given[written] is None):
            return _answer(asked, asked.family.call_operator(asked))
        return _answer(asked, launch(asked)[0])

    def __repr__(self) -> str:
        return f"<kiln.ops.{self.__name__}>"  # type: ignore[attr-defined]


def operation(family: Family) -> Callable[[Callable[P, Asked]], Operation[P]]:
    return functools.partial(Operation, family)


class _Launches(_core.Launcher):
    """What calls on a GPU do. Those that are not known yet come to `_miss`."""

    def __init__(self, family: Family, asked: Callable[..., Asked]) -> None:
        self._family, self._asked = family, asked
        parameters = [each for each in inspect.signature(asked).parameters.values() if each.name != _STREAM]
        self._slots = [_slot_of(family, each) for each in parameters]
        self._setup((self._slots, sum(each.kind is not each.KEYWORD_ONLY for each in parameters)))

    def _miss(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        asked = self._asked(*arguments, **named)
        if needs_gradient(asked):
            return _answer(asked, asked.family.call_operator(asked))
        results, ready = launch(asked)
        if ready.prepared is not None and know(_like(asked)):
            given = dict(zip((each.name for each in self._slots), arguments)) | named
            self._keep(self._known(asked, ready, given))
        return _answer(asked, results)

    def _known(self, asked: Asked, ready: Ready, given: Mapping[str, Any]) -> Known:
        objects = tuple(given.get(each.name, *each.usual) for each in self._slots)
        makes = dict(ready.makes)
        results = [(self._family.values.index(name), makes.get(name)) for name in ready.results]
        assert ready.prepared is not None
        return Known(
            objects, ready.prepared, results, asked.returned, None, ready.make_workspace, ready.usual, ready.apart
        )

    def _fail(self, status: int, error: str) -> NoReturn:
        raise_status(status, error, ())


def _slot_of(family: Family, parameter: inspect.Parameter) -> Slot:
    name = family.aliases.get(parameter.name, parameter.name)
    usual = None if parameter.default is parameter.empty else parameter.default
    if name not in family.values:
        return Slot(parameter.name, "o", True, 0, (usual,))
    kind = family.factors.get(name) or ("x" if name in family.tables else "s")
    return Slot(parameter.name, kind, True, family.values.index(name), (usual,))


def launch(asked: Asked) -> tuple[tuple[Any, ...], Ready]:
    """Starts it on the tensors that are given; gives the results."""
    family, given = asked.family, asked.given
    family.check_given(given, asked.options)
    handle = current_stream(_like(asked)) if asked.stream is None else stream_handle(asked.stream)
    signatures, values = [], dict(asked.factors)
    for name, value in given.items():
        if value is not None:
            signature, values[name] = _seen(asked, name, value, handle)
            signatures.append((name, signature))
    alignment = _alignment(family, {name: values[name] for name, _ in signatures})
    key = (family.name(asked.options), tuple(signatures), asked.options, alignment)
    ready = _plans.get(key)
    if ready is None:
        ready = _prepare(asked, handle, alignment)
        if len(_plans) >= _PLANS_MAX:
            del _plans[next(iter(_plans))]
        _plans[key] = ready
    if ready.apart is not None:
        _check_apart(family, ready.apart, _row(family, values, ready))
    made, place = {}, 0
    # The framework allocates for its current stream.
    with nullcontext() if asked.stream is None else on_stream(_like(asked), ready.device, handle):
        for name, make in ready.makes:
            made[name] = make()
            values[name] = _address(made[name])
        if ready.make_workspace is not None:
            workspace = ready.make_workspace()
            place = _address(workspace)
    results = tuple(made[name] if name in made else given[name] for name in ready.results)
    if ready.prepared is None:
        return tuple(map(_zeros, results)), ready
    status, error = ready.prepared.launch(_row(family, values, ready), place, handle)
    if status != _core.OK:
        raise_status(status, error, ())
    return results, ready


def kernel_text(asked: Asked) -> str:
    """The kernel and the defines that a call is computed with, for those who report timings."""
    asked.family.check_given(asked.given, asked.options)
    tensors = _tensors(asked)
    problem = asked.family.problem_of(tensors, asked.options, _ALIGNMENT_MAX)
    status, error, prepared = asked.family.prepare(problem.fields or {}, tensors[asked.family.first].device)
    if prepared is None:
        raise_status(status, error, ())
    return prepared.kernel()


def _row(family: Family, values: Mapping[str, float | None], ready: Ready) -> list[float]:
    """As kiln._core.Prepared.launch takes them: addresses are whole numbers, factors real ones."""
    row: list[float] = []
    for name in family.values:
        value = values.get(name)
        if name in family.factors:
            row.append(ready.usual if value is None else float(value))
        else:
            row.append(value or 0)
    return row


def _seen(asked: Asked, name: str, value: Any, handle: int) -> tuple[Any, int]:
    """What of a tensor a plan depends on, and its address."""
    if is_torch(value) and value.is_cuda and value.layout is sys.modules["torch"].strided:
        return (value.dtype, value.shape, value.stride(), value.get_device()), value.data_ptr()
    tensor = _tensor(asked, name, value, handle)
    return (tensor.dtype, tensor.shape, tensor.strides, tensor.device), tensor.address


def _tensor(asked: Asked, name: str, value: Any, handle: int | None) -> DeviceTensor:
    is_here = value.device.type == "cpu" if is_torch(value) else isinstance(value, np.ndarray)
    function, shown = asked.family.name(asked.options), asked.family.shown(name, asked.options)
    if is_here:
        raise ValueError(
            f"`{shown}` lies in this CPU's memory, and kiln.ops.{function} runs on a GPU: bring it there; "
            f"`kiln.ops.{function}.reference` computes the same on this CPU"
        )
    return strided_tensor(shown, value, handle, name == asked.family.written)


def _tensors(asked: Asked) -> dict[str, DeviceTensor]:
    """All that are given, which lie on one GPU."""
    tensors = {name: _tensor(asked, name, value, None) for name, value in asked.given.items() if value is not None}
    first, family = asked.family.first, asked.family
    device = tensors[first].device
    for name, each in tensors.items():
        if each.device != device:
            raise ValueError(
                f"`{family.shown(first, asked.options)}` lies on GPU {device} and `{name}` on GPU {each.device}: "
                f"{family.what} runs on one, bring them together"
            )
    return tensors


def _alignment(family: Family, addresses: Mapping[str, Any]) -> int:
    together = _ALIGNMENT_MAX
    for name, address in addresses.items():
        if name not in family.tables:
            together |= address
    return together & -together


def _prepare(asked: Asked, handle: int, alignment: int) -> Ready:
    family = asked.family
    tensors = _tensors(asked)
    device = tensors[family.first].device
    problem = family.problem_of(tensors, asked.options, alignment)
    makes = tuple(
        (each.name, allocator(_like(asked), device, each.dtype, each.shape, each.what))
        for each in problem.results
        if each.name != family.written or family.written not in tensors
    )
    results = tuple(each.name for each in problem.results)
    if problem.fields is None:
        return Ready(None, makes, None, results, problem.usual, device, None)
    name = family.name(asked.options)
    if _core.is_capturing(handle):
        raise DeviceError(
            f"kiln.ops.{name} is not prepared for these shapes, and its stream is captured in a graph: call it once before"
        )
    status, error, prepared = family.prepare(problem.fields, device)
    if prepared is None:
        raise_status(status, error, ())
    make_workspace = None
    if size := prepared.workspace:
        make_workspace = allocator(_like(asked), device, "u8", (size,), f"the workspace of {size} bytes")
    return Ready(prepared, makes, make_workspace, results, problem.usual, device, _apart_of(family, tensors))


def _address(value: Any) -> int:
    return value.data_ptr() if is_torch(value) else strided_tensor("result", value, None, False).address


def _zeros(made: Any) -> Any:
    """What is a sum of nothing."""
    if math.prod(made.shape) != 0:
        made[...] = 0
    return made


def _apart_of(family: Family, tensors: Mapping[str, DeviceTensor]) -> _core.Apart | None:
    """How the tensors lie that share no memory with the one that is written, but for a residual that is it."""
    out = tensors.get(family.written or "")
    if out is None:
        return None
    step = _row_step(out, family.rows)
    others = []
    for name, each in tensors.items():
        if name == family.written or 0 in each.shape:
            continue
        is_beside = step > 0 and _row_step(each, family.rows) == step
        may_coincide = name == "residual" and each.strides == out.strides
        others.append((family.values.index(name), _reach(each, family.rows), step if is_beside else 0, may_coincide))
    return _core.apart(family.values.index(family.written), _reach(out, family.rows), others)


def _check_apart(family: Family, apart: _core.Apart, row: list[float]) -> None:
    place = apart.shared(row)
    if place >= 0:
        name = family.values[place]
        raise ValueError(f"`{family.written}`, which {family.writer} writes, shares memory with `{name}`: give another tensor")


def _row_step(tensor: DeviceTensor, inner: int) -> int:
    """Bytes from row to row, where all rows lie in whole steps; else 0. `inner`: dimensions of a row."""
    leading = list(zip(tensor.shape, tensor.strides))[: max(len(tensor.shape) - inner, 0)]
    if not leading:
        return 0
    step = leading[-1][1]
    if step <= 0 or any(extent > 1 and stride % step for extent, stride in leading):
        return 0
    return step * bytes_of(tensor.dtype)


def _reach(tensor: DeviceTensor, inner: int) -> tuple[int, int]:
    """Bytes from the first element to behind the last, of all and of a row."""

    def reach(first: int) -> int:
        steps = zip(tensor.shape[first:], tensor.strides[first:])
        return bytes_of(tensor.dtype) * (1 + sum((extent - 1) * abs(stride) for extent, stride in steps))

    return reach(0), reach(max(len(tensor.shape) - inner, 0))
