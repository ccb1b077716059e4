"""Attention of kiln.ops as an operator of PyTorch: torch.ops.kiln.attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kiln._attention import Options, launch, options_of, reference, shape_of
from kiln._launch import seen_of, torch_dtype
from kiln._torch_products import needs_operator as product_needs_operator

_NAME = "kiln::attention"
_SCHEMA = "(Tensor q, Tensor k, Tensor v, *, bool causal=False, float? scale=None) -> (Tensor, Tensor)"
_NO_GRADIENT = (
    "kiln.ops.attention has no gradient yet: detach its arguments, compute under torch.no_grad(), or use "
    "torch.nn.functional.scaled_dot_product_attention where gradients are needed"
)


def needs_operator(given: Mapping[str, Any]) -> bool:
    """Whether a call has to be seen by autograd or by the compiler."""
    return product_needs_operator(given, "q", "attention")


def call_operator(given: Mapping[str, Any], options: Options) -> tuple[torch.Tensor, torch.Tensor]:
    q, k, v = (given[name] for name in ("q", "k", "v"))
    return torch.ops.kiln.attention(q, k, v, causal=options.causal, scale=options.scale)


def _given(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"q": q, "k": k, "v": v}


def _on_gpu(q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None) -> Any:
    return launch(_given(q, k, v), options_of(causal, scale), None)


def _on_cpu(q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None) -> Any:
    return reference(_given(q, k, v), options_of(causal, scale))


def _empty(q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None) -> Any:
    options_of(causal, scale)
    shape = shape_of({name: seen_of(name, value) for name, value in _given(q, k, v).items()})
    out = torch.empty(shape.out, dtype=torch_dtype(shape.dtype), device=q.device)
    return out, torch.empty(shape.lse, dtype=torch.float32, device=q.device)


def _refuse(*_: Any) -> Any:
    raise NotImplementedError(_NO_GRADIENT)


def _keep_nothing(*_: Any, **__: Any) -> None:
    pass


torch.library.define(_NAME, _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))
torch.library.impl(_NAME, "cuda", _on_gpu)
torch.library.impl(_NAME, "cpu", _on_cpu)
torch.library.register_fake(_NAME, _empty)
torch.library.register_autograd(_NAME, _refuse, setup_context=_keep_nothing)
