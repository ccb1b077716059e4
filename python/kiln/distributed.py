"""Products over the ranks of torch.distributed, in chunks that overlap with the communication where that is faster.

    y = kiln.distributed.all_gather_gemm(x, w.T)        # column-parallel: rows of x from all ranks, times this rank's columns
    y = kiln.distributed.gemm_reduce_scatter(x, w.T)    # row-parallel: summed over ranks, each keeps its rows
    y = kiln.distributed.gemm_all_reduce(x, w.T)        # row-parallel: summed over ranks, each keeps all

Each takes the `group` of torch.distributed, the whole world by default, and every rank calls it with tensors of the same
shapes. The product is kiln.ops.gemm; communication is what the group's backend does, NCCL on its own stream.

`chunks` says into how many parts the communication is cut: while one part travels the product of another is computed. With
one part the product begins when all has arrived, or the other way round: the plain way. Without `chunks` the first call for
some shapes and types measures a few, with all ranks, and later calls take the fastest: among them the plain way with
PyTorch's own product, where that computes the same, which is left only for one that is faster; and, where the GPUs can read
each other's memory (PyTorch's symmetric memory), copies by that way, which take no multiprocessor from the product. That first call waits for
the GPU; on tensors in this CPU's memory, and while the stream is captured in a graph, it is the plain way.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

try:
    import torch.distributed._symmetric_memory as symmetric
except ImportError:
    symmetric = None  # type: ignore[assignment]

from kiln import _core, ops
from kiln._launch import current_stream, know

__all__ = ["all_gather_gemm", "gemm_all_reduce", "gemm_reduce_scatter"]

_CHUNKS = (1, 2, 4)
_LEAST_BYTES = 1 << 20  # of communication; less than that is never cut
_LEAST_ROWS = 128  # of a part's product
_MARGIN = 0.02  # by which another way has to be faster than the plain one
_ROUNDS = 7
_REPEATS = 4  # calls in a row that are measured together, as a model makes them
_PLANS_MAX = 256


class _Way(NamedTuple):
    """How a call is carried out."""

    parts: int
    by_torch: bool = False  # the product is PyTorch's
    by_copies: bool = False  # the ranks read each other's memory, while products are computed

    def __str__(self) -> str:
        if self.by_copies:
            return "copies"
        return f"{self.parts} part{'s' if self.parts > 1 else ''}{' by PyTorch' if self.by_torch else ''}"


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
    return _plan(_Gather, x, b, bias, (group, activation, dtype, tf32)).run(x, b, bias, chunks)


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
    return _plan(_ReduceScatter, x, b, None, (group, None, dtype, tf32)).run(x, b, None, chunks)


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
    return _plan(_AllReduce, x, b, None, (group, None, dtype, tf32)).run(x, b, None, chunks)


def _plan(kind: type[_Plan], x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, more: tuple[Any, ...]) -> _Plan:
    """The plan for calls with tensors like these."""
    group = dist.group.WORLD if more[0] is None else more[0]
    seen = _core.seen((x, b, bias))
    if seen is None and know(x):
        seen = _core.seen((x, b, bias))  # the first tensors of all
    if seen is None:  # in this CPU's memory, a class of the caller's, or a gradient is needed
        _refuse_gradients(x, b)
        seen = (bias is None, x.shape, x.stride(), x.dtype, x.device, b.shape, b.stride(), b.dtype)
    key = (kind, group, more, seen)
    plan = _plans.get(key)
    if plan is None:
        plan = kind(x, b, group, *more[1:])
        if len(_plans) >= _PLANS_MAX:
            del _plans[next(iter(_plans))]
        _plans[key] = plan
    return plan


def _refuse_gradients(x: torch.Tensor, b: torch.Tensor) -> None:
    for name, value in (("x", x), ("b", b)):
        if torch.is_grad_enabled() and value.requires_grad:
            raise ValueError(f"`{name}` needs a gradient, which a product over ranks has not: call it under torch.no_grad()")


class _Plan:
    """What is known of all calls with tensors of the same shapes and types, and the ways to carry them out."""

    def __init__(
        self, x: torch.Tensor, b: torch.Tensor, group: Any, activation: str | None, dtype: torch.dtype | None, tf32: bool
    ) -> None:
        for name, value in (("x", x), ("b", b)):
            if value.dim() != 2:
                raise ValueError(f"`{name}` has the shape {list(value.shape)}: a product over ranks takes matrices")
        if not x.is_contiguous():
            raise ValueError(f"`x` of shape {list(x.shape)} has strides {list(x.stride())}: pass `.contiguous()`")
        self.group = group
        self.ranks, self.rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        self.rows, self.depth, self.columns = x.shape[0], x.shape[1], b.shape[1]
        self.dtype, self.device, self.is_cuda = dtype or x.dtype, x.device, x.is_cuda
        self.input_dtype = x.dtype
        self.more = {"activation": activation, "dtype": dtype, "tf32": tf32}
        asked = {name: value for name, value in self.more.items() if value}
        self.compute = functools.partial(ops.gemm if self.is_cuda else ops.gemm.reference, **asked)
        self.way: _Way | None = None  # not chosen yet
        self.cut_rows, self.bytes = self.communicated()

    def communicated(self) -> tuple[int, int]:
        """The rows that are cut into parts, and the bytes that travel."""
        raise NotImplementedError

    def shared_bytes(self) -> int:
        """What copies between the ranks need of memory that all can read; 0 where the shapes do not allow them."""
        raise NotImplementedError

    def carry_out(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, way: _Way) -> torch.Tensor:
        raise NotImplementedError

    def run(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, chunks: int | None) -> torch.Tensor:
        """By the fastest way, or in `chunks` parts."""
        if chunks is not None:
            if not 1 <= chunks <= max(self.cut_rows, 1):
                raise ValueError(f"`chunks` is {chunks}: {self.cut_rows} rows are cut into 1 to {max(self.cut_rows, 1)} parts")
            return self.carry_out(x, b, bias, _Way(chunks))
        if self.way is None:
            if not self.is_cuda:
                self.way = _Way(1)
            elif _core.is_capturing(current_stream(x)):
                return self.carry_out(x, b, bias, _Way(1))
            else:
                self.way = self.fastest(x, b, bias)
        return self.carry_out(x, b, bias, self.way)

    def ways(self, bias: torch.Tensor | None) -> list[_Way]:
        """Those that are worth a measurement, the plain one first."""
        same = bias is None and self.more["activation"] is None and self.more["dtype"] in (None, self.dtype)
        by_torch = same and self.dtype in (torch.bfloat16, torch.float16)
        parts = _CHUNKS if self.ranks > 1 and self.bytes >= _LEAST_BYTES else (1,)
        ours = [_Way(each) for each in parts if each == 1 or self.cut_rows >= each * _LEAST_ROWS]
        if len(parts) > 1 and self.shared_bytes() > 0 and _shared_memory(self.group, self.shared_bytes()):
            ours.append(_Way(1, by_copies=True))
        return [_Way(1, by_torch=True), *ours] if by_torch else ours

    def fastest(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> _Way:
        """The same on all ranks: by the slowest of them."""
        ways = self.ways(bias)
        if len(ways) == 1:
            return ways[0]
        seconds: list[list[float]] = [[] for _ in ways]
        for turn in range(_ROUNDS + 2):
            for i, way in enumerate(ways):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                dist.barrier(self.group, device_ids=[x.device.index])
                begin.record()
                for _ in range(_REPEATS):
                    self.carry_out(x, b, bias, way)
                end.record()
                end.synchronize()
                if turn >= 2:  # the first ones compile and connect
                    seconds[i].append(begin.elapsed_time(end))
        medians = torch.tensor([statistics.median(each) for each in seconds], device=x.device)
        dist.all_reduce(medians, dist.ReduceOp.MAX, self.group)
        times = medians.tolist()
        best = min(range(len(times)), key=times.__getitem__)
        return ways[best] if times[best] < (1 - _MARGIN) * times[0] else ways[0]

    def whole_product(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, way: _Way) -> torch.Tensor:
        """Of all rows at once."""
        made: torch.Tensor = torch.mm(x, b) if way.by_torch else self.compute(x, b, bias=bias)
        return made

    def product(
        self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, residual: torch.Tensor | None = None
    ) -> None:
        self.compute(x, b, out=out, bias=bias, residual=residual)

    def others(self) -> list[int]:
        """The other ranks, each rank beginning with the one behind it, so that they do not all read from one."""
        return [(self.rank + i) % self.ranks for i in range(1, self.ranks)]

    def empty(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype or self.dtype, device=self.device)


class _Gather(_Plan):
    def communicated(self) -> tuple[int, int]:
        shape = (self.ranks * self.rows, self.depth)
        self.make_whole = functools.partial(torch.empty, shape, dtype=self.input_dtype, device=self.device)
        return self.rows, self.rows * self.depth * self.dtype.itemsize * self.ranks

    def carry_out(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, way: _Way) -> torch.Tensor:
        if way.by_copies:
            return self.by_copies(x, b, bias)
        if way.parts == 1:
            whole = self.make_whole()
            dist.all_gather_into_tensor(whole, x, group=self.group)
            return self.whole_product(whole, b, bias, way)
        out = self.empty(self.ranks * self.rows, self.columns)
        by_rank = out.view(self.ranks, self.rows, self.columns)
        parts = []
        for rows in _cut(self.rows, way.parts):
            part = self.empty(self.ranks, rows.stop - rows.start, self.depth, dtype=x.dtype)
            work = dist.all_gather_into_tensor(part.flatten(0, 1), x[rows], group=self.group, async_op=True)
            parts.append((rows, part, work))
        self.product(x, b, bias, by_rank[self.rank])  # needs nobody
        for rows, part, work in parts:
            work.wait()
            for rank in range(self.ranks):
                if rank != self.rank:
                    self.product(part[rank], b, bias, by_rank[rank, rows])
        return out

    def shared_bytes(self) -> int:
        return self.rows * self.depth * self.dtype.itemsize

    def by_copies(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Each rank's rows are copied from its memory while the product of those that came before is computed."""
        out = self.empty(self.ranks, self.rows, self.columns)
        whole = self.empty(self.ranks, self.rows, self.depth, dtype=x.dtype)
        shared = _Shared(self.group, self.shared_bytes(), x.dtype, x.shape)
        shared.of(self.rank).copy_(x)
        shared.meet()
        with shared.copying():
            for rank in self.others():
                whole[rank].copy_(shared.of(rank))
                shared.done(rank)
        self.product(x, b, bias, out[self.rank])
        for rank in self.others():
            shared.wait(rank)
            self.product(whole[rank], b, bias, out[rank])
        shared.finish()
        return out.flatten(0, 1)


