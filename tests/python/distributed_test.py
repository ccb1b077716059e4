#!/usr/bin/env python3
"""kiln.distributed over gloo: three processes on this CPU, where products are those of kiln.ops.gemm.reference.

    PYTHONPATH=build/release/python tests/python/distributed_test.py

Skipped without PyTorch. On two GPUs the same is tests/gpu/distributed_test.py.
"""

import os
import sys
import tempfile
import unittest

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as processes

    import kiln.distributed
except ImportError:
    torch = None

RANKS = 3
ROWS, SUM, COLUMNS = 12, 18, 10


def whole(*shape):
    """The same on all ranks."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + shape[0])).to(torch.bfloat16)


def near(found, expected):
    torch.testing.assert_close(found.float(), expected, rtol=2**-6, atol=2**-5)


def check_values(rank):
    x, w, bias = whole(ROWS, SUM), whole(COLUMNS, SUM), whole(COLUMNS)
    expected = x.float() @ w.float().T
    mine = slice(rank * ROWS // RANKS, (rank + 1) * ROWS // RANKS)
    share = slice(rank * SUM // RANKS, (rank + 1) * SUM // RANKS)
    for chunks in (None, 1, 2, 3, 4):
        near(kiln.distributed.all_gather_gemm(x[mine], w.T, chunks=chunks), expected)
        y = kiln.distributed.all_gather_gemm(x[mine], w.T, bias=bias, activation="relu", chunks=chunks)
        near(y, torch.relu(expected + bias.float()))
        part, share_of_w = x[:, share].contiguous(), w[:, share].T
        near(kiln.distributed.gemm_reduce_scatter(part, share_of_w, chunks=chunks), expected[mine])
        near(kiln.distributed.gemm_all_reduce(part, share_of_w, chunks=chunks), expected)
    y = kiln.distributed.gemm_all_reduce(part, share_of_w, dtype=torch.float32, chunks=2)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)


def check_groups(rank):
    pair = dist.new_group([0, 2])
    if rank == 1:
        return
    x, w = whole(4, 6), whole(5, 6)
    y = kiln.distributed.all_gather_gemm(x[2 * (rank // 2) : 2 * (rank // 2) + 2], w.T, group=pair, chunks=2)
    near(y, x.float() @ w.float().T)


def check_refusals(rank):
    x, w = whole(ROWS, SUM), whole(COLUMNS, SUM)
    for text, call in (
        ("`x` has 10 rows, which 3 ranks cannot share evenly: fill it up to 12", lambda: kiln.distributed.gemm_reduce_scatter(x[:10], w.T)),
        ("`chunks` is 13: 12 rows are cut into 1 to 12 parts", lambda: kiln.distributed.gemm_all_reduce(x, w.T, chunks=13)),
        ("`x` has the shape [1, 12, 18]: a product over ranks takes matrices", lambda: kiln.distributed.gemm_all_reduce(x[None], w.T)),
        ("strides [1, 18]", lambda: kiln.distributed.gemm_all_reduce(x.T, w)),
        ("`b` needs a gradient", lambda: kiln.distributed.gemm_all_reduce(x, w.T.clone().requires_grad_())),
    ):
        try:
            call()
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


def work(rank, store, name):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    globals()[name](rank)
    dist.barrier()
    dist.destroy_process_group()


@unittest.skipIf(torch is None or not dist.is_available(), "no PyTorch")
class DistributedTest(unittest.TestCase):
    def run_ranks(self, name):
        with tempfile.TemporaryDirectory() as folder:
            processes.spawn(work, (os.path.join(folder, "store"), name), nprocs=RANKS)

    def test_values(self):
        self.run_ranks("check_values")

    def test_groups(self):
        self.run_ranks("check_groups")

    def test_refusals(self):
        self.run_ranks("check_refusals")


if __name__ == "__main__":
    if torch is None:
        print("skipped: no PyTorch")
        sys.exit(0)
    unittest.main()
