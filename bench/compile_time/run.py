#!/usr/bin/env python3
"""How long the device library takes to compile, beside the same programs on CuTe.

    bench/compile_time/run.py [--repeats 3] [--ptxas-level 3] [--json FILE] [--check]
                              [--cute FOLDER] [FILTER]

Every case is compiled once in each repeat, in turn, so that a slow minute of the machine slows
both sides of a ratio; the table gives medians, and the ratio is the median of the ratios of each
repeat. nvcc makes an executable for sm_80; NVRTC makes a cubin in a fresh process. CPU time is
that of nvcc and all it starts, and the better figure on a machine with other work. The tutorials'
programs take part where their texts are (../shared/seeds or $KILN_SEEDS).

CuTe's headers come from --cute, or from the PyPI package that tests/api/requirements.txt names,
installed into build/python/pycute (decision 12). Exit: 1 a compile failed, or with --check a limit
was missed; 3 no nvcc, or no CuTe.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "seeds"))
import programs  # noqa: E402

TIMEOUT_S = 900
NVRTC_STEPS = ("Plain", "Pipelined", "Staged")  # of examples/global_gemm.cu
# The same package, and the same folder, as for tests/api/pycute_test.py.
REQUIREMENTS = ROOT / "tests" / "api" / "requirements.txt"
PACKAGES = ROOT / "build" / "python" / "pycute"
CUTE_IN_PACKAGE = Path("cutlass_library") / "source" / "include"
# What --check asks for: seconds, and how many times faster than CuTe.
NVCC_SECONDS_MOST = 3.0
NVRTC_SECONDS_MOST = 0.4
RATIO_LEAST = 10.0


@dataclass
class Case:
    name: str
    library: str  # "kiln" or "cute"
    compiler: str  # "nvcc" or "nvrtc"
    arch: str
    source: Path
    kernel: str = ""  # NVRTC only: which one of the file
    wall: list = field(default_factory=list)
    cpu: list = field(default_factory=list)

    def title(self):
        return f"{self.name} {self.library} {self.compiler} {self.arch}"


def stop(code, text):
    print(f"compile_time: {text}", file=sys.stderr)
    sys.exit(code)


def said_by(argv):
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def cute_headers(folder):
    """The folder with CuTe's headers, installed if need be."""
    if folder:
        if not (folder / "cute" / "tensor.hpp").exists():
            stop(3, f"{folder} does not hold cute/tensor.hpp")
        return folder
    include = PACKAGES / CUTE_IN_PACKAGE
    if not (include / "cute" / "tensor.hpp").exists():
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        argv += ["--target", str(PACKAGES), "-r", str(REQUIREMENTS)]
        print("+ " + " ".join(argv), file=sys.stderr)
        if subprocess.run(argv, check=False).returncode != 0:
            stop(3, "CuTe's headers are not here and could not be installed; see --cute")
    return include


def cases(scratch):
    """Every case, ours and CuTe's next to each other."""
    gemm = ROOT / "examples" / "global_gemm.cu"
    found = [
        Case("global_gemm", "kiln", "nvcc", "sm_80", gemm),
        Case("global_gemm", "cute", "nvcc", "sm_80", HERE / "global_gemm_cute.cu"),
        *[
            Case(f"global_gemm {step}", "kiln", "nvrtc", "sm_90a", gemm, f"gemm_kernel<{step}>")
            for step in NVRTC_STEPS
        ],
        Case("hello_mma", "kiln", "nvcc", "sm_80", ROOT / "examples" / "hello_mma.cu"),
    ]
    folder = programs.seeds_folder(os.environ, ROOT)
    if not folder:
        print("compile_time: no texts of the tutorials here: their programs are left out")
        return found
    for name, program in sorted(programs.extract(folder).items()):
        texts = {"kiln": programs.ported(program.source), "cute": program.source}
        for library, text in texts.items():
            source = scratch / f"tutorial_{name}_{library}.cu"
            source.write_text(text, encoding="utf-8")
            found.append(Case(f"tutorial {name}", library, "nvcc", "sm_80", source))
    return found


def toolkit_folders(kind):
    """The toolkit's `include` or library folders beside the nvcc that runs."""
    root = Path(shutil.which("nvcc")).resolve().parents[1]
    below = {"include": ["include"], "library": ["lib64", "lib"]}[kind]
    return [root / name for name in below if (root / name).is_dir()]


def command(case, cute, scratch, ptxas_level):
    if case.compiler == "nvrtc":
        argv = [sys.executable, str(HERE / "nvrtc.py"), str(case.source)]
        argv += ["--kernel", case.kernel, "--arch", case.arch]
        for folder in toolkit_folders("library"):
            argv += ["--library", str(folder)]
        for folder in [ROOT / "include", *toolkit_folders("include")]:
            argv += ["-I", str(folder)]
        return [*argv, f"--option=--ptxas-options=-O{ptxas_level}"]
    argv = ["nvcc", "-std=c++20", f"-arch={case.arch}", "-o", str(scratch / "program")]
    argv += ["-Xptxas", f"-O{ptxas_level}"]
    if case.library == "cute":
        argv += ["--expt-relaxed-constexpr", "-I", str(cute)]
    else:
        argv += ["-I", str(ROOT / "include")]
    return [*argv, str(case.source)]