class _ReduceScatter(_Plan):
    def communicated(self) -> tuple[int, int]:
        if self.rows % self.ranks != 0:
            raise ValueError(
                f"`x` has {self.rows} rows, which {self.ranks} ranks cannot share evenly: "
                f"fill it up to {-(-self.rows // self.ranks) * self.ranks}"
            )
        kept = self.rows // self.ranks
        self.make_out = functools.partial(torch.empty, (kept, self.columns), dtype=self.dtype, device=self.device)
        return kept, self.rows * self.columns * self.dtype.itemsize

    def carry_out(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, way: _Way) -> torch.Tensor:
        if way.by_copies:
            return _summed_by_copies(self, x, b, to_all=False)
        kept = self.rows // self.ranks
        out = self.make_out()
        if way.parts == 1:
            dist.reduce_scatter_tensor(out, self.whole_product(x, b, bias, way), group=self.group)
            return out
        by_rank = x.view(self.ranks, kept, self.depth)
        works = []
        for rows in _cut(kept, way.parts):
            part = self.empty(self.ranks, rows.stop - rows.start, self.columns)
            for rank in range(self.ranks):
                self.product(by_rank[rank, rows], b, bias, part[rank])
            work = dist.reduce_scatter_tensor(out[rows], part.flatten(0, 1), group=self.group, async_op=True)
            works.append((work, part))
        for work, _ in works:
            work.wait()
        return out

    def shared_bytes(self) -> int:
        return self.bytes


