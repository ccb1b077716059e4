#!/usr/bin/env python3
"""Runs a compiler or linker and appends what it cost to the file $KILN_BUILD_TIMES.

One line of JSON for each command: CPU seconds (user and system), memory, output and source. measure.py
reads them.
"""

import json
import os
import resource
import subprocess
import sys


def main():
    argv = sys.argv[1:]
    code = subprocess.run(argv, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = argv[argv.index("-o") + 1] if "-o" in argv else ""
    row = {
        "cpu": round(used.ru_utime + used.ru_stime, 3),
        "mib": used.ru_maxrss // 1024,
        "output": output,
        "source": next((a for a in reversed(argv) if a.endswith((".cpp", ".c", ".cxx", ".hxx"))), ""),
    }
    with open(os.environ["KILN_BUILD_TIMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
