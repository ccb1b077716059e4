#!/usr/bin/env python3
"""Attention beside the best of the others, in one process on one GPU: kiln, cuDNN and FlashAttention-3.

    python bench/peers/attention.py [--backward | --type f8_e4m3] [--sharing N] [--fa3 LIBRARY.so] [--rows D=128,causal ...]
                                    [--only kiln ...] [--json FILE]

Each row is a forward pass in bf16, or with --backward the gradients of one, with batch * rows = 16384 and heads *
depth = 2048: depths of 64, 128 and 256, rows of 1024 to 16384, with and without a causal mask. cuDNN is the one of
PyTorch, by its autograd for gradients. FlashAttention-3 is what its library registers as torch.ops.flash_attn_3;
without --fa3 it is left out. A row is one line of JSON on the standard output, with medians of TFLOP/s (2 products, 5
for gradients; a causal mask counts as half) and of ratios, theirs over ours in time: above 1 kiln is faster. Text for
people goes to the standard error. Kiln's gradients are the same from run to run, unless it is told --any-order;
FlashAttention-3 adds dq in any order, unless it is told --deterministic.

Elements are random and normal. Before a row is measured, results are compared: outputs with fp64 in a sample of rows,
and all of them with cuDNN's; gradients with those of one head in fp64, and all of them with cuDNN's. How contenders take
turns says contest.py. Buffers are used in turn, so many that they pass twice the L2 before they come back. With --graphs a
batch is a CUDA graph; cuDNN's gradients are left out then.

With --sharing N so many heads share a key head in the forward pass.

With --type f8_e4m3 kiln and FlashAttention-3 get q, k and v of 8 bits, with a factor for each head, and give bf16; kiln of
bf16 is measured beside, in the place of cuDNN, of the same numbers. What is compared with fp64 is allowed what rounded
weights are likely to lose; all elements have to be finite.

With --kernel FILE.co and -D NAME=VALUE a kernel of a file takes the place of the library's, compiled by kiln.compile:
attention(q, k, v, o, lse, scale).
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from contest import Start, add_fa3, find_wrong, measures_of, parser_of, print_row, run_rows, times_of
from torch.nn.attention import SDPBackend, sdpa_kernel

import kiln
from kiln._attention import kernel_of, options_of

TOKENS = 16384
WIDTH = 2048  # heads * depth
DEPTHS = (64, 128, 256)
BF16, F8 = "bf16", "f8_e4m3"
ROWS = (1024, 2048, 4096, 8192, 16384)
SAMPLED = 16  # rows of one head that are computed in fp64, in each of SAMPLED_HEADS
SAMPLED_HEADS = 4
# Weights are rounded to bf16, by up to 2^-9 of themselves, before they multiply values of up to 5 or so, and the output
# once more. The bound is of an output of up to 1; a larger one is allowed as many times more.
BOUND = 2.0**-6
# Of tensors of 8 bits weights are rounded by up to 2^-4 of themselves, each either way: an error is a sum of independent
# ones, of which this many standard deviations are allowed. Small weights are off by 2^-18 of the largest one. Sums of
# 8-bit floats keep 14 bits.
WEIGHT = 2.0**-4
DEVIATIONS = 6.0
SMALL_WEIGHT = 2.0**-18
SUMS = 2.0**-4  # of a result, of up to 16384 keys
EXACT_ROWS = 8192  # up to here gradients are computed in fp64
SETS_MAX = 64


class Row(NamedTuple):
    depth: int
    rows: int
    causal: bool
    sharing: int = 1

    @property
    def batch(self) -> int:
        return TOKENS // self.rows

    @property
    def heads(self) -> int:
        return WIDTH // self.depth

    @property
    def key_heads(self) -> int:
        return self.heads // self.sharing

    @property
    def flops(self) -> float:
        """Of the forward pass: two products."""
        return 4 * self.batch * self.heads * self.rows * self.rows * self.depth * (0.5 if self.causal else 1)

    @property
    def text(self) -> str:
        heads = f"H={self.heads}" + (f" HK={self.key_heads}" if self.sharing > 1 else "")
        return f"D={self.depth} S={self.rows} B={self.batch} {heads} {'causal' if self.causal else 'full'}"


class Tensors(NamedTuple):
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor
    dout: torch.Tensor | None = None
    graph: tuple[torch.Tensor, ...] = ()  # cuDNN's output and what it was made of, for autograd
    of_8_bits: tuple[torch.Tensor, ...] = ()  # q, k and v
    factors: tuple[torch.Tensor, ...] = ()  # of them, [batch, heads]


def has_8_bits(options: argparse.Namespace) -> bool:
    return options.type == F8


def random_tensors(row: Row, generator: torch.Generator, has_8_bits: bool) -> Tensors:
    shapes = [(row.batch, row.rows, heads, row.depth) for heads in (row.heads, row.key_heads, row.key_heads)]
    q, k, v = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=generator) for shape in shapes)
    x = Tensors(q, k, v, torch.empty_like(q), torch.empty(row.batch, row.heads, row.rows, device="cuda"))
    return with_8_bits(x) if has_8_bits else x


def with_8_bits(x: Tensors) -> Tensors:
    """The numbers of 8 bits, with factors that are powers of two, so that bf16 has the same numbers."""
    small = tuple((2 * each).to(torch.float8_e4m3fn) for each in (x.q, x.k, x.v))
    factor = torch.full((x.k.shape[0], x.k.shape[2]), 0.5, device=x.q.device)
    q, k, v = ((each.float() / 2).to(torch.bfloat16) for each in small)
    return x._replace(q=q, k=k, v=v, of_8_bits=small, factors=(factor, factor, factor))


def sets_of(row: Row, has_8_bits: bool = False) -> list[Tensors]:
    """So many that two passes over the L2 lie between two uses of one."""
    generator = torch.Generator("cuda").manual_seed(1)
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    bytes_of_set = 4 * TOKENS * WIDTH * 2
    count = min(SETS_MAX, max(2, -(-2 * l2_bytes // bytes_of_set) + 1))
    return [random_tensors(row, generator, has_8_bits) for _ in range(count)]


def for_gradients(row: Row, x: Tensors) -> Tensors:
    """With what a backward pass reads: the output and lse of the forward pass, and a gradient of the output."""
    out, lse = kiln.ops.attention(x.q, x.k, x.v, causal=row.causal, return_lse=True)
    leaves = tuple(each.detach().clone().requires_grad_() for each in (x.q, x.k, x.v))
    graph = (start_of_cudnn(row)(Tensors(*leaves, x.out, x.lse)), *leaves)
    return x._replace(out=out, lse=lse, dout=torch.randn_like(out), graph=graph)


# --- contenders


def start_of_library(row: Row) -> Start:
    return lambda x: kiln.ops.attention(x.q, x.k, x.v, causal=row.causal, out=x.out)


def start_of_8_bits(row: Row) -> Start:
    def start(x: Tensors) -> torch.Tensor:
        factors = dict(zip(("q_scale", "k_scale", "v_scale"), x.factors))
        return kiln.ops.attention(*x.of_8_bits, **factors, causal=row.causal, out=x.out)

    return start


def start_of_file(row: Row, options: argparse.Namespace) -> Start:
    defines = dict(each.split("=", 1) for each in options.defines)
    defines |= {"D": row.depth, "CAUSAL": str(row.causal).lower()}
    kernel = kiln.compile(options.kernel, defines=defines).attention

    def start(x: Tensors) -> torch.Tensor:
        kernel(x.q, x.k, x.v, x.out, x.lse, scale=row.depth**-0.5)
        return x.out

    return start


def start_of_cudnn(row: Row) -> Start:
    def start(x: Tensors) -> torch.Tensor:
        q, k, v = (each.transpose(1, 2) for each in (x.q, x.k, x.v))
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=row.causal, enable_gqa=row.sharing > 1).transpose(1, 2)

    return start


def start_of_fa3(row: Row, has_8_bits: bool) -> Start:
    forward = torch.ops.flash_attn_3.fwd
    scale = row.depth**-0.5
    if has_8_bits:
        names = ("q_descale", "k_descale", "v_descale")
        how = {"softmax_scale": scale, "is_causal": row.causal, "num_splits": 1}
        return lambda x: forward(*x.of_8_bits, **dict(zip(names, x.factors)), **how)[0]
    return lambda x: forward(x.q, x.k, x.v, softmax_scale=scale, is_causal=row.causal, num_splits=1)[0]


def gradients_of_library(row: Row, any_order: bool) -> Start:
    how = {"causal": row.causal, "deterministic": not any_order}
    return lambda x: kiln.ops.attention_backward(x.dout, x.q, x.k, x.v, x.out, x.lse, **how)


def gradients_of_cudnn(x: Tensors) -> Any:
    return torch.autograd.grad(x.graph[0], x.graph[1:], x.dout, retain_graph=True)


def gradients_of_fa3(row: Row, deterministic: bool) -> Start:
    backward = torch.ops.flash_attn_3.bwd
    scale = row.depth**-0.5
    return lambda x: backward(
        x.dout, x.q, x.k, x.v, x.out, x.lse, softmax_scale=scale, is_causal=row.causal, deterministic=deterministic
    )[:3]


def contenders_of(row: Row, options: argparse.Namespace) -> dict[str, Start]:
    made: dict[str, Start]
    if options.backward:
        made = {"kiln": gradients_of_library(row, options.any_order)}
        if not options.graphs:  # what autograd recorded on one stream is not captured on another
            made["cudnn"] = gradients_of_cudnn
        if options.fa3:
            made["fa3"] = gradients_of_fa3(row, options.deterministic)
    else:
        if has_8_bits(options):
            made = {"kiln": start_of_8_bits(row), "kiln_bf16": start_of_library(row)}
        else:
            made = {"kiln": start_of_file(row, options) if options.kernel else start_of_library(row), "cudnn": start_of_cudnn(row)}
        if options.fa3:
            made["fa3"] = start_of_fa3(row, has_8_bits(options))
    return {name: start for name, start in made.items() if not options.only or name in options.only}


# --- checking


def exact_rows(row: Row, x: Tensors, b: int, h: int, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """In fp64, and what may be lost of it."""
    key_head = h // row.sharing
    q, k, v = x.q[b, at, h].double(), x.k[b, :, key_head].double(), x.v[b, :, key_head].double()
    scores = q @ k.T * row.depth**-0.5
    if row.causal:
        keys = torch.arange(row.rows, device=at.device)
        scores = scores.masked_fill(keys[None, :] > at[:, None], -torch.inf)
    weights = torch.softmax(scores, -1)
    expected = weights @ v
    if not x.of_8_bits:
        return expected, BOUND * expected.abs().clamp(min=1)
    deviation = WEIGHT / 3**0.5 * (weights**2 @ v**2).sqrt()
    lost = SMALL_WEIGHT * weights.amax(-1, keepdim=True) * v.abs().sum(0)
    return expected, DEVIATIONS * deviation + lost + (SUMS + 2.0**-8) * expected.abs()


def worst_of_sample(row: Row, x: Tensors, out: torch.Tensor) -> float:
    """The largest difference from fp64, over the bound."""
    generator = torch.Generator().manual_seed(7)
    worst = 0.0
    for _ in range(SAMPLED_HEADS):
        b, h = (int(torch.randint(most, (1,), generator=generator)) for most in (row.batch, row.heads))
        at = torch.randint(row.rows, (SAMPLED,), generator=generator)
        at[0], at[1] = 0, row.rows - 1
        at = at.to(x.q.device)
        expected, bound = exact_rows(row, x, b, h, at)
        worst = max(worst, ((out[b, at, h].double() - expected).abs() / bound).max().item())
    return worst


def exact_gradients(row: Row, x: Tensors, b: int, h: int) -> list[torch.Tensor]:
    leaves = [each[b, :, h].double().requires_grad_() for each in (x.q, x.k, x.v)]
    q, k, v = leaves
    scores = q @ k.T * row.depth**-0.5
    if row.causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    out = torch.softmax(scores, -1) @ v
    return list(torch.autograd.grad(out, leaves, x.dout[b, :, h].double()))


def check_gradients(row: Row, starts: dict[str, Start], x: Tensors) -> dict[str, float]:
    """Of each contender the largest difference over its bound: one head from fp64, twice as much from cuDNN's."""
    b, h = row.batch - 1, row.heads - 1
    exact = exact_gradients(row, x, b, h) if row.rows <= EXACT_ROWS else []
    whole = [each.clone() for each in gradients_of_cudnn(x)]
    worst = {}
    for name, start in starts.items():
        found = [each.clone() for each in start(x)]
        each = [worst_of_all(found[at], whole[at]) / 2 for at in range(3)]
        each += [worst_of_all(found[at][b, :, h], wanted) for at, wanted in enumerate(exact)]
        worst[name] = max(each)
    return worst


