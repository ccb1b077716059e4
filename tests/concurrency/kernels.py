"""The kernels of the concurrency tests: what is run, and how.

A file of kernels/ says so in its first line:

    // KERNEL: sm_90a; M=64,N=64,K=192; M=70,N=50,K=72; expect output[m,n] = lhs[m,k] * rhs[n,k]

the architecture, the shapes, and a formula of what it computes, or several, of which later ones may use what earlier
ones define (without one the reference interpreter says). A file of wrong/ says `// WRONG: arch; id` and is reported by that id.

In examples/ each `kiln run ... --schedules N` of the opening comment is one run; formulas.py says what those with
register tiles mean.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402
import formulas  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TIMEOUT_S = 120
_TITLE = re.compile(r"^(error|warning)\[([a-z0-9-]+)\]", re.M)
_INCLUDE = re.compile(r'^#include "([^"]+\.co)"$', re.M)
_COMMAND = re.compile(r"^//   kiln run examples/\S+ (.*(?:\n//       .*)*)", re.M)


@dataclass(frozen=True)
class Kernel:
    name: str
    path: Path
    arch: str
    runs: tuple  # the arguments of each run, without the architecture
    meanings: tuple = ()  # likewise, of the runs that compare with what an example means (formulas.py)

    @property
    def text(self):
        """With what it includes in its place, so that a mistake can be made there too: lines are counted in this text."""
        return _whole_text(self.path)


def _whole_text(path):
    text = path.read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: _whole_text(path.parent / found[1]).rstrip("\n"), text)


@dataclass(frozen=True)
class Done:
    exit: int  # None: it took too long
    found: list  # (severity, id), in the order of the text
    result: dict  # of --json; {} when there is none
    text: str  # standard error
    output: str = ""


def _of_header(path):
    head = path.read_text(encoding="utf-8").split("\n")[0]
    if not head.startswith("// KERNEL: "):
        raise ValueError(f"{path.name}: the first line is not `// KERNEL: arch; shape; ...`")
    arch, *rest = [part.strip() for part in head[len("// KERNEL: ") :].split(";")]
    expect = [part[len("expect ") :] for part in rest if part.startswith("expect ")]
    more = ("--expect", "; ".join(expect)) if expect else ()
    shapes = [part for part in rest if not part.startswith("expect ")]
    runs = tuple(("--shape", shape) + more for shape in shapes)
    return Kernel(path.stem, path, arch, runs)


def _of_example(path):
    runs = []
    for found in _COMMAND.finditer(path.read_text(encoding="utf-8")):
        words = shlex.split(found[1].replace("\n//", " "))
        if "--schedules" not in words:
            continue
        options = list(zip(words[::2], words[1::2]))  # `-D` may stand there more than once
        arch = dict(options)["--arch"]
        kept = (pair for pair in options if pair[0] not in ("--schedules", "--arch"))
        runs.append(tuple(word for pair in kept for word in pair))
    return Kernel(path.stem, path, arch, tuple(runs), formulas.runs_of(path.stem)) if runs else None


def all_kernels(filters=()):
    found = [_of_header(path) for path in sorted((HERE / "kernels").glob("*.co"))]
    found += [_of_example(path) for path in sorted((ROOT / "examples").glob("*.co"))]
    found = [kernel for kernel in found if kernel]
    return [k for k in found if not filters or any(f in k.name for f in filters)]


def _with_few_blocks(text):
    """A program whose blocks go from tile to tile has two of them, and each of these several tiles of a small problem."""
    for blocks in re.findall(r"\bparallel block\w* by \[(\d+)\] : block\b", text):
        text = re.sub(rf"\b{blocks}\b", "2", text)
    return text


def printed_kernels(kiln, folder, filters=()):
    """What the compiler makes of the loops of tests/said_again/pipelines, as programs in the folder."""
    for path in sorted((ROOT / "tests" / "said_again" / "pipelines").glob("*.co")):
        text = path.read_text(encoding="utf-8")
        runs = re.findall(r"// RUN: \w+ --arch (\w+) (.*)", text)
        means = re.search(r"// MEANS: (.*)", text)
        # Integers are exact where nothing but products is computed, so that no lost tile hides in a bound.
        fill = () if not means or "exp2" in means[1] else ("--fill", "integers")
        more = ("--expect", means[1], *fill) if means else ()
        arch = runs[0][0]
        said = execute(kiln, ["ir", str(path), "--arch", arch, "--as", "co"])
        file = Path(folder) / path.name
        file.write_text(_with_few_blocks(said.output), encoding="utf-8")
        kernel = Kernel(f"printed_{path.stem}", file, arch, tuple((*words.split(), *more) for each, words in runs if each == arch))
        if not filters or any(f in kernel.name for f in filters):
            yield kernel


def wrong_kernels(filters=()):
    """(path, architecture, id of what is reported)"""
    for path in sorted((HERE / "wrong").glob("*.co")):
        head = path.read_text(encoding="utf-8").split("\n")[0]
        if not head.startswith("// WRONG: "):
            raise ValueError(f"{path.name}: the first line is not `// WRONG: arch; id`")
        arch, found = head[len("// WRONG: ") :].split("; ")
        if not filters or any(f in path.stem for f in filters):
            yield path, arch, found


def execute(kiln, argv, timeout=TIMEOUT_S):
    try:
        env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
        done = batch.run([kiln, *argv], ROOT, env, timeout)
    except subprocess.TimeoutExpired:
        return Done(None, [], {}, f"not done within {timeout} s")
    result = json.loads(done.stdout) if "--json" in argv and done.stdout.startswith("{") else {}
    return Done(done.returncode, _TITLE.findall(done.stderr), result, done.stderr, done.stdout)


def run_arguments(kernel, path, run, schedules, more=()):
    argv = ["run", str(path), "--arch", kernel.arch, "--on", "sim", *run]
    return argv + ["--schedules", str(schedules), "--json", *more]
