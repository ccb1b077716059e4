#!/usr/bin/env python3
"""Foreign input through kiln: mutants of every program (kiln_fuzz), and bytes (libFuzzer).

    tests/fuzz/run.py --release build/release --debug build/dev --clang build/fuzz --results FILE
    tests/fuzz/run.py --release build/release --minutes 60 --seed 7 --keep build/fuzz_found

Without --minutes it is the layer of `./dev test`: a fixed seed and fixed counts, about two minutes of
one core in all. With it, half of the time goes to mutants in release, a quarter to mutants under the
sanitizers, a quarter to libFuzzer; what is found is written to --keep. A build folder that is not
given, or lacks its programs, is left out with a word (under CI=true: a failure). README.md says what
counts as a failure.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Mutants of the layer: about 40 s of one core each.
COUNT_RELEASE = 4000
COUNT_SANITIZED = 500
SECONDS_OF_TARGET = 4
# Programs of the repository from which a target begins, beside its folder in corpus/.
SEEDS = {
    "lexer": ["src/syntax/testdata"],
    "preprocessor": ["src/syntax/testdata"],
    "parser": ["src/syntax/testdata", "src/sema/testdata"],
    "ir": ["src/passes/testdata", "src/ir/testdata"],
    "tuned": ["kernels/tuned"],
    "npy": [],
    "einsum": [],
    "layout": [],
    "options": [],
}
DICTIONARY = {"lexer": "co", "preprocessor": "co", "parser": "co", "ir": "kir", "tuned": "json"}
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def mutants(program, options, count, minutes, results):
    """(passed, failed) of kiln_fuzz: the kept programs, then mutants."""
    argv = [str(program), "--root", str(ROOT), "--seed", str(options.seed), "--count", str(count)]
    argv += ["--jobs", str(options.jobs), "--summary", str(results)]
    if minutes:
        argv += ["--minutes", f"{minutes:.2f}"]
    if options.keep:
        argv += ["--keep", str(options.keep / "programs")]
    results.unlink(missing_ok=True)
    print("+ " + " ".join(argv), flush=True)
    done = subprocess.run(argv, cwd=ROOT, env=dict(os.environ, **SANITIZERS), check=False)
    if not results.exists():
        return 0, 1
    counts = json.loads(results.read_text(encoding="utf-8"))
    return counts["passed"], max(counts["failed"], int(done.returncode != 0))


def bytes_of(program, target, options, seconds):
    """(passed, failed) of one libFuzzer program."""
    found = options.keep / target if options.keep else program.parent / "found" / target
    grown = found / "corpus"  # libFuzzer writes what reaches new branches into the first folder
    grown.mkdir(parents=True, exist_ok=True)
    folders = [grown, HERE / "corpus" / target] + [ROOT / name for name in SEEDS[target]]
    argv = [str(program), f"-seed={options.seed}", f"-max_total_time={seconds}", "-timeout=10"]
    argv += ["-rss_limit_mb=2000", "-max_len=20000", "-verbosity=0", f"-artifact_prefix={found}/"]
    if target in DICTIONARY:
        argv.append(f"-dict={HERE / 'libfuzzer' / (DICTIONARY[target] + '.dict')}")
    argv += [str(folder) for folder in folders if folder.exists()]
    done = subprocess.run(
        argv, cwd=ROOT, env=dict(os.environ, **SANITIZERS), capture_output=True, check=False
    )
    print(f"+ {' '.join(argv)}\n  {'fine' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode == 0:
        return 1, 0
    print(done.stderr.decode("utf-8", "replace")[-6000:], flush=True)
    return 0, 1


def missing(what):
    """What a build server must not leave out, anybody else may."""
    print(f"skipped: {what}", flush=True)
    return 0, int(os.environ.get("CI") == "true")


def run_layers(options):
    long_run = options.minutes or 0
    parts = ((options.release, COUNT_RELEASE, 0.5), (options.debug, COUNT_SANITIZED, 0.25))
    for build, count, share in parts:
        if build is None:
            continue
        program = build / "bin" / "kiln_fuzz"
        if not program.exists():
            yield missing(f"{program} has not been built")
            continue
        count = 1_000_000_000 if long_run else count
        yield mutants(program, options, count, long_run * share, build / "fuzz_summary.json")
    if options.clang is None:
        return
    programs = {target: options.clang / "bin" / f"fuzz_{target}" for target in SEEDS}
    if not all(program.exists() for program in programs.values()):
        yield missing(f"the programs of libFuzzer in {options.clang} need clang")
        return
    seconds = SECONDS_OF_TARGET
    if long_run:
        seconds = max(1, round(long_run * 60 * 0.25 * options.jobs / len(programs)))
    with ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(
            lambda item: bytes_of(item[1], item[0], options, seconds), programs.items()
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--release", type=Path, help="a release build with kiln_fuzz")
    parser.add_argument("--debug", type=Path, help="a sanitized build with kiln_fuzz")
    parser.add_argument("--clang", type=Path, help="a build of the preset `fuzz`")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--keep", type=Path, help="a folder for what is found")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    for name in ("release", "debug", "clang", "keep"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    begin = time.monotonic()
    counts = list(run_layers(options))
    passed, failed = (sum(pair[i] for pair in counts) for i in (0, 1))
    print(f"fuzz: {passed} passed, {failed} failed in {time.monotonic() - begin:.0f} s", flush=True)
    if options.results:
        text = json.dumps({"passed": passed, "failed": failed})
        options.results.write_text(text, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
