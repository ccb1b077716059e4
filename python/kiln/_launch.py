"""Kernels on a GPU: tensors of any framework as addresses, plans, streams and what is returned.

A call with tensors of PyTorch, or whose framework has DLPack's table of functions, for which there is a plan
never comes here: see python/launcher.cpp.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, NoReturn

import numpy as np

from kiln import _core
from kiln._arrays import kiln_dtype, numpy_dtype, numpy_of
from kiln._core import Plan

_PLANS_MAX = 256
_CUDA, _CUDA_MANAGED = 2, 13  # devices of DLPack
_LEGACY_STREAM = 1  # as DLPack and the CUDA array interface call the default stream


class DeviceError(RuntimeError):
    """No GPU, no driver, no NVRTC, or what the driver says."""


class DeviceTensor(NamedTuple):
    """A tensor in the memory of a GPU; `owner` keeps it alive."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    device: int
    owner: Any
    strides: tuple[int, ...] = ()  # of elements


class Bound(NamedTuple):
    """The arguments of a call, by name."""

    tensors: dict[str, Any]
    numbers: dict[str, int | float]


class Seen(NamedTuple):
    """Type and shape of a tensor or an array, wherever it lies."""

    shape: tuple[int, ...]
    dtype: str


def seen_of(name: str, value: Any) -> Seen:
    dtype = torch_dtypes().get(value.dtype, "") if is_torch(value) else kiln_dtype(np.dtype(value.dtype))
    if not dtype:
        raise TypeError(f"`{name}` holds {value.dtype}, which kiln has no type for")
    return Seen(tuple(value.shape), dtype)


def framework_of(value: Any) -> str:
    """The package that the value's type is from: "torch", "cupy", "jaxlib"."""
    return type(value).__module__.partition(".")[0]


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value: Any) -> bool:
    return (
        is_torch(value)
        or hasattr(value, "__cuda_array_interface__")
        or (hasattr(value, "__dlpack__") and not isinstance(value, np.generic))
    )


def device_tensor(name: str, value: Any, stream: int | None, is_written: bool) -> DeviceTensor:
    """The tensor without gaps that is given for `name`; what produces it is ordered before `stream`."""
    tensor = strided_tensor(name, value, stream, is_written)
    if not has_gaps(tensor):
        return tensor
    way_out = "`.contiguous()`" if is_torch(value) else "a copy without gaps"
    raise ValueError(
        f"tensor `{name}` of shape {list(tensor.shape)} has strides {list(tensor.strides)} "
        f"and not {_strides(tensor.shape)}: pass {way_out}"
    )


def has_gaps(tensor: DeviceTensor) -> bool:
    steps = zip(tensor.strides, _strides(tensor.shape), tensor.shape)
    return 0 not in tensor.shape and any(given != step and extent != 1 for given, step, extent in steps)


def strided_tensor(name: str, value: Any, stream: int | None, is_written: bool) -> DeviceTensor:
    """The same, whatever its strides are."""
    if is_torch(value):
        return _of_torch(name, value)
    if framework_of(value) in ("jax", "jaxlib") and is_written:
        raise TypeError(
            f"`{name}` is an array of JAX, which must not change, and the kernel writes it: "
            "give a tensor of PyTorch or CuPy"
        )
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(name, value, stream, is_written)
    if hasattr(value, "__cuda_array_interface__"):
        return _of_cuda_array(name, value, stream, is_written)
    raise TypeError(f"parameter `{name}` needs a tensor on a GPU, and an object of {type(value).__name__} is given")


def _elsewhere(name: str, place: str) -> ValueError:
    return ValueError(
        f"tensor `{name}` lies {place}, and a kernel that is launched needs it in a GPU's memory; "
        "`.simulate` takes arrays in this CPU's"
    )


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def _of_torch(name: str, value: Any) -> DeviceTensor:
    torch = sys.modules["torch"]
    shape = tuple(value.shape)
    if value.device.type != "cuda":
        raise _elsewhere(name, f"on the device `{value.device}`")
    if value.layout != torch.strided:
        raise TypeError(f"tensor `{name}` has the layout {value.layout}: pass a dense one")
    if value.is_neg() or value.is_conj():
        raise ValueError(f"tensor `{name}` is a view that negates or conjugates: pass `.resolve_neg().resolve_conj()`")
    dtype = torch_dtypes().get(value.dtype, "")
    if not dtype:
        raise TypeError(f"tensor `{name}` holds {value.dtype}, which kiln has no type for")
    return DeviceTensor(value.data_ptr(), dtype, shape, value.device.index, value, value.stride())


