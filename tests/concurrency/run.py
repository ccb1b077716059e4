#!/usr/bin/env python3
"""Kernels that synchronise: the right ones are found right, each with one mistake is found wrong.

    tests/concurrency/run.py --kiln build/release/bin/kiln [--all] [--only correct|wrong|mutants] [FILTER]...

`correct`: each kernel (kernels.py says which), for each of its shapes and several fills, in so many
schedules: exit 0, nothing reported, no element outside its bound.

`wrong`: each kernel of wrong/ is reported as it says, in 20 schedules.

`mutants`: each kernel with one mistake of synchronisation (mutate.py says which), `kiln check`, then its
runs in 20 schedules; an example with register tiles with one mistake of arithmetic (tiles.py), `kiln check`,
then its comparisons with a formula (formulas.py). It is refused, or reported, or its results are wrong; what
survives is named in survivors.txt with the reason, and nothing else is named there. A mutant that compiles to a
program which does the same as its kernel's (programs.py says when) is no mistake and does not count; it is run
all the same, and nothing may be found wrong with it.

`--printed`: the mutants of the programs that the compiler makes of pipelines (tests/said_again/pipelines), as `kiln ir --as
co` prints them; survivors_printed.txt names the survivors.

Without `--all` a few schedules and a fixed sample of the mutants. With it also: of the kernels that
synchronise at least 1,800 mutants, 98.5 % of them found; of the examples with register tiles at least 1,400,
97 % of them found.
"""

import argparse
import collections
import json
import os
import re
import shlex
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import kernels
import mutate
import programs

FILLS = ("normal", "integers", "adversarial")
MUTANT_SCHEDULES = 20
FIRST_SCHEDULES = 2  # of them, which find most
SAMPLE, SAMPLE_OF_ARITHMETIC = 24, 96  # of so many mutants one is in the sample
# Being refused for one of these says nothing about the mistake.
NO_MISTAKE = ("not-supported-yet", "include-unreadable", "not-available", "unexpected-token", "missing-semicolon", "ir-syntax")
# How many mutants at least, and which share of them is found: of kernels that synchronise, of examples with tiles.
LEAST = {False: (1800, 0.985), True: (1400, 0.97)}
LEAST_PRINTED = {False: (900, 0.985)}
SURVIVORS = {False: kernels.HERE / "survivors.txt", True: kernels.HERE / "survivors_printed.txt"}  # by --printed
JOBS = os.cpu_count() or 2


# ---- correct kernels ----


def wrong_with(done):
    """'' when nothing was found, else what."""
    if done.exit != 0 or done.found or not done.result:
        return f"exit {done.exit}, {done.found}\n{done.text}"
    counts = {key: done.result[key] for key in ("races", "deadlocks", "uninitialised", "out_of_bounds")}
    for output in done.result["outputs"]:
        counts.update({f"{output['name']}: {key}": output[key] for key in ("outside", "unwritten")})
    bad = {key: count for key, count in counts.items() if count != 0}
    return f"{bad}" if bad else ""


def correct(kiln, kernel, run, fill, schedules):
    argv = kernels.run_arguments(kernel, kernel.path, run, schedules, ("--fill", fill) if fill else ())
    problem = wrong_with(kernels.execute(kiln, argv, timeout=60 + 10 * schedules))
    return f"FAIL kiln {shlex.join(argv)}\n{problem}" if problem else ""


def run_correct(kiln, chosen, everything, pool):
    """The number that passed, and the texts of those that did not."""
    schedules, fills = (100, FILLS) if everything else (3, FILLS[:1])
    jobs = [(kernel, run, fill, schedules) for kernel in chosen for run in kernel.runs for fill in fills]
    jobs += [(kernel, run, None, 1) for kernel in chosen for run in kernel.meanings]
    problems = pool.map(lambda job: correct(kiln, *job), jobs)
    failed = [problem for problem in problems if problem]
    return len(jobs) - len(failed), failed


# ---- wrong kernels ----


def run_wrong(kiln, filters, pool):
    def problem(case):
        path, arch, expected = case
        argv = ["run", str(path), "--arch", arch, "--on", "sim", "--schedules", str(MUTANT_SCHEDULES)]
        done = kernels.execute(kiln, argv)
        found = {name for severity, name in done.found if severity == "error"}
        if done.exit == 1 and expected in found:
            return ""
        return f"FAIL {path.name}: exit {done.exit}, {sorted(found)} instead of {expected}"

    problems = list(pool.map(problem, kernels.wrong_kernels(filters)))
    failed = [one for one in problems if one]
    return len(problems) - len(failed), failed


