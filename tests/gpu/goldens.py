#!/usr/bin/env python3
"""Runs on a GPU every golden test that the simulator finds nothing wrong with.

    KILN=build/release/bin/kiln tests/gpu/goldens.py [--jobs N] [FILTER]...

Of each golden test's `kiln run` lines that are for the simulator and end with 0, the same line with `--on gpu` must
end with 0 too: every element within its bound. FILTER keeps the tests whose path contains it. A run that is for the
simulator alone, by what kiln says of it or by NOT_FOR_A_GPU, is counted apart. What fails is printed; the last line
counts, and the exit code is 1 when something failed.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import run as golden  # noqa: E402

ROOT = golden.ROOT
KILN = os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
TIMEOUT_S = 120
SIMULATOR_ALONE = "which only `--on sim` does"
NOT_FOR_A_GPU = {
    "arithmetic_of_u32_wraps.co": "gives numbers above the 2,146,435,071 that a launch takes",
    "device_text_is_left_to_its_compiler.co": "has text that is no CUDA",
    "run_what_stands_in_for_cuda.co": "calls a function of CUDA that is in no file",
}
SIMULATOR_OPTIONS = ("--schedules", "--schedule", "--dump", "--timeline", "--memory", "--trace")


def for_gpu(line):
    """The arguments of a RUN line as for a GPU; None where it is not a run of the simulator."""
    argv = shlex.split(line)
    if argv[:2] != ["kiln", "run"]:
        return None
    kept, skip = [], False
    for argument in argv[1:]:
        if skip:
            skip = False
        elif argument in SIMULATOR_OPTIONS or argument == "--on":
            skip = True
        elif not argument.startswith(tuple(f"{name}=" for name in SIMULATOR_OPTIONS + ("--on",))):
            kept.append(argument)
    on = argv[argv.index("--on") + 1] if "--on" in argv else "sim"
    return kept + ["--on", "gpu"] if on == "sim" else None


def outcome_of(case):
    """`passed`, `elsewhere` (in the simulator alone) or `failed`, and what kiln said, of one run."""
    path, argv, before, sections = case
    if path.name in NOT_FOR_A_GPU:
        return "elsewhere", ""
    with tempfile.TemporaryDirectory(prefix="kiln-golden-") as scratch:
        folder = path.parent
        if len(sections) > 1:
            folder = Path(scratch)
            for name, text in sections:
                (folder / name).write_bytes(text.encode("latin-1"))
        names = {"%s": path.name, "%t": scratch, "%R": str(ROOT)}
        env = dict(os.environ, KILN_CACHE_DIR="off", NO_COLOR="1")
        try:
            for each in [*before, argv]:
                for name, value in names.items():
                    each = [argument.replace(name, value) for argument in each]
                done = subprocess.run(
                    [KILN, *each], cwd=folder, env=env, capture_output=True, timeout=TIMEOUT_S, check=False
                )
        except subprocess.TimeoutExpired:
            return "failed", f"no answer in {TIMEOUT_S} s"
    said = (done.stdout + done.stderr).decode("latin-1")
    if done.returncode == 0:
        return "passed", ""
    return "elsewhere" if SIMULATOR_ALONE in said else "failed", said


def cases(filters):
    for path in golden.discover(ROOT, filters):
        file = golden.parse(path.name, golden.read(path))
        if file.exit != 0:
            continue
        for i, line in enumerate(file.runs):
            argv = for_gpu(line)
            if argv is not None:
                # A file in the scratch folder is what a line before wrote there.
                before = [shlex.split(each)[1:] for each in file.runs[:i]] if "%t" in line else []
                yield path, argv, before, list(golden.section_texts(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("filters", nargs="*", metavar="FILTER")
    options = parser.parse_args()
    all_cases = list(cases(options.filters))
    counts = {"passed": 0, "elsewhere": 0, "failed": 0}
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, (outcome, said) in zip(all_cases, pool.map(outcome_of, all_cases)):
            counts[outcome] += 1
            if outcome == "failed":
                tail = "\n".join(said.splitlines()[:12])
                print(f"{case[0].relative_to(ROOT)}: kiln {shlex.join(case[1])}\n{tail}\n", flush=True)
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