class _AllReduce(_Plan):
    def communicated(self) -> tuple[int, int]:
        return self.rows, self.rows * self.columns * self.dtype.itemsize

    def carry_out(self, x: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, way: _Way) -> torch.Tensor:
        if way.by_copies:
            return _summed_by_copies(self, x, b, to_all=True)
        if way.parts == 1:
            out = self.whole_product(x, b, bias, way)
            dist.all_reduce(out, group=self.group)
            return out
        out = self.empty(self.rows, self.columns)
        works = []
        for rows in _cut(self.rows, way.parts):
            self.product(x[rows], b, bias, out[rows])
            works.append(dist.all_reduce(out[rows], group=self.group, async_op=True))
        for work in works:
            work.wait()
        return out

    def shared_bytes(self) -> int:
        return self.bytes if self.rows % self.ranks == 0 else 0


def _summed_by_copies(plan: _Plan, x: torch.Tensor, b: torch.Tensor, to_all: bool) -> torch.Tensor:
    """Each rank computes the others' rows first; theirs are copied from their memory and added to its own, in parts.

    With `to_all` each rank then copies the others' sums too.
    """
    ranks, rank, others = plan.ranks, plan.rank, plan.others()
    kept = plan.rows // ranks
    by_rank = x.view(ranks, kept, plan.depth)
    shared = _Shared(plan.group, plan.bytes, plan.dtype, (ranks, kept, plan.columns))
    mine = shared.of(rank)
    theirs = plan.empty(len(others), kept, plan.columns)
    out = plan.empty(ranks, kept, plan.columns) if to_all else plan.empty(kept, plan.columns)
    parts = _cut(kept, 2 if kept >= 2 * _LEAST_ROWS else 1)
    for rows in parts:
        for other in others:
            plan.product(by_rank[other, rows], b, None, mine[other, rows])
        shared.meet()
        with shared.copying():
            for i, other in enumerate(others):
                theirs[i, rows].copy_(shared.of(other)[rank, rows])
            shared.done(rows.start)
    for rows in parts:
        shared.wait(rows.start)
        others_sum = theirs[0, rows] if len(others) == 1 else theirs[:, rows].sum(0)
        plan.product(by_rank[rank, rows], b, None, mine[rank, rows] if to_all else out[rows], residual=others_sum)
        if to_all:
            shared.meet()
            with shared.copying():
                for other in [*others, rank]:
                    out[other, rows].copy_(shared.of(other)[other, rows])
    shared.finish()
    return out.flatten(0, 1) if to_all else out


