"""Attention of kiln.ops of sequences as operators of PyTorch: torch.ops.kiln.attention_varlen, with gradients, and
attention_varlen_backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kiln import _attention_varlen_backward as back
from kiln import ops
from kiln._attention import named_of, options_of
from kiln._attention_varlen import NAMES, shape_of
from kiln._calls import Asked
from kiln._launch import seen_of, torch_dtype
from kiln._torch_attention import lies_well

_NAME = "kiln::attention_varlen"
_OPTIONS = "bool causal=False, float? scale=None, int[]? window=None, float? soft_cap=None"
_SCHEMA = (
    f"(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, *, {_OPTIONS}) -> (Tensor, Tensor)"
)
_BACKWARD_NAME = "kiln::attention_varlen_backward"
_BACKWARD_SCHEMA = (
    "(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor cu_seqlens_q, Tensor cu_seqlens_k, *, "
    f"{_OPTIONS}) -> (Tensor, Tensor, Tensor)"
)
_NO_GRADIENT = "kiln.ops.attention_varlen has no second derivatives: detach its arguments"


def call_operator(asked: Asked) -> tuple[torch.Tensor, ...]:
    return torch.ops.kiln.attention_varlen(*(asked.given[name] for name in NAMES), **named_of(asked.options))


def _on_gpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_varlen.unseen(*tensors, return_lse=True, **options)


def _on_cpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_varlen.reference(*tensors, return_lse=True, **options)


def _empty(*tensors: Any, **options: Any) -> Any:
    options_of(**options)
    shape = shape_of({name: seen_of(name, value) for name, value in zip(NAMES, tensors)})
    device = tensors[0].device
    out = torch.empty(shape.out, dtype=torch_dtype(shape.dtype), device=device)
    return out, torch.empty(shape.lse, dtype=torch.float32, device=device)


def call_backward_operator(asked: Asked) -> tuple[torch.Tensor, ...]:
    tensors = (asked.given[name] for name in back.NAMES)
    return torch.ops.kiln.attention_varlen_backward(*tensors, **named_of(asked.options))


def _backward_on_gpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_varlen_backward.unseen(*tensors, **options)


def _backward_on_cpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_varlen_backward.reference(*tensors, **options)


def _backward_empty(*tensors: Any, **options: Any) -> Any:
    options_of(**options)
    shape = back.check({name: seen_of(name, value) for name, value in zip(back.NAMES, tensors)})
    like = {"dtype": torch_dtype(shape.dtype), "device": tensors[1].device}
    return tuple(torch.empty(each, **like) for each in (shape.query, shape.key, shape.value))


def _keep(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: Any) -> None:
    ctx.how = dict(keyword_only_inputs)
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs, *output)


def _backward(ctx: Any, slope: torch.Tensor, _slope_of_lse: Any) -> tuple[torch.Tensor | None, ...]:
    slope = slope if lies_well(slope) else slope.contiguous()
    q, k, v, starts_q, starts_k, out, lse = ctx.saved_tensors
    made = torch.ops.kiln.attention_varlen_backward(slope, q, k, v, out, lse, starts_q, starts_k, **ctx.how)
    return (*made, None, None)


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
