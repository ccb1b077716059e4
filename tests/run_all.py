#!/usr/bin/env python3
"""Runs every layer of tests on binaries that are already built, and adds up the results.

    tests/run_all.py --debug build/dev [--release build/release] [--clang build/fuzz] [FILTER]
    tests/run_all.py --quick --release build/release [PROGRAM]...

Layers: unit tests (ctest, sanitized), sweeps (ctest, release), the golden runner's own test, golden
tests (sanitized), tests/e2e/*_test.py (the sanitized binary in $KILN, the release one in
$KILN_RELEASE when there is one), programs with one mistake, programs printed from their IR, kernels that synchronise and a sample of
their mutants, random correct programs, the layout algebra against pycute, pages in a browser, foreign
input (tests/fuzz), meta tests, and where nvcc is on the PATH what must compile and what must not. What says
the same in both builds runs once in release, and a sample of it with sanitizers. --quick:
the golden, meta, mistakes and concurrency layers and the unit tests named, all in release. Prints each
command before running it (`+`), and with what it said when it is done (`=`). The last line is
`N passed, N failed`; the exit code is 0 only if all of it passed.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "golden"))
import commands  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
# Of tests/e2e; they begin first.
LONGEST = ("kernels_test.py", "grouped_kernels_test.py")
SAMPLE = 5  # see sampled_layer


def _shown(argv, env):
    return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()), shlex.join(argv)])


def announce(argv, env=None):
    """Runs a command; what it prints comes in one piece, since other layers run at the same time."""
    shown = _shown(argv, env)
    print(f"+ {shown}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            argv,
            cwd=ROOT,
            env=dict(commands.environment(), **(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    name = argv[1] if argv[0] == sys.executable else f"{Path(argv[0]).name} {argv[-1]}"
    took.append((used.ru_utime + used.ru_stime, time.monotonic() - began, name))
    print(f"= {shown}\n{text}", end="", flush=True)
    return process.returncode


took = []  # CPU seconds and those of the clock of each command


def show_times(began):
    print("CPU seconds, and seconds of the clock:")
    for cpu, seconds, name in sorted(took, reverse=True):
        if seconds >= 1:
            print(f"{cpu:8.0f} {seconds:8.0f}  {name}")
    print(f"{sum(cpu for cpu, *_ in took):8.0f} {time.monotonic() - began:8.0f}  in all")


def _fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def ctest(build, label, name_filter):
    """(passed, failed): test cases of the programs that said so, else one per program."""
    results = _fresh(build / "results" / "ctest")
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


def script(argv, results, env=None):
    """(passed, failed) of a runner that writes its counts."""
    results.parent.mkdir(exist_ok=True)
    results.unlink(missing_ok=True)
    code = announce(argv + ["--results", str(results)], env)
    if not results.exists():
        return 0, 1
    counts = json.loads(results.read_text(encoding="utf-8"))
    return counts["passed"], counts["failed"] if counts["failed"] or code == 0 else 1


def python_unittest(path, env=None, options=()):
    return (1, 0) if announce([sys.executable, str(path), *options], env) == 0 else (0, 1)


def renames(release):
    """(passed, failed): programs with other names, of which those that are accepted must compile."""
    program = release / "tests" / "compiles" / "renames"
    code = announce([str(program), "--sample", "400", "--seed", "1"])
    if code == 77 and os.environ.get("CI") != "true":
        return 0, 0  # it has said why
    return (1, 0) if code == 0 else (0, 1)


def python_module(release):
    """(passed, failed) of tests/python, where the module has been built (KILN_PYTHON)."""
    package = release / "python"
    if not any((package / "kiln").glob("_core.*.so")):
        print("skipped: tests/python needs a release build with -DKILN_PYTHON=ON", flush=True)
        return 0, 0
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    driver = release / "src" / "gemm" / "fake_cuda"
    paper = ["--driver", str(driver)] if driver.is_dir() else []
    on_paper = ("attention", "attention_decode", "attention_varlen", "calls", "launch", "ops")
    passed = failed = 0
    for name in (*on_paper, "kiln", "operator", "distributed"):
        test = Path("tests") / "python" / f"{name}_test.py"
        more = python_unittest(test, {"PYTHONPATH": path}, paper if name in on_paper else ())
        passed, failed = passed + more[0], failed + more[1]
    return passed, failed


def layer(path, binary, results, *more, env=None):
    """The runner at a path under tests/."""
    argv = [sys.executable, str(Path("tests") / path)]
    argv += ["--kiln", str(binary / "bin" / "kiln")] if binary else []
    name = f"{Path(path).with_suffix('').as_posix()}.json".replace("/", "_")
    return partial(script, [*argv, *more], results / name, env)


def sampled_layer(path, debug, release, keep):
    """A runner whose cases all run in release, and each SAMPLE-th with sanitizers."""
    if release is None:
        yield layer(path, debug, debug / "results", *keep)
        return
    yield layer(path, release, release / "results", *keep)
    yield layer(path, debug, debug / "results", "--every", str(SAMPLE), *keep)


def layers(options):
    """Functions that give (passed, failed), the longest first."""
    debug = options.debug.resolve()
    release = options.release.resolve() if options.release else None
    results = debug / "results"
    keep = [options.filter] if options.filter else []

    def wanted(name):
        return not keep or name in keep[0]

    yield from script_tests(debug, release, options.filter)
    yield partial(ctest, debug, ["-LE", "scripts"], options.filter)
    yield layer("golden/run.py", debug, results, *keep)
    yield from sampled_layer("meta/run.py", debug, release, keep)
    if release:
        yield from release_layers(release, results, keep, wanted)
    yield layer("concurrency/run.py", release or debug, results, *keep)
    another = {"KILN_RELEASE": str(release / "bin" / "kiln")} if release else None
    yield layer("browser/map_test.py", debug, results, *keep, env=another)
    yield layer("browser/timeline_test.py", debug, results, *keep)
    yield from sampled_layer("mistakes/run.py", debug, release, keep)
    yield layer("said_again/run.py", release or debug, results, *keep)
    yield layer("said_again/loops.py", release or debug, results, *keep)
    if not keep:
        for folder in ("api", "golden", "seeds", "tools"):
            yield partial(python_unittest, Path("tests") / folder / "self_test.py")


def script_tests(debug, release, name_filter):
    binaries = {"KILN": str(debug / "bin" / "kiln")}
    if release:
        binaries["KILN_RELEASE"] = str(release / "bin" / "kiln")
    paths = [path.relative_to(ROOT) for path in (ROOT / "tests" / "e2e").glob("*_test.py")]
    for path in sorted(paths, key=lambda path: (path.name not in LONGEST, path)):
        if name_filter in path.name:
            yield partial(python_unittest, path, binaries)


def layers_alone(options):
    """What counts seconds of the clock, so that nothing else may run; it keeps all processors busy itself."""
    if options.quick or (options.filter and "fuzz" not in options.filter):
        return
    debug = options.debug.resolve()
    argv = [sys.executable, str(Path("tests") / "fuzz" / "run.py"), "--debug", str(debug)]
    argv += ["--release", str(options.release.resolve())] if options.release else []
    argv += ["--clang", str(options.clang)] if options.clang else []
    yield partial(script, argv, debug / "results" / "fuzz.json")


def release_layers(release, results, keep, wanted):
    """What takes the release build, or a compiler only."""
    has_nvcc = shutil.which("nvcc")
    if has_nvcc:
        yield layer("nvcc/run.py", release, results, *keep)
        yield layer("must_not_compile/run.py", None, results, *keep)
    else:
        print("skipped: tests/nvcc, tests/must_not_compile and tests/seeds need nvcc", flush=True)
    yield partial(ctest, release, ["-L", "sweep"], keep[0] if keep else "")
    if wanted("programs"):
        programs = [str(release / "bin" / "programs"), "--seed", "1", "--count", "300"]
        yield partial(script, programs, results / "programs.json")
    if wanted("renames"):
        yield partial(renames, release)
    if wanted("python"):
        yield partial(python_module, release)
    if wanted("pycute"):
        cases = str(release / "tests" / "api" / "layout_cases")
        yield layer("api/pycute_test.py", None, results, "--program", cases)
    if has_nvcc and wanted("seeds"):
        yield layer("seeds/run.py", None, results)


def quick_layers(options):
    """What a change needs, on the release binary: see ./dev help."""
    release = options.release.resolve()
    if options.tests:
        yield partial(ctest, release, ["-R", f"^({'|'.join(options.tests)})$"], "")
    for name in ("golden", "meta", "mistakes", "said_again", "concurrency"):
        yield layer(f"{name}/run.py", release, release / "results")


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
    began = time.monotonic()
    counts = [run() for run in layers_alone(options)]
    # Two at a time, although most keep all processors busy: each has a beginning and an end with less to do.
    with ThreadPoolExecutor(2) as pool:
        chosen = (quick_layers if options.quick else layers)(options)
        counts += [done.result() for done in [pool.submit(run) for run in chosen]]
    passed, failed = (sum(of) for of in zip(*counts))
    if options.filter and not options.quick and passed + failed == 0:
        print(f"no test matches `{options.filter}`")
        return 1
    show_times(began)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
