#!/usr/bin/env python3
"""What a build costs: CPU seconds of every command, by folder, and the headers that cost most to include.

    bench/build_time/measure.py [--preset release] [TARGET]...     a build from nothing (default: kiln)
    bench/build_time/measure.py --headers                          the ten heaviest headers

CPU time is user and system time of the compiler and linker, without a compiler cache: unlike the time on the clock
it means the same on a machine that does other work. Half of it is what two idle cores need at least; the
work is even enough that they come within a tenth of that. The build goes to build/time-PRESET and
is made anew each time. --json writes all of it, --again prints what such a file says.

A header's cost is that of a source which includes nothing else, less that of an empty source
(g++ -fsyntax-only, the least of three).
"""

import argparse
import collections
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LAUNCHER = HERE / "launcher.py"
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import tree  # noqa: E402

SHOWN = 10


def build(options, folder):
    """The rows of a build from nothing: {cpu, mib, output, source} of each command."""
    log = folder / "build_times.jsonl"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = dict(os.environ, CCACHE_DISABLE="1", KILN_BUILD_TIMES=str(log))
    launchers = [f"-DCMAKE_CXX_{kind}_LAUNCHER={LAUNCHER}" for kind in ("COMPILER", "LINKER")]
    configure = ["cmake", "--preset", options.preset, "-B", str(folder), "--log-level=WARNING"]
    subprocess.run([*configure, *launchers, *options.define], cwd=ROOT, env=env, check=True)
    make = ["cmake", "--build", str(folder), "-j", str(options.jobs), "--target", *options.targets]
    subprocess.run(make, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def is_link(row):
    return not row["output"].endswith(".o")


def folder_of(row):
    """src/sema of src/sema/CMakeFiles/kiln_sema.dir/Unity/unity_0_cxx.cxx.o."""
    return "linking" if is_link(row) else row["output"].split("/CMakeFiles/")[0]


def tell_build(rows):
    folders, counts = collections.Counter(), collections.Counter()
    for row in rows:
        folders[folder_of(row)] += row["cpu"]
        counts[folder_of(row)] += 1
    total = sum(folders.values())
    print(f"{'CPU s':>8} {'commands':>9}  folder")
    for folder, seconds in folders.most_common():
        print(f"{seconds:8.1f} {counts[folder]:9}  {folder}")
    print(f"{total:8.1f} {len(rows):9}  in all: {total / 120:.1f} minutes on two idle cores at least")
    print(f"\n{'CPU s':>8} {'MiB':>9}  the {SHOWN} most expensive commands")
    for row in sorted(rows, key=lambda row: -row["cpu"])[:SHOWN]:
        print(f"{row['cpu']:8.1f} {row['mib']:9}  {row['output']}")


def compile_seconds(text, flags):
    """The least of three."""
    least = float("inf")
    for _ in range(3):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
            file.write(text)
            file.flush()
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            argv = [os.environ.get("CXX", "g++"), *flags, "-fsyntax-only", file.name]
            subprocess.run(argv, cwd=ROOT, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = min(least, used)
    return least


def headers(paths):
    """[{header, cpu}] of the headers of src and include that a C++ source may include, heaviest first."""
    flags = "-std=c++20 -Isrc -Iinclude -I. -DJSON_NOEXCEPTION=1".split()
    chosen = [p for p in tree.files(".h") if p.parts[0] in ("src", "include")]
    if paths:
        chosen = [p for p in chosen if any(text in str(p) for text in paths)]
    empty = compile_seconds("", flags)
    rows = [
        {"header": str(p), "cpu": round(compile_seconds(f'#include "{p}"\n', flags) - empty, 3)}
        for p in chosen
    ]
    return sorted(rows, key=lambda row: -row["cpu"])


def tell_headers(rows):
    print(f"{'CPU s':>8}  the {SHOWN} headers that cost most to include, of {len(rows)}")
    for row in rows[:SHOWN]:
        print(f"{row['cpu']:8.2f}  {row['header']}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="release", help="of CMakePresets.json (release)")
    parser.add_argument("--define", action="append", default=[], help="for cmake, such as -DKILN_TESTS=OFF")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--headers", action="store_true", help="measure headers instead, those named")
    parser.add_argument("--json", type=Path, help="write what was measured here")
    parser.add_argument("--again", type=Path, help="measure nothing: print what this file says")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="or parts of headers' names")
    return parser.parse_args()


def main():
    options = parse_options()
    if options.again:
        rows = json.loads(options.again.read_text(encoding="utf-8"))
    elif options.headers:
        rows = headers(options.targets)
    else:
        options.targets = options.targets or ["kiln"]
        rows = build(options, ROOT / "build" / f"time-{options.preset}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (tell_headers if rows and "header" in rows[0] else tell_build)(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
