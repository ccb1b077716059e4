#!/usr/bin/env python3
"""Random loops with random attributes: the same bits as without, no report, and the same as printed.

    tests/said_again/loops.py --kiln build/release/bin/kiln [--count 100] [--seed 1] [--only 17] [--on gpu]

Each number of the seed is one program: products of warps or warpgroups or sums of register tiles, plain or nested, with
copies by threads or by the hardware, in front of it `[[pipeline]]`, `[[persistent]]` and `[[order]]` as it comes, and a
ragged shape. It is run on the simulator, or with `--on gpu` on a GPU, without attributes, with them, and as `kiln ir --as co` prints it behind the
passes. Attributes that are refused must be refused by name; how often is said at the end.
"""

import random
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import batch  # noqa: E402
import cases  # noqa: E402

ATTRIBUTES = re.compile(r"\[\[(?:pipeline|persistent|order).*?\]\]\s")
REFUSALS = re.compile(r"error\[((?:pipeline|persistent)-[a-z-]+)\]")
LEAST_COMPARED = 0.9
CLEAN = "0 races, 0 deadlocks, 0 uninitialised reads, 0 out of bounds"


class Draw(random.Random):
    def often(self, share):
        return self.random() < share


def attribute(draw, arch):
    stages = draw.choice(["", "2", "3", "4", "5"])
    producer = draw.often(0.6)
    args = ", ".join(word for word in (stages, "producer" if producer else "") if word)
    return f"[[pipeline({args})]] " if args else "[[pipeline]] "


def launch_attributes(draw):
    out = []
    if draw.often(0.4):
        out.append("[[persistent]] ")
        if draw.often(0.7):
            out.append("[[launch_bounds(_, 1)]] ")
    if draw.often(0.3):
        groups = [f"{which}, {number}" for which in ("rows", "columns") for number in (1, 2, 3, 8)]
        out.append(f"[[order({draw.choice([*groups, *['hilbert'] * 4])})]] ")
    return "".join(out)


def copies(draw, arch, listed):
    """The copies of a body, `name, source`: in any order, into fresh buffers, by threads or by the hardware."""
    word = "tma" if arch == "sm_90a" and draw.often(0.5) else "dma"
    draw.shuffle(listed)
    return [f"{name} = {word}.copy {source} => shared;" for name, source in listed], word


def trips(draw, extent, step):
    """How far the loop goes: to the end of K, short of it, or as far as its tile's row says."""
    whole = f"cdiv({extent}, {step})"
    return draw.choice([whole] * 5 + [f"__min({whole}, some + 1)", f"__min({whole}, i + 1)"])


