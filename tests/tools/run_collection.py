#!/usr/bin/env python3
"""Do the programs of a folder that kiln accepts also run, in its simulator or on a GPU?

    tests/tools/run_collection.py DIR... --kiln build/release/bin/kiln [--on gpu] [--every 4] [--list ID]

asks `kiln run --on sim`, or `--on gpu`, about every tile function of every `.co` file below the folders that `kiln check` accepts, at
small sizes. It is no test, like collection.py beside it, which says what is in the way of the others. The sums:

    right        the run had no finding
    found        the run reported something; by id below. It is for a reader to say whether that is true
    no sizes     no choice of sizes below fulfils what the kernel asks of its dimensions
    too large    the run was given up after --steps instructions, --memory or --timeout seconds
    not there    the function is behind an `#if` that leaves it out
    crashed      ended by a signal or by a check of ours

Dimensions that a kernel lacks get the sizes of SIZES in turn, until it accepts one. A dimension whose name says that
it is a part of another (`K_BLOCKS`, `PACKED_K`) gets that part.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import collection  # noqa: E402

SIZES = (256, 128, 512, 64, 32, 8)
PARTS = ((re.compile(r"DIV_BLK|BLOCKS|NUM_BLK"), 128), (re.compile(r"PACKED"), 2), (re.compile(r"META"), 32))
MISSING = re.compile(r"(?:dimension|parameter) `(\w+)` of kernel `\w+` has no value")
NO_SIZES = {"shape-missing", "scalar-missing", "shape-overflow", "entry-check-failed", "shape-mismatch"}
NO_KERNEL = {"kernel-unknown"}  # its text is behind an `#if`
FUNCTION = re.compile(r"^[^/\n]*__co__\s[^;{()]*?(\w+)\s*\(", re.MULTILINE)


@dataclass
class Run:
    path: Path
    kernel: str
    kind: str = ""
    ids: set = field(default_factory=set)
    said: str = ""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--kiln", default="build/release/bin/kiln", help="the binary")
    parser.add_argument("--on", choices=("sim", "gpu"), default="sim", help="what runs them")
    parser.add_argument("--arch", default="sm_90a,sm_86", help="architectures, tried in turn")
    parser.add_argument("--skip", action="append", default=[], metavar="WORD", help="paths with this in them")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run every Nth of the accepted files")
    parser.add_argument("--steps", default="20000000", help="instructions of warps that a run may take")
    parser.add_argument("--memory", default="2G")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--list", action="append", default=[], metavar="ID", help="name the runs of an id or kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome of each run")
    return parser.parse_args()


def size_of(name, size):
    for words, part in PARTS:
        if words.search(name):
            return max(size // part, 1)
    return size


def ask(options, run, arch, shape):
    """(exit code, what was found, text) of one `kiln run`."""
    argv = [options.kiln, "run", run.path.name, "--arch", arch, "--on", options.on, "--kernel", run.kernel]
    argv += ["--fill", "integers", "--check", "sample", "--max-steps", options.steps, "--max-memory", options.memory]
    if shape:
        argv += ["--shape", ",".join(f"{name}={value}" for name, value in shape.items())]
    try:
        done = subprocess.run(
            argv, cwd=run.path.parent, capture_output=True, text=True, timeout=options.timeout, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return 0, {"timeout"}, ""
    text = done.stdout + done.stderr
    return done.returncode, set(re.findall(r"^(?:error|warning)\[([a-z0-9-]+)\]", text, re.MULTILINE)), text


def run_at(options, run, arch, size):
    """Fills `run`; false where other sizes may help."""
    shape = {}
    for _ in range(3):
        code, ids, run.said = ask(options, run, arch, shape)
        if not ids & {"shape-missing", "scalar-missing"}:
            break
        shape |= {name: size_of(name, size) for name in MISSING.findall(run.said)}
    run.ids = ids - {"host-code-left"}
    errors = set(re.findall(r"^error\[([a-z0-9-]+)\]", run.said, re.MULTILINE))
    if "timeout" in ids or re.search("--max-steps|--max-memory|out of memory", run.said):
        run.kind = "too large"
    elif code not in (0, 1, 2):
        run.kind = "crashed"
    elif code == 0:
        run.kind = "right"
    else:
        run.kind, run.ids = "found", errors or {run.said.strip().split("\n")[0][:100]}
    if errors & NO_SIZES:
        run.kind = "no sizes"
    if errors & NO_KERNEL:
        run.kind = "not there"
    return run.kind != "no sizes"


def run_kernel(options, path, arch, kernel):
    run = Run(path, kernel)
    for size in SIZES:
        if run_at(options, run, arch, size):
            break
    return run


def accepted(options, found):
    """(path, architecture) when `kiln check` has no error for one of the architectures."""
    path = found[0]
    own = collection.OWN_ARCH.search(path.read_text(encoding="utf-8", errors="replace"))
    for arch in [collection.NAMES.get(own[1], own[1])] if own else options.arch.split(","):
        if collection.check(options.kiln, path, arch, options.timeout)[0] == "accepted":
            return path, arch
    return None


def main():
    options = arguments()
    options.kiln, options.depth = str(Path(options.kiln).resolve()), 0
    with ThreadPoolExecutor(options.jobs) as pool:
        found = [one for one in pool.map(partial(accepted, options), list(collection.programs(options))) if one]
        collection.batch.finish()
        wanted = []
        for path, arch in found[:: options.every]:
            text = path.read_text(encoding="utf-8", errors="replace")
            wanted += [(path, arch, kernel) for kernel in dict.fromkeys(FUNCTION.findall(text))]
        runs = list(pool.map(lambda one: run_kernel(options, *one), wanted))
    print(f"{len(found)} files accepted, {len(wanted)} tile functions run")
    for kind, count in Counter(run.kind for run in runs).most_common():
        print(f"{count:6}  {kind}")
    print("\nfound, by id:")
    for reason, count in Counter(one for run in runs if run.kind == "found" for one in run.ids).most_common():
        print(f"{count:6}  {reason}")
    for word in options.list:
        print(f"\n{word}:")
        for run in runs:
            if word == run.kind or word in run.ids:
                first = next((line for line in run.said.split("\n") if line.startswith("error")), "")
                print(f"{run.path} {run.kernel}: {first}")
    if options.json:
        rows = [vars(run) | {"path": str(run.path), "ids": sorted(run.ids)} for run in runs]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