@functools.cache
def torch_dtypes() -> dict[Any, str]:
    torch = sys.modules["torch"]
    names = {
        "float64": "f64",
        "float32": "f32",
        "float16": "f16",
        "bfloat16": "bf16",
        "int64": "s64",
        "int32": "s32",
        "int16": "s16",
        "int8": "s8",
        "uint64": "u64",
        "uint32": "u32",
        "uint16": "u16",
        "uint8": "u8",
        "bool": "bool",
        "float8_e4m3fn": "f8_e4m3",
        "float8_e5m2": "f8_e5m2",
        "float8_e8m0fnu": "f8_ue8m0",
    }
    return {getattr(torch, each): name for each, name in names.items() if hasattr(torch, each)}


def torch_dtype(dtype: str) -> Any:
    """The type of PyTorch for kiln's `dtype`; bits as uint8 where there is none."""
    torch = sys.modules["torch"]
    known = {name: each for each, name in torch_dtypes().items()} | {"tf32": torch.float32}
    return known.get(dtype, torch.uint8)


def _of_dlpack(name: str, value: Any, stream: int | None, is_written: bool) -> DeviceTensor:
    kind, _ = value.__dlpack_device__()
    if int(kind) not in (_CUDA, _CUDA_MANAGED):
        raise _elsewhere(name, "in this CPU's memory" if int(kind) == 1 else f"on a device of kind {int(kind)}")
    waiting = None if stream is None else (stream or _LEGACY_STREAM)
    try:
        capsule = value.__dlpack__(stream=waiting, max_version=(1, 1))
    except TypeError:
        capsule = value.__dlpack__(stream=waiting)
    address, dtype, shape, strides, device, read_only = _core.describe_capsule(capsule)
    if not dtype:
        raise TypeError(f"tensor `{name}` holds {value.dtype}, which kiln has no type for")
    if read_only and is_written:
        raise ValueError(f"tensor `{name}` is read-only, and the kernel writes it")
    return DeviceTensor(address, dtype, tuple(shape), device, (value, capsule), tuple(strides))


