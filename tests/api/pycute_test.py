#!/usr/bin/env python3
"""The layout algebra against an independent one: the module `pycute` of the package nvidia-cutlass.

    tests/api/pycute_test.py --program build/release/tests/api/layout_cases [--cases N] [--seed S]

Random cases of every operation that both have go to our program as lines of text and to pycute as
calls. Answers have to be the same text, or differ in one of the ways of DESIGNS, each of which is
checked by brute force and counted. Anything else is a disagreement, and the exit code is 1.

The package is a dependency of this test only. It is installed under build/ (pip, by hash) where it
is missing. Where that cannot be done the test says so and is skipped, except under CI=true.
"""

import argparse
import collections
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import laws  # noqa: E402
import random_layouts as some  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"
PACKAGES = ROOT / "build" / "python" / "pycute"
SHOWN_MAX = 10
LEAVES_MAX = 16

DESIGNS = {
    "unused-stride": "the stride of an extent of 1, which no coordinate reaches",
    "we-answer": "pycute stops with an assertion; ours is an answer by the law",
    "we-refuse": "ours is invalid; what pycute gives breaks the law",
    "too-many-leaves": "the answer has more than 16 leaves, so ours is invalid",
    "larger-inverse": "both are right inverses; ours reaches further",
    "quasi-inverse": "the layout repeats; ours leads back to the same index, pycute's does not",
    "nothing-left": "a slice that fixes all: ours is 1:0, pycute's an empty layout",
    "falling-strides": "cosize with negative strides: ours reads them by magnitude",
}


class Disagreement(Exception):
    pass