# ---- mutants ----


@dataclass(frozen=True)
class Verdict:
    name: str
    operator: str
    outcome: str  # `check`, `reported`, `wrong numbers`, `same program`, `survived` or `broken`
    detail: str
    has_tiles: bool = False  # of an example with register tiles


def program_of(kiln, kernel, path):
    """The IR after all passes, with the macros of its first run; '' when there is none."""
    run = kernel.runs[0]
    macros = [word for pair in zip(run[::2], run[1::2]) if pair[0] == "-D" for word in pair]
    done = kernels.execute(kiln, ["ir", str(path), "--arch", kernel.arch, *macros])
    return done.output if done.exit == 0 else ""


def arrivals_of(program):
    """By event: how many arrivals the compiler counted."""
    events = re.findall(r'event name="(\w+)"[^\n]*\barrivals=(\d+)', program)
    return {name: int(count) for name, count in events}


def classify_run(done):
    """(outcome, detail) of a run that found something; None when it found nothing. A kernel that is right has
    no warning, so one is a report as well."""
    if done.exit == 2 and done.found == [("error", "expect-output")]:
        return ("reported", "expect-output")  # what nobody stores is no result
    if done.exit not in (0, 1) or (done.exit == 1 and not done.found):
        return ("broken", f"exit {done.exit}\n{done.text[-2000:]}")
    ids = sorted(done.found, key=lambda one: one[0] != "error")
    if not ids:
        return None
    numbers = ids[0][1] == "result-outside"
    return ("wrong numbers" if numbers else "reported", ids[0][1])


def found_by_runs(kiln, kernel, path, mutant):
    """What orders of execution show first, then what the example's formula does: a mutant without a race may be another
    program. (Text of the IR has the macros of the first run, and the formula's run others.)"""
    counts = () if mutant.is_arithmetic else (FIRST_SCHEDULES, MUTANT_SCHEDULES)
    runs = [(run, count) for count in counts for run in kernel.runs]
    if mutant.suffix == ".co":
        runs += [(run, 1) for run in kernel.meanings]
    for run, schedules in runs:
        argv = kernels.run_arguments(kernel, path, run, schedules)
        found = classify_run(kernels.execute(kiln, argv))
        if found:
            return found
    return None


def judge(kiln, kernel, mutant, folder, original):
    path = Path(folder) / (mutant.name.replace(":", ".") + mutant.suffix)
    path.write_text(mutant.text, encoding="utf-8")
    has_tiles = bool(kernel.meanings)
    verdict = lambda outcome, detail="": Verdict(mutant.name, mutant.operator, outcome, detail, has_tiles)
    checked = kernels.execute(kiln, ["check", str(path), "--arch", kernel.arch])
    if checked.exit != 0:
        refused = [name for severity, name in checked.found if severity == "error"]
        ours = checked.exit == 1 and refused and refused[0] not in NO_MISTAKE
        return verdict("check", refused[0]) if ours else verdict("broken", checked.text)
    program = program_of(kiln, kernel, path)
    if program == original:
        return verdict("same program")
    found = found_by_runs(kiln, kernel, path, mutant)
    if not programs.does_the_same(original, program):
        return verdict(*(found or ("survived",)))
    return verdict("broken", f"it does the same as its kernel, and is {found}") if found else verdict("same program")


def listed_survivors(printed):
    lines = SURVIVORS[printed].read_text(encoding="utf-8").split("\n")
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def sampled(mutant):
    return zlib.crc32(mutant.name.encode()) % (SAMPLE_OF_ARITHMETIC if mutant.is_arithmetic else SAMPLE) == 0


def all_mutants(chosen, compiled, everything):
    for kernel in chosen:
        program = compiled[kernel.name]
        made = [*mutate.mutants(kernel, arrivals_of(program)), *mutate.program_mutants(kernel, program)]
        for mutant in made:
            if everything or sampled(mutant):
                yield kernel, mutant


