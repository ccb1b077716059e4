#!/usr/bin/env python3
"""The limits on sizes: files, functions, nesting, parameters.

    tests/tools/size.py [--largest N]

What is over a limit must stand in size_exceptions.txt with its present value, one per line:

    function src/x/y.cpp name 84

A file that says in its first lines that it is generated ("Generated from ...; not edited by hand.") may be
of any length: the limit is for readers of what a person wrote.

The list may only shrink: an entry that is over its value, larger than it needs to be, no longer
needed, or not in the last commit's list, is refused.
"""

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cpp  # noqa: E402
import tree  # noqa: E402

LIMITS = {
    "file": 800,
    "function": 70,  # one that branches
    "straight": 150,  # one that does not, or whose only branching is a `switch`
    "nesting": 5,  # three are wanted
    "parameters": 5,
}
EXCEPTIONS = Path("tests/tools/size_exceptions.txt")
CPP = (".h", ".cpp", ".cu", ".cuh")
_GENERATED = re.compile(r"\A(?://[^\n]*\n){0,3}?//[^\n]*Generated from [^\n]*; not edited by hand")


def _cpp_sizes(path, text):
    if not _GENERATED.match(text):
        yield ("file", str(path), "-"), text.count("\n"), 1
    for function in cpp.functions(text):
        where = (str(path), function.name.replace(" ", ""))
        kind = "function" if function.branches else "straight"
        yield (kind, *where), function.lines, function.line
        yield ("nesting", *where), function.nesting, function.line
        if not str(path).startswith("include/kiln/host/"):  # those are what published programs call
            yield ("parameters", *where), function.parameters, function.line


def _python_sizes(path, text):
    yield ("file", str(path), "-"), text.count("\n"), 1
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            yield ("function", str(path), node.name), lines, node.lineno


def sizes():
    """{(kind, path, name): (value, line)}, the largest where a name is overloaded."""
    found = {}
    for path in tree.files(*CPP, ".py"):
        measure = _python_sizes if path.suffix == ".py" else _cpp_sizes
        for key, value, line in measure(path, tree.text(path)):
            if key not in found or value > found[key][0]:
                found[key] = (value, line)
    return found


def _parse_exceptions(text):
    rows = (line.split() for line in text.split("\n") if line and not line.startswith("#"))
    return {(kind, path, name): int(value) for kind, path, name, value in rows}


def _committed_exceptions():
    """The list of the last commit, or None where there is none."""
    argv = ["git", "show", f"HEAD:{EXCEPTIONS}"]
    try:
        done = subprocess.run(argv, cwd=tree.ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return _parse_exceptions(done.stdout) if done.returncode == 0 else None


def problems(found, exceptions, committed):
    """One line for each limit that is broken and each exception that is out of date."""
    lines = []
    for key, (value, line) in sorted(found.items()):
        kind, path, name = key
        allowed = exceptions.get(key, LIMITS[kind])
        if value > allowed:
            lines.append(f"{path}:{line}: {kind} {name}: {value}, at most {allowed}")
    for key, allowed in sorted(exceptions.items()):
        value = found.get(key, (0, 0))[0]
        entry = " ".join(key)
        if value <= LIMITS[key[0]]:
            lines.append(f"{EXCEPTIONS}: `{entry}` is no longer needed: remove it")
        elif value < allowed:
            lines.append(f"{EXCEPTIONS}: `{entry}` is {value} now: lower it from {allowed}")
        if committed is not None and allowed > committed.get(key, 0):
            lines.append(f"{EXCEPTIONS}: `{entry}` is new or larger: the list may only shrink")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--largest", type=int, default=0, help="also show the N largest of each kind")
    options = parser.parse_args()
    found = sizes()
    for kind in LIMITS if options.largest else ():
        rows = sorted((v, k) for k, v in found.items() if k[0] == kind)[-options.largest :]
        for (value, line), (_, path, name) in reversed(rows):
            print(f"{kind:10} {value:4}  {path}:{line} {name}")
    path = tree.ROOT / EXCEPTIONS
    exceptions = _parse_exceptions(path.read_text(encoding="utf-8")) if path.exists() else {}
    wrong = problems(found, exceptions, _committed_exceptions())
    for line in wrong:
        print(line)
    print(f"size: {len(found)} measured, {len(exceptions)} exceptions, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
