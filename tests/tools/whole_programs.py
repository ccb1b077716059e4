#!/usr/bin/env python3
"""Builds and runs every `.co` file of a folder that has `main`, and sums up.

    tests/tools/whole_programs.py FOLDER... [--kiln build/release/bin/kiln] [--arch sm_90a]
        [--on sim|gpu] [--jobs 1]

For collections of published programs, which are never committed. A line for each program: its exit
code, its name, and the first error that it gave. Exit code 0: all ran right.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 300
running = set()


def first_error(text):
    lines = [line for line in text.splitlines() if re.search(r"\berror\b", line)]
    return lines[0] if lines else text.strip().splitlines()[-1] if text.strip() else ""


def run(kiln, arch, on, path):
    """(exit code, first error)"""
    process = subprocess.Popen(
        [kiln, "run", path, "--on", on, "--arch", arch],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    running.add(process)
    try:
        _, stderr = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        kill(process)
        process.communicate()
        return -1, f"error: not done after {SECONDS_MAX} s"
    finally:
        running.discard(process)
    return process.returncode, first_error(stderr) if process.returncode else ""


def kill(process):
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)  # the program as well


def kill_all(*_):
    """When this script is ended, so that no program goes on to use the GPU."""
    for process in list(running):
        kill(process)
    os._exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--kiln", default=str(ROOT / "build/release/bin/kiln"))
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--on", default="sim", choices=["sim", "gpu"])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    paths = sorted(path for folder in options.folders for path in folder.rglob("*.co"))
    paths = [path for path in paths if re.search(r"\bmain\s*\(", path.read_text(errors="replace"))]
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, kill_all)
    right = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(partial(run, options.kiln, options.arch, options.on), map(str, paths))
        for path, (code, error) in zip(paths, outcomes):
            right += code == 0
            print(f"{code:4} {path} {error}".rstrip(), flush=True)
    print(f"{right} of {len(paths)} programs run right")
    return 0 if right == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
