"""The products of kiln.ops as operators of PyTorch, with gradients, and a layer that computes with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from kiln import ops
from kiln._calls import Asked
from kiln._launch import seen_of, torch_dtype
from kiln._products import check_given, check_others, options_of, shape_of

# The tensors of each besides a, b, bias and residual, and then those that may be left away.
_TENSORS = {
    "gemm": (),
    "grouped_gemm": (),
    "k_grouped_gemm": ("rows_of_group",),
    "sparse_gemm": ("metadata",),
    "block_scaled_gemm": ("a_scale", "b_scale"),
}
_OPTIONAL = {"grouped_gemm": ("rows_of_group", "a_scale", "b_scale"), "k_grouped_gemm": ("a_scale", "b_scale")}
_HALVES = (torch.bfloat16, torch.float16)


def call_operator(asked: Asked) -> torch.Tensor:
    options = asked.options
    more: dict[str, Any] = {"activation": options.activation, "alpha": asked.factors["alpha"]}
    if options.dtype is not None:
        more["dtype"] = torch_dtype(options.dtype)
    if options.kind == "gemm":
        more |= {"tf32": options.tf32, "batch_invariant": options.batch_invariant}
    if options.kind == "grouped_gemm":
        more["apart"] = options.apart
    return getattr(torch.ops.kiln, options.kind)(*(asked.given.get(name) for name in names_of(options.kind)), **more)


def names_of(kind: str) -> list[str]:
    """Of its tensors, in the order of the operator's arguments."""
    tables = ("group_of_tile",) if kind == "grouped_gemm" else _TENSORS[kind]
    epilogue = () if kind == "k_grouped_gemm" else ("bias", "residual")
    return ["a", "b", *tables, *epilogue, *_OPTIONAL.get(kind, ())]


