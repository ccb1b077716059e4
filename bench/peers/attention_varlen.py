#!/usr/bin/env python3
"""Attention of sequences of any lengths beside FlashAttention-3, in one process on one GPU.

    python bench/peers/attention_varlen.py --fa3 LIBRARY.so [--rows mixed,causal ...] [--repeats N] [--json FILE]

Each row is a forward pass in bf16 of 16 heads of depth 128 over sequences that lie one behind the other: of equal lengths, 16384
rows in all, of random ones, and of a few long ones beside many short. FlashAttention-3 is what its library registers as
torch.ops.flash_attn_3, as in attention.py, which says what a line of JSON holds; contest.py says how contenders take turns. `alike` is
kiln.ops.attention of sequences of equal lengths, as a batch. Ratios are of times, above 1 kiln.ops.attention_varlen is faster.
Before a row is measured, some rows of each result are compared with fp64.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import torch
from attention import BOUND
from contest import Start, add_fa3, find_wrong, measures_of, parser_of, print_row, run_rows, times_of

import kiln

HEADS, DEPTH = 16, 128
TOKENS = 16384
SETS = 3
SAMPLED = 24  # rows that are computed in fp64, of all heads


def random_lengths(most: int, count: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(count)
    return tuple(torch.randint(1, most + 1, (count,), generator=generator).tolist())


LENGTHS = {
    **{f"{length}s": (length,) * (TOKENS // length) for length in (512, 1024, 2048, 4096, 8192, 16384)},
    "mixed": random_lengths(2048, 16),
    "short": random_lengths(300, 100),
    "one-long": (8192, *[128] * 64),
    "few-long": (9000, 3000, 1700, 900, 600, 400, 300, 200, 150, 100),
}


class Row(NamedTuple):
    name: str
    causal: bool

    @property
    def lengths(self) -> tuple[int, ...]:
        return LENGTHS[self.name]

    @property
    def flops(self) -> float:
        """Two products; a causal mask counts as half."""
        return 4 * HEADS * DEPTH * sum(n * n for n in self.lengths) * (0.5 if self.causal else 1)

    @property
    def text(self) -> str:
        return f"{self.name} {'causal' if self.causal else 'full'}"


class Tensors(NamedTuple):
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    starts: torch.Tensor


def tensors_of(row: Row) -> Tensors:
    rows = sum(row.lengths)
    q, k, v = (torch.randn(rows, HEADS, DEPTH, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    starts = torch.tensor([0, *row.lengths], dtype=torch.int32).cumsum(0).int().cuda()
    return Tensors(q, k, v, torch.empty_like(q), starts)


def contenders_of(row: Row, with_fa3: bool) -> dict[str, Start]:
    longest = max(row.lengths)
    made: dict[str, Start] = {
        "kiln": lambda x: kiln.ops.attention_varlen(x.q, x.k, x.v, x.starts, x.starts, causal=row.causal, out=x.out)
    }
    if with_fa3:
        lengths = {"max_seqlen_q": longest, "max_seqlen_k": longest, "softmax_scale": DEPTH**-0.5, "num_splits": 1}
        made["fa3"] = lambda x: torch.ops.flash_attn_3.fwd(
            x.q, x.k, x.v, cu_seqlens_q=x.starts, cu_seqlens_k=x.starts, is_causal=row.causal, **lengths
        )[0]
    if len(set(row.lengths)) == 1:
        shape = (len(row.lengths), longest, HEADS, DEPTH)
        made["alike"] = lambda x: kiln.ops.attention(
            *(each.view(shape) for each in (x.q, x.k, x.v)), causal=row.causal, out=x.out.view(shape)
        ).view_as(x.out)
    return made


def worst_of(row: Row, x: Tensors, out: torch.Tensor) -> float:
    """The largest difference from fp64 in a sample of rows, over attention.py's bound."""
    generator = torch.Generator().manual_seed(7)
    worst = 0.0
    for at in torch.randint(len(out), (SAMPLED,), generator=generator).tolist():
        n = int((x.starts <= at).sum()) - 1
        begin, end = x.starts[n].item(), (at + 1 if row.causal else x.starts[n + 1].item())
        q, k, v = x.q[at].double(), x.k[begin:end].double(), x.v[begin:end].double()
        weights = torch.softmax(torch.einsum("hd,khd->hk", q, k) * DEPTH**-0.5, -1)
        expected = torch.einsum("hk,khd->hd", weights, v)
        worst = max(worst, ((out[at].double() - expected).abs() / expected.abs().clamp(min=1)).max().item() / BOUND)
    return worst


def run_row(row: Row, options: argparse.Namespace) -> dict[str, Any] | None:
    sets = [tensors_of(row) for _ in range(SETS)]
    starts = contenders_of(row, options.fa3 is not None)
    sets[0].out.fill_(float("nan"))
    worst = {name: worst_of(row, sets[0], start(sets[0]).clone()) for name, start in starts.items()}
    if find_wrong(row, worst):
        return None
    seconds = times_of(starts, sets, options)
    out: dict[str, Any] = {"suite": "attention-varlen", "pass": "forward", "types": "bf16", "depth": DEPTH, "heads": HEADS}
    out |= {"sequences": row.name, "rows": sum(row.lengths), "count": len(row.lengths), "causal": row.causal}
    out |= measures_of(seconds, row.flops)
    print_row(row, out, seconds)
    return out


def main() -> int:
    parser = parser_of(__doc__)
    add_fa3(parser)
    every = [Row(name, causal) for causal in (True, False) for name in LENGTHS]
    return run_rows(every, parser.parse_args(), run_row)


if __name__ == "__main__":
    sys.exit(main())
