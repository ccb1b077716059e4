#!/usr/bin/env python3
"""What of a folder full of programs does kiln accept, and what is in the way of the rest?

    tests/tools/collection.py DIR... --kiln build/release/bin/kiln [--arch sm_90a,sm_86] [--list ID]

asks `kiln check` about every `.co` file below the folders. It is no test: the folders are somebody's programs,
and what is counted is how far they come. The sums:

    accepted     no error (there may be warnings)
    as marked    refused, and the file says that it is to be refused
    refused      any other error; by id below, with how many files have it and how many have nothing else
    crashed      ended by a signal or by a check of ours
    slow         took longer than --slow seconds (counted beside the others)
    timed out    took longer than --timeout seconds

A file is marked as one to be refused when its text has one of the marks that test runners of compilers use:
a `RUN:` line whose command begins with `not`, `XFAIL`, an expected line that speaks of an error
(`CHECK: ... error`), or a name that begins with `fail_`. A marked file that is accepted is a mistake that
kiln overlooks, or one that another compiler alone minds: `--list accepted-though-marked` names them.

The first line `RUN:` that says `-arch=sm_..` decides on the architecture of its file. Other files are tried
with the architectures of --arch in turn until one accepts. What is counted of a refused file is what the
first of them says. Files of one text are counted once.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import batch  # noqa: E402

SPLIT = "not-supported-yet"  # its message names what is missing: each counts as an id of its own
OWN_ARCH = re.compile(r"RUN:.*?-arch=(sm_\w+)")
NAMES = {"sm_90": "sm_90a"}  # as other compilers say it
MARKED = re.compile(r"RUN:\s*not\s|XFAIL|CHECK[A-Z-]*:.*\berror\b", re.IGNORECASE)


@dataclass
class Outcome:
    path: Path
    folder: str
    marked: bool
    kind: str = ""  # accepted, refused, crashed, timed out
    reasons: set = field(default_factory=set)
    first: dict = field(default_factory=dict)  # the first error
    seconds: float = 0.0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="The sums are explained at the top of the file."
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--kiln", default="build/release/bin/kiln", help="the binary")
    parser.add_argument("--arch", default="sm_90a,sm_86", help="architectures, tried in turn")
    parser.add_argument("--skip", action="append", default=[], metavar="WORD", help="paths with this in them")
    parser.add_argument("--list", action="append", default=[], metavar="ID", help="name the files of an id or kind")
    parser.add_argument("--depth", type=int, default=2, help="how many parts of a path are a folder in the table")
    parser.add_argument("--slow", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--timeout", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome of each file")
    return parser.parse_args()


def programs(options):
    """(path, folder in the table) of each text once."""
    seen = set()
    for base in options.folders:
        for path in sorted(base.rglob("*.co")):
            if any(word in str(path) for word in options.skip) or not path.is_file():
                continue
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                parts = path.relative_to(base).parts[:-1]
                yield path, "/".join((base.name, *parts[: options.depth]))


def reason_of(found):
    """The id, and of what is missing the message as well."""
    return f"{found['id']}: {found['message']}" if found["id"] == SPLIT else found["id"]


def check(kiln, path, arch, timeout):
    """(kind, errors) of one `kiln check`."""
    argv = [kiln, "check", path.name, "--arch", arch, "--json"]
    env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    try:
        done = batch.run(argv, path.parent, env, timeout)
    except subprocess.TimeoutExpired:
        return "timed out", []
    if done.returncode == 0:
        return "accepted", []
    try:
        found = [one for one in json.loads(done.stdout) if one["severity"] == "error"]
    except ValueError:
        found = []
    return ("refused", found) if done.returncode == 1 and found else ("crashed", [])


def outcome_of(options, path, folder):
    text = path.read_text(encoding="utf-8", errors="replace")
    out = Outcome(path, folder, path.name.startswith("fail_") or bool(MARKED.search(text)))
    own = OWN_ARCH.search(text)
    started = time.monotonic()
    asked = [NAMES.get(own[1], own[1])] if own else options.arch.split(",")
    for arch in asked:
        kind, found = check(options.kiln, path, arch, options.timeout)
        if not out.kind or kind == "accepted":
            out.kind, out.reasons = kind, {reason_of(one) for one in found}
            out.first = found[0] if found else {}
        if kind != "refused":
            break
    out.seconds = time.monotonic() - started
    return out


def folder_table(outcomes):
    rows = defaultdict(Counter)
    for one in outcomes:
        kind = "as marked" if one.kind == "refused" and one.marked else one.kind
        for name in (one.folder, "all"):
            rows[name]["files"] += 1
            rows[name][kind] += 1
            rows[name]["accepted-though-marked"] += one.kind == "accepted" and one.marked
    columns = ["files", "accepted", "as marked", "refused", "crashed", "timed out", "accepted-though-marked"]
    width = max(map(len, rows))
    print(" " * width, *columns, sep="  ")
    for name in sorted(rows, key=lambda name: (name == "all", name)):
        print(f"{name:{width}}", *(f"{rows[name][column]:{len(column)}}" for column in columns), sep="  ")


def reason_table(outcomes):
    having, alone = Counter(), Counter()
    for one in outcomes:
        having.update(one.reasons)
        if len(one.reasons) == 1:
            alone.update(one.reasons)
    print("\nrefused without a mark, by id (files that have it, files that have nothing else):")
    for reason, count in having.most_common():
        print(f"{count:6} {alone[reason]:6}  {reason}")


def listed(outcomes, wanted):
    for one in outcomes:
        names = {one.kind, *one.reasons}
        if one.kind == "accepted" and one.marked:
            names.add("accepted-though-marked")
        if wanted in names or any(name.startswith(wanted + ":") for name in names):
            place = one.first.get("line", "")
            yield f"{one.path}:{place} {one.first.get('message', '')}"


def main():
    options = arguments()
    options.kiln = str(Path(options.kiln).resolve())
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda found: outcome_of(options, *found), list(programs(options))))
    if said := batch.finish():
        print(said, file=sys.stderr)
    folder_table(outcomes)
    reason_table([one for one in outcomes if one.kind == "refused" and not one.marked])
    slow = [one for one in outcomes if one.seconds > options.slow]
    print(f"\nslower than {options.slow:g} s: {len(slow)}")
    for one in sorted(slow, key=lambda one: -one.seconds)[:10]:
        print(f"{one.seconds:8.1f} s  {one.path}")
    for wanted in options.list:
        print(f"\n{wanted}:", *listed(outcomes, wanted), sep="\n")
    if options.json:
        rows = [vars(one) | {"path": str(one.path), "reasons": sorted(one.reasons)} for one in outcomes]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
