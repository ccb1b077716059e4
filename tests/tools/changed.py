#!/usr/bin/env python3
"""The unit test programs of the folders that have changed, a line each: what `./dev test --quick` builds and runs.

    tests/tools/changed.py --build build/release [REVISION]

Changed is what differs from REVISION, and what git does not know yet; without one what differs from the last
commit, and if nothing does what that commit changed. A test belongs to the folder that its program is built in.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tree  # noqa: E402


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=tree.ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def changed_files(revision):
    if revision:
        return _git("diff", "--name-only", revision) | _git("ls-files", "--others", "--exclude-standard")
    return changed_files("HEAD") or _git("diff", "--name-only", "HEAD~1", "HEAD")


def programs(build):
    """{name: folder, relative to the repository} of the unit tests of a build folder, built or not."""
    argv = ["ctest", "--test-dir", str(build), "--show-only=json-v1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found = {}
    for test in json.loads(done.stdout)["tests"]:
        properties = {one["name"]: one["value"] for one in test["properties"]}
        if properties.get("LABELS") == ["unit"]:
            found[test["name"]] = Path(properties["WORKING_DIRECTORY"]).relative_to(build)
    return found


def chosen(tests, files):
    """The tests whose folder holds a changed file."""
    folders = {parent for name in files for parent in Path(name).parents}
    return sorted(name for name, folder in tests.items() if folder in folders)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("revision", nargs="?", default="")
    options = parser.parse_args()
    tests = programs(options.build.resolve())
    print("".join(f"{name}\n" for name in chosen(tests, changed_files(options.revision))), end="")


if __name__ == "__main__":
    main()