def _define(kind: str) -> None:
    name = f"kiln::{kind}"
    names = names_of(kind)
    tensors = ", ".join(
        f"Tensor {each}" if each in ("a", "b", *_TENSORS[kind]) else f"Tensor? {each}=None" for each in names
    )
    flags = {"gemm": ", bool tf32=False, bool batch_invariant=False", "grouped_gemm": ", bool apart=False"}.get(kind, "")
    schema = (
        f"({tensors}, *, "
        f'str activation="none", float alpha=1.0, ScalarType? dtype=None{flags}) -> Tensor'
    )

    product = getattr(ops, kind)

    def named_of(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(zip(names, arguments)) | named
        return {"packed": given.pop("a"), **given} if kind == "sparse_gemm" else given

    def on_gpu(*arguments: Any, **named: Any) -> Any:
        return product.unseen(**named_of(arguments, named))

    def on_cpu(*arguments: Any, **named: Any) -> Any:
        return product.reference(**named_of(arguments, named))

    def empty(*arguments: Any, **named: Any) -> Any:
        asked = product.asked(**named_of(arguments, named))
        given, options = asked.given, asked.options
        check_given(given, options)
        seen = {each: seen_of(each, value) for each, value in given.items() if value is not None}
        shape = shape_of(seen, options)
        check_others(seen, shape, options)
        return torch.empty(shape.result, dtype=torch_dtype(shape.dtype), device=given["a"].device)

    torch.library.define(name, schema, tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(name, "cuda", on_gpu)
    torch.library.impl(name, "cpu", on_cpu)
    torch.library.register_fake(name, empty)
    if kind == "gemm":
        torch.library.register_autograd(name, _backward, setup_context=_keep)
    else:
        torch.library.register_autograd(name, _refuse(kind), setup_context=_keep_nothing)


def _refuse(kind: str) -> Any:
    def backward(*_: Any) -> Any:
        raise NotImplementedError(f"kiln.ops.{kind} has no gradient; kiln.ops.gemm has, or detach its arguments")

    return backward


def _keep_nothing(*_: Any, **__: Any) -> None:
    pass


def _keep(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: Any) -> None:
    a, b, bias, _ = inputs
    ctx.how = dict(keyword_only_inputs)
    needs_sums = ctx.how["activation"] != "none"
    ctx.save_for_backward(a, b, bias if needs_sums else None)


def _backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    a, b, bias = ctx.saved_tensors
    how, given = ctx.how, len(ctx.needs_input_grad)
    needs = (*ctx.needs_input_grad, False, False)  # without what was left away
    of_residual = slope if needs[3] else None
    if how["activation"] != "none":
        # What the activation was given is computed anew, which costs a product and no memory between.
        sums = torch.ops.kiln.gemm(a, b, bias, None, **{**how, "activation": "none"})
        slope = slope * _slope_of(how["activation"], sums)
    of_bias = slope.flatten(0, -2).sum(0) if needs[2] else None
    of_a = of_b = None
    more = {"alpha": how["alpha"], "dtype": a.dtype, "tf32": how["tf32"], "batch_invariant": how["batch_invariant"]}
    slope = slope.to(a.dtype).contiguous()
    if needs[0]:
        of_a = torch.ops.kiln.gemm(slope, b.mT, **more)
    if needs[1]:
        rows, columns = (a, slope) if b.dim() > 2 else (a.reshape(-1, a.shape[-1]), slope.flatten(0, -2))
        # In the order in which b lies, so that a weight's gradient lies as the weight.
        if b.stride(-2) == 1:
            of_b = torch.ops.kiln.gemm(columns.mT, rows, **more).mT
        else:
            of_b = torch.ops.kiln.gemm(rows.mT, columns, **more)
    return (of_a, of_b, of_bias, of_residual)[:given]


def _slope_of(activation: str, x: torch.Tensor) -> torch.Tensor:
    if activation == "relu":
        return (x > 0).to(x.dtype)
    wide = x.float()
    if activation == "silu":
        sigmoid = torch.sigmoid(wide)
        return (sigmoid * (1 + wide * (1 - sigmoid))).to(x.dtype)
    bell = torch.exp(-wide * wide / 2) / math.sqrt(2 * math.pi)
    return ((1 + torch.erf(wide / math.sqrt(2))) / 2 + wide * bell).to(x.dtype)


for _kind in _TENSORS:
    _define(_kind)


class Linear(torch.nn.Linear):
    """`torch.nn.Linear` by kiln's library, with the bias and an activation in the same kernel.

        layer = kiln.torch.Linear(4096, 11008, activation="silu", device="cuda", dtype=torch.bfloat16)
        layer = kiln.torch.Linear.from_linear(model.up)        # shares its weight and bias

    It is a torch.nn.Linear: states, gradients, autocast and `torch.compile` are as usual. Weights of
    bf16 and f16 are multiplied by the library, those of f32 where PyTorch is allowed tf32
    (`torch.set_float32_matmul_precision`); others, as f64, by PyTorch. In this CPU's memory it
    computes the same slowly.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        activation: str | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        options_of("gemm", activation, 1, 0, None)  # refuses what is none
        self.activation = activation

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, activation: str | None = None) -> Linear:
        """A layer with the parameters of `linear`, which stay its own too."""
        made = cls(linear.in_features, linear.out_features, False, activation, "meta", linear.weight.dtype)
        made.weight, made.bias = linear.weight, linear.bias
        return made.train(linear.training)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = input
        weight: torch.Tensor = self.weight
        bias: torch.Tensor | None = self.bias
        if torch.is_autocast_enabled(x.device.type):
            dtype = torch.get_autocast_dtype(x.device.type)
            x, weight = x.to(dtype), weight.to(dtype)
            bias = None if bias is None else bias.to(dtype)
        tf32 = x.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
        is_ours = x.dtype == weight.dtype and (x.dtype in _HALVES or tf32)
        if not is_ours or x.shape[-1] != self.in_features:
            y = torch.nn.functional.linear(x, weight, bias)
            return y if self.activation is None else getattr(torch.nn.functional, self.activation)(y)
        rows = x.reshape(-1, self.in_features)
        if rows.stride(1) != 1 or rows.stride(0) < self.in_features:
            rows = rows.contiguous()
        with torch.autocast(x.device.type, enabled=False):
            y = self._product(rows, weight.T, bias, tf32)
        return y.view(*x.shape[:-1], self.out_features)

    def _product(self, rows: torch.Tensor, weight: torch.Tensor, bias: Any, tf32: bool) -> torch.Tensor:
        if rows.is_cuda:
            return ops.gemm(rows, weight, bias=bias, activation=self.activation, tf32=tf32)
        return torch.ops.kiln.gemm(rows, weight, bias, activation=self.activation or "none", tf32=tf32)

    def extra_repr(self) -> str:
        activation = "" if self.activation is None else f", activation={self.activation!r}"
        return super().extra_repr() + activation
