#!/usr/bin/env python3
"""FP8 with scales of blocks and with groups beside the best of the others, in one process on one GPU: kiln and DeepGEMM.

    python bench/peers/block_scaled.py [--rows dense ...] [--only kiln ...] [--json FILE]

Each row is a product of f8_e4m3 to bf16 with an f32 factor for 1 x 128 elements of A and for 128 x 128 of B: whole
ones, groups of rows behind each other ("contiguous"), and groups with room for 4096 rows each, of all of which 1024 count
("masked").
DeepGEMM is the installed package `deep_gemm`, of whatever version; it gets the same buffers, as its own layouts are the
same but for masked scales. Without it kiln is measured alone, beside PyTorch's product (cuBLASLt) of whole ones. A row
is one line of JSON on the standard output, with medians of TFLOP/s and of ratios, theirs over ours in time: above 1 kiln
is faster. Text for people goes to the standard error.

Factors are what rounding random normal matrices to FP8 gives. Before a row is measured, results are compared with f32.
How contenders take turns says contest.py; buffers are used in turn, so many that they pass twice the L2 before they come back. A call costs the CPU
tens of microseconds: give --graphs to see what small products take on the GPU.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any, NamedTuple

import torch
from contest import Start, measures_of, parser_of, print_row, run_rows, times_of

import kiln

BLOCK = 128
ROOM = 4096  # of a masked group
MASKED = 1024  # of all masked groups so many rows count
ERROR_MAX = 0.02  # the norm of the difference, over that of the result
SETS_MAX = 16


class Row(NamedTuple):
    kind: str  # "dense", "contiguous", "masked"
    groups: int
    m: int  # of each group; all of them
    n: int
    k: int

    @property
    def each(self) -> int:
        """Rows that count of each group."""
        return MASKED // self.groups if self.kind == "masked" else self.m

    @property
    def flops(self) -> float:
        return 2.0 * self.groups * self.each * self.n * self.k

    @property
    def text(self) -> str:
        rows = f"{self.groups} x {self.each}" if self.groups > 1 else str(self.m)
        return f"{self.kind} {rows}, {self.n}, {self.k}"


DENSE = (
    (4096, 7168, 16384),
    (4096, 4096, 7168),
    (4096, 24576, 1536),
    (4096, 7168, 2048),
    (128, 7168, 16384),
    (64, 2112, 7168),
)
GROUPED = (
    (4, 8192, 4096, 7168),
    (4, 8192, 7168, 2048),
    (8, 4096, 4096, 7168),
    (8, 4096, 7168, 2048),
)
APART = ((1, ROOM, 4096, 7168), (1, ROOM, 7168, 2048), (4, ROOM, 4096, 7168), (4, ROOM, 7168, 2048))
EVERY = (
    *(Row("dense", 1, *each) for each in DENSE),
    *(Row("contiguous", *each) for each in GROUPED),
    *(Row("masked", *each) for each in APART),
)


class Tensors(NamedTuple):
    a: torch.Tensor  # [groups * m, k]
    a_scale: torch.Tensor  # [k / 128, groups * m]
    b: torch.Tensor  # [groups, n, k]
    b_scale: torch.Tensor  # [groups, n / 128, k / 128]
    out: torch.Tensor  # [groups * m, n]


# --- inputs


def rounded_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """FP8, and factors [k / 128, m]."""
    m, k = x.shape
    blocks = x.view(m, k // BLOCK, BLOCK)
    scale = blocks.abs().amax(2).clamp(min=1e-4) / 448
    return (blocks / scale[..., None]).view(m, k).to(torch.float8_e4m3fn), scale.T.contiguous()


def rounded_blocks(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """FP8, and factors [n / 128, k / 128]."""
    n, k = x.shape
    whole = torch.zeros(-(-n // BLOCK) * BLOCK, k, device=x.device)
    whole[:n] = x
    blocks = whole.view(-1, BLOCK, k // BLOCK, BLOCK)
    scale = blocks.abs().amax((1, 3)).clamp(min=1e-4) / 448
    values = (blocks / scale[:, None, :, None]).view(-1, k)[:n].to(torch.float8_e4m3fn)
    return values.contiguous(), scale.contiguous()


def random_tensors(row: Row) -> Tensors:
    a, a_scale = rounded_rows(torch.randn(row.groups * row.m, row.k, device="cuda"))
    every = [rounded_blocks(torch.randn(row.n, row.k, device="cuda")) for _ in range(row.groups)]
    b, b_scale = (torch.stack(each) for each in zip(*every))
    out = torch.full((row.groups * row.m, row.n), torch.nan, device="cuda", dtype=torch.bfloat16)
    return Tensors(a, a_scale, b, b_scale, out)


def sets_of(row: Row) -> list[Tensors]:
    """So many that two passes over the L2 lie between two uses of one."""
    torch.manual_seed(1)
    touched = row.groups * (row.each * row.k + row.n * row.k + 2 * row.each * row.n)
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    return [random_tensors(row) for _ in range(min(SETS_MAX, max(2, -(-2 * l2_bytes // touched) + 1)))]


def expected(row: Row, x: Tensors) -> torch.Tensor:
    """[groups, each, n] in f32."""
    out = []
    for group in range(row.groups):
        rows = slice(group * row.m, group * row.m + row.each)
        a = x.a[rows].float() * x.a_scale[:, rows].T.repeat_interleave(BLOCK, 1)
        scale = x.b_scale[group].repeat_interleave(BLOCK, 0)[: row.n].repeat_interleave(BLOCK, 1)
        out.append(a @ (x.b[group].float() * scale).T)
    return torch.stack(out)


# --- contenders


def start_of_kiln(row: Row) -> Start:
    if row.kind == "dense":
        return lambda x: kiln.ops.block_scaled_gemm(x.a, x.b[0].T, x.a_scale, x.b_scale[0], out=x.out)
    rows = torch.full((row.groups,), row.each, dtype=torch.int32, device="cuda")
    apart = row.kind == "masked"
    return lambda x: kiln.ops.grouped_gemm(
        x.a, x.b.mT, rows_of_group=rows, apart=apart, a_scale=x.a_scale, b_scale=x.b_scale, out=x.out
    )


def named(module: Any, *names: str) -> Any:
    """The first of these functions that the version has."""
    found = next((getattr(module, name) for name in names if hasattr(module, name)), None)
    if found is None:
        raise AttributeError(f"deep_gemm has none of {', '.join(names)}")
    return found


def start_of_deep_gemm(row: Row) -> Start:
    library = importlib.import_module("deep_gemm")
    if row.kind == "dense":
        whole = named(library, "fp8_gemm_nt", "gemm_fp8_fp8_bf16_nt")
        return lambda x: whole((x.a, x.a_scale.T), (x.b[0], x.b_scale[0]), x.out)
    if row.kind == "contiguous":
        follow = named(library, "m_grouped_fp8_gemm_nt_contiguous", "m_grouped_gemm_fp8_fp8_bf16_nt_contiguous")
        of_row = torch.arange(row.groups, dtype=torch.int32, device="cuda").repeat_interleave(row.m)
        return lambda x: follow((x.a, x.a_scale.T), (x.b, x.b_scale), x.out, of_row)
    names = ("m_grouped_fp8_gemm_nt_masked", "fp8_m_grouped_gemm_nt_masked", "m_grouped_gemm_fp8_fp8_bf16_nt_masked")
    masked = named(library, *names)
    rows = torch.full((row.groups,), row.each, dtype=torch.int32, device="cuda")
    scales: dict[int, torch.Tensor] = {}  # of each set, in its own layout: [groups, m, k / 128], neighbours along m

    def start(x: Tensors) -> None:
        key = x.a_scale.data_ptr()
        if key not in scales:
            scales[key] = x.a_scale.view(-1, row.groups, row.m).transpose(0, 1).contiguous().mT
        a, out = x.a.view(row.groups, row.m, row.k), x.out.view(row.groups, row.m, row.n)
        masked((a, scales[key]), (x.b, x.b_scale), out, rows, row.each)

    return start


def start_of_torch(row: Row) -> Start:
    if row.kind != "dense":
        raise ValueError("groups have no product with scales of blocks")
    return lambda x: torch._scaled_mm(
        x.a, x.b[0].T, x.a_scale.T, x.b_scale[0].T, out_dtype=torch.bfloat16, out=x.out
    )


CONTENDERS = {"kiln": start_of_kiln, "deep_gemm": start_of_deep_gemm, "torch": start_of_torch}


def contenders_of(row: Row, x: Tensors, only: list[str]) -> tuple[dict[str, Start], dict[str, float]]:
    """Those that run here and are right, and their errors."""
    starts: dict[str, Start] = {}
    errors: dict[str, float] = {}
    wanted = expected(row, x)
    for name, make in CONTENDERS.items():
        if only and name not in only:
            continue
        try:
            x.out.fill_(torch.nan)
            start = make(row)
            start(x)
            torch.cuda.synchronize()
        except Exception as error:  # another library's, of any kind
            print(f"{row.text}: no {name}: {str(error)[:200]}", file=sys.stderr)
            continue
        found = x.out.view(row.groups, row.m, row.n)[:, : row.each].float()
        errors[name] = float((found - wanted).norm() / wanted.norm())
        if errors[name] < ERROR_MAX:
            starts[name] = start
        else:
            print(f"{row.text}: {name} is wrong by {errors[name]:.3g}", file=sys.stderr)
    return starts, errors


# --- rows


def run_row(row: Row, options: argparse.Namespace) -> dict[str, Any] | None:
    sets = sets_of(row)
    starts, errors = contenders_of(row, sets[0], options.only)
    if "kiln" not in starts and (not options.only or "kiln" in options.only):
        return None
    seconds = times_of(starts, sets, options)
    out: dict[str, Any] = {"suite": "block-scaled", **row._asdict(), "each": row.each}
    if options.graphs:
        out["graphs"] = True
    out |= measures_of(seconds, row.flops) | {f"{name}_error": errors[name] for name in seconds}
    print_row(row, out, seconds)
    return out


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", default=[], choices=tuple(CONTENDERS), help="contenders to keep")
    return run_rows(EVERY, parser.parse_args(), run_row)


if __name__ == "__main__":
    sys.exit(main())
