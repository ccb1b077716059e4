#!/usr/bin/env python3
"""kiln.distributed on the GPUs of one machine: values, and times beside NCCL and the product one after the other.

    PYTHONPATH=build/release/python tests/gpu/distributed_test.py [--ranks 2] [--m 128,512,2048,8192]

Needs PyTorch with NCCL and as many GPUs of sm_90. Of the table, `ours` is what kiln.distributed chooses, in so many parts;
`plain` is PyTorch's collective and its product; `async-TP` is PyTorch's own overlapped operator, where it works. Times are
medians of turns, of the slowest rank; it fails where ours is slower than plain by more than the spread of their ratios.
"""

import argparse
import os
import statistics
import sys
import tempfile

# Multicast over NVLink is not everywhere allowed.
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

import kiln.distributed

N, K = 7168, 8192
TURNS = 21


def randoms(*shape, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    return (torch.randn(*shape, device="cuda", generator=generator) / 8).to(torch.bfloat16)


def near(found, expected):
    scale = expected.abs().max().item()
    difference = (found.float() - expected).abs().max().item()
    assert difference <= 2**-6 * scale, (difference, scale)


def check_values(rank, ranks):
    x, w = randoms(ranks * 384, 256 * ranks, seed=1), randoms(320, 256 * ranks, seed=2)
    expected = x.float() @ w.float().T
    rows = slice(rank * 384, (rank + 1) * 384)
    share = slice(rank * 256, (rank + 1) * 256)
    part, part_of_w = x[:, share].contiguous(), w[:, share].contiguous()
    for chunks in (None, 1, 2, 3):
        near(kiln.distributed.all_gather_gemm(x[rows], w.T, chunks=chunks), expected)
        near(kiln.distributed.gemm_reduce_scatter(part, part_of_w.T, chunks=chunks), expected[rows])
        near(kiln.distributed.gemm_all_reduce(part, part_of_w.T, chunks=chunks), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = kiln.distributed.all_gather_gemm(x[rows], w.T, chunks=2)
    y.zero_()
    graph.replay()
    near(y, expected)


def plain_gather(x, w):
    whole = torch.empty(dist.get_world_size() * x.shape[0], x.shape[1], dtype=x.dtype, device=x.device)
    dist.all_gather_into_tensor(whole, x)
    return whole @ w.T


def plain_scatter(x, w):
    whole = x @ w.T
    out = torch.empty(whole.shape[0] // dist.get_world_size(), whole.shape[1], dtype=x.dtype, device=x.device)
    dist.reduce_scatter_tensor(out, whole)
    return out


def plain_reduce(x, w):
    whole = x @ w.T
    dist.all_reduce(whole)
    return whole


def async_gather(x, w):
    group = dist.group.WORLD.group_name
    return torch.ops.symm_mem.fused_all_gather_matmul(x, [w.T], gather_dim=0, group_name=group)[1][0]


def async_scatter(x, w):
    group = dist.group.WORLD.group_name
    return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, w.T, "sum", scatter_dim=0, group_name=group)


def once(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier(device_ids=[torch.cuda.current_device()])
    begin.record()
    work()
    end.record()
    end.synchronize()
    seconds = torch.tensor([begin.elapsed_time(end)], device="cuda")
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.item() * 1e3


def works(call):
    """Whether every rank can call it."""
    try:
        call()
        torch.cuda.synchronize()
        fine = 1
    except Exception as error:
        print(f"async-TP: {str(error).splitlines()[0]}", flush=True)
        fine = 0
    flag = torch.tensor([fine], device="cuda")
    dist.all_reduce(flag, dist.ReduceOp.MIN)
    return flag.item() == 1


def measure(rank, ranks, m, name):
    rows = {"all_gather": (m // ranks, K, N // ranks), "reduce_scatter": (m, K // ranks, N), "all_reduce": (m, K // ranks, N)}
    own = {
        "all_gather": (kiln.distributed.all_gather_gemm, plain_gather, async_gather),
        "reduce_scatter": (kiln.distributed.gemm_reduce_scatter, plain_scatter, async_scatter),
        "all_reduce": (kiln.distributed.gemm_all_reduce, plain_reduce, None),
    }
    height, depth, width = rows[name]
    x, w = randoms(height, depth, seed=3 + rank), randoms(width, depth, seed=5 + rank)
    ours, plain, overlapped = own[name]
    ways = {"ours": lambda: ours(x, w.T), "plain": lambda: plain(x, w)}
    near(ways["ours"](), ways["plain"]().float())
    if overlapped is not None and works(lambda: overlapped(x, w)):
        ways["async-TP"] = lambda: overlapped(x, w)
    times = {each: [] for each in ways}
    for turn in range(TURNS + 3):
        for each, way in ways.items():
            took = once(way)
            if turn >= 3:
                times[each].append(took)
    ratios = sorted(theirs / mine for mine, theirs in zip(times["ours"], times["plain"]))
    spread = ratios[3 * len(ratios) // 4] - ratios[len(ratios) // 4]
    chosen = [parts for key, parts in kiln.distributed._choices.items() if (key[0], key[2]) == (name, x.shape)]
    parts = chosen[0] if chosen else 1
    if rank == 0:
        medians = {each: statistics.median(value) for each, value in times.items()}
        row = "  ".join(f"{each} {medians[each]:8.1f} us" for each in medians)
        print(f"{name:15} M={m:5}  {row}  parts {parts}  ratio {statistics.median(ratios):.3f} (spread {spread:.3f})", flush=True)
    return statistics.median(ratios) >= 1 - max(spread, 0.02)


def work(rank, ranks, store, sizes):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    torch.set_grad_enabled(False)
    check_values(rank, ranks)
    if rank == 0:
        print(f"{ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, N={N} K={K}, bf16; values are right", flush=True)
    try:
        from torch.distributed._symmetric_memory import enable_symm_mem_for_group

        enable_symm_mem_for_group(dist.group.WORLD.group_name)
    except Exception as error:
        print(f"async-TP: {error}", flush=True)
    fine = [measure(rank, ranks, m, name) for name in ("all_gather", "reduce_scatter", "all_reduce") for m in sizes]
    dist.destroy_process_group()
    if not all(fine):
        raise AssertionError("slower than the plain way")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--m", default="128,512,2048,8192")
    options = parser.parse_args()
    if torch.cuda.device_count() < options.ranks:
        print(f"skipped: PyTorch sees {torch.cuda.device_count()} GPUs, {options.ranks} are needed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        sizes = [int(each) for each in options.m.split(",")]
        processes.spawn(work, (options.ranks, os.path.join(folder, "store"), sizes), nprocs=options.ranks)
