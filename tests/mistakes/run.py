#!/usr/bin/env python3
"""Each program in this folder has one mistake, and must be refused for exactly that.

    tests/mistakes/run.py --kiln build/dev/bin/kiln [--results FILE] [FILTER]...

A program is a right kernel of base/ with one line changed, and a `// mistake:` comment on that line:

    // one_warp.co: error[loop-short] on line 10 by: kiln check %s --arch sm_80
    // reversed.co: error[race] on line 6, then result-outside by: kiln run %s --arch sm_80 --shape N=200

is its first line: the kernel it was made from, what is found first and where, the ids of what follows
from it, and the command. Any of it may be a warning. The command must exit with 1 and say nothing
else; the first id may be repeated on other lines. The kernels of base/ must run without a finding by the
command of their own first line, so that the mistake is the only one.

Where there is a folder open/, its programs have a mistake that is not found today; each says why. They
are not run.

`--folder` runs another folder of the same form. `--every N` takes every Nth program: `./dev test` runs all of
them in release, and a sample with sanitizers, under which the golden tests see each diagnostic too.
"""

import os
import re
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402
import cases  # noqa: E402

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 120
MARK = "// mistake: "
_BASE = re.compile(r"// BASE: kiln (run .*)")
_MISTAKE = re.compile(
    r"// (?P<base>\w+\.co): (?P<severity>error|warning)\[(?P<id>[a-z0-9-]+)\] on line (?P<line>\d+)"
    r"(?:, then (?P<then>[a-z0-9-, ]+))? by: kiln (?P<command>(?:check|run) .*)"
)
_TITLE = re.compile(r"^(error|warning)\[([a-z0-9-]+)\]: (.*)\n +--> [^\n]*?:(\d+):\d+$", re.M)
_ANY_TITLE = re.compile(r"^(error|warning)\[", re.M)


@dataclass(frozen=True)
class Done:
    exit: int
    found: list  # (severity, id, line)
    text: str


def execute(kiln, command, path):
    argv = [kiln] + [str(path) if word == "%s" else word for word in shlex.split(command)]
    env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    done = batch.run(argv, path.parent, env, TIMEOUT_S)
    found = [(severity, name, int(line)) for severity, name, _, line in _TITLE.findall(done.stderr)]
    # A finding without a place counts as well.
    found += [("error", "without-a-place", 0)] * (len(_ANY_TITLE.findall(done.stderr)) - len(found))
    return Done(done.returncode, found, done.stderr)


def base_problem(kiln, path):
    """'' when the kernel runs without a finding, else what is wrong."""
    head = _BASE.fullmatch(path.read_text(encoding="utf-8").split("\n")[0])
    if not head:
        return "the first line is not `// BASE: kiln run ...`"
    done = execute(kiln, head[1], path)
    return "" if (done.exit, done.found) == (0, []) else f"exit {done.exit}\n{done.text}"


def changed_lines(text, base):
    """The numbers of the lines, after the first, that differ from the kernel's."""
    ours, theirs = text.split("\n"), base.split("\n")
    if len(ours) != len(theirs):
        return []
    pairs = zip(ours, theirs)
    return [number for number, (a, b) in enumerate(pairs, 1) if a != b and number > 1]


def mistake_problem(kiln, path):
    """'' when the program is refused for its one mistake, else what is wrong."""
    text = path.read_text(encoding="utf-8")
    head = _MISTAKE.fullmatch(text.split("\n")[0])
    if not head:
        return "the first line is not `// kernel.co: error[id] on line N by: kiln ...`"
    base = (path.parent / "base" / head["base"]).read_text(encoding="utf-8")
    marked = [number for number, line in enumerate(text.split("\n"), 1) if MARK in line]
    changed = changed_lines(text, base)
    if len(changed) != 1 or marked != changed:
        return f"lines {changed} differ from {head['base']}, lines {marked} are marked: one line must"
    done = execute(kiln, head["command"], path)
    first = (head["severity"], head["id"], int(head["line"]))
    followers = set(head["then"].split(", ")) if head["then"] else set()
    rest = {name for _, name, _ in done.found[1:]} - {head["id"]}
    if done.exit == 1 and done.found[:1] == [first] and rest == followers:
        return ""
    return f"wanted {first} then {sorted(followers)}, found {done.found} and exit {done.exit}\n{done.text}"


def arguments():
    parser = cases.parser(__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the programs")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="a sample: every Nth program")
    return parser.parse_args()


def main():
    options = arguments()
    folder = options.folder.resolve()
    jobs = [(base_problem, path) for path in sorted(folder.glob("base/*.co"))]
    jobs += [(mistake_problem, path) for path in sorted(folder.glob("*.co"))]
    tests = [
        (path.relative_to(folder), partial(problem, options.kiln, path))
        for problem, path in jobs[:: options.every]
        if not options.filters or any(f in path.name for f in options.filters)
    ]
    return 1 if cases.run("mistakes", tests, options) else 0


if __name__ == "__main__":
    sys.exit(main())