def measure(case, argv):
    """Adds one measurement; a compile that fails ends the run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, errors="replace", check=False
        )
    except subprocess.TimeoutExpired:
        stop(1, f"{case.title()}: no answer in {TIMEOUT_S} s")
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if case.compiler == "nvrtc" and done.returncode == 3:
        stop(3, done.stderr.strip())
    if done.returncode != 0:
        stop(1, f"{case.title()} does not compile:\n{' '.join(argv)}\n{done.stderr[-4000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if case.compiler == "nvrtc":
        times = json.loads(done.stdout)
        wall, cpu = times["compile_s"], times["cpu_s"]
    case.wall.append(wall)
    case.cpu.append(cpu)
    print(f"  {case.title():44} {wall:8.2f} s", file=sys.stderr, flush=True)


def processor():
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    name = re.search(r"^model name\s*: (.*)$", text, re.M)
    return f"{name.group(1) if name else platform.processor()}, {os.cpu_count()} cores"


def surroundings(cute):
    version = re.search(r"release [\d.]+, V([\d.]+)", said_by(["nvcc", "--version"]))
    text = cute / "cutlass" / "version.h"
    numbers = re.findall(
        r"^#define CUTLASS_(?:MAJOR|MINOR|PATCH) (\d+)", text.read_text(encoding="utf-8"), re.M
    )
    return {
        "bench": "compile_time",
        "nvcc": version.group(1) if version else "unknown",
        "cutlass": ".".join(numbers),
        "machine": processor(),
        "commit": said_by(["git", "rev-parse", "--short=12", "HEAD"]),
        "changed_files": bool(said_by(["git", "status", "--porcelain", "--", "include"])),
    }


def record(case):
    return {
        "case": case.name,
        "library": case.library,
        "compiler": case.compiler,
        "arch": case.arch,
        "median_s": round(statistics.median(case.wall), 4),
        "least_s": round(min(case.wall), 4),
        "most_s": round(max(case.wall), 4),
        "cpu_median_s": round(statistics.median(case.cpu), 4),
        "repeats": len(case.wall),
    }


def median_ratio(theirs, ours):
    return round(statistics.median(a / b for a, b in zip(theirs, ours)), 2)


def add_ratios(found, records):
    """`cute_over_ours`: the median of each repeat's ratio, in our side's record."""
    by_name = {(case.name, case.compiler, case.library): case for case in found}
    for case, numbers in zip(found, records):
        other = by_name.get((case.name, case.compiler, "cute"))
        if case.library == "kiln" and other:
            numbers["cute_over_ours"] = median_ratio(other.wall, case.wall)
            numbers["cute_over_ours_cpu"] = median_ratio(other.cpu, case.cpu)


def print_table(records, where):
    """As Markdown, so that a document can take it as it is."""
    print(f"\nnvcc {where['nvcc']}, CUTLASS {where['cutlass']}, {where['machine']}\n")
    print("| program | library | compiler | arch | seconds | from, to | CPU s | CuTe/ours | in CPU s |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    for row in records:
        cells = [row["case"], row["library"], row["compiler"], row["arch"]]
        cells += [f"{row['median_s']:.2f}", f"{row['least_s']:.2f}, {row['most_s']:.2f}"]
        cells += [f"{row['cpu_median_s']:.2f}"]
        for key in ("cute_over_ours", "cute_over_ours_cpu"):
            cells += [f"{row[key]:.1f}" if key in row else ""]
        print("| " + " | ".join(cells) + " |")


def missed_limits(records):
    """What --check has to say against global_gemm's figures."""
    missed = []
    for row in records:
        if not row["case"].startswith("global_gemm") or row["library"] != "kiln":
            continue
        most = NVCC_SECONDS_MOST if row["compiler"] == "nvcc" else NVRTC_SECONDS_MOST
        what = f"{row['case']} with {row['compiler']} for {row['arch']}"
        if row["median_s"] >= most:
            missed.append(f"{what}: {row['median_s']:.2f} s, wanted under {most} s")
        if row.get("cute_over_ours", RATIO_LEAST) < RATIO_LEAST:
            missed.append(f"{what}: {row['cute_over_ours']}x CuTe, wanted {RATIO_LEAST}x")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ptxas-level", type=int, default=3, help="of optimisation, both sides")
    parser.add_argument("--json", type=Path, help="write one line for each case here")
    parser.add_argument("--check", action="store_true", help="fail where a limit is missed")
    parser.add_argument("--cute", type=Path, help="the folder that holds CuTe's headers")
    parser.add_argument("filter", nargs="?", default="", help="part of `NAME LIBRARY COMPILER ARCH`")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats is at least 1")
    if not shutil.which("nvcc"):
        stop(3, "no nvcc on the PATH")
    cute = cute_headers(options.cute)
    with tempfile.TemporaryDirectory(prefix="kiln-compile-time-") as folder:
        scratch = Path(folder)
        found = [case for case in cases(scratch) if options.filter in case.title()]
        if not found:
            stop(2, f"no case matches `{options.filter}`")
        for _ in range(options.repeats):
            for case in found:
                measure(case, command(case, cute, scratch, options.ptxas_level))
    records = [record(case) for case in found]
    add_ratios(found, records)
    where = {**surroundings(cute), "ptxas_level": options.ptxas_level}
    print_table(records, where)
    if options.json:
        lines = [json.dumps({**where, **numbers}) + "\n" for numbers in records]
        options.json.write_text("".join(lines), encoding="utf-8")
    missed = missed_limits(records) if options.check else []
    for text in missed:
        print(f"missed: {text}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
