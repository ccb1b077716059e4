"""Attention of kiln.ops over a cache as an operator of PyTorch: torch.ops.kiln.attention_decode, without gradients."""

from __future__ import annotations

from typing import Any

import torch

from kiln import ops
from kiln._attention import options_of
from kiln._attention_decode import NAMES, shape_of
from kiln._calls import Asked
from kiln._launch import seen_of, torch_dtype

_NAME = "kiln::attention_decode"
_SCHEMA = (
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor lengths, Tensor? page_table=None, *, bool causal=True, "
    "float? scale=None) -> (Tensor, Tensor)"
)
_NO_GRADIENT = "kiln.ops.attention_decode has no gradients: detach its arguments, or use kiln.ops.attention"


def call_operator(asked: Asked) -> tuple[torch.Tensor, ...]:
    tensors = (asked.given[name] for name in NAMES)
    return torch.ops.kiln.attention_decode(*tensors, causal=asked.options.causal, scale=asked.options.scale)


def _on_gpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_decode.unseen(*tensors, return_lse=True, **options)


def _on_cpu(*tensors: Any, **options: Any) -> Any:
    return ops.attention_decode.reference(*tensors, return_lse=True, **options)


def _empty(*tensors: Any, **options: Any) -> Any:
    options_of(**options)
    given = dict(zip(NAMES, tensors))  # perhaps without the table
    shape = shape_of({name: seen_of(name, value) for name, value in given.items() if value is not None})
    device = given["q"].device
    out = torch.empty(shape.out, dtype=torch_dtype(shape.dtype), device=device)
    return out, torch.empty(shape.lse, dtype=torch.float32, device=device)


def _refuse(*_: Any) -> Any:
    raise NotImplementedError(_NO_GRADIENT)


def _keep_nothing(*_: Any, **__: Any) -> None:
    pass


torch.library.define(_NAME, _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl(_NAME, "cuda", _on_gpu)
torch.library.impl(_NAME, "cpu", _on_cpu)
torch.library.register_fake(_NAME, _empty)
torch.library.register_autograd(_NAME, _refuse, setup_context=_keep_nothing)
