"""Attention of kiln.ops over a cache as an operator of PyTorch: torch.ops.kiln.attention_decode, without gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kiln._attention import Options, options_of
from kiln._attention_decode import NAMES, launch, reference, shape_of
from kiln._launch import seen_of, torch_dtype
from kiln._torch_products import needs_operator as product_needs_operator

_NAME = "kiln::attention_decode"
_SCHEMA = (
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor lengths, Tensor? page_table=None, *, bool causal=True, "
    "float? scale=None) -> (Tensor, Tensor)"
)
_NO_GRADIENT = "kiln.ops.attention_decode has no gradients: detach its arguments, or use kiln.ops.attention"


def needs_operator(given: Mapping[str, Any]) -> bool:
    """Whether a call has to be seen by autograd or by the compiler."""
    return product_needs_operator(given, "q", "attention")


def call_operator(given: Mapping[str, Any], options: Options) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = (given[name] for name in NAMES)
    return torch.ops.kiln.attention_decode(*tensors, causal=options.causal, scale=options.scale)


def _given(*tensors: Any) -> dict[str, Any]:
    """By name; the table may be missing."""
    return {**dict.fromkeys(NAMES), **dict(zip(NAMES, tensors))}


def _on_gpu(*tensors: Any, causal: bool = True, scale: float | None = None) -> Any:
    return launch(_given(*tensors), options_of(causal, scale), None)


def _on_cpu(*tensors: Any, causal: bool = True, scale: float | None = None) -> Any:
    return reference(_given(*tensors), options_of(causal, scale))


def _empty(*tensors: Any, causal: bool = True, scale: float | None = None) -> Any:
    options_of(causal, scale)
    given = _given(*tensors)
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
