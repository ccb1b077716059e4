"""What the layers that run one case after the other share: options, threads, counts."""

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import batch


def parser(description):
    """Options that every layer has; the caller adds its own and parses."""
    out = argparse.ArgumentParser(description=description)
    out.add_argument("--kiln", required=True, type=lambda text: str(Path(text).resolve()), help="the binary")
    out.add_argument("--results", type=Path, help="write {passed, failed} here")
    out.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    out.add_argument("filters", nargs="*", metavar="FILTER")
    return out


def run(layer, cases, options):
    """Runs cases, (label, function returning what is wrong or "") each. How many failed."""
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for (label, _), problem in zip(cases, pool.map(lambda case: case[1](), cases)):
            if problem:
                failed += 1
                print(f"FAIL {label}\n{problem}\n")
    return sum_up(layer, len(cases), failed, options)


def sum_up(layer, cases, failed, options):
    """Ends the processes, says how many cases failed and writes it down. How many, with what the processes said."""
    if said := batch.finish():
        failed += 1
        print(f"FAIL {layer}: what its processes say at their end\n{said}\n")
    print(f"{layer}: {cases - failed} passed, {failed} failed")
    if options.results:
        options.results.write_text(json.dumps({"passed": cases - failed, "failed": failed}), encoding="utf-8")
    return failed
