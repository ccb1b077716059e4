"""Programs and their kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kiln import _core
from kiln._arrays import array_of, is_array
from kiln._launch import GpuKernel, is_tensor, kind_of, number_of, raise_status, seen_of
from kiln._measure import Comparison, compare
from kiln._report import Diagnostic, Explanation, Report, diagnostics_of
from kiln._tune import Tuning, tune


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, or what it returns."""

    name: str
    dtype: str  # as the language spells it: "bf16"
    is_tensor: bool  # else a number
    dims: tuple[str, ...]  # expressions of the kernel's dimensions: "M", "K / 32", "128"
    is_global: bool  # a device pointer; else host memory, which is copied in
    is_read: bool
    is_written: bool  # the caller's array receives what the kernel writes
    is_deciding: bool  # a number on which grids, buffers or the host part depend

    def __str__(self) -> str:
        shape = f" [{', '.join(self.dims)}]" if self.is_tensor else ""
        return f"{self.dtype}{shape} {self.name}"


class CompileError(Exception):
    """The program has errors. As text it is what `kiln check` shows."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(text)
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[Any, ...]:
        return (CompileError, (str(self), self.diagnostics))


class Compiled(NamedTuple):
    """What a program was compiled from."""

    file: str | os.PathLike[str] | None
    source: str | None
    arch: str
    folders: list[str]
    bound: Mapping[str, Any]  # macros and template parameters

    def again(self, more: Mapping[str, Any]) -> Program:
        """The same program with further parameters."""
        bound = {**self.bound, **more}
        return compile(self.file, source=self.source, arch=self.arch, folders=self.folders, defines=bound)


class Kernel(GpuKernel):
    """A `__co__` function of a program. Calling it launches it on a GPU:

        prog.attention(q, k, v, out, scale=0.09)

    with tensors of PyTorch, CuPy or Numba in the GPU's memory, or whatever DLPack or the CUDA array
    interface knows, in the kernel's order or by name. The launch goes to the framework's current
    stream, or to `stream=`; nothing waits for it. What the kernel returns is allocated by the
    framework of the first tensor. The first call for some shapes compiles; `prepare` does it ahead.
    """

    def __init__(self, core: _core.Program, row: Any, compiled: Compiled) -> None:
        self._core = core
        self._compiled = compiled
        name, parameters, result, dimensions = row
        self.name: str = name
        self.parameters: tuple[Parameter, ...] = tuple(Parameter(*each) for each in parameters)
        self.result: Parameter | None = None if result is None else Parameter(*result)
        # What arrays' shapes say, or a number of that name where no shape says it.
        self.dimensions: tuple[str, ...] = tuple(dimensions)
        # Of template parameters that `compile` did not bind, what `[[tune(...)]]` names to be tried.
        self.tunables: dict[str, tuple[str, ...]] = {
            parameter: tuple(values)
            for kernel, parameter, values in core.tunables()
            if kernel == name and parameter not in compiled.bound
        }
        self._set_up_launches()

    def simulate(
        self,
        *arguments: Any,
        schedules: int = 1,
        seed: int = 0,
        steps_max: int = 0,
        **named: Any,
    ) -> Report:
        """Runs the kernel on this CPU, instruction by instruction, and looks for its mistakes.

        Arguments are given in the kernel's order or by name: an array of NumPy, or any that DLPack
        knows and that lies in this CPU's memory, for a tensor; a number for a number. A dimension
        that no shape says is given by its name. Arrays that the kernel writes are changed in place.

        `schedules` orders of execution are tried, the first of them with `seed`; results are those of
        the first. After `steps_max` instructions of warps a run gives up (0: 10^9).
        """
        return self._run(False, arguments, named, (schedules, seed, steps_max))

    def reference(self, *arguments: Any, **named: Any) -> Report:
        """Computes in fp64 what the program says, rounded to the outputs' types.

        Takes its arguments as `simulate` does and changes the same arrays.
        """
        return self._run(True, arguments, named, (1, 0, 0))

    def explain(self, *arguments: Any, **named: Any) -> Explanation:
        """What the kernel costs on a GPU, counted in the simulator and worked out: needs no GPU.

        Takes the arguments of a call, of whose arrays only types and shapes count, wherever they lie; or
        dimensions and numbers by name, `explain(M=4096, N=4096, K=4096)`; or nothing, for a few full
        tiles.
        """
        arrays, numbers = [], []
        for name, value in self._bind(arguments, named).items():
            if is_tensor(value) and not (self._tensor(name) is None and not getattr(value, "shape", None)):
                seen = seen_of(name, value)
                arrays.append((name, 0, seen.dtype, list(seen.shape)))
            else:
                numbers.append((name, number_of(name, value)))
        status, error, rows, texts = self._core.explain(self.name, (arrays, numbers))
        if status == _core.UNSUPPORTED:
            raise ValueError(error.rstrip("\n"))
        if status != _core.OK:
            raise_status(status, error, rows)
        return Explanation(*texts, diagnostics_of(rows))

    def bench(
        self,
        *arguments: Any,
        baseline: Callable[..., Any] | None = None,
        check: bool = True,
        repeats: int = 9,
        batch_seconds: float = 0.02,
        **named: Any,
    ) -> Comparison:
        """Measures the kernel on the GPU, beside `baseline` in turns, and changes no argument.

        `baseline` is a function of the same arguments, which gives what the kernel writes and returns,
        and is compared with it first unless `check` is false. Each of `repeats` turns has a batch of
        either of at least `batch_seconds`, one behind the other, so that the chip's clock is the same
        for both; the ratio is that of such pairs. The tensors of a batch change so that the L2 cache has
        forgotten them. With tensors of PyTorch a batch is a CUDA graph, so that a launch's cost on the
        CPU does not count, unless one of the two cannot be captured.
        """
        return compare(self, self._bind(arguments, named), baseline, check, (repeats, batch_seconds))

    def tune(
        self,
        *arguments: Any,
        over: Mapping[str, Iterable[Any]] | None = None,
        reference: Callable[..., Any] | None = None,
        **named: Any,
    ) -> Tuning:
        """Searches for the fastest values of the kernel's template parameters for these arguments.

        They are those that `[[tune(...)]]` names, or `over`: {"STAGES": [2, 3, 4]}. Every combination
        is compiled; what does not compile, fit or give the right result is dropped with its reason, and
        the others are measured in rounds that keep the faster ones. Right is what `reference` gives,
        else what the program gives as it is. No argument is changed.
        """
        return tune(self, self._bind(arguments, named), over, reference)

    def _run(
        self, by_reference: bool, arguments: tuple[Any, ...], named: Mapping[str, Any], how: tuple[int, int, int]
    ) -> Report:
        arrays, numbers = [], []
        for name, value in self._bind(arguments, named).items():
            tensor = self._tensor(name)
            if is_array(value):
                arrays.append((name, array_of(name, value, tensor is not None and tensor.is_written)))
            elif tensor is not None:
                raise TypeError(f"parameter `{tensor}` needs an array, and {kind_of(value)} is given")
            else:
                numbers.append((name, number_of(name, value)))
        if how[0] < 1:
            raise ValueError(f"`schedules` is {how[0]}, and at least 1 order of execution is tried")
        if min(how) < 0 or max(how) >= 2**63:
            raise ValueError(f"`seed` and `steps_max` lie between 0 and {2**63 - 1}")
        rows = [(name, array.address, array.dtype, array.shape) for name, array in arrays]
        status, error, report = self._core.run(by_reference, self.name, (rows, numbers), how)
        if status == _core.OK and report is not None:
            return Report(report)
        raise_status(status, error, () if report is None else report.diagnostics())

    def _bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        if len(arguments) > len(self.parameters):
            raise TypeError(
                f"kernel `{self.name}` has {len(self.parameters)} parameters, and {len(arguments)} arguments are given"
            )
        out = {parameter.name: value for parameter, value in zip(self.parameters, arguments)}
        for name, value in named.items():
            if name in out:
                raise TypeError(f"the call gives `{name}` twice")
            out[name] = value
        return out

    def _tensor(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name and each.is_tensor), None)

    def __repr__(self) -> str:
        return f"<kiln.Kernel {self.name}({', '.join(map(str, self.parameters))})>"


class Program:
    """A program that was compiled for an architecture. Its kernels are attributes: `prog.scale`."""

    def __init__(self, core: _core.Program, compiled: Compiled) -> None:
        self._core = core
        self._kernels = tuple(Kernel(core, row, compiled) for row in core.kernels())
        self._diagnostics = diagnostics_of(core.diagnostics())
        for kernel in self._kernels:  # found without __getattr__
            if not hasattr(Program, kernel.name):
                self.__dict__.setdefault(kernel.name, kernel)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """In the order of the text. `prog["name"]` is one, whatever it is called."""
        return self._kernels

    @property
    def arch(self) -> str:
        return self._core.arch()

    @property
    def cuda(self) -> str:
        """The program as CUDA C++, which includes kiln's device headers."""
        return self._core.cuda()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Warnings and notes."""
        return self._diagnostics

    def __getitem__(self, name: str) -> Kernel:
        for kernel in self._kernels:
            if kernel.name == name:
                return kernel
        names = ", ".join(f"`{kernel.name}`" for kernel in self._kernels)
        raise KeyError(f"no kernel is called `{name}`; there are {names}")

    def __getattr__(self, name: str) -> Kernel:
        # Not before __init__ has run, as when a copy is made.
        if not name.startswith("_"):
            try:
                return self[name]
            except KeyError as error:
                raise AttributeError(error.args[0]) from None
        raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(kernel.name for kernel in self._kernels)]

    def __repr__(self) -> str:
        return f"<kiln.Program for {self.arch}: {', '.join(each.name for each in self._kernels)}>"


def compile(
    file: str | os.PathLike[str] | None = None,
    *,
    source: str | None = None,
    arch: str | None = None,
    folders: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Program:
    """Compiles a file, or the text `source`, whose name in diagnostics is `file` if both are given.

    Further arguments bind macros and template parameters, as `-D` does: `STAGES=3`, `T="bf16"`.
    `defines` does the same for names that are no identifiers of Python or that stand for something
    here. `folders` is where `#include` looks besides the folder of the file that includes. Without
    `arch` it is that of the machine's GPU, else the newest that kiln knows.

    Raises CompileError for a program with errors, ValueError for an unknown architecture or a define
    that is none, OSError for a file that cannot be read.
    """
    if (file is None) and (source is None):
        raise TypeError("compile() needs a file or source=...")
    bound = {**(defines or {}), **parameters}
    places = [os.fspath(each) for each in folders]
    texts = [f"{name}={_define(name, value)}" for name, value in bound.items()]
    status, error, core = _core.compile(None if file is None else os.fspath(file), source, arch, texts, places)
    if status == _core.OK and core is not None:
        return Program(core, Compiled(file, source, core.arch(), places, bound))
    if status == _core.REJECTED and core is not None:
        raise CompileError(error.rstrip("\n"), diagnostics_of(core.diagnostics()))
    raise (OSError if status == _core.SYSTEM else ValueError)(error.rstrip("\n"))


def _define(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (str, int, float, np.integer, np.floating)):
        return str(value)
    raise TypeError(f"`{name}` is {kind_of(value)}: a macro or a template parameter is a number or a text")
