#!/usr/bin/env python3
"""What a call costs the CPU, in microseconds: functions of kiln.ops beside PyTorch's, and Triton's where it is there.

    PYTHONPATH=build/release/python bench/python_calls.py [--json FILE]

Needs a GPU and PyTorch. Matrices are small, and calls are timed until they return, not until the GPU has done them: 200
in a row, fewer than its queue holds, then the GPU is waited for. Each figure is the median of 25 such rows, taken in
turns. `allocation` is what the framework takes for one result; calls with `out=` have none.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

import kiln

CALLS, ROUNDS, WARM = 200, 25, 3
SCALE = """__co__ void scale(global f32 [M, N] x, f32 factor, global f32 [M, N] y) {
  parallel i by [M] : block {
    parallel t by [1] : thread { foreach j in [N] { y.at(i, j) = x.at(i, j) * factor; } }
  }
}
"""
try:
    import triton
    import triton.language as tl

    @triton.jit
    def triton_scale(x, y, factor, N: tl.constexpr):
        at = tl.program_id(0) * N + tl.arange(0, N)
        tl.store(y + at, tl.load(x + at) * factor)
except ImportError:
    triton = None


def randoms(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def products():
    a, w, bias, out = randoms(128, 256), randoms(192, 256), randoms(192), randoms(128, 192)
    yield "gemm", lambda: kiln.ops.gemm(a, w.T)
    yield "gemm, out=", lambda b=w.T: kiln.ops.gemm(a, b, out=out)
    yield "gemm, bias and activation", lambda: kiln.ops.gemm(a, w.T, bias=bias, activation="gelu")
    yield "gemm, out= is the residual", lambda: kiln.ops.gemm(a, w.T, residual=out, out=out)
    yield "torch.matmul", lambda: torch.matmul(a, w.T)
    yield "torch.matmul, out=", lambda b=w.T: torch.matmul(a, b, out=out)
    yield "torch.nn.functional.linear", lambda: torch.nn.functional.linear(a, w, bias)
    groups, rows = randoms(4, 192, 256), torch.tensor([100, 128, 0, 64], dtype=torch.int32, device="cuda")
    many = randoms(512, 256)
    yield "grouped_gemm", lambda: kiln.ops.grouped_gemm(many, groups.mT, rows_of_group=rows)
    packed, metadata = (each.cuda() for each in kiln.ops.prune(randoms(128, 256).cpu()))
    yield "sparse_gemm", lambda: kiln.ops.sparse_gemm(packed, metadata, w.T)
    e4m3 = torch.float8_e4m3fn
    a8, w8 = randoms(128, 256, dtype=e4m3), randoms(192, 256, dtype=e4m3)
    a_scale, w_scale = torch.ones(2, 128, device="cuda"), torch.ones(2, 2, device="cuda")
    yield "block_scaled_gemm", lambda: kiln.ops.block_scaled_gemm(a8, w8.T, a_scale, w_scale)
    one = torch.ones((), device="cuda")
    yield "torch._scaled_mm", lambda: torch._scaled_mm(a8, w8.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def attentions():
    q, k, dout = randoms(1, 128, 4, 64), randoms(1, 128, 2, 64), randoms(1, 128, 4, 64)
    out, lse = kiln.ops.attention(q, k, k, causal=True, return_lse=True)
    yield "attention", lambda: kiln.ops.attention(q, k, k, causal=True)
    yield "attention, window=", lambda: kiln.ops.attention(q, k, k, window=(64, 0))
    yield "attention_backward", lambda: kiln.ops.attention_backward(dout, q, k, k, out, lse, causal=True)
    one, lengths = randoms(1, 1, 4, 64), torch.tensor([100], dtype=torch.int32, device="cuda")
    yield "attention_decode", lambda: kiln.ops.attention_decode(one, k, k, lengths)
    starts = torch.tensor([0, 28, 128], dtype=torch.int32, device="cuda")
    yield "attention_varlen", lambda: kiln.ops.attention_varlen(q[0], k[0], k[0], starts, starts, causal=True)
    flat, logs = kiln.ops.attention_varlen(q[0], k[0], k[0], starts, starts, causal=True, return_lse=True)
    given = (dout[0], q[0], k[0], k[0], flat, logs, starts, starts)
    yield "attention_varlen_backward", lambda: kiln.ops.attention_varlen_backward(*given, causal=True)
    turned, wide = q.transpose(1, 2), k.repeat_interleave(2, 2).transpose(1, 2)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    yield "torch scaled_dot_product_attention", lambda: sdpa(turned, wide, wide, is_causal=True)


def kernels():
    x, y = randoms(64, 128, dtype=torch.float32), randoms(64, 128, dtype=torch.float32)
    kernel = kiln.compile(source=SCALE).scale
    yield "a kernel of kiln.compile", lambda: kernel(x, 2.0, y)
    launch = kernel.prepare(x, 2.0, y)
    yield "the same, prepared", lambda: launch(x, 2.0, y)
    if triton is not None:
        yield "a kernel of Triton", lambda: triton_scale[(64,)](x, y, 2.0, 128)
    yield "allocation", lambda: torch.empty((128, 192), dtype=torch.bfloat16, device=x.device)


def microseconds(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    took = time.perf_counter() - begin
    torch.cuda.synchronize()
    return took / CALLS * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="a line for each call")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU that PyTorch sees")
    with torch.no_grad():
        calls = dict([*products(), *attentions(), *kernels()])
        times = {name: [] for name in calls}
        for turn in range(ROUNDS + WARM):
            for name, call in calls.items():
                took = microseconds(call)
                if turn >= WARM:
                    times[name].append(took)
    print(f"us of the CPU per call, {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    rows = []
    for name, each in times.items():
        low, _, high = statistics.quantiles(each, n=4)
        rows.append({"call": name, "us": round(statistics.median(each), 2), "spread": round(high - low, 2)})
        print(f"{name:40} {rows[-1]['us']:7.2f}  (spread {rows[-1]['spread']:.2f})")
    if options.json:
        about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        options.json.write_text("".join(json.dumps({**row, **about}) + "\n" for row in rows))


if __name__ == "__main__":
    main()