def mutant_problems(verdicts, options):
    """What is wrong with the outcome of the suite, as texts."""
    file = SURVIVORS[options.printed].name
    listed = listed_survivors(options.printed)
    problems = [f"BROKEN {v.name}: {v.detail}" for v in verdicts if v.outcome == "broken"]
    survivors = {v.name for v in verdicts if v.outcome == "survived"}
    problems += [f"SURVIVED {name}, which {file} does not name" for name in sorted(survivors - set(listed))]
    judged = {v.name for v in verdicts}
    problems += [
        f"{name} is named in {file} and did not survive"
        for name in sorted(set(listed) & judged - survivors)
    ]
    if not options.all or options.filters:
        return problems
    problems += [f"{name} is named in {file} and is no mutant" for name in sorted(set(listed) - judged)]
    for has_tiles, (least, share) in (LEAST_PRINTED if options.printed else LEAST).items():
        mistakes = [v for v in verdicts if v.outcome != "same program" and v.has_tiles == has_tiles]
        found = [v for v in mistakes if v.outcome in ("check", "reported", "wrong numbers")]
        if len(mistakes) < least or len(found) < share * len(mistakes):
            problems.append(f"{len(found)} of {len(mistakes)} mutants found of kernels {'with' if has_tiles else 'without'} tiles")
    return problems


def print_table(verdicts):
    outcomes = ("check", "reported", "wrong numbers", "survived", "same program", "broken")
    rows = collections.defaultdict(collections.Counter)
    for v in verdicts:
        rows[v.operator][v.outcome] += 1
        rows["all"][v.outcome] += 1
    print(f"{'mistake':24}" + "".join(f"{outcome:>15}" for outcome in outcomes))
    for operator in sorted(rows, key=lambda name: (name == "all", name)):
        print(f"{operator:24}" + "".join(f"{rows[operator][outcome]:15}" for outcome in outcomes))
    kinds = collections.Counter(v.detail for v in verdicts if v.outcome in ("check", "reported"))
    print("reported as: " + ", ".join(f"{name} {count}" for name, count in kinds.most_common()))


def run_mutants(kiln, chosen, options, pool):
    compiled = {kernel.name: program_of(kiln, kernel, kernel.path) for kernel in chosen}
    with tempfile.TemporaryDirectory() as folder:
        jobs = list(all_mutants(chosen, compiled, options.all))
        verdicts = list(pool.map(lambda job: judge(kiln, *job, folder, compiled[job[0].name]), jobs))
    if verdicts:
        print_table(verdicts)
    if options.verdicts:
        rows = [vars(v) for v in verdicts]
        options.verdicts.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    failed = mutant_problems(verdicts, options)
    return max(len(verdicts) - len(failed), 0), failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True, help="the binary under test")
    parser.add_argument("--all", action="store_true", help="100 schedules, all fills, all mutants")
    parser.add_argument("--printed", action="store_true", help="mutants of programs that the compiler makes of pipelines")
    parser.add_argument("--only", choices=("correct", "wrong", "mutants"))
    parser.add_argument("--results", type=Path, help="write {passed, failed} here")
    parser.add_argument("--verdicts", type=Path, help="write what became of each mutant here")
    parser.add_argument("filters", nargs="*", metavar="FILTER", help="part of a kernel's name")
    return parser.parse_args()


def main():
    options = arguments()
    kiln = str(Path(options.kiln).resolve())
    passed, failed = 0, []
    with ThreadPoolExecutor(JOBS) as pool, tempfile.TemporaryDirectory() as printed:
        if options.printed:
            chosen = list(kernels.printed_kernels(kiln, printed, options.filters))
            options.only = "mutants"
        else:
            chosen = kernels.all_kernels(options.filters)
        if options.only in (None, "correct"):
            passed, failed = run_correct(kiln, chosen, options.all, pool)
        if options.only in (None, "wrong"):
            more, problems = run_wrong(kiln, options.filters, pool)
            passed, failed = passed + more, failed + problems
        if options.only in (None, "mutants"):
            more, problems = run_mutants(kiln, chosen, options, pool)
            passed, failed = passed + more, failed + problems
    if said := kernels.batch.finish():
        failed.append(said)
    for problem in failed:
        print(problem)
    print(f"concurrency: {passed} passed, {len(failed)} failed")
    if options.results:
        counts = {"passed": passed, "failed": len(failed)}
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
