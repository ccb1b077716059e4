#!/usr/bin/env python3
"""Runs every layer of tests on binaries that are already built, and adds up the results.

    tests/run_all.py --debug build/dev [--release build/release] [--clang build/fuzz] [FILTER]
    tests/run_all.py --quick --release build/release [PROGRAM]...

Layers: unit tests (ctest, sanitized), sweeps (ctest, release), the golden runner's own test, golden
tests (sanitized), tests/e2e/*_test.py (the sanitized binary in $KILN, the release one in
$KILN_RELEASE when there is one), programs with one mistake, kernels that synchronise and a sample of
their mutants, random correct programs, the layout algebra against pycute, pages in a browser, foreign
input (tests/fuzz), meta tests, and where nvcc is on the PATH what must compile and what must not. --quick: the golden, meta, mistakes and concurrency layers and the unit tests
named, all in release. Prints each command
before running it. The last line is `N passed, N failed`; the exit code is 0 only if all of it passed.
"""

import argparse
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "golden"))
import commands  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
LONGEST = "kernels_test.py"  # of tests/e2e; begins first


def _shown(argv, env):
    return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()), shlex.join(argv)])


def announce(argv, env=None):
    print(f"+ {_shown(argv, env)}", flush=True)
    began = Began()
    code = subprocess.run(
        argv, cwd=ROOT, env=dict(commands.environment(), **(env or {})), check=False
    ).returncode
    began.took(argv[1] if argv[0] == sys.executable else f"{Path(argv[0]).name} {argv[-1]}")
    return code


class Began:
    """When a layer began; `took` keeps its seconds and those of all processors for `show_times`."""

    times = []

    def __init__(self):
        self._at, self._cpu = time.monotonic(), self._cpu_seconds()

    @staticmethod
    def _cpu_seconds():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def took(self, name):
        seconds = time.monotonic() - self._at
        Began.times.append((self._cpu_seconds() - self._cpu, seconds, name))

    @classmethod
    def show_times(cls):
        print("seconds of all processors, and of the clock:")
        for cpu, seconds, name in sorted(cls.times, reverse=True):
            if seconds >= 1:
                print(f"{cpu:8.0f} {seconds:8.0f}  {name}")


def _fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def ctest(build, label, name_filter):
    """(passed, failed): test cases of the programs that said so, else one per program."""
    results = _fresh(build / "results")
    junit = results / "ctest.xml"
    jobs = str(os.cpu_count() or 2)
    argv = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=ignore"]
    argv += ["-j", jobs, "--timeout", "600", "--output-junit", str(junit)] + label
    if name_filter:
        argv += ["-R", name_filter]
    cases = _fresh(results / "cases")
    code = announce(argv, {"GTEST_OUTPUT": f"xml:{cases}/"})
    passed, failed = _count_ctest(junit, cases)
    return passed, failed if failed or code == 0 else 1


def _count_ctest(junit, cases):
    passed = failed = 0
    if not junit.exists():
        return 0, 0
    for program in xml.parse(junit).getroot().iter("testcase"):
        ok = program.get("status") == "run"
        report = cases / f"{program.get('name')}.xml"
        try:
            suites = xml.parse(report).getroot()
            count = int(suites.get("tests")) - int(suites.get("disabled"))
            bad = int(suites.get("failures")) + int(suites.get("errors"))
        except (OSError, xml.ParseError):
            count, bad = 1, int(not ok)
        if not ok and bad == 0:  # every case passed and then the program died
            count, bad = count + 1, 1
        passed, failed = passed + count - bad, failed + bad
    return passed, failed


def script(argv, results):
    """(passed, failed) of a runner that writes its counts."""
    results.unlink(missing_ok=True)
    code = announce(argv + ["--results", str(results)])
    if not results.exists():
        return 0, 1
    counts = json.loads(results.read_text(encoding="utf-8"))
    return counts["passed"], counts["failed"] if counts["failed"] or code == 0 else 1


def python_unittest(path, env=None):
    return (1, 0) if announce([sys.executable, str(path)], env) == 0 else (0, 1)


