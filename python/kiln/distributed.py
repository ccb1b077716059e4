"""Products over the ranks of torch.distributed, in chunks that overlap with the communication where that is faster.

    y = kiln.distributed.all_gather_gemm(x, w.T)        # column-parallel: rows of x from all ranks, times this rank's columns
    y = kiln.distributed.gemm_reduce_scatter(x, w.T)    # row-parallel: summed over ranks, each keeps its rows
    y = kiln.distributed.gemm_all_reduce(x, w.T)        # row-parallel: summed over ranks, each keeps all

Each takes the `group` of torch.distributed, the whole world by default, and every rank calls it with tensors of the same
shapes. The product is kiln.ops.gemm; communication is what the group's backend does, NCCL on its own stream.

`chunks` says into how many parts the communication is cut: while one part travels the product of another is computed. With
one part the product begins when all has arrived, or the other way round: the plain way. Without `chunks` the first call for
some shapes and types measures a few, with all ranks, and later calls take the fastest; the plain way is left only for one
that is clearly faster. That first call waits for the GPU; on tensors in this CPU's memory, and while the stream is captured
in a graph, it is the plain way.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from kiln import _core, ops
from kiln._launch import current_stream

__all__ = ["all_gather_gemm", "gemm_all_reduce", "gemm_reduce_scatter"]

_CHUNKS = (1, 2, 4)
_LEAST_BYTES = 1 << 20  # of communication; less than that is never cut
_LEAST_ROWS = 128  # of a part's product
_MARGIN = 0.02  # by which a cut has to be faster than the plain way
_ROUNDS = 7

_choices: dict[Any, int] = {}

Way = Callable[[int], torch.Tensor]


def all_gather_gemm(
    x: torch.Tensor,
    b: torch.Tensor,
    *,
    group: Any = None,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    dtype: torch.dtype | None = None,
    tf32: bool = False,
    chunks: int | None = None,
) -> torch.Tensor:
    """The rows `x` [m / ranks, k] of all ranks, in their order, times this rank's `b` [k, n]: [m, n].

    `bias` and `activation` are those of kiln.ops.gemm.
    """
    call = _Call(x, b, group, {"bias": bias, "activation": activation, "dtype": dtype, "tf32": tf32})
    return call.run("all_gather", call.gather, chunks, call.rows, x.numel() * x.element_size() * call.ranks)


def gemm_reduce_scatter(
    x: torch.Tensor,
    b: torch.Tensor,
    *,
    group: Any = None,
    dtype: torch.dtype | None = None,
    tf32: bool = False,
    chunks: int | None = None,
) -> torch.Tensor:
    """`x` [m, k / ranks] times `b` [k / ranks, n], summed over the ranks, of which each keeps its rows: [m / ranks, n]."""
    call = _Call(x, b, group, {"dtype": dtype, "tf32": tf32})
    if call.rows % call.ranks != 0:
        raise ValueError(
            f"`x` has {call.rows} rows, which {call.ranks} ranks cannot share evenly: "
            f"fill it up to {-(-call.rows // call.ranks) * call.ranks}"
        )
    return call.run("reduce_scatter", call.reduce_scatter, chunks, call.rows // call.ranks, call.bytes_of_result())


def gemm_all_reduce(
    x: torch.Tensor,
    b: torch.Tensor,
    *,
    group: Any = None,
    dtype: torch.dtype | None = None,
    tf32: bool = False,
    chunks: int | None = None,
) -> torch.Tensor:
    """`x` [m, k / ranks] times `b` [k / ranks, n], summed over the ranks: [m, n] on each."""
    call = _Call(x, b, group, {"dtype": dtype, "tf32": tf32})
    return call.run("all_reduce", call.all_reduce, chunks, call.rows, call.bytes_of_result())


class _Call:
    """One product, and the ways to compute it: functions of the number of parts."""

    def __init__(self, x: torch.Tensor, b: torch.Tensor, group: Any, more: dict[str, Any]) -> None:
        for name, value in (("x", x), ("b", b)):
            if value.dim() != 2:
                raise ValueError(f"`{name}` has the shape {list(value.shape)}: a product over ranks takes matrices")
            if torch.is_grad_enabled() and value.requires_grad:
                raise ValueError(f"`{name}` needs a gradient, which a product over ranks has not: call it under torch.no_grad()")
        if not x.is_contiguous():
            raise ValueError(f"`x` of shape {list(x.shape)} has strides {list(x.stride())}: pass `.contiguous()`")
        self.x, self.b, self.more = x, b, more
        self.group = dist.group.WORLD if group is None else group
        self.ranks, self.rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        self.rows, self.columns = x.shape[0], b.shape[1]
        self.dtype = more["dtype"] or x.dtype

    def bytes_of_result(self) -> int:
        return self.rows * self.columns * self.dtype.itemsize

    def run(self, name: str, way: Way, chunks: int | None, rows: int, size: int) -> torch.Tensor:
        """By this way, in `chunks` parts or in as many as are best; `rows` are cut, of `size` bytes in all."""
        if chunks is not None:
            if not 1 <= chunks <= max(rows, 1):
                raise ValueError(f"`chunks` is {chunks}: {rows} rows are cut into 1 to {max(rows, 1)} parts")
            return way(chunks)
        if self.ranks == 1 or not self.x.is_cuda or size < _LEAST_BYTES:
            return way(1)
        key = (name, self.group, self.x.shape, self.b.shape, self.b.stride(), self.x.dtype, *sorted(map(str, self.more.items())))
        if key not in _choices:
            if _core.is_capturing(current_stream(self.x)):
                return way(1)
            _choices[key] = self.measured(way, [each for each in _CHUNKS if each == 1 or rows >= each * _LEAST_ROWS])
        return way(_choices[key])

    def measured(self, way: Way, candidates: list[int]) -> int:
        """The fastest number of parts: the same on all ranks, by the slowest of them."""
        seconds: list[list[float]] = [[] for _ in candidates]
        for turn in range(_ROUNDS + 2):
            for i, chunks in enumerate(candidates):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                dist.barrier(self.group, device_ids=[self.x.device.index])
                begin.record()
                way(chunks)
                end.record()
                end.synchronize()
                if turn >= 2:  # the first ones compile and connect
                    seconds[i].append(begin.elapsed_time(end))
        medians = torch.tensor([statistics.median(each) for each in seconds], device=self.x.device)
        dist.all_reduce(medians, dist.ReduceOp.MAX, self.group)
        times = medians.tolist()
        best = min(range(len(times)), key=times.__getitem__)
        return candidates[best] if times[best] < (1 - _MARGIN) * times[0] else 1

    def product(self, x: torch.Tensor, out: torch.Tensor) -> None:
        if out.shape[0] == 0:
            return
        compute = ops.gemm if x.is_cuda else ops.gemm.reference
        compute(x, self.b, out=out, **self.more)

    def empty(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype or self.dtype, device=self.x.device)

    def gather(self, chunks: int) -> torch.Tensor:
        out = self.empty(self.ranks * self.rows, self.columns)
        if chunks == 1:
            whole = self.empty(self.ranks * self.rows, self.x.shape[1], dtype=self.x.dtype)
            dist.all_gather_into_tensor(whole, self.x, group=self.group)
            self.product(whole, out)
            return out
        by_rank = out.view(self.ranks, self.rows, self.columns)
        parts = []
        for rows in _cut(self.rows, chunks):
            part = self.empty(self.ranks, rows.stop - rows.start, self.x.shape[1], dtype=self.x.dtype)
            work = dist.all_gather_into_tensor(part.flatten(0, 1), self.x[rows], group=self.group, async_op=True)
            parts.append((rows, part, work))
        self.product(self.x, by_rank[self.rank])  # needs nobody
        for rows, part, work in parts:
            work.wait()
            for rank in range(self.ranks):
                if rank != self.rank:
                    self.product(part[rank], by_rank[rank, rows])
        return out

    def reduce_scatter(self, chunks: int) -> torch.Tensor:
        kept = self.rows // self.ranks
        out = self.empty(kept, self.columns)
        if chunks == 1:
            whole = self.empty(self.rows, self.columns)
            self.product(self.x, whole)
            dist.reduce_scatter_tensor(out, whole, group=self.group)
            return out
        by_rank = self.x.view(self.ranks, kept, self.x.shape[1])
        works = []
        for rows in _cut(kept, chunks):
            part = self.empty(self.ranks, rows.stop - rows.start, self.columns)
            for rank in range(self.ranks):
                self.product(by_rank[rank, rows], part[rank])
            work = dist.reduce_scatter_tensor(out[rows], part.flatten(0, 1), group=self.group, async_op=True)
            works.append((work, part))
        for work, _ in works:
            work.wait()
        return out

    def all_reduce(self, chunks: int) -> torch.Tensor:
        out = self.empty(self.rows, self.columns)
        works = []
        for rows in _cut(self.rows, chunks):
            self.product(self.x[rows], out[rows])
            works.append(dist.all_reduce(out[rows], group=self.group, async_op=chunks > 1))
        for work in works:
            if work is not None:
                work.wait()
        return out


def _cut(rows: int, parts: int) -> list[slice]:
    """Whole units of rows in each part but the last, so that tiles stay full."""
    unit = _LEAST_ROWS if rows >= parts * _LEAST_ROWS else 1
    each = -(-rows // (parts * unit)) * unit
    return [slice(at, min(at + each, rows)) for at in range(0, rows, each)] or [slice(0, 0)]