def product(draw, arch):
    by_groups = arch == "sm_90a" and draw.often(0.8)
    dtype = draw.choice(["f16", "bf16"])
    units = draw.choice([1, 1, 2, 3] if by_groups else [1, 2, 4])
    rows, step = (64, 64) if by_groups else (16, draw.choice([16, 32]))
    cols = draw.choice([8, 16, 40, 64] if by_groups else [8, 16])
    level = "group-4" if by_groups else "group"
    listed = [("x_s", f"x.subspan({rows * units}, {step}).at(i, at)"), ("y_s", f"y.subspan({cols}, {step}).at(j, at)")]
    extra = draw.often(0.25)
    if extra:
        listed.append(("b_s", f"b.subspan(8, {step}).at(0, at)"))
    lines, word = copies(draw, arch, listed)
    body = ["int at = k;", *lines]
    part = f"x_s.subspan({rows}, {step}).at(w, 0)"
    if by_groups:
        body.append(f"mma.row.row sum, {part}, y_s;")
    else:
        body.append(f"foreach s in [{step // 16}] {{ a = mma.load {part}.subspan({rows}, 16).at(0, s);")
        body.append(f"  c = mma.load y_s.subspan({cols}, 16).at(0, s); mma.row.row sum, a, c; }}")
    if extra:
        body.append("more = more + __to<f32>(b_s.at(3, 5));")
    loop = [f"foreach k in [{trips(draw, 'K', step)}] {{", *(f"  {line}" for line in body), "}"]
    loop[0] = attribute(draw, arch) + loop[0]
    if draw.often(0.15):
        loop = ["if (some > 0) {", *loop, "}"]
    nested = draw.often(0.2)
    store = ["sum = sum + more;"] if extra else []
    store += [f"mma.store sum, z.subspan({rows}, {cols}).at({units} * i + w, j);"]
    begin = ["mutable f32 more = 0.0f;"] if extra else []
    begin.append("sum = mma.fill.f32 0;")
    inner = [*begin, *loop, *store]
    axes = "{i, j}" if not nested else "i"
    grid = f"cdiv(M, {rows * units}), cdiv(N, {cols})" if not nested else f"cdiv(M, {rows * units})"
    if nested:
        inner = [f"foreach j in [cdiv(N, {cols})] {{", *inner, "}"]
    head = launch_attributes(draw)
    if nested:
        head = re.sub(r"\[\[order.*?\]\] ", "", head)
    extra_param = f"global {dtype} [8, K] b, " if extra else ""
    text = [
        f"__co__ void f(global {dtype} [M, K] x, global {dtype} [N, K] y, {extra_param}global f32 [M, N] z, s32 some) {{",
        f"  {head}parallel {axes} by [{grid}] : block, w by {units} : {level} {{",
        *(f"    {line}" for line in inner),
        "  }",
        "}",
    ]
    unit = 8 if word == "tma" or draw.often(0.6) else 1
    shape = {
        "M": draw.randint(1, 3 * rows * units),
        "N": draw.randint(1, 4 * cols),
        "K": max(1, draw.randint(1, 5 * step // unit)) * unit,
        "some": draw.randint(0, 3),
    }
    return "\n".join(text), shape


def sums(draw, arch):
    rows, cols = draw.choice([4, 8, 16]), draw.choice([32, 64, 128])
    dtype = draw.choice(["f32", "f16", "bf16"])
    units = draw.choice([1, 2])
    level = "group-4" if draw.often(0.5) and arch == "sm_90a" else "group"
    lines, word = copies(draw, arch, [("x_s", f"x.subspan({rows}, {cols}).at(i, k)")])
    body = [*lines, f"t = frag.load x_s.subspan({rows // units}, {cols}).at(w, 0);", "sum = sum + __to<f32>(t) * 0.5f;"]
    text = [
        f"__co__ void f(global {dtype} [M, K] x, global f32 [M, {cols}] z, s32 some) {{",
        f"  {re.sub(r'.*order.*', '', launch_attributes(draw))}parallel i by [cdiv(M, {rows})] : block, w by {units} : {level} {{",
        f"    sum = frag.fill.f32 [{rows // units}, {cols}] 0.0f;",
        f"    {attribute(draw, arch)}foreach k in [{trips(draw, 'K', cols)}] {{",
        *(f"      {line}" for line in body),
        "    }",
        f"    frag.store sum, z.subspan({rows // units}, {cols}).at({units} * i + w, 0);",
        "  }",
        "}",
    ]
    unit = 8 if word == "tma" or draw.often(0.6) else 1
    return "\n".join(text), {"M": draw.randint(1, 5 * rows), "K": max(1, draw.randint(1, 5 * cols // unit)) * unit, "some": draw.randint(0, 3)}


def program(seed, number):
    draw = Draw(seed * 1_000_003 + number)
    arch = draw.choice(["sm_80", "sm_90a", "sm_90a"])
    text, shape = (product if draw.often(0.8) else sums)(draw, arch)
    fill = draw.choice(["normal", "integers", "adversarial"])
    sizes = ",".join(f"{name}={size}" for name, size in shape.items())
    return text + "\n", ["--arch", arch], ["--shape", sizes, "--fill", fill]


def run(kiln, *args):
    return batch.run([kiln, *map(str, args)], ROOT, None, 120)


def bits(kiln, on, file, words):
    """What the program makes, or what is wrong."""
    out = file.with_suffix(".npy")
    schedules = ["--schedules", "3"] if on == "sim" else []
    done = run(kiln, "run", file, "--on", on, *words, *schedules, "--out", f"z={out}")
    compared = done.returncode == 0 or done.stderr.count("error[") == done.stderr.count("error[result-not-compared]")
    if compared and (on == "gpu" or CLEAN in done.stdout):
        return out.read_bytes(), ""
    return b"", done.stdout[-600:] + done.stderr[:1500]


def one(kiln, on, folder, seed, number):
    """(what became of it, what is wrong)."""
    text, arch, words = program(seed, number)
    plain, asked, said = (folder / f"{number}_{name}.co" for name in ("plain", "asked", "said"))
    plain.write_text(ATTRIBUTES.sub("", text))
    asked.write_text(text)
    context = f"number {number}: {' '.join(arch + words)}\n{text}\n"
    if run(kiln, "check", plain, *arch).returncode != 0:
        return "refused without attributes", ""
    expected, problem = bits(kiln, on, plain, arch + words)
    if problem:
        return "wrong", f"{context}without attributes: {problem}"
    checked = run(kiln, "check", asked, *arch)
    refusals = REFUSALS.findall(checked.stderr)
    if refusals:
        return refusals[0], ""
    for name, file in (("with attributes", asked), ("as printed", said)):
        if file == said:
            file.write_text(run(kiln, "ir", asked, *arch, "--as", "co").stdout)
        got, problem = bits(kiln, on, file, arch + words)
        if problem or got != expected:
            return "wrong", f"{context}{name}: {problem or 'other bits'}"
    return "same bits", ""


def main():
    parser = cases.parser(__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this program alone; --show prints it")
    parser.add_argument("--on", default="sim", choices=["sim", "gpu"])
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    numbers = range(options.count) if options.only is None else [options.only]
    if options.show:
        print(program(options.seed, numbers[0])[0])
        return 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.jobs) as pool:
        work = partial(one, options.kiln, options.on, Path(name), options.seed)
        seen, wrong = Counter(), 0
        for became, problem in pool.map(work, numbers):
            seen[became] += 1
            if problem:
                wrong += 1
                print(f"FAIL {problem}\n")
    for became, times in seen.most_common():
        print(f"{times:6} {became}")
    # Programs that are refused compare nothing.
    if options.only is None and seen["same bits"] < LEAST_COMPARED * options.count:
        wrong += 1
        print(f"FAIL loops: {seen['same bits']} of {options.count} were compared, {LEAST_COMPARED:.0%} are asked\n")
    return 1 if cases.sum_up("loops", len(numbers), wrong, options) else 0


if __name__ == "__main__":
    sys.exit(main())
