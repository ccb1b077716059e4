"""Attention of kiln.ops as operators of PyTorch: torch.ops.kiln.attention, with gradients, and attention_backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kiln import _attention_backward as back
from kiln import ops
from kiln._attention import FACTORS, Options, named_of, options_of, result_type, shape_of
from kiln._calls import Asked
from kiln._launch import seen_of, torch_dtype

_NAME = "kiln::attention"
_TENSORS = ("q", "k", "v", *FACTORS)
_DIFFERENTIABLE = 3  # the first ones
_OPTIONS = "bool causal=False, float? scale=None, int[]? window=None, float? soft_cap=None, bool deterministic=True"
# Factors are no keywords: operators with gradients have no tensors that are.
_FACTORS = ", ".join(f"Tensor? {name}=None" for name in FACTORS)
_SCHEMA = f"(Tensor q, Tensor k, Tensor v, {_FACTORS}, *, {_OPTIONS}) -> (Tensor, Tensor)"
_BACKWARD_NAME = "kiln::attention_backward"
_BACKWARD_SCHEMA = (
    f"(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, *, {_OPTIONS}) -> (Tensor, Tensor, Tensor)"
)
_NO_GRADIENT = (
    "kiln.ops.attention has no second derivatives: detach its arguments, or use "
    "torch.nn.functional.scaled_dot_product_attention where they are needed"
)


_NO_GRADIENT_OF_8_BITS = (
    "kiln.ops.attention of f8_e4m3 has no gradients: detach `q`, `k`, `v` and their factors, or convert `q`, `k` and `v` to "
    "bf16 in front of it"
)


def _named_of(options: Options) -> dict[str, Any]:
    return {**named_of(options), "deterministic": options.deterministic}


def call_operator(asked: Asked) -> tuple[torch.Tensor, ...]:
    return torch.ops.kiln.attention(*(asked.given[name] for name in _TENSORS), **_named_of(asked.options))


def _on_gpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention.unseen(**dict(zip(_TENSORS, tensors)), return_lse=True, **options)


def _on_cpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention.reference(**dict(zip(_TENSORS, tensors)), return_lse=True, **options)


def _empty(*tensors: Any, **options: Any) -> Any:
    options_of(**options)
    given = {name: value for name, value in zip(_TENSORS, tensors) if value is not None}
    shape = shape_of({name: seen_of(name, value) for name, value in given.items()})
    device = given["q"].device
    out = torch.empty(shape.out, dtype=torch_dtype(result_type(shape.dtype)), device=device)
    return out, torch.empty(shape.lse, dtype=torch.float32, device=device)


def call_backward_operator(asked: Asked) -> tuple[torch.Tensor, ...]:
    tensors = (asked.given[name] for name in back.NAMES)
    return torch.ops.kiln.attention_backward(*tensors, **_named_of(asked.options))


def _backward_on_gpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_backward.unseen(*tensors, **options)


def _backward_on_cpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_backward.reference(*tensors, **options)


def _backward_empty(*tensors: Any, **options: Any) -> Any:
    options_of(**options)
    shape = back.check({name: seen_of(name, value) for name, value in zip(back.NAMES, tensors)})
    like = {"dtype": torch_dtype(shape.dtype), "device": tensors[1].device}
    return tuple(torch.empty(each, **like) for each in (shape.query, shape.key, shape.value))


def _keep(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: Any) -> None:
    if inputs[0].dtype == torch.float8_e4m3fn:
        raise NotImplementedError(_NO_GRADIENT_OF_8_BITS)
    ctx.how = dict(keyword_only_inputs)
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs[:_DIFFERENTIABLE], *output)


def _backward(ctx: Any, slope: torch.Tensor, _slope_of_lse: Any) -> tuple[torch.Tensor | None, ...]:
    slope = slope if lies_well(slope) else slope.contiguous()
    made = torch.ops.kiln.attention_backward(slope, *ctx.saved_tensors, **ctx.how)
    return (*made, *(None for _ in FACTORS))


def lies_well(tensor: torch.Tensor) -> bool:
    *steps, inner = tensor.stride()
    return inner == 1 and all(step > 0 and step % 8 == 0 for step in steps)


def _refuse(*_: Any) -> Any:
    raise NotImplementedError(_NO_GRADIENT)


def _keep_nothing(*_: Any, **__: Any) -> None:
    pass


torch.library.define(_NAME, _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl(_NAME, "cuda", _on_gpu)
torch.library.impl(_NAME, "cpu", _on_cpu)
torch.library.register_fake(_NAME, _empty)
torch.library.register_autograd(_NAME, _backward, setup_context=_keep)
torch.library.define(_BACKWARD_NAME, _BACKWARD_SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl(_BACKWARD_NAME, "cuda", _backward_on_gpu)
torch.library.impl(_BACKWARD_NAME, "cpu", _backward_on_cpu)
torch.library.register_fake(_BACKWARD_NAME, _backward_empty)
torch.library.register_autograd(_BACKWARD_NAME, _refuse, setup_context=_keep_nothing)
