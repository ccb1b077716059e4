#!/usr/bin/env python3
"""Programs that `kiln ir --as co` prints are accepted, and are the same programs.

    tests/said_again/run.py --kiln build/dev/bin/kiln [--all] [--results FILE] [FILTER]...

Each program of examples/ and kernels/ is printed as text of the language, for sm_90a or else sm_80, and
read again. The tile IR of what was read is compared with that of the program: but for names, for entry
checks, for reads of variables that nothing uses, and for where views and numbers are written down it is the same. `--all` takes the golden tests'
programs as well. Programs that the language cannot say are listed in UNSAYABLE, with the operation.
A few are run on the simulator, before and after, with the same numbers. Those of pipelines/ are run without
their attributes, with them and as printed behind `pipeline`: the same bits by each `// RUN: OUTPUT
OPTIONS` line of theirs, in 20 schedules and from three kinds of values, and no finding.
"""

import difflib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import cases  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 120
UNSAYABLE = {}
# Tiles are declared, or brought into an operand's registers, where they are used first.
# The number of a name's buffer is read where the name is used.
ANOTHER_ORDER = {
    "attention_backward_sm90.co",
    "attention_decode_sm90.co",
    "attention_f8_sm90.co",
    "attention_pipelined.co",
    "attention_sm90.co",
    "attention_varlen_backward_sm90.co",
    "attention_varlen_sm90.co",
    "gemm_sm80.co",
    "w4a16.co",
}
_VALUE = re.compile(r"%[A-Za-z_0-9]+(?![A-Za-z_0-9]| = )")
_READ = re.compile(r" *(%[A-Za-z_0-9]+) = get ")
_WRITTEN_WHERE_USED = re.compile(r" *(%[A-Za-z_0-9]+) = ((?:subview|alias|const|index)\b.*)")


def _body(text):
    """The lines of the functions, without their tables; views and numbers stand where they are used."""
    written = {}
    out = []
    uses = Counter(re.findall(r"%[A-Za-z_0-9]+", text))
    for line in text.splitlines():
        if re.match(r"  (var|name|check) ", line):
            continue
        read = _READ.match(line)
        if read and uses[read.group(1)] == 1:
            continue
        line = re.sub(r"func @\w+", "func", re.sub(r' name="[^"]*"', "", line))
        line = _VALUE.sub(lambda m: written.get(m.group(0), m.group(0)), line)
        where = _WRITTEN_WHERE_USED.match(line)
        if where:
            written[where.group(1)] = f"({where.group(2)})"
        else:
            out.append(line)
    return out


def without_names(text):
    """The same with numbers for names, in order of their first use."""
    variables = set(re.findall(r"^  var (\w+):", text, re.M))
    numbers = {}

    def number(match):
        word = match.group(0)
        if word[0] != "%" and word not in variables:
            return word
        return ("%" if word[0] == "%" else "v") + numbers.setdefault(word, str(len(numbers)))

    return [re.sub(r"%\w+|(?<![%\w\"])[A-Za-z_]\w*(?!=)", number, line) for line in _body(text)]


