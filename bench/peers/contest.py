"""What the scripts of this folder share: contenders that take turns on one GPU, and a line of JSON for each row.

A repeat has a batch of each contender, in turns that go the other way each time; in front of each batch goes another one
of the same kernel that is not counted, so that none inherits its neighbour's clock. Ratios are of batches of one repeat,
theirs over kiln's in time: above 1 kiln is faster.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

import kiln

# Starts a contender once on its tensors, and gives what it computes.
Start = Callable[[Any], Any]


class Row(Protocol):
    """A problem."""

    @property
    def text(self) -> str: ...


class Timer:
    """Batches of one contender, on buffers in turn; with `graphs` each batch is one CUDA graph."""

    def __init__(self, start: Start, sets: list[Any], seconds: float, graphs: bool = False) -> None:
        self.start, self.places = start, itertools.cycle(sets)
        self.events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.launches = 2
        self.graph: torch.cuda.CUDAGraph | None = None
        for _ in range(2):  # the first is slow, whatever the reason
            once = self.batch()
        if graphs:
            self.launches = max(2 * len(sets), 16)
            self.record()
            once = self.batch()
        self.launches = max(2, min(1000, round(seconds / once)))
        if graphs:
            self.record()

    def record(self) -> None:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.launch()

    def launch(self) -> None:
        for _ in range(self.launches):
            self.start(next(self.places))

    def batch(self) -> float:
        """Seconds of one launch."""
        before, after = self.events
        before.record()
        if self.graph is None:
            self.launch()
        else:
            self.graph.replay()
        after.record()
        after.synchronize()
        return before.elapsed_time(after) * 1e-3 / self.launches


def times_of(starts: dict[str, Start], sets: list[Any], options: argparse.Namespace) -> dict[str, list[float]]:
    timers = {name: Timer(start, sets, options.batch_seconds, options.graphs) for name, start in starts.items()}
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for repeat in range(options.repeats):
        names = list(timers)
        for name in names if repeat % 2 == 0 else names[::-1]:
            timers[name].batch()  # in front: not counted
            seconds[name].append(timers[name].batch())
    return seconds


def spread_of(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    return quarters[2] - quarters[0]


def find_wrong(row: Row, worst: dict[str, float]) -> list[str]:
    """The contenders whose difference is not within its bound, of which it tells people."""
    wrong = {name: each for name, each in worst.items() if not each <= 1}
    if wrong:
        print(f"{row.text}: wrong, difference over bound: {wrong}", file=sys.stderr)
    return list(wrong)


def measures_of(seconds: dict[str, list[float]], work: float, unit: str = "tflops") -> dict[str, Any]:
    """Medians, and ratios to kiln; `work` are operations, or bytes where the unit is "gbps"."""
    scale = {"tflops": 1e12, "gbps": 1e9}[unit]
    out: dict[str, Any] = {}
    for name, each in seconds.items():
        out |= {f"{name}_seconds": statistics.median(each), f"{name}_{unit}": work / statistics.median(each) / scale}
    for name, each in seconds.items():
        if name == "kiln" or "kiln" not in seconds:
            continue
        ratios = [theirs / ours for theirs, ours in zip(each, seconds["kiln"])]
        out |= {f"{name}_over_kiln": statistics.median(ratios), f"{name}_over_kiln_spread": spread_of(ratios)}
    return out


def print_row(row: Row, out: dict[str, Any], seconds: dict[str, list[float]], unit: str = "tflops") -> None:
    """For people."""
    parts = [f"{name} {out[f'{name}_{unit}']:6.1f}" for name in seconds]
    parts += [f"kiln/{name} {out[key]:.3f}" for name in seconds if (key := f"{name}_over_kiln") in out]
    print(f"{row.text:36} " + "  ".join(parts), file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "version": getattr(kiln, "__version__", ""),
    }


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """With the options that all scripts have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=[], metavar="WORDS", help="rows whose text has all words of one of these: D=128,causal")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--batch-seconds", type=float, default=0.02)
    parser.add_argument("--graphs", action="store_true", help="each batch is a CUDA graph, without what a call costs on the CPU")
    parser.add_argument("--json", metavar="FILE", help="appends the lines to a file too")
    return parser


def add_fa3(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fa3", metavar="LIBRARY", help="the library of FlashAttention-3")


def has_words(row: Row, wanted: str) -> bool:
    """Whether its text has every word of "D=128,S=4096,causal"."""
    return set(wanted.replace(",", " ").split()) <= set(row.text.split())


def run_rows(every: Sequence[Any], options: argparse.Namespace, run: Callable[[Any, Any], dict[str, Any] | None]) -> int:
    """Writes a line for each row that is asked for, as `run` has it. Exit codes: 1 where it has none since something is
    wrong, 2 where no row is asked for, 77 without a GPU."""
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        return 77
    rows = [row for row in every if not options.rows or any(has_words(row, each) for each in options.rows)]
    if not rows:
        print(f"no row has all words of one of {options.rows}; the first is {every[0].text}", file=sys.stderr)
        return 2
    if library := getattr(options, "fa3", None):
        torch.ops.load_library(library)
    failed = False
    for row in rows:
        result = run(row, options)
        failed = failed or result is None
        if result is None:
            continue
        line = json.dumps(result | machine())
        print(line, flush=True)
        if options.json:
            with open(options.json, "a") as file:
                file.write(line + "\n")
    return 1 if failed else 0