def python_unittests(paths, env):
    """As many at a time as there are processors; what each prints comes in one piece."""

    def run(path):
        argv = [sys.executable, str(path)]
        done = subprocess.run(
            argv,
            cwd=ROOT,
            env=dict(commands.environment(), **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(f"+ {_shown(argv, env)}\n{done.stdout}", end="", flush=True)
        return (1, 0) if done.returncode == 0 else (0, 1)

    began = Began()
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        yield from pool.map(run, paths)
    began.took("scripts of tests/e2e")


def run_layers(options):
    debug = options.debug.resolve()
    release = options.release.resolve() if options.release else None
    tests = Path("tests")
    keep = [options.filter] if options.filter else []
    kiln = ["--kiln", str(debug / "bin" / "kiln")]
    yield ctest(debug, ["-LE", "scripts"], options.filter)
    if release:
        yield ctest(release, ["-L", "sweep"], options.filter)
    if not options.filter:
        for folder in ("api", "golden", "seeds", "tools"):
            yield python_unittest(tests / folder / "self_test.py")
    binaries = {"KILN": kiln[1]}
    if release:
        binaries["KILN_RELEASE"] = str(release / "bin" / "kiln")
    scripts = (ROOT / tests / "e2e").glob("*_test.py")
    wanted = [path.relative_to(ROOT) for path in scripts if options.filter in path.name]
    yield from python_unittests(sorted(wanted, key=lambda path: (path.name != LONGEST, path)), binaries)
    golden = [sys.executable, str(tests / "golden" / "run.py"), *kiln, *keep]
    yield script(golden, debug / "results" / "golden.json")
    meta = [sys.executable, str(tests / "meta" / "run.py"), *kiln, *keep]
    yield script(meta, debug / "results" / "meta.json")
    mistakes = [sys.executable, str(tests / "mistakes" / "run.py"), *kiln, *keep]
    yield script(mistakes, debug / "results" / "mistakes.json")
    fast = ["--kiln", str(release / "bin" / "kiln")] if release else kiln
    concurrency = [sys.executable, str(tests / "concurrency" / "run.py"), *fast, *keep]
    yield script(concurrency, debug / "results" / "concurrency.json")
    for page in ("map", "timeline"):
        browser = [sys.executable, str(tests / "browser" / f"{page}_test.py"), *kiln, *keep]
        yield script(browser, debug / "results" / f"browser_{page}.json")
    if not keep or "fuzz" in keep[0]:
        fuzz = [sys.executable, str(tests / "fuzz" / "run.py"), "--debug", str(debug)]
        fuzz += ["--release", str(release)] if release else []
        fuzz += ["--clang", str(options.clang)] if options.clang else []
        yield script(fuzz, debug / "results" / "fuzz.json")
    if release:
        yield from run_release_layers(release, debug / "results", keep)


def renames(release):
    """(passed, failed): programs with other names, of which those that are accepted must compile."""
    program = release / "tests" / "compiles" / "renames"
    code = announce([str(program), "--sample", "400", "--seed", "1"])
    if code == 77 and os.environ.get("CI") != "true":
        return 0, 0  # it has said why
    return (1, 0) if code == 0 else (0, 1)


def run_quick_layers(options):
    """What a change needs, on the release binary: see ./dev help."""
    release = options.release.resolve()
    results = release / "results"
    results.mkdir(exist_ok=True)
    if options.tests:
        yield ctest(release, ["-R", f"^({'|'.join(options.tests)})$"], "")
    kiln = ["--kiln", str(release / "bin" / "kiln")]
    for layer in ("golden", "meta", "mistakes", "concurrency"):
        argv = [sys.executable, str(Path("tests") / layer / "run.py"), *kiln]
        yield script(argv, results / f"{layer}.json")


def run_release_layers(release, results, keep):
    """What takes the release build, or a compiler only."""
    tests = Path("tests")
    if not keep or "programs" in keep[0]:
        programs = [str(release / "bin" / "programs"), "--seed", "1", "--count", "300"]
        yield script(programs, results / "programs.json")
    if not keep or "renames" in keep[0]:
        yield renames(release)
    if not keep or "pycute" in keep[0]:
        pycute = [sys.executable, str(tests / "api" / "pycute_test.py")]
        pycute += ["--program", str(release / "tests" / "api" / "layout_cases")]
        yield script(pycute, results / "pycute.json")
    if not shutil.which("nvcc"):
        print("skipped: tests/nvcc, tests/must_not_compile and tests/seeds need nvcc", flush=True)
        return
    nvcc = [sys.executable, str(tests / "nvcc" / "run.py")]
    nvcc += ["--kiln", str(release / "bin" / "kiln"), *keep]
    yield script(nvcc, results / "nvcc.json")
    must_not = [sys.executable, str(tests / "must_not_compile" / "run.py"), *keep]
    yield script(must_not, results / "must_not_compile.json")
    if not keep or "seeds" in keep[0]:
        yield script([sys.executable, str(tests / "seeds" / "run.py")], results / "seeds.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--debug", type=Path, help="the sanitized build folder")
    parser.add_argument("--release", type=Path, help="the release build folder")
    parser.add_argument("--clang", type=Path, help="the build folder of the preset `fuzz`")
    parser.add_argument("--quick", action="store_true", help="in release alone, the arguments are programs")
    parser.add_argument("tests", nargs="*", metavar="FILTER")
    options = parser.parse_args()
    options.filter = "".join(options.tests[:1])
    if options.release is None if options.quick else options.debug is None:
        parser.error("--quick needs --release, everything else --debug")
    if len(options.tests) > 1 and not options.quick:
        parser.error("one FILTER")
    passed = failed = 0
    for layer_passed, layer_failed in (run_quick_layers if options.quick else run_layers)(options):
        passed += layer_passed
        failed += layer_failed
    if options.filter and not options.quick and passed + failed == 0:
        print(f"no test matches `{options.filter}`")
        return 1
    Began.show_times()
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
