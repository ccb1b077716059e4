"""Times of a kernel on the GPU, beside a function that does the same: in turns, pair by pair."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kiln import _core
from kiln._launch import DeviceError, current_stream, is_tensor, is_torch, seen_of, strided_tensor
from kiln._report import html_table, text_table

if TYPE_CHECKING:
    from kiln._program import Kernel

_SETS_MAX = 512
_CALLS_MAX = 50000
_GRAPH_CALLS_MAX = 512  # of one graph; longer batches replay it
_BYTES = {"f64": 8, "s64": 8, "u64": 8, "f32": 4, "s32": 4, "u32": 4, "tf32": 4, "f16": 2, "bf16": 2, "s16": 2, "u16": 2}


@dataclass(frozen=True)
class Comparison:
    """Seconds of a call of a kernel, and of its baseline in turns with it."""

    kernel: str
    seconds: tuple[float, ...]  # by turn
    baseline_seconds: tuple[float, ...]  # of the same turns; empty without a baseline
    sets: int  # of tensors, which calls take in turn
    by_graphs: bool  # batches are CUDA graphs; else a launch's cost on the CPU may count

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def baseline_median(self) -> float:
        return statistics.median(self.baseline_seconds)

    @property
    def ratio(self) -> float:
        """The median of the turns' ratios, baseline over kernel: above 1 the kernel is faster."""
        return statistics.median(self._ratios())

    @property
    def spread(self) -> float:
        """Between the quartiles of these ratios."""
        return _between_quartiles(self._ratios())

    def _ratios(self) -> list[float]:
        if not self.baseline_seconds:
            raise ValueError("it was measured without a baseline: give baseline=")
        return [theirs / ours for ours, theirs in zip(self.seconds, self.baseline_seconds)]

    def _rows(self) -> list[list[str]]:
        rows = [[self.kernel, _time(self.median), _time(_between_quartiles(self.seconds)), ""]]
        if self.baseline_seconds:
            spread = _time(_between_quartiles(self.baseline_seconds))
            rows[0][3] = f"{self.ratio:.3f} (spread {self.spread:.3f})"
            rows.append(["baseline", _time(self.baseline_median), spread, "1"])
        return rows

    _HEAD = ("", "median", "spread", "times as fast")

    def _notes(self) -> str:
        how = "graphs" if self.by_graphs else "launches one by one, whose cost on the CPU may count"
        return f"{len(self.seconds)} turns of {how}, {self.sets} sets of tensors"

    def __str__(self) -> str:
        return f"{text_table(self._HEAD, self._rows())}\n{self._notes()}"

    def _repr_html_(self) -> str:
        return f"{html_table(self._HEAD, self._rows())}<small>{self._notes()}</small>"


class Contender:
    """A function that starts one call on a set of tensors, and batches of it."""

    def __init__(self, call: Callable[[int], Any], sets: int, field: Field) -> None:
        self.call, self.sets, self._field = call, sets, field
        self._graphs: dict[int, Any] = {}

    def batch(self, calls: int, by_graphs: bool) -> float:
        """Seconds of so many calls, one behind the other."""
        whole, rest = divmod(calls, _GRAPH_CALLS_MAX) if by_graphs else (0, calls)
        graphs = [self._graph(_GRAPH_CALLS_MAX)] * whole if whole else []
        if by_graphs and rest:
            graphs.append(self._graph(rest))

        def work() -> None:
            for graph in graphs:
                graph.replay()
            for i in range(0 if by_graphs else calls):
                self.call(i % self.sets)

        return self._field.time(work)

    def _graph(self, calls: int) -> Any:
        if calls not in self._graphs:
            torch = sys.modules["torch"]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for i in range(calls):
                    self.call(i % self.sets)
            self._graphs[calls] = graph
        return self._graphs[calls]

    def warm_up(self) -> None:
        for i in range(self.sets):
            self.call(i)