def _of_cuda_array(name: str, value: Any, stream: int | None, is_written: bool) -> DeviceTensor:
    interface = value.__cuda_array_interface__
    (address, read_only), shape = interface["data"], tuple(interface["shape"])
    kind = np.dtype(interface["typestr"])
    dtype = kiln_dtype(kind)
    if not dtype:
        raise TypeError(f"tensor `{name}` holds {kind}, which kiln has no type for")
    if read_only and is_written:
        raise ValueError(f"tensor `{name}` is read-only, and the kernel writes it")
    strides = interface.get("strides")
    elements = _strides(shape) if strides is None else [each // kind.itemsize for each in strides]
    device, error = _core.pointer_device(address)
    if error:
        raise DeviceError(error)
    if device < 0:
        raise _elsewhere(name, f"at {address:#x}, which is no GPU's memory")
    theirs = interface.get("stream")
    if theirs is not None and stream is not None:
        theirs = 0 if theirs == _LEGACY_STREAM else theirs
        if theirs != stream and (error := _core.order(device, stream, theirs)):
            raise DeviceError(error)
    return DeviceTensor(address, dtype, shape, device, value, tuple(elements))


def stream_handle(stream: Any) -> int:
    """The number of a stream: itself, or what PyTorch, CuPy, Numba or `__cuda_stream__` call it."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for attribute in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, attribute, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    raise TypeError(
        f"`stream` is an object of {type(stream).__name__}: a stream of PyTorch, CuPy or Numba is needed, or its number"
    )


def current_stream(value: Any) -> int:
    """The stream on which the tensor's framework works now."""
    if is_torch(value):
        torch = sys.modules["torch"]
        return torch.cuda.current_stream(value.device).cuda_stream if value.is_cuda else 0
    if framework_of(value) == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    theirs = getattr(value, "__cuda_array_interface__", {}).get("stream")
    return 0 if theirs in (None, _LEGACY_STREAM) else int(theirs)


def allocator(like: Any, device: int, dtype: str, shape: tuple[int, ...], what: str) -> Callable[[], Any]:
    """Makes tensors of the framework of `like`, of any contents."""
    framework = "torch" if is_torch(like) else framework_of(like)
    if framework == "torch":
        torch = sys.modules["torch"]
        place = torch.device("cuda", device)
        return functools.partial(torch.empty, shape, dtype=torch_dtype(dtype), device=place)
    if framework == "cupy":
        cupy = sys.modules["cupy"]

        def of_cupy() -> Any:
            with cupy.cuda.Device(device):
                return cupy.empty(shape, numpy_dtype(dtype))

        return of_cupy
    if framework == "numba":
        cuda = importlib.import_module("numba.cuda")
        return functools.partial(cuda.device_array, shape, numpy_dtype(dtype))
    raise TypeError(f"{what} cannot be allocated by {framework}: give tensors of PyTorch, CuPy or Numba")


def on_stream(like: Any, device: int, stream: int) -> Any:
    """A scope in which the framework of `like` allocates for this stream."""
    if stream == current_stream(like):
        return nullcontext()
    if is_torch(like):
        torch = sys.modules["torch"]
        return torch.cuda.stream(torch.cuda.ExternalStream(stream, torch.device("cuda", device)))
    if framework_of(like) == "cupy" and stream != 0:
        return sys.modules["cupy"].cuda.ExternalStream(stream, device)
    return nullcontext()


class Slot(NamedTuple):
    """A parameter as kiln._core.Launcher reads it: see Slot and Kind of python/reading.h."""

    name: str
    kind: str
    is_deciding: bool
    place: int
    usual: tuple[Any, ...] = ()  # one value, where something counts that is not given


class Known(NamedTuple):
    """What kiln._core.Launcher keeps of a call."""

    objects: tuple[Any, ...]  # by slot; None for what is not given
    prepared: Plan | _core.Prepared
    results: list[tuple[int, Callable[[], Any] | None]]  # places; None: the caller gives it
    returned: int  # of the results; 0: the constant
    constant: Any
    make_workspace: Callable[[], Any] | None
    usual: float = 0.0  # of a factor that is None
    apart: _core.Apart | None = None


_types: set[type] = set()


def know(value: Any) -> bool:
    """Lets kiln._core read tensors of the value's type; whether it does. Classes that may behave otherwise are not for it."""
    kind = type(value)
    if kind in _types:
        return True
    if is_torch(value):
        torch = sys.modules["torch"]
        if kind not in (torch.Tensor, torch.nn.Parameter):
            return False
        functions = (torch.is_grad_enabled, _raw_stream(torch), torch.dtype)
        _core.know_tensors((torch.Tensor, torch.nn.Parameter), functions)
    elif "__dlpack_c_exchange_api__" in vars(kind):
        _core.know_tensors((kind,), ())
    else:
        return False
    _types.add(kind)
    return True


def _raw_stream(torch: Any) -> Callable[[int], int]:
    found = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return found or (lambda device: torch.cuda.current_stream(device).cuda_stream)


class Ready(NamedTuple):
    """A plan, and what its launches need besides the arguments."""

    plan: Plan
    make_result: Callable[[], Any] | None
    make_workspace: Callable[[], Any] | None
    constant: Any  # what is returned where no tensor is


class GpuKernel(_core.Launcher):
    """What a kernel has for a GPU. Kernel in kiln._program fills in the rest."""

    _core: _core.Program
    name: str
    parameters: tuple[Any, ...]
    dimensions: tuple[str, ...]

    def _set_up_launches(self) -> None:
        self._plans: dict[Any, Ready] = {}
        self._is_deciding = {each.name for each in self.parameters if each.is_deciding}
        self._is_written = {each.name for each in self.parameters if each.is_written}
        slots = _slots_of(self)
        self._slots = tuple(each.name for each in slots)
        self._setup((slots, len(self.parameters)))

    def prepare(self, *arguments: Any, stream: Any = None, **named: Any) -> Launch:
        """Compiles the kernel for these arguments' shapes, types and device, and launches nothing.

        Returns a callable that launches it with any tensors of the same shapes, types and device, and
        refuses others. A stream is captured in a CUDA graph only after this, or after a first call.
        """
        bound = self._bound(arguments, named)
        tensors, _ = self._tensors(bound, stream)
        return Launch(self, bound, tensors, self._ready(bound, tensors, None))

    def _bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _bound(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Bound:
        """Tensors and numbers apart, each what its parameter needs."""
        tensors, numbers = {}, {}
        wants = {each.name: each.is_tensor for each in self.parameters}
        for name, value in self._bind(arguments, named).items():
            if wants.get(name) and not is_tensor(value):
                raise TypeError(f"parameter `{name}` needs a tensor on a GPU, and {kind_of(value)} is given")
            if is_tensor(value) and not (wants.get(name) is False and not getattr(value, "shape", None)):
                tensors[name] = value
            else:
                numbers[name] = number_of(name, value)
        if not tensors:
            raise TypeError(f"kernel `{self.name}` is called without a tensor on a GPU")
        return Bound(tensors, numbers)

    def _tensors(self, bound: Bound, stream: Any) -> tuple[dict[str, DeviceTensor], int]:
        first = next(iter(bound.tensors.values()))
        handle = current_stream(first) if stream is None else stream_handle(stream)
        out = {
            name: device_tensor(name, value, handle, name in self._is_written) for name, value in bound.tensors.items()
        }
        leader, device = next((name, each.device) for name, each in out.items())
        for name, each in out.items():
            if each.device != device:
                raise ValueError(
                    f"tensor `{leader}` lies on GPU {device} and `{name}` on GPU {each.device}: "
                    "a kernel runs on one, bring them together"
                )
        return out, handle

    def _ready(self, bound: Bound, tensors: dict[str, DeviceTensor], stream: int | None) -> Ready:
        deciding = tuple((name, value) for name, value in bound.numbers.items() if name in self._is_deciding)
        dims = tuple((name, value) for name, value in bound.numbers.items() if name in self.dimensions)
        like = next(iter(bound.tensors.values()))
        device = next(iter(tensors.values())).device
        shapes = tuple((name, each.dtype, each.shape) for name, each in tensors.items())
        framework = "torch" if is_torch(like) else framework_of(like)
        key = (shapes, tuple(bound.numbers), deciding, dims, device, framework)
        ready = self._plans.get(key)
        if ready is not None:
            return ready
        if stream is not None and _core.is_capturing(stream):
            raise DeviceError(
                f"kernel `{self.name}` is not prepared for these shapes, and its stream is captured in a graph: "
                "call it once before, or `.prepare` it"
            )
        rows = [(name, 0, each.dtype, list(each.shape)) for name, each in tensors.items()]
        status, error, plan = self._core.prepare(self.name, (rows, list(bound.numbers.items())), device)
        if status != _core.OK or plan is None:
            raise_status(status, error, () if plan is None else plan.diagnostics())
        ready = self._with_allocators(plan, like, device)
        if len(self._plans) >= _PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        self._plans[key] = ready
        return ready

    def _with_allocators(self, plan: Plan, like: Any, device: int) -> Ready:
        make_result, make_workspace, constant = None, None, None
        if (result := plan.result()) is not None:
            address, dtype, shape = result
            if address:
                constant = numpy_of(address, dtype, shape).item()
            else:
                make_result = allocator(like, device, dtype, tuple(shape), "what the kernel returns")
        if plan.workspace():
            size = (plan.workspace(),)
            make_workspace = allocator(like, device, "u8", size, f"the workspace of {size[0]} bytes")
        return Ready(plan, make_result, make_workspace, constant)

    def _launch(self, ready: Ready, bound: Bound, tensors: dict[str, DeviceTensor], stream: int) -> Any:
        values: list[int | float] = []
        for parameter in self.parameters:
            if parameter.is_tensor:
                values.append(tensors[parameter.name].address)
            else:
                number = bound.numbers[parameter.name]
                values.append(float(number) if _kind_of(parameter) == "r" else int(number))
        result, workspace, address = ready.constant, None, 0
        if ready.make_result is not None or ready.make_workspace is not None:
            like, device = next(iter(bound.tensors.values())), next(iter(tensors.values())).device
            with on_stream(like, device, stream):
                result = result if ready.make_result is None else ready.make_result()
                workspace = None if ready.make_workspace is None else ready.make_workspace()
            if ready.make_result is not None:
                values.append(device_tensor("result", result, None, False).address)
            if workspace is not None:
                address = device_tensor("workspace", workspace, None, False).address
        status, error = ready.plan.launch(values, address, stream)
        if status != _core.OK:
            self._fail(status, error)
        return result

    def _miss(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call that is not known yet, or not of the usual kind."""
        stream = named.pop("stream", None) if "stream" not in self._slots else None
        bound = self._bound(arguments, named)
        tensors, handle = self._tensors(bound, stream)
        ready = self._ready(bound, tensors, handle)
        result = self._launch(ready, bound, tensors, handle)
        know(next(iter(bound.tensors.values())))
        self._keep(self._known(bound, ready))
        return result

    def _known(self, bound: Bound, ready: Ready) -> Known:
        given = bound.tensors | bound.numbers
        objects = tuple(given.get(name) for name in self._slots)
        results = [] if ready.make_result is None else [(len(self.parameters), ready.make_result)]
        return Known(objects, ready.plan, results, len(results), ready.constant, ready.make_workspace)

    def _fail(self, status: int, error: str) -> NoReturn:
        raise_status(status, error, ())


class Launch(_core.Launcher):
    """A kernel that is prepared for shapes, types and a device: `launch(q, k, v, out)`."""

    def __init__(self, kernel: GpuKernel, bound: Bound, tensors: dict[str, DeviceTensor], ready: Ready) -> None:
        self._kernel = kernel
        self._prepared = {name: each._replace(owner=None, address=0) for name, each in tensors.items()}
        self._numbers = bound.numbers
        self._ready = ready
        self._setup((_slots_of(kernel), len(kernel.parameters)))
        know(next(iter(bound.tensors.values())))
        self._keep(kernel._known(bound, ready))

    @property
    def workspace_bytes(self) -> int:
        """Of device memory that a call allocates for buffers of the host part."""
        return self._ready.plan.workspace()

    def _miss(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        kernel = self._kernel
        stream = named.pop("stream", None) if "stream" not in kernel._slots else None
        bound = kernel._bound(arguments, named)
        tensors, handle = kernel._tensors(bound, stream)
        for name, ours in self._prepared.items():
            theirs = tensors.get(name)
            if theirs is None:
                raise TypeError(f"the call gives no tensor for `{name}`")
            if theirs.shape != ours.shape or theirs.dtype != ours.dtype or theirs.device != ours.device:
                raise ValueError(
                    f"the launch is prepared for `{name}` as {_text(ours)}, and {_text(theirs)} is given: "
                    "call the kernel itself, or prepare another"
                )
        for name, value in bound.numbers.items():
            is_fixed = name in kernel._is_deciding or name in kernel.dimensions
            if is_fixed and self._numbers.get(name) != value:
                raise ValueError(
                    f"the launch is prepared for `{name}` = {self._numbers.get(name)}, and {value} is given: "
                    "call the kernel itself, or prepare another"
                )
        for parameter in kernel.parameters:
            if parameter.name not in tensors and parameter.name not in bound.numbers:
                raise TypeError(f"the call gives nothing for `{parameter}`")
        return kernel._launch(self._ready, bound, tensors, handle)

    def _fail(self, status: int, error: str) -> NoReturn:
        raise_status(status, error, ())

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {_text(each)}" for name, each in self._prepared.items())
        return f"<kiln.Launch of {self._kernel.name}: {shapes}>"


def _text(tensor: DeviceTensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)} on GPU {tensor.device}"


def _slots_of(kernel: GpuKernel) -> list[Slot]:
    """Of its parameters, then of the dimensions that are none."""
    rows = {each.name: (_kind_of(each), each.is_deciding) for each in kernel.parameters}
    rows |= {each: ("d", True) for each in kernel.dimensions if each not in rows}
    return [Slot(name, *row, place) for place, (name, row) in enumerate(rows.items())]


def _kind_of(parameter: Any) -> str:
    if parameter.is_tensor:
        return "t"
    is_whole = parameter.dtype == "bool" or parameter.dtype[0] in "su"
    return "i" if is_whole else "r"


def kind_of(value: Any) -> str:
    """What a message calls the value."""
    return "None" if value is None else f"an object of {type(value).__name__}"


def number_of(name: str, value: Any) -> int | float:
    """A number that is one; of a tensor it would have to be waited for."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        whole = int(value)
        if not -(2**63) <= whole < 2**63:
            raise ValueError(f"`{name}` = {whole} is outside {-(2**63)} to {2**63 - 1}")
        return whole
    if isinstance(value, (float, np.floating)):
        return float(value)
    raise TypeError(f"`{name}` needs a number, and {kind_of(value)} is given")


# What is wrong with the arguments themselves, not with their values.
_TYPE_ERRORS = {
    "input-type",
    "option-form",
    "option-twice",
    "parameter-unknown",
    "scalar-missing",
    "shape-missing",
    "shape-unknown",
}


def raise_status(status: int, error: str, diagnostics: Any) -> NoReturn:
    """The exception for how a function of kiln/kiln.h ended. Diagnostics are rows of kiln._core."""
    text = error.rstrip("\n")
    if status == _core.SYSTEM:
        raise MemoryError(text)
    if status not in (_core.INVALID, _core.UNSUPPORTED):
        raise DeviceError(text)
    ids = {row[0] for row in diagnostics if row[1] == "error"}
    raise (TypeError if ids & _TYPE_ERRORS else ValueError)(text)