def worst_of_all(found: torch.Tensor, expected: torch.Tensor) -> float:
    if not torch.isfinite(found).all():
        return float("inf")
    return ((found.float() - expected.float()).abs() / expected.float().abs().clamp(min=1)).max().item() / BOUND


def check(row: Row, starts: dict[str, Start], x: Tensors) -> dict[str, float]:
    """Of each contender the largest difference over its bound, twice as much from cuDNN's as from fp64."""
    x.out.fill_(float("nan"))
    outputs = {name: start(x).clone() for name, start in starts.items()}
    worst = {name: worst_of_sample(row, x, out) for name, out in outputs.items()}
    if x.of_8_bits:
        return {name: each if torch.isfinite(outputs[name]).all() else float("inf") for name, each in worst.items()}
    whole = outputs["cudnn"] if "cudnn" in outputs else start_of_cudnn(row)(x)
    for name, out in outputs.items():
        worst[name] = max(worst[name], worst_of_all(out, whole) / 2)
    return worst


# --- measuring


def result_of(row: Row, options: argparse.Namespace, seconds: dict[str, list[float]], worst: dict[str, float]) -> dict[str, Any]:
    which = "backward" if options.backward else "forward"
    flops = row.flops * (2.5 if options.backward else 1)
    out: dict[str, Any] = {"suite": "attention", "pass": which, "types": options.type, **row._asdict()}
    out |= {"batch": row.batch, "heads": row.heads}
    for name in ("any_order", "deterministic", "graphs"):
        if getattr(options, name):
            out[name] = True
    return out | measures_of(seconds, flops) | {f"{name}_worst": worst[name] for name in seconds}