def load_pycute():
    """The module, or the reason why there is none."""
    if not (PACKAGES / "pycute").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        command += ["--target", str(PACKAGES), "-r", str(REQUIREMENTS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines() or ["pip failed"]
            return None, reason[-1]
    sys.path.insert(0, str(PACKAGES))
    try:
        import pycute
    except ImportError as error:
        return None, str(error)
    return pycute, ""


class Peer:
    """pycute's operations on (shape, stride) trees. None is what stands for an assertion."""

    def __init__(self, module):
        self.module = module

    def layout(self, one):
        return self.module.Layout(*one)

    def tiles(self, parts):
        return tuple(self.layout(part) for part in parts)

    def call(self, name, *args):
        try:
            out = getattr(self.module, name)(*args)
        except (AssertionError, ZeroDivisionError, IndexError):
            return None
        return (out.shape, out.stride) if self.module.is_layout(out) else out


# ---- cases: each yields (line for our program, what pycute answers, a check of a difference) ----


def unary(peer, rng, name, law=None):
    one = some.layout(rng)
    theirs = peer.call(name, peer.layout(one))
    return f"{name}\t{some.text(one)}", theirs, lambda answer: law is not None and law(one, answer)


def same(peer, rng):
    one = some.layout(rng)
    return f"same\t{some.text(one)}", one, lambda answer: False


def coalesce_profile(peer, rng):
    one = some.layout(rng, bare=False)
    count = rng.randint(1, len(some.modes(one)))
    profile = (1,) * count
    line = f"coalesce\t{some.text(one)}\t{some.text((profile, profile))}"
    return line, peer.call("coalesce", peer.layout(one), profile), lambda answer: False


def sizes(peer, rng):
    one = some.layout(rng)
    if rng.random() < 0.2:
        one = some.negated(rng, one)
    theirs = peer.layout(one)
    numbers = (len(theirs), theirs.size(), theirs.cosize())
    falling = (numbers[0], numbers[1], 1 + sum(
        (e - 1) * abs(d) for e, d in zip(some.leaves(one[0]), some.leaves(one[1]))))
    negative = min(some.leaves(one[1])) < 0
    check = "falling-strides" if negative else None
    return f"sizes\t{some.text(one)}", numbers, (check, falling)


def complement(peer, rng):
    one = some.layout(rng, 3)
    target = rng.choice((1, rng.randint(1, 64), some.size(one), 4 * some.size(one)))
    theirs = peer.call("complement", peer.layout(one), target)
    return (f"complement\t{some.text(one)}\t{target}", theirs,
            lambda answer: laws.complement(one, target, answer))


def binary(peer, rng, name, law):
    one = some.layout(rng)
    two = some.multiplier(rng, one) if "product" in name else some.argument(rng, one)
    theirs = peer.call(name, peer.layout(one), peer.layout(two))

    def check(answer):
        if name.startswith("tiled"):  # (tile, rest 0, rest 1, ...)
            parts = some.modes(answer)
            rest = parts[1] if len(parts) == 2 else some.joined(parts[1:])
            answer = some.joined([parts[0], rest])
        return law(one, two, answer)

    return f"{name}\t{some.text(one)}\t{some.text(two)}", theirs, check


def pairs_of(name, answer, count):
    """The two halves of each divided mode, wherever the operation puts them."""
    parts = some.modes(answer)
    if name.startswith("logical"):
        return [some.modes(part) for part in parts[:count]]
    rests = some.modes(parts[1]) if name.startswith("zipped") else parts[1:]
    return list(zip(some.modes(parts[0])[:count], rests[:count]))


def by_mode(peer, rng, name, law):
    one = some.layout(rng, 4, bare=False)
    if "product" in name:
        parts = some.modes(one)
        tiles = [some.multiplier(rng, part) for part in parts[: rng.randint(1, len(parts))]]
    else:
        tiles = some.tiler(rng, one)
    theirs = peer.call(name, peer.layout(one), peer.tiles(tiles))
    line = f"{name}_by_mode\t{some.text(one)}\t{some.text(some.joined(tiles))}"

    def check(answer):
        if name == "composition":
            halves = some.modes(answer)
        else:
            halves = [some.joined(pair) for pair in pairs_of(name, answer, len(tiles))]
        return all(law(*each) for each in zip(some.modes(one), tiles, halves))

    return line, theirs, check


def index(peer, rng):
    one = some.layout(rng)
    i = rng.randrange(2 * some.size(one))
    return f"index\t{some.text(one)}\t{i}", peer.layout(one)(i), lambda answer: False


def crd2idx(peer, rng):
    one = some.layout(rng, bare=False)
    if rng.random() < 0.5:
        at = [rng.randrange(e) for e in some.leaves(one[0])]
        nested = some.like(one[0], iter(at))
    else:
        at = [rng.randrange(some.size(part)) for part in some.modes(one)]
        nested = tuple(at)
    theirs = peer.module.crd2idx(nested, *one)
    return f"crd2idx\t{some.text(one)}\t{','.join(map(str, at))}", theirs, lambda answer: False


def idx2crd(peer, rng):
    one = some.layout(rng)
    i = rng.randrange(some.size(one))
    theirs = tuple(some.leaves(peer.module.idx2crd(i, one[0])))
    return f"idx2crd\t{some.text(one)}\t{i}", theirs, lambda answer: False


def slice_(peer, rng):
    one = some.layout(rng, bare=False)
    by_leaf = rng.random() < 0.5 and len(some.leaves(one[0])) != len(one[0])
    parts = some.leaves(one[0]) if by_leaf else [some.size(part) for part in some.modes(one)]
    at = [None if rng.random() < 0.5 else rng.randrange(extent) for extent in parts]
    nested = some.like(one[0], iter(at)) if by_leaf else tuple(at)
    (layout, offset) = peer.module.slice_and_offset(nested, peer.layout(one))
    words = ",".join("_" if number is None else str(number) for number in at)
    return (f"slice\t{some.text(one)}\t{words}", ((layout.shape, layout.stride), offset),
            lambda answer: False)


def swizzle(peer, rng):
    bits = rng.randint(0, 4)
    base = rng.randint(0, 5)
    shift = rng.choice((-1, 1)) * rng.randint(max(bits, 1), 6)
    i = rng.randrange(1 << 16)
    theirs = peer.module.Swizzle(bits, base, shift)(i)
    return f"swizzle\t{bits},{base},{shift}\t{i}", theirs, lambda answer: False


def operations():
    """name -> a function that makes a case of it."""
    out = {f.__name__.rstrip("_"): f for f in
           (same, coalesce_profile, sizes, complement, index, crd2idx, idx2crd, slice_, swizzle)}
    no_law = {"coalesce": None, "filter": None}
    inverses = {"right_inverse": laws.right_inverse, "left_inverse": laws.left_inverse}
    for name, law in itertools.chain(no_law.items(), inverses.items()):
        out[name] = lambda peer, rng, n=name, l=law: unary(peer, rng, n, l)
    pairs = {"composition": laws.composition}
    for kind in ("logical", "zipped", "tiled"):
        pairs[f"{kind}_divide"] = laws.logical_divide
        pairs[f"{kind}_product"] = laws.logical_product
    for name, law in pairs.items():
        out[name] = lambda peer, rng, n=name, l=law: binary(peer, rng, n, l)
        out[f"{name}_by_mode"] = lambda peer, rng, n=name, l=law: by_mode(peer, rng, n, l)
    return out


# ---- comparison ---------------------------------------------------------------------------------


def read_answer(name, words):
    if name in ("index", "crd2idx", "swizzle"):
        return int(words)
    if name in ("sizes", "idx2crd"):
        return tuple(int(word) for word in words.split(","))
    if name == "slice":
        layout, offset = words.split(" ")
        return some.parse(layout), int(offset)
    return some.parse(words)


def without_unused_strides(layout):
    used = (d if e > 1 else 0 for e, d in zip(some.leaves(layout[0]), some.leaves(layout[1])))
    return layout[0], some.like(layout[1], used)


def classify(name, ours, theirs, check):
    """The key of DESIGNS that a difference belongs to; None when both are the same."""
    if ours == theirs:
        return None
    if name == "sizes":
        if check[0] and ours == check[1]:
            return check[0]
        raise Disagreement
    if name == "slice" and theirs[0] == ((), ()) and ours == ((1, 0), theirs[1]):
        return "nothing-left"
    if name in ("index", "crd2idx", "idx2crd", "swizzle", "slice", "same"):
        raise Disagreement
    return classify_layouts(name, ours, theirs, check)


def classify_layouts(name, ours, theirs, check):
    if theirs is None and check(ours):
        return "we-answer"
    if ours is None and theirs is not None and len(some.leaves(theirs[0])) > LEAVES_MAX:
        return "too-many-leaves"
    if ours is None and not check(theirs):
        return "we-refuse"
    if ours is None or theirs is None:
        raise Disagreement
    if without_unused_strides(ours) == without_unused_strides(theirs):
        return "unused-stride"
    if name == "right_inverse" and check(ours) and some.size(ours) > some.size(theirs):
        return "larger-inverse"
    if name == "left_inverse" and check(ours) and not check(theirs):
        return "quasi-inverse"
    raise Disagreement


def make_cases(peer, count, seed):
    rng = random.Random(seed)
    makers = operations()
    cases = []
    for name in itertools.islice(itertools.cycle(makers), count):
        cases.append((name, *makers[name](peer, rng)))
    return cases


def ask(program, cases):
    lines = "".join(line + "\n" for _, line, _, _ in cases)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False)
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(cases):
        sys.exit(f"{program} failed after {len(answers)} of {len(cases)} cases: {done.stderr}")
    return answers


def compare(cases, answers):
    """(counts of what agreed or differed how, by operation; the operations that disagree)."""
    counts = collections.defaultdict(collections.Counter)
    shown = 0
    for (name, line, theirs, check), words in zip(cases, answers):
        try:
            how = classify(name, read_answer(name, words), theirs, check) or "same"
        except Disagreement:
            how = "DISAGREE"
            shown += 1
            if shown <= SHOWN_MAX:
                print(f"disagreement: {line!r}: ours {words}, pycute's {theirs}")
        counts[name][how] += 1
    return counts


def report(counts):
    keys = ["same", *DESIGNS, "DISAGREE"]
    for name in sorted(counts):
        told = ", ".join(f"{counts[name][key]} {key}" for key in keys if counts[name][key])
        print(f"{name:24} {told}")
    totals = collections.Counter()
    for each in counts.values():
        totals.update(each)
    print(f"{sum(totals.values())} cases: {totals['same']} the same answer, "
          f"{totals['DISAGREE']} disagreements; by design:")
    for key, why in DESIGNS.items():
        print(f"  {totals[key]:7} {key}: {why}")


def write_results(path, **counts):
    if path:
        path.write_text(json.dumps(counts), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="the layout_cases binary")
    parser.add_argument("--cases", type=int, default=120_000)
    parser.add_argument("--seed", type=int, default=20260501)
    parser.add_argument("--results", type=Path, help="write {passed, failed}, counting operations")
    options = parser.parse_args()
    module, reason = load_pycute()
    if module is None:
        must = os.environ.get("CI") == "true"
        word = "FAILED" if must else "skipped"
        print(f"{word}: the layout algebra was not compared with pycute: {reason}")
        write_results(options.results, passed=0, failed=int(must), skipped=int(not must))
        return int(must)
    cases = make_cases(Peer(module), options.cases, options.seed)
    counts = compare(cases, ask(options.program, cases))
    report(counts)
    wrong = sum(1 for each in counts.values() if each["DISAGREE"])
    write_results(options.results, passed=len(counts) - wrong, failed=wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