class _Shared:
    """Memory of each rank that the others read, for one call, and the stream on which they copy.

    Two pieces of memory take turns. What a call writes the others read at most until they meet in the next call, so that
    the call after that may write again. Of a graph nobody knows what ran before it: in one the ranks also meet first and
    last. They meet on the call's own stream: beside a product, which fills all multiprocessors, they would wait for its end.
    """

    def __init__(self, group: Any, size: int, dtype: torch.dtype, shape: Any) -> None:
        memory = _memory[group]
        self._memory, self._views = memory.piece(size, dtype, tuple(shape))
        self._main, self._copies = torch.cuda.current_stream(), memory.copies
        self._events = memory.events
        self._in_graph = torch.cuda.is_current_stream_capturing()
        if self._in_graph:
            self.meet()

    def of(self, rank: int) -> torch.Tensor:
        return self._views[rank]

    def meet(self) -> None:
        """All ranks have come here."""
        self._memory.barrier(channel=0)

    @contextlib.contextmanager
    def copying(self) -> Iterator[None]:
        """What is inside goes to the stream of copies, behind what the call's own stream has now."""
        self._copies.wait_stream(self._main)
        with torch.cuda.stream(self._copies):
            yield

    def done(self, what: int) -> None:
        if what not in self._events:
            self._events[what] = torch.cuda.Event()
        self._events[what].record(self._copies)

    def wait(self, what: int) -> None:
        self._main.wait_event(self._events[what])

    def finish(self) -> None:
        """The call's own stream goes on behind the copies."""
        self._main.wait_stream(self._copies)
        if self._in_graph:
            self.meet()


class _Memory:
    """Of a group: two pieces of memory, and the stream of copies."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self._tensors: list[torch.Tensor | None] = [None, None]
        self._handles: list[Any] = [None, None]
        self._outgrown: list[torch.Tensor] = []  # of which a graph may still read
        self._turn = 0
        self._views: dict[Any, list[torch.Tensor]] = {}
        self.events: dict[int, torch.cuda.Event] = {}  # each recorded anew before it is waited for
        self.copies = torch.cuda.Stream(priority=-1)

    def grow(self, size: int) -> None:
        """All ranks together, and not in a graph."""
        self._views.clear()
        for i, tensor in enumerate(self._tensors):
            if tensor is None or tensor.numel() < size:
                if tensor is not None:
                    self._outgrown.append(tensor)
                self._tensors[i] = symmetric.empty(size, dtype=torch.uint8, device=torch.device("cuda", torch.cuda.current_device()))
                self._handles[i] = symmetric.rendezvous(self._tensors[i], self._group.group_name)

    def piece(self, size: int, dtype: torch.dtype, shape: tuple[int, ...]) -> tuple[Any, list[torch.Tensor]]:
        """The handle of the one whose turn it is, and each rank's as a tensor."""
        self._turn = 1 - self._turn
        tensor, handle = self._tensors[self._turn], self._handles[self._turn]
        assert tensor is not None and tensor.numel() >= size, "the choice of the way made it large enough"
        key = (self._turn, dtype, shape)
        if key not in self._views:
            self._views[key] = [handle.get_buffer(rank, shape, dtype) for rank in range(handle.world_size)]
        return handle, self._views[key]


def _shared_memory(group: Any, size: int) -> bool:
    """Whether all ranks of the group can read so many bytes of each other's memory; all ranks ask together."""
    fine = symmetric is not None
    if fine:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer ones of PyTorch need it no more
                symmetric.enable_symm_mem_for_group(group.group_name)
            if group not in _memory:
                _memory[group] = _Memory(group)
            _memory[group].grow(size)
        except (AttributeError, RuntimeError):  # another release of PyTorch, or no way between the GPUs
            fine = False
    flag = torch.tensor([fine], dtype=torch.int32, device="cuda")
    dist.all_reduce(flag, dist.ReduceOp.MIN, group)
    return bool(flag.item())


_plans: dict[Any, _Plan] = {}
_memory: dict[Any, _Memory] = {}


def _cut(rows: int, parts: int) -> list[slice]:
    """Whole units of rows in each part but the last, so that tiles stay full."""
    unit = _LEAST_ROWS if rows >= parts * _LEAST_ROWS else 1
    each = -(-rows // (parts * unit)) * unit
    return [slice(at, min(at + each, rows)) for at in range(0, rows, each)] or [slice(0, 0)]