def willing(row: Row, starts: dict[str, Start], x: Tensors) -> dict[str, Start]:
    """Without FlashAttention-3 where its library was built without 8-bit floats."""
    if not x.of_8_bits or "fa3" not in starts:
        return starts
    try:
        starts["fa3"](x)
    except RuntimeError as refused:
        print(f"{row.text}: without fa3: {refused}", file=sys.stderr)
        return {name: start for name, start in starts.items() if name != "fa3"}
    return starts


def run_row(row: Row, options: argparse.Namespace) -> dict[str, Any] | None:
    sets = sets_of(row, has_8_bits(options))
    if options.backward:
        sets = [for_gradients(row, each) for each in sets]
    starts = willing(row, contenders_of(row, options), sets[0])
    worst = (check_gradients if options.backward else check)(row, starts, sets[0])
    if wrong := find_wrong(row, worst):
        if "kiln" in wrong:
            return None
        starts = {name: start for name, start in starts.items() if name not in wrong}
    seconds = times_of(starts, sets, options)
    result = result_of(row, options, seconds, worst)
    if "kiln" in starts and not options.kernel and not options.backward:
        tensors = sets[0].of_8_bits or (sets[0].q, sets[0].k, sets[0].v)
        given = dict(zip(("q", "k", "v"), tensors))
        result["kernel"] = kernel_of(given, options_of(row.causal, None))
    elif options.kernel:
        result["kernel"] = " ".join([Path(options.kernel).name, *options.defines])
    print_row(row, result, seconds)
    return result


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_fa3(parser)
    parser.add_argument("--backward", action="store_true", help="gradients in the place of the forward pass")
    parser.add_argument("--deterministic", action="store_true", help="FlashAttention-3 adds gradients in one order")
    parser.add_argument("--any-order", action="store_true", help="kiln may add gradients in any order")
    parser.add_argument("--sharing", type=int, default=1, metavar="N", help="so many heads share a key head: 1, 2, 4 or 8")
    parser.add_argument("--type", default=BF16, choices=(BF16, F8), help="of q, k and v")
    parser.add_argument("--only", nargs="+", default=[], choices=("kiln", "kiln_bf16", "cudnn", "fa3"), help="contenders to keep")
    parser.add_argument("--kernel", metavar="FILE.co", help="in the place of the library")
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME=VALUE", help="of --kernel")
    options = parser.parse_args()
    if options.defines and not options.kernel:
        parser.error("-D is for a kernel of a file: give --kernel")
    for name in ("any_order", "deterministic"):
        if getattr(options, name) and not options.backward:
            parser.error(f"--{name.replace('_', '-')} is of gradients: give --backward")
    if has_8_bits(options) and (options.backward or options.kernel):
        parser.error(f"--type {F8} is of the library's forward pass: leave --backward and --kernel out")
    if options.kernel and options.backward:
        parser.error("--kernel is one of the forward pass: leave --backward out")
    if options.sharing not in (1, 2, 4, 8):  # WIDTH // 256 heads are the fewest
        parser.error(f"--sharing is {options.sharing}: 1, 2, 4 or 8 heads share a key head")
    if options.sharing > 1 and (options.backward or options.kernel):
        parser.error("--sharing is of the library's forward pass: leave --backward and --kernel out")
    return options


def main() -> int:
    options = parsed()
    every = [Row(*each, options.sharing) for each in itertools.product(DEPTHS, ROWS, (False, True))]
    return run_rows(every, options, run_row)


if __name__ == "__main__":
    sys.exit(main())
