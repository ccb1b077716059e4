"""Kernels as operators of PyTorch.

    op = kiln.torch.register("my::attention", prog.attention, outputs="out")
    out = op(q, k, v, scale=0.09)               # and torch.ops.my.attention

The operator takes the kernel's parameters without the outputs, which it allocates and returns. It is
known to `torch.compile`, to CUDA graphs and to autograd. `kiln.torch.Linear` is torch.nn.Linear by the
products of kiln.ops, which are operators too: torch.ops.kiln.gemm and so on.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from kiln._launch import torch_dtype
from kiln._program import Kernel, Parameter
from kiln import _torch_attention as _torch_attention  # makes the operator
from kiln import _torch_attention_decode as _torch_attention_decode
from kiln import _torch_attention_varlen as _torch_attention_varlen
from kiln._torch_products import Linear

__all__ = ["Linear", "register"]


def register(
    name: str,
    kernel: Kernel,
    *,
    outputs: str | Sequence[str] | Mapping[str, Callable[..., Sequence[int]]] | None = None,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., None] | None = None,
) -> Any:
    """Makes the kernel the operator `name`, "namespace::operator", and returns it.

    `outputs` names the parameters that the operator allocates and returns, in this order. Without it
    they are those that the kernel writes and does not read. Their shapes come from the dimensions that
    the other tensors have; where those do not say it, `outputs` is a dictionary from names to functions
    of the operator's arguments that give a shape. What the kernel itself returns comes last. Parameters
    that are read and written are changed in place.

    `backward` and `setup_context` are those of `torch.library.register_autograd`. Without them the
    operator has no gradient.

    On CPU tensors it computes what the program says, by `kernel.reference`: slow, and right.
    """
    shapes = dict(outputs) if isinstance(outputs, Mapping) else {}
    operator = _Operator(kernel, _names_of(kernel, outputs), shapes)
    made = torch.library.custom_op(
        name,
        operator.run,
        mutates_args=tuple(operator.mutated),
        schema=operator.schema(),
    )
    made.register_fake(operator.empty)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context)
    return made


def _names_of(kernel: Kernel, outputs: Any) -> tuple[str, ...]:
    if outputs is None:
        return tuple(each.name for each in kernel.parameters if each.is_written and not each.is_read)
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    written = {each.name for each in kernel.parameters if each.is_written}
    for name in names:
        if name not in written:
            raise ValueError(
                f"kernel `{kernel.name}` writes no parameter `{name}`; it writes "
                + (", ".join(f"`{each}`" for each in sorted(written)) or "none")
            )
    return names


class _Operator:
    """A kernel's parameters as those of an operator."""

    def __init__(self, kernel: Kernel, outputs: tuple[str, ...], shapes: Mapping[str, Callable[..., Any]]) -> None:
        self.kernel = kernel
        rows = {each.name: each for each in kernel.parameters}
        self.outputs = [rows[name] for name in outputs]
        self.inputs = [each for each in kernel.parameters if each.name not in outputs]
        self.mutated = [each.name for each in self.inputs if each.is_tensor and each.is_written]
        self.result = kernel.result if kernel.result is not None and kernel.result.is_tensor else None
        self.shapes = shapes
        known = {dim for each in self.inputs if each.is_tensor for dim in each.dims}
        given = {each.name for each in self.inputs}
        # A dimension that no input has is an argument.
        self.dimensions = [each for each in kernel.dimensions if each not in known and each not in given]
        self._check_names()

    def _check_names(self) -> None:
        for name in [*(each.name for each in self.inputs), *self.dimensions]:
            if keyword.iskeyword(name) or name == "self":
                raise ValueError(f"parameter `{name}` of kernel `{self.kernel.name}` cannot be one of an operator")

    def schema(self) -> str:
        """As the dispatcher of PyTorch reads it: "(Tensor q, Tensor(a!) cache, float scale) -> Tensor"."""
        texts: list[str] = []
        for each in self.inputs:
            if each.is_tensor:
                mark = f"(a{len(texts)}!)" if each.name in self.mutated else ""
                texts.append(f"Tensor{mark} {each.name}")
            else:
                texts.append(f"{_number_type(each)} {each.name}")
        texts += [f"SymInt {each}" for each in self.dimensions]
        count = len(self.outputs) + (1 if self.result is not None else 0)
        returned = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        return f"({', '.join(texts)}) -> {returned}"

    def _arguments(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        names = [*(each.name for each in self.inputs), *self.dimensions]
        return dict(zip(names, arguments)) | dict(named)

    def _device(self, arguments: Mapping[str, Any]) -> torch.device:
        return next(value.device for value in arguments.values() if isinstance(value, torch.Tensor))

    def _shape(self, parameter: Parameter, arguments: Mapping[str, Any]) -> list[Any]:
        if parameter.name in self.shapes:
            return list(self.shapes[parameter.name](**arguments))
        values = {name: value for name, value in arguments.items() if not isinstance(value, torch.Tensor)}
        for each in self.inputs:
            if not each.is_tensor:
                continue
            if len(each.dims) != arguments[each.name].dim():
                raise ValueError(f"tensor `{each.name}` has {arguments[each.name].dim()} dimensions, and is `{each}`")
            values.update(zip(each.dims, arguments[each.name].shape))
        return [_value_of(dim, values, parameter) for dim in parameter.dims]

    def _allocated(self, arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        device = self._device(arguments)
        return {
            each.name: torch.empty(self._shape(each, arguments), dtype=torch_dtype(each.dtype), device=device)
            for each in self.outputs
        }

    def empty(self, *arguments: Any, **named: Any) -> Any:
        """Tensors like those that the operator returns, of any contents."""
        given = self._arguments(arguments, named)
        made = list(self._allocated(given).values())
        if self.result is not None:
            shape = self._shape(self.result, given)
            made.append(torch.empty(shape, dtype=torch_dtype(self.result.dtype), device=self._device(given)))
        return _as_returned(made)

    def run(self, *arguments: Any, **named: Any) -> Any:
        given = self._arguments(arguments, named)
        allocated = self._allocated(given)
        if self._device(given).type == "cuda":
            result = self.kernel(**given, **allocated)
        else:
            result = self._run_on_cpu(given, allocated)
        made = list(allocated.values())
        if self.result is not None:
            made.append(result)
        return _as_returned(made)

    def _run_on_cpu(self, given: Mapping[str, Any], allocated: Mapping[str, torch.Tensor]) -> Any:
        detached = {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
        report = self.kernel.reference(**detached, **allocated)
        if not report.ok:
            raise RuntimeError(f"kernel `{self.kernel.name}` does not come to its end\n{report}")
        if self.result is None:
            return None
        bits = torch.from_numpy(report.result.view(f"u{report.result.itemsize}"))
        return bits.view(torch_dtype(self.result.dtype))


def _as_returned(made: list[Any]) -> Any:
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def _number_type(parameter: Parameter) -> str:
    if parameter.dtype == "bool":
        return "bool"
    return "SymInt" if parameter.dtype[0] in "su" else "float"


_FUNCTIONS = {
    "cdiv": lambda a, b: (a + b - 1) // b,
    "min": lambda a, b: a if a <= b else b,
    "max": lambda a, b: a if a >= b else b,
}


def _value_of(dim: str, values: Mapping[str, Any], parameter: Parameter) -> Any:
    """A dimension such as "M", "128" or "cdiv(K, 32)" with these values of the names in it."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                if name not in values:
                    raise KeyError(name)
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = value(left), value(right)
                match op:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.Div():
                        return a // b
                    case ast.Mod():
                        return a % b
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(value(each) for each in arguments))
        raise SyntaxError(dim)

    try:
        return value(ast.parse(dim, mode="eval").body)
    except (KeyError, SyntaxError):
        raise ValueError(
            f"the inputs do not say the shape of `{parameter}`: "
            f'give outputs={{"{parameter.name}": lambda ...: shape}}'
        ) from None
