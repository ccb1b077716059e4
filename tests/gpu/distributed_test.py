#!/usr/bin/env python3
"""kiln.distributed on the GPUs of one machine: values, and times beside NCCL and the product one after the other.

    PYTHONPATH=build/release/python tests/gpu/distributed_test.py [--ranks 2] [--m 128,512,2048,8192]

Needs PyTorch with NCCL and as many GPUs of sm_90. Of the table, `ours` is what kiln.distributed chooses, which the last
column names; `1`, `2` and `4` are its ways with kiln's product in so many parts; `plain` is PyTorch's collective and its
product; `async-TP` is PyTorch's own overlapped operator, where it works. Times are medians of turns, of the slowest rank,
of one call among ROW in a row, so that the CPU is ahead of the GPU where it can be; `alone` is the ratio of single calls,
each behind a barrier, where the CPU's part is seen. It fails where ours is slower than plain by more than the spread of
their ratios.
"""

import argparse
import functools
import os
import random
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
PLANS = {"all_gather": "_Gather", "reduce_scatter": "_ReduceScatter", "all_reduce": "_AllReduce"}
TURNS = 15
ROW = 8


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
    for plan in list(kiln.distributed._plans.values()):
        plan.way = kiln.distributed._Way(1, by_copies=True)
    assert kiln.distributed._shared_memory(dist.group.WORLD, 1 << 20)
    for _ in range(5):
        near(kiln.distributed.all_gather_gemm(x[rows], w.T), expected)
        near(kiln.distributed.gemm_reduce_scatter(part, part_of_w.T), expected[rows])
        near(kiln.distributed.gemm_all_reduce(part, part_of_w.T), expected)
    graphs_are_right(lambda: kiln.distributed.gemm_all_reduce(part, part_of_w.T), expected)
    graphs_are_right(lambda: kiln.distributed.all_gather_gemm(x[rows], w.T), expected)
    kiln.distributed._plans.clear()
    graphs_are_right(lambda: kiln.distributed.all_gather_gemm(x[rows], w.T, chunks=2), expected)


def graphs_are_right(call, expected):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = call()
    y.zero_()
    for _ in range(3):
        graph.replay()
    near(y, expected)
    call()
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


def once(work, calls=ROW):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier(device_ids=[torch.cuda.current_device()])
    begin.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    seconds = torch.tensor([begin.elapsed_time(end)], device="cuda")
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.item() * 1e3 / calls


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
    wanted = (PLANS[name], height, depth, width)
    plans = kiln.distributed._plans.values()
    plan = next(each for each in plans if (type(each).__name__, each.rows, each.depth, each.columns) == wanted)
    if kiln.distributed._shared_memory(dist.group.WORLD, plan.shared_bytes()):
        ways["copies"] = lambda: plan.carry_out(x, w.T, None, kiln.distributed._Way(1, by_copies=True))
    for parts in (1, 2, 4):
        if min(height, m // ranks) >= 128 * parts:
            ways[str(parts)] = functools.partial(ours, x, w.T, chunks=parts)
    if overlapped is not None and works(lambda: overlapped(x, w)):
        ways["async-TP"] = lambda: overlapped(x, w)
    times, alone = {each: [] for each in ways}, {"ours": [], "plain": []}
    for turn in range(TURNS + 3):
        for each in random.Random(turn).sample(list(ways), len(ways)):  # the same order on all ranks
            took = once(ways[each])
            if turn >= 3:
                times[each].append(took)
        for each in alone:
            alone[each].append(once(ways[each], 1))
    ratios = ratios_of(times)
    spread = ratios[3 * len(ratios) // 4] - ratios[len(ratios) // 4]
    if rank == 0:
        row = "  ".join(f"{each} {statistics.median(value):7.1f}" for each, value in times.items())
        more = f"alone {statistics.median(ratios_of(alone)):.3f}  {plan.way}"
        print(f"{name:15} M={m:5} us: {row}  ratio {statistics.median(ratios):.3f} (spread {spread:.3f})  {more}", flush=True)
    return statistics.median(ratios) >= 1 - max(spread, 0.02)


def ratios_of(times):
    return sorted(theirs / mine for mine, theirs in zip(times["ours"], times["plain"]))


def work(rank, ranks, store, sizes):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    torch.set_grad_enabled(False)
    check_values(rank, ranks)
    if rank == 0:
        print(f"{ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, N={N} K={K}, bf16; values are right", flush=True)
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
