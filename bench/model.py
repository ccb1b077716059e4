#!/usr/bin/env python3
"""The model of time against the GPU: kernels of this tree at one wave to a hundred, predicted and measured in one run.

    python3 bench/model.py --kiln build/release/bin/kiln [--save rows.jsonl]         measures: needs a GPU, two minutes
    python3 bench/model.py --kiln build/release/bin/kiln --measured rows.jsonl      predicts again beside saved times
    python3 bench/model.py --kiln build/release/bin/kiln --predict-only

A line for each launch: blocks an SM holds and waves, what it took and what `kiln explain` says it takes, their ratio (above 1
the model is too slow), the bound it names, and which parts of the GPU were busy how much of the measured time, by the model's
counts: what a profiler calls the speed of light. A named bound is marked `?` where these speak against it: a part that was busy
for less than half of the time, or less than another by more than a tenth; latency or start, where a part was busy for more than
nine tenths. It is no proof that an unmarked one is right.

`unseen` are kernels whose times nobody had looked at when the model's constants were chosen (docs/time-model.md); `fitted`
are those that they were chosen for, or may have been. Times are medians of `kiln bench FILE --unchecked`: random normal
data, sets of buffers that pass twice the L2 cache, and in front of each batch another one of the same kernel.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ARCH = "sm_90a"
REPEATS = 5
WITHIN = (0.15, 0.30)


class Kernel(NamedTuple):
    file: str
    shapes: tuple[str, ...]
    defines: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.file).stem


def cube(extent: int) -> str:
    return f"M={extent},N={extent},K={extent}"


def example(name: str, *shapes: str, defines: tuple[str, ...] = ()) -> Kernel:
    return Kernel(f"examples/{name}.co", shapes, defines)


def library(name: str, *shapes: str, defines: tuple[str, ...] = ()) -> Kernel:
    return Kernel(f"kernels/{name}.co", shapes, defines)


SMALL = "M=1024,N=1024,K=4096"
W4 = "N=4096,K=4096,W=512,G=32"
UNSEEN = (
    example("attention_natural", "H=16,S=1024,T=1024,c=0.1275", "H=64,S=2048,T=2048,c=0.1275", "H=32,S=8192,T=8192,c=0.1275"),
    example("matmul_persistent", "M=1408,N=1536,K=2048", cube(4096), "M=8192,N=12288,K=1024", defines=("BLOCKS=528",)),
    example("matmul_fp8_scaled", "M=1408,N=1536,K=4096,KB=32,NB=12", "M=4096,N=4096,K=4096,KB=32,NB=32"),
    example("cross_entropy", "M=132,N=32000", "M=1056,N=32000", "M=16384,N=32000"),
    example("stencil", "H=1026,W=1028,P=1024,Q=1026", "H=4098,W=4100,P=4096,Q=4098", "H=8194,W=8196,P=8192,Q=8194"),
    example("layer_norm_long", "M=132,epsilon=1e-5", "M=1056,epsilon=1e-5", "M=8192,epsilon=1e-5", defines=("N=20480",)),
    example("layer_norm_persistent", "M=264,epsilon=1e-5", "M=4096,epsilon=1e-5", "M=32768,epsilon=1e-5", defines=("N=4096",)),
    example("matmul_sparse", "M=1408,P=1024,W=64,N=1536,K=2048", "M=4096,P=2048,W=128,N=4096,K=4096"),
    library("gemm_sm80", "M=1408,N=1536,K=2048,LDA=2048,LDB=2048,LDC=1536", "M=4096,N=4096,K=4096,LDA=4096,LDB=4096,LDC=4096"),
    library("gemm_skinny_sm90", "M=16,N=4096,K=4096", "M=64,N=8192,K=8192"),
    library("gemm_block_scaled_sm90", "M=1408,N=1536,K=4096,KB=32,NB=12", "M=4096,N=4096,K=7168,KB=56,NB=32"),
    library("attention_sm90", "B=1,S=2048,H=16,T=2048,HK=16,scale=0.088", "B=4,S=4096,H=16,T=4096,HK=16,scale=0.088"),
)
FITTED = (
    library("gemm_sm90", cube(2048), cube(4096), cube(8192)),
    example("matmul_1p2c", "M=1024,N=1024,K=4096", cube(2048), cube(4096), "M=8192,N=12288,K=1024"),
    example("matmul_late_release", "M=1408,N=1536,K=2048", cube(2048), cube(4096), "M=16384,N=8192,K=512"),
    example("matmul_double_buffer", SMALL, cube(4096)),
    example("matmul_wgmma", "M=1408,N=1920,K=2048", cube(2048), cube(4096)),
    example("swiglu", "M=1408,N=1536,K=2048", cube(2048), cube(4096)),
    example("w4a16", f"M=32,{W4}", f"M=64,{W4}", f"M=512,{W4}", f"M=4096,{W4}"),
    example("w8a8", "M=1408,N=1536,K=4096", cube(2048), cube(4096)),
    example("linear_attention", "H=16,T=2048", "H=264,T=2048", "H=512,T=2048"),
    example("rope", "S=1584,H=8", "S=4096,H=32", "S=16384,H=64"),
    example("softmax", "M=1320", "M=4096", "M=32768", "M=131072", defines=("N=4096",)),
    example("cumulative_sum", "M=132,N=16384", "M=1024,N=16384", "M=8192,N=16384"),
    example("matmul_1p1c", SMALL, cube(2048), cube(4096)),
    example("matmul_wgmma_2group", "M=1408,N=1536,K=2048", cube(2048), cube(4096)),
    example("matmul_multicast", "M=1408,N=1536,K=2048", cube(2048), cube(4096)),
    example("matmul_wmma", SMALL, cube(2048), cube(4096), defines=("TILE_M=64", "TILE_N=64", "TILE_K=64")),
    example("matmul_natural", "M=1408,N=3072,K=4096", cube(4096), cube(8192)),
    example("matmul_epilogue", "M=2112,N=1536,K=2048,scale=1", "M=4096,N=4096,K=4096,scale=1"),
    example("attention", "H=16,S=1024,T=1024,c=0.1275", "H=24,S=1024,T=4096,c=0.1275", "H=16,S=8192,T=4096,c=0.1275"),
    example("attention_causal", "H=16,S=1024,c=0.1275", "H=24,S=1024,c=0.1275", "H=16,S=8192,c=0.1275"),
    example("attention_pipelined", "H=16,S=1024,T=1024,c=0.1275", "H=16,S=4096,T=4096,c=0.1275", "H=132,S=8192,T=512,c=0.1275"),
    example("convolution", "B=16,H=14,W=14,C=256,K=256", "B=16,H=56,W=56,C=256,K=256", "B=64,H=56,W=56,C=64,K=64"),
    example("layer_norm", "M=1024,epsilon=1e-5", "M=8192,epsilon=1e-5", "M=65536,epsilon=1e-5", defines=("N=4096",)),
    example("rms_norm", "M=2112,epsilon=1e-5", "M=16384,epsilon=1e-5", "M=131072,epsilon=1e-5", defines=("N=1024",)),
    example("w8a16", "M=64,N=4096,K=4096", "M=512,N=4096,K=4096", "M=4096,N=4096,K=4096"),
    example("top_k", "M=4224,N=512,K=8", "M=65536,N=512,K=8"),
    example("swiglu_pipelined", "M=1408,N=1536,K=4096", cube(4096)),
    example("softmax_persistent", "M=264", "M=1320", "M=13200", defines=("N=16384",)),
)
PARTS = {"tensor_cores": ("tensor",), "DRAM": ("dram",), "L2_cache": ("l2_read", "l2_written"), "shared_memory": ("shared",),
         "arithmetic": ("unit",), "issue_slots": ("issue",)}  # fmt: skip
BUSY_LEAST, BUSY_BESIDE, BUSY_HIDDEN = 0.5, 0.1, 0.9


class Launch(NamedTuple):
    group: str
    kernel: Kernel
    shape: str

    @property
    def key(self) -> tuple[str, str]:
        return self.kernel.name, self.shape


def launches_of(only: str) -> list[Launch]:
    groups = {"unseen": UNSEEN, "fitted": FITTED}
    each = [Launch(g, kernel, shape) for g, kernels in groups.items() for kernel in kernels for shape in kernel.shapes]
    return [launch for launch in each if only in f"{launch.group} {launch.kernel.name} {launch.shape}"]


def options_of(kernel: Kernel) -> list[str]:
    return [kernel.file, "--arch", ARCH, *(word for define in kernel.defines for word in ("-D", define))]


def predict(kiln: str, launch: Launch, how: list[str]) -> dict:
    """What the model says, of all launches of the kernel together; the bound is that of the longest."""
    command = [kiln, "explain", *options_of(launch.kernel), "--shape", launch.shape, "--json", "--no-advice", *how]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)
    parts = [each for each in told["launches"] if each["predicted"]]
    longest = max(parts, key=lambda each: each["predicted"]["seconds"])
    resident = longest["occupancy"]["blocks"]
    predicted = longest["predicted"]
    return {
        "predicted_us": 1e6 * sum(each["predicted"]["seconds"] for each in parts),
        "part": told["part"]["name"],
        "resident": resident,
        "registers": longest["registers"]["total"],
        "waves": longest["blocks"] / longest["times"] / (told["part"]["sms"] * resident),
        **{key: predicted[key] for key in ("bound", "clock_ghz", "busy", "waiting", "saved_if_halved")},
    }


def measure(kiln: str, kernel: Kernel, shapes: list[str], timeout: float) -> dict[str, dict]:
    """The lines of `kiln bench` by shape; without those that could not be measured."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "rows.jsonl"
        command = [kiln, "bench", *options_of(kernel), "--unchecked", "--repeats", str(REPEATS), "--json", str(lines)]
        command += [word for shape in shapes for word in ("--shape", shape)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
            if done.returncode != 0:
                print(f"{kernel.name}: {done.stderr.strip()}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            print(f"{kernel.name}: not done in {timeout:.0f} s", file=sys.stderr)
        rows = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    keys = ("device", "driver", "toolkit", "commit", "sm_mhz", "power_watt", "spread")
    return {row["shape"]: {"measured_us": 1e6 * row["seconds"], **{key: row.get(key) for key in keys}} for row in rows}


def measure_all(kiln: str, launches: list[Launch], seconds: float) -> dict[tuple[str, str], dict]:
    by_kernel: dict[Kernel, list[str]] = {}
    for launch in launches:
        by_kernel.setdefault(launch.kernel, []).append(launch.shape)
    end = time.monotonic() + seconds
    out = {}
    for kernel, shapes in by_kernel.items():
        left = end - time.monotonic()
        if left < 1:
            print(f"{kernel.name}: no time left", file=sys.stderr)
            continue
        measured = measure(kiln, kernel, shapes, left)
        out.update({(kernel.name, shape): row for shape, row in measured.items()})
    return out


def busy_of(row: dict) -> dict[str, float]:
    """By bound, the part of the measured time for which its part of the GPU was busy."""
    scale = row["predicted_us"] / row["measured_us"]
    return {bound: scale * max(row["busy"][part] for part in parts) for bound, parts in PARTS.items()}


def speaks_against(row: dict) -> bool:
    busy = busy_of(row)
    most = max(busy.values())
    if row["bound"] not in PARTS:
        return most > BUSY_HIDDEN
    own = busy[row["bound"]]
    return own < BUSY_LEAST or own < most - BUSY_BESIDE


def ratio_of(row: dict) -> float:
    return row["predicted_us"] / row["measured_us"]


def show(row: dict) -> None:
    text = f"{row['group']:6} {row['kernel']:20} {row['shape']:34} {row['resident']:2} {row['waves']:6.1f}"
    if "measured_us" not in row:
        print(f"{text} {'-':>8} {row['predicted_us']:9.1f} {'-':>5}   {row['bound']}")
        return
    ratio = ratio_of(row)
    mark = next((mark for limit, mark in zip(WITHIN, (" ", "*")) if abs(ratio - 1) <= limit), "**")
    busy = sorted(busy_of(row).items(), key=lambda item: -item[1])[:3]
    parts = ", ".join(f"{bound} {100 * part:.0f} %" for bound, part in busy)
    bound = row["bound"] + (" ?" if speaks_against(row) else "")
    print(f"{text} {row['measured_us']:8.1f} {row['predicted_us']:9.1f} {ratio:5.2f}{mark:2} {bound:16} {parts}")


def sum_up(group: str, rows: list[dict]) -> None:
    by_kernel: dict[str, list[float]] = {}
    for row in rows:
        by_kernel.setdefault(row["kernel"], []).append(ratio_of(row))
    if not rows:
        return
    error = math.exp(statistics.mean(abs(math.log(ratio_of(row))) for row in rows)) - 1
    parts = [f"{group}: {len(by_kernel)} kernels, {len(rows)} launches, mean error {100 * error:.0f} %"]
    for limit in WITHIN:
        fits = [abs(ratio_of(row) - 1) <= limit for row in rows]
        every = sum(all(abs(r - 1) <= limit for r in ratios) for ratios in by_kernel.values())
        median = sum(abs(statistics.median(ratios) - 1) <= limit for ratios in by_kernel.values())
        kernels = f"{every} kernels with all of theirs, {median} in the median"
        parts.append(f"within {100 * limit:.0f} %: {sum(fits)} launches, {kernels}")
    parts.append(f"{sum(speaks_against(row) for row in rows)} bounds that the measured time speaks against")
    print("\n  ".join(parts))


def read_measured(path: Path) -> dict[tuple[str, str], dict]:
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    kept = ("measured_us", "device", "driver", "toolkit", "commit", "sm_mhz", "power_watt", "spread")
    return {(row["kernel"], row["shape"]): {key: row[key] for key in kept} for row in rows if "measured_us" in row}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kiln", required=True, help="the binary")
    parser.add_argument("--tree", type=Path, default=ROOT, help="where examples/ and kernels/ are")
    parser.add_argument("--only", default="", help="launches whose group, kernel and shape have this text")
    parser.add_argument("--compile", action="store_true", help="registers of compiled kernels, by NVRTC, instead of estimated ones")
    parser.add_argument("--predict-only", action="store_true", help="measure nothing")
    parser.add_argument("--measured", type=Path, help="take the times of this file instead of measuring")
    parser.add_argument("--save", type=Path, help="a JSON line for each launch")
    parser.add_argument("--seconds", type=float, default=140, help="at most, for measuring")
    options = parser.parse_args()
    kiln = str(Path(options.kiln).resolve())
    save = options.save.resolve() if options.save else None
    saved = read_measured(options.measured) if options.measured else {}
    how = ["--compile"] if options.compile else []
    os.chdir(options.tree)
    launches = launches_of(options.only)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        predicted = list(pool.map(lambda launch: predict(kiln, launch, how), launches))
    measured = saved
    if not options.measured and not options.predict_only:
        measured = measure_all(kiln, launches, options.seconds)
    rows = []
    for launch, says in zip(launches, predicted):
        names = {"group": launch.group, "kernel": launch.kernel.name, "shape": launch.shape}
        rows.append({**names, **says, **measured.get(launch.key, {})})
    if save:
        save.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{'':6} {'kernel':20} {'shape':34} SM  waves measured predicted ratio  bound            busy")
    for row in rows:
        show(row)
    timed = [row for row in rows if "measured_us" in row]
    devices = sorted({row["device"] for row in timed})
    print(f"\nmeasured on {', '.join(devices) or 'nothing'}; the model's part is the {rows[0]['part']}" if rows else "nothing")
    for group in ("unseen", "fitted"):
        sum_up(group, [row for row in timed if row["group"] == group])
    sum_up("all", timed)
    wanted = [] if options.predict_only else [row for row in rows if "measured_us" not in row]
    return 1 if wanted else 0


if __name__ == "__main__":
    sys.exit(main())
