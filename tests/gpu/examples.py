#!/usr/bin/env python3
"""The examples with register tiles on a GPU: each at its ragged shapes, with each fill, against the bound.

    KILN=build/release/bin/kiln tests/gpu/examples.py [NAME ...]

The shapes and the fills are those of `tests/e2e/examples_test.py`, which runs them in the simulator. A run that
finds an element outside its bound or unwritten, or that ends with another exit code than 0, is printed; the
last line counts the runs and the wrong ones, and the exit code is 1 when some are.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import examples_test as examples  # noqa: E402

JOBS = 4  # processes beside each other on one GPU
TIMEOUT_S = 120


def mistake_of(argv):
    """'' when the run found nothing wrong, else what it found."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        return f"exit {done.returncode}: {' '.join(argv)}\n{done.stderr[:2000]}"
    found = {}
    for row in json.loads(done.stdout)["outputs"]:
        found |= {f"{row['name']}: {key}": row[key] for key in ("outside", "unwritten") if row.get(key)}
    return f"{found}: {' '.join(argv)}" if found else ""


def runs_of(meaning):
    _, _, names, shapes, scalars = examples.EXAMPLES[meaning]
    for shape in shapes:
        for fill in examples.FILLS:
            if (meaning, fill) not in examples.UNDECIDED:
                argv = examples.command(meaning, dict(zip(names, shape)) | scalars, "--fill", fill)
                yield ["gpu" if word == "sim" else word for word in argv]


def main():
    wanted = sys.argv[1:]
    count = wrong = 0
    for meaning in examples.EXAMPLES:
        if wanted and meaning.__name__ not in wanted:
            continue
        argvs = list(runs_of(meaning))
        with ThreadPoolExecutor(JOBS) as pool:
            mistakes = [mistake for mistake in pool.map(mistake_of, argvs) if mistake]
        print(f"{meaning.__name__}: {len(argvs)} runs, {len(mistakes)} wrong", flush=True)
        print("\n".join(mistakes[:3]), flush=True)
        count, wrong = count + len(argvs), wrong + len(mistakes)
    print(f"{count} runs, {wrong} wrong")
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    sys.exit(main())