class Field:
    """Where contenders are measured: a device, and the stream on which the framework works."""

    def __init__(self, like: Any) -> None:
        self._like = like
        device = strided_tensor("tensor", like, None, False).device
        timer, error, self.l2_bytes = _core.timer(device)
        if timer is None:
            raise DeviceError(error)
        self._timer = timer

    def time(self, work: Callable[[], None]) -> float:
        stream = current_stream(self._like)
        errors = [self._timer.start(stream)]
        work()
        errors.append(self._timer.stop(stream))
        seconds, error = self._timer.seconds()
        if text := next(filter(None, [*errors, error]), ""):
            raise DeviceError(text)
        return seconds

    def sets_for(self, arguments: Mapping[str, Any]) -> int:
        """How many sets of tensors it takes until twice the second-level cache was touched."""
        each = 1
        for name, value in arguments.items():
            if is_tensor(value):
                seen = seen_of(name, value)
                each += math.prod(seen.shape) * _BYTES.get(seen.dtype, 1)
        return min(max(-(-2 * self.l2_bytes // each), 2), _SETS_MAX)

    def in_turn(self, contenders: Sequence[Contender], repeats: int, batch_seconds: float) -> tuple[list[list[float]], bool]:
        """Seconds of a call, by contender and turn, and whether batches are graphs."""
        for each in contenders:
            each.warm_up()
        by_graphs = is_torch(self._like) and all(map(_can_be_captured, contenders))
        calls = [self._length(each, by_graphs, batch_seconds) for each in contenders]
        seconds: list[list[float]] = [[] for _ in contenders]
        for turn in range(repeats):
            for k in range(len(contenders)):
                i = (k + turn) % len(contenders)
                seconds[i].append(contenders[i].batch(calls[i], by_graphs) / calls[i])
        return seconds, by_graphs

    def _length(self, contender: Contender, by_graphs: bool, batch_seconds: float) -> int:
        calls = contender.sets
        while True:
            contender.batch(calls, by_graphs)
            seconds = contender.batch(calls, by_graphs)
            if seconds >= batch_seconds or calls >= _CALLS_MAX:
                return calls
            wanted = 1.1 * batch_seconds / max(seconds, 1e-7)
            calls = min(max(math.ceil(calls * min(wanted, 10)), calls + 1), _CALLS_MAX)


def _can_be_captured(contender: Contender) -> bool:
    # A capture that fails leaves PyTorch's random numbers unusable, so what waits is found without one.
    cuda = sys.modules["torch"].cuda
    before = cuda.get_sync_debug_mode()
    cuda.set_sync_debug_mode("error")
    try:
        contender.call(0)
    except RuntimeError:
        return False
    finally:
        cuda.set_sync_debug_mode(before)
    try:
        contender.batch(1, True)
    except Exception:  # whatever else a function does that a graph does not take
        cuda.synchronize()
        return False
    return True


def copies_of(arguments: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    return [{name: copy_of(value) for name, value in arguments.items()} for _ in range(count)]


def copy_of(value: Any) -> Any:
    """Of a tensor; a number stays."""
    if is_torch(value):
        return value.detach().clone()
    return value.copy() if is_tensor(value) and hasattr(value, "copy") else value


def first_tensor(kernel: Kernel, arguments: Mapping[str, Any]) -> Any:
    for value in arguments.values():
        if is_tensor(value):
            return value
    raise TypeError(f"kernel `{kernel.name}` is measured without a tensor on a GPU")


def compare(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    baseline: Callable[..., Any] | None,
    check: bool,
    how: tuple[int, float],
) -> Comparison:
    repeats, batch_seconds = how
    if repeats < 1 or batch_seconds <= 0:
        raise ValueError(f"`repeats` is {repeats} and `batch_seconds` {batch_seconds}: at least 1, and more than 0")
    given = dict(arguments)
    stream = given.pop("stream", None) if "stream" not in kernel._slots else None
    if stream is not None:
        raise TypeError("`bench` measures on the framework's current stream: make `stream` that one")
    field = Field(first_tensor(kernel, given))
    if baseline is not None and check:
        from kiln import testing

        testing.check(kernel, copies_of(given, 1)[0], reference=baseline)
    sets = copies_of(given, field.sets_for(given))
    contenders = [Contender(lambda i: kernel(**sets[i]), len(sets), field)]
    if baseline is not None:
        rows = [tuple(each.values()) for each in sets]
        contenders.append(Contender(lambda i: baseline(*rows[i]), len(sets), field))
    seconds, by_graphs = field.in_turn(contenders, repeats, batch_seconds)
    theirs = tuple(seconds[1]) if baseline is not None else ()
    return Comparison(kernel.name, tuple(seconds[0]), theirs, len(sets), by_graphs)


def _between_quartiles(values: Sequence[float]) -> float:
    ordered = sorted(values)

    def quantile(fraction: float) -> float:
        at = fraction * (len(ordered) - 1)
        below = int(at)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (at - below)

    return quantile(0.75) - quantile(0.25)


def _time(seconds: float) -> str:
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"
