#!/usr/bin/env python3
"""Attention of one query over a cache of keys and values beside FlashAttention-3, in one process on one GPU.

    python bench/peers/attention_decode.py [--fa3 LIBRARY.so] [--rows paged ...] [--repeats N] [--json FILE]

Each row is one step of decoding in bf16 for a batch of sequences: 32 heads of depth 128, of which four share a key head, over
caches in pages of 64 keys that lie anyhow, or without pages. FlashAttention-3 is what its library registers as
torch.ops.flash_attn_3, which chooses itself how to split keys; what a line of JSON holds says attention.py, how contenders take
turns contest.py. The measure is the bytes of keys and values that are read, in 10^9 a second. Calls cost the CPU microseconds:
give --graphs to see what the GPU takes. Before a row is measured, some sequences of each result are compared with fp64.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any, NamedTuple

import torch
from attention import BOUND
from contest import Start, add_fa3, find_wrong, measures_of, parser_of, print_row, run_rows, times_of

import kiln

HEADS, KEY_HEADS, DEPTH = 32, 8, 128
PAGE = 64
BATCHES = (1, 8, 32, 128)
KEYS = (1024, 4096, 16384, 65536)
BYTES_MOST = 16 << 30  # of the caches of a row
SAMPLED = 4  # sequences that are computed in fp64


class Row(NamedTuple):
    batch: int
    keys: int
    paged: bool

    @property
    def bytes(self) -> float:
        return 2.0 * self.batch * self.keys * KEY_HEADS * DEPTH * 2

    @property
    def text(self) -> str:
        return f"B={self.batch} T={self.keys} {'paged' if self.paged else 'whole'}"


class Tensors(NamedTuple):
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    lengths: torch.Tensor
    pages: torch.Tensor | None
    out: torch.Tensor


def tensors_of(row: Row) -> Tensors:
    normal = {"device": "cuda", "dtype": torch.bfloat16}
    count = row.batch * row.keys
    shape = (count // PAGE, PAGE) if row.paged else (row.batch, row.keys)
    k, v = (torch.randn(*shape, KEY_HEADS, DEPTH, **normal) for _ in range(2))
    pages = torch.randperm(count // PAGE, device="cuda").int().view(row.batch, -1) if row.paged else None
    q = torch.randn(row.batch, 1, HEADS, DEPTH, **normal)
    return Tensors(q, k, v, torch.full((row.batch,), row.keys, dtype=torch.int32, device="cuda"), pages, torch.empty_like(q))


def contenders_of(row: Row, with_fa3: bool) -> dict[str, Start]:
    made: dict[str, Start] = {"kiln": lambda x: kiln.ops.attention_decode(x.q, x.k, x.v, x.lengths, x.pages, out=x.out)}
    if with_fa3:
        how = {"max_seqlen_k": row.keys} if row.paged else {}
        made["fa3"] = lambda x: torch.ops.flash_attn_3.fwd(
            x.q, x.k, x.v, seqused_k=x.lengths, page_table=x.pages, softmax_scale=DEPTH**-0.5, is_causal=True, num_splits=0, **how
        )[0]
    return made


def worst_of(row: Row, x: Tensors, out: torch.Tensor) -> float:
    """The largest difference from fp64 in some sequences, over attention.py's bound."""
    worst = 0.0
    for b in torch.randint(row.batch, (SAMPLED,), generator=torch.Generator().manual_seed(7)).tolist():
        k, v = ((each[x.pages[b].long()].flatten(0, 1) if x.pages is not None else each[b]) for each in (x.k, x.v))
        q = x.q[b, 0].view(KEY_HEADS, -1, DEPTH).double()
        weights = torch.softmax(torch.einsum("hgd,khd->hgk", q, k.double()) * DEPTH**-0.5, -1)
        expected = torch.einsum("hgk,khd->hgd", weights, v.double()).flatten(0, 1)
        difference = (out[b, 0].double() - expected).abs() / expected.abs().clamp(min=1)
        worst = max(worst, difference.nan_to_num(torch.inf).max().item() / BOUND)
    return worst


def run_row(row: Row, options: argparse.Namespace) -> dict[str, Any] | None:
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    sets = [tensors_of(row) for _ in range(max(2, min(64, round(2 * l2_bytes / row.bytes) + 1)))]
    starts = contenders_of(row, options.fa3 is not None)
    sets[0].out.fill_(float("nan"))
    worst = {name: worst_of(row, sets[0], start(sets[0]).clone()) for name, start in starts.items()}
    if find_wrong(row, worst):
        return None
    seconds = times_of(starts, sets, options)
    out: dict[str, Any] = {"suite": "attention-decode", "types": "bf16", "depth": DEPTH, "heads": HEADS, "key_heads": KEY_HEADS}
    out |= row._asdict() | ({"graphs": True} if options.graphs else {})
    out |= measures_of(seconds, row.bytes, "gbps") | {f"{name}_worst": worst[name] for name in seconds}
    print_row(row, out, seconds, "gbps")
    return out


def main() -> int:
    parser = parser_of(__doc__)
    add_fa3(parser)
    every = [Row(*each) for each in itertools.product(BATCHES, KEYS, (False, True))]
    return run_rows([row for row in every if row.bytes <= BYTES_MOST / 3], parser.parse_args(), run_row)


if __name__ == "__main__":
    sys.exit(main())