def run(kiln, *argv):
    return subprocess.run([kiln, *argv], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def compared(kiln, folder, path):
    """"" where the printed program is the same one, else what is wrong."""
    for arch in ("sm_90a", "sm_80"):
        first = run(kiln, "ir", path, "--after", "sema", "--arch", arch)
        if first.returncode == 0:
            break
    else:
        return ""
    said = run(kiln, "ir", path, "--as", "co", "--after", "sema", "--arch", arch)
    unsayable = UNSAYABLE.get(path.name)
    if unsayable:
        return "" if f"error[co-unsayable]: `{unsayable}`" in said.stderr else "can be said now"
    if said.returncode != 0:
        return said.stderr
    again = folder / f"{path.parent.name}_{path.name}"
    again.write_text(said.stdout)
    second = run(kiln, "ir", again, "--after", "sema", "--arch", arch)
    if second.returncode != 0:
        return second.stderr
    if path.name in ANOTHER_ORDER:
        return ""
    lines = difflib.unified_diff(without_names(first.stdout), without_names(second.stdout), lineterm="", n=1)
    return "\n".join(list(lines)[:20])


RUNS = {
    "examples/matmul_wmma.co": "--arch sm_80 --shape M=50,N=37,K=70",
    "examples/attention_causal.co": "--arch sm_90a --shape H=2,S=100,c=0.1",
    "examples/matmul_1p2c.co": "--arch sm_90a --shape M=130,N=72,K=200",
    "examples/softmax.co": "--arch sm_90a --shape M=10",
}


def same_bits(kiln, folder, name):
    """"" where the program and the printed one leave the same bytes."""
    words = RUNS[name].split()
    said = run(kiln, "ir", ROOT / name, "--as", "co", "--after", "sema", *words[:2])
    again = folder / f"run_{Path(name).name}"
    again.write_text(said.stdout)
    output = re.findall(r"\] (\w+)", said.stdout.split("{", 1)[0])[-1]
    results = []
    for number, path in enumerate((ROOT / name, again)):
        file = folder / f"{Path(name).stem}_{number}.npy"
        done = run(kiln, "run", path, "--on", "sim", *words, "--out", f"{output}={file}")
        if done.returncode != 0:
            return done.stderr + done.stdout
        results.append(file.read_bytes())
    return "" if results[0] == results[1] else f"`{output}` has other bits"


def result(kiln, path, output, words):
    """The bytes of the output, and what is wrong with the run."""
    file = path.with_suffix(".npy")
    done = run(kiln, "run", path, "--on", "sim", *words, "--schedules", "20", "--out", f"{output}={file}")
    clean = "0 races, 0 deadlocks, 0 uninitialised reads, 0 out of bounds" in done.stdout
    # Values without a bound are compared with each other below all the same.
    compared_all = done.returncode == 0 or done.stderr.count("error[") == done.stderr.count("error[result-not-compared]")
    problem = "" if compared_all and clean else f"{path.name}: {done.stdout}{done.stderr}"
    return file.read_bytes() if file.exists() else b"", problem


def pipelined(kiln, folder, path, output, words):
    """"" where the loop's attribute changes no bit, nor does printing what it becomes."""
    text = path.read_text()
    said = run(kiln, "ir", path, "--as", "co", *words[:2])
    versions = {"plain": re.sub(r"\[\[(?:pipeline|persistent|order).*?\]\]\s", "", text), "asked": text, "said": said.stdout}
    results = {}
    for version, program in versions.items():
        place = folder / f"{version}_{'_'.join(words)}_{path.name}".replace(",", "_")
        place.write_text(program)
        results[version], problem = result(kiln, place, output, words)
        if problem:
            return problem
    return "" if len(set(results.values())) == 1 else f"`{output}` has other bits"


def pipelines(kiln, folder):
    for path in sorted(FOLDER.glob("pipelines/*.co")):
        for output, words in re.findall(r"// RUN: (\w+) (.*)", path.read_text()):
            for fill in ("normal", "integers", "adversarial"):
                options = [*words.split(), "--fill", fill]
                yield f"{path.name} {words} {fill}", partial(pipelined, kiln, folder, path, output, options)


def main():
    parser = cases.parser(__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="golden tests' programs, too")
    options = parser.parse_args()
    paths = sorted([*ROOT.glob("examples/*.co"), *ROOT.glob("kernels/*.co")])
    if options.all:
        paths += sorted(p for p in ROOT.glob("src/*/testdata/*.co") if not p.name.startswith("fail_"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tests = [(str(p.relative_to(ROOT)), partial(compared, options.kiln, folder, p)) for p in paths]
        tests += [(f"run {run}", partial(same_bits, options.kiln, folder, run)) for run in RUNS]
        tests += pipelines(options.kiln, folder)
        tests = [test for test in tests if not options.filters or any(f in test[0] for f in options.filters)]
        return 1 if cases.run("said_again", tests, options) else 0


if __name__ == "__main__":
    sys.exit(main())
