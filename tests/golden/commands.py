"""Runs the RUN lines of a golden file and gathers what they did.

`kiln check %s` (without --json) is run twice: with --json for the diagnostics themselves, and plain
for the widths of the underlines and for what it prints. Both must agree.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402
from golden_file import Diagnostic, GoldenError, Outcome

TIMEOUT_S = 120
CRASH_EXIT = 99  # what the sanitizers exit with, so that a finding is never taken for exit 1

_TITLE = re.compile(r"^(?:error|warning|note)\[([a-z0-9-]+)\]: ")
_UNDERLINE = re.compile(r"^ *\| +(\^+)(?: |$)")
_SANITIZER = re.compile(r"(Address|Leak|UndefinedBehavior)Sanitizer|: runtime error: ")


def environment():
    """The surroundings of a command: same locale everywhere, sanitizers loud."""
    env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    env["ASAN_OPTIONS"] = f"exitcode={CRASH_EXIT}:detect_stack_use_after_return=0"
    env["UBSAN_OPTIONS"] = f"exitcode={CRASH_EXIT}:print_stacktrace=1"
    return env


def run_all(file, kiln, source, folder, scratch, root):
    """The outcome of every RUN line. `source` is the file's name as seen from `folder`."""
    outcome = Outcome()
    seen = None
    scrub = [(scratch, "%t"), (str(root), "%R"), (kiln, "kiln")]
    for run in file.runs:
        argv = _arguments(run, kiln, source, scratch, root)
        done = _run(argv, folder)
        outcome.exits.append(done.returncode)
        out, err = (_scrubbed(text, scrub) for text in (done.stdout, done.stderr))
        diagnostics = None
        if argv[1:2] == ["check"] and "--json" not in argv and file.style != "rendered":
            diagnostics = _diagnostics(argv, folder, done, err)
        if diagnostics is None:
            outcome.err += err
        elif seen is not None and diagnostics != seen:
            raise GoldenError("two `kiln check` lines disagree: put them in two files")
        else:
            seen = diagnostics
        outcome.out += out
    outcome.diagnostics = seen or []
    return outcome


def _arguments(run, kiln, source, scratch, root):
    argv = shlex.split(run)
    if not argv or argv[0] != "kiln":
        raise GoldenError(f"a RUN line starts with `kiln`: {run}")
    names = {"%s": source, "%t": scratch, "%R": str(root)}
    for name, value in names.items():
        argv = [argument.replace(name, value) for argument in argv]
    return [kiln] + argv[1:]


def _run(argv, folder):
    try:
        done = batch.run(argv, folder, environment(), TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise GoldenError(f"no answer in {TIMEOUT_S} s: {shlex.join(argv)}") from None
    except OSError as error:
        raise GoldenError(f"can not run {argv[0]}: {error.strerror}") from None
    crashed = done.returncode not in range(0, 4) or _SANITIZER.search(done.stderr)
    if crashed:
        tail = "\n".join(done.stderr.splitlines()[:40])
        raise GoldenError(f"crashed with exit {done.returncode}: {shlex.join(argv)}\n{tail}")
    return done


def _scrubbed(text, scrub):
    for path, name in scrub:
        text = text.replace(path, name)
    return text


def _diagnostics(argv, folder, plain, err):
    """The diagnostics of a `check`, or None when it did not get as far as having any."""
    done = _run(argv + ["--json"], folder)
    if done.returncode != plain.returncode:
        raise GoldenError(f"exit {plain.returncode}, but {done.returncode} with --json")
    try:
        rows = json.loads(done.stdout.encode("latin-1"))
    except ValueError:
        rows = None
    if not isinstance(rows, list):
        return None
    diagnostics = [_from_row(row) for row in rows]
    shown = _rendered(err)
    if [d.id for d in diagnostics] != [name for name, _ in shown]:
        raise GoldenError(f"--json and the rendered text differ:\n{done.stdout}\n{err}")
    for diagnostic, (_, width) in zip(diagnostics, shown):
        diagnostic.width = width
    if any(d.severity == "error" for d in diagnostics) != (plain.returncode != 0):
        raise GoldenError(f"exit {plain.returncode} does not fit the diagnostics:\n{done.stdout}")
    return diagnostics


def _from_row(row):
    as_bytes = lambda text: text.encode("utf-8").decode("latin-1")
    try:
        return Diagnostic(
            id=row["id"],
            severity=row["severity"],
            file=as_bytes(row["file"]),
            line=row["line"],
            column=row["column"],
            message=as_bytes(row["message"]),
            help=as_bytes(row["help"]),
        )
    except (KeyError, TypeError) as error:
        raise GoldenError(f"an entry of --json lacks a field: {error}: {row}") from None


def _rendered(err):
    """[(id, width of the underline)] of each diagnostic in the rendered text."""
    shown = []
    for line in err.split("\n"):
        if match := _TITLE.match(line):
            shown.append((match[1], 1))
        elif (match := _UNDERLINE.match(line)) and shown:
            shown[-1] = (shown[-1][0], len(match[1]))
    return shown
