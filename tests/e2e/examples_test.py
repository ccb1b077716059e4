#!/usr/bin/env python3
"""The examples whose work is done in register tiles, in the simulator: what they compute, and at ragged shapes.

    KILN=build/release/bin/kiln tests/e2e/examples_test.py

What an example means is said a second time here, by a few lines of Python in double precision, for numbers
that this test draws. Then shapes around the edges of its tiles with each fill are held against the bound, in
ten orders of execution: nothing outside, no race, no element unwritten. A sample of those, the same in each
run; all of them with KILN_SWEEP=all.
"""

import itertools
import json
import math
import os
import random
import struct
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN_RELEASE") or os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
ALL = os.environ.get("KILN_SWEEP", "") == "all"
SAMPLE = 17  # of so many cases one is run; shares no divisor with the numbers of shapes and of fills
SCHEDULES = "10"
FILLS = ("normal", "integers", "adversarial")
COUNTS = ("races", "deadlocks", "uninitialised", "out_of_bounds")
JOBS = os.cpu_count() or 2
TIMEOUT_S = 120
HEADER = 10  # bytes before the text of a .npy file of version 1
# (descr, code of struct) of a type's elements; bf16 is the upper half of an f32
NPY_TYPES = {"bf16": ("|V2", "H"), "f32": ("<f4", "f"), "s8": ("|i1", "b"), "s32": ("<i4", "i"), "u32": ("<u4", "I")}
ROUNDOFF = {"bf16": 2.0**-8, "f32": 2.0**-20, "s32": 0.0, "u32": 0.0}  # of what is stored; f32 after a few steps


def tearDownModule():
    said = batch.finish()
    assert not said, said


# ---- tensors ----


def bf16(value):
    """The nearest bf16, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def save(path, dtype, shape, values):
    descr, code = NPY_TYPES[dtype]
    if dtype == "bf16":
        values = [struct.unpack("<I", struct.pack("<f", value))[0] >> 16 for value in values]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + HEADER + 1) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data)


def load(path, dtype):
    raw = path.read_bytes()
    data = raw[HEADER + struct.unpack("<H", raw[8:HEADER])[0] :]
    values = [value for (value,) in struct.iter_unpack("<" + NPY_TYPES[dtype][1], data)]
    if dtype == "bf16":
        values = [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]
    return values


def draw(dtype, shape, chance, largest):
    count = math.prod(shape)
    if dtype in ("s8", "s32", "u32"):
        least = -largest if dtype == "s8" else 0
        return [chance.randint(least, largest) for _ in range(count)]
    values = [chance.gauss(0, largest) for _ in range(count)]
    return [bf16(value) for value in values]  # also those of f32: then both mean the same number


def rows_of(values, columns):
    return [values[at : at + columns] for at in range(0, len(values), columns)]


def flat(rows):
    return [value for row in rows for value in row]


def dot(left, right):
    return sum(a * b for a, b in zip(left, right))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# ---- what the examples mean: from (sizes, inputs) to outputs, all flat ----


def softmax(of, x):
    out = []
    for row in rows_of(x, of["N"]):
        weights = [math.exp(value - max(row)) for value in row]
        out += [weight / sum(weights) for weight in weights]
    return {"y": out}


def layer_norm(of, x, gain, bias):
    out = []
    for row in rows_of(x, of["N"]):
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in row) / len(row) + of["epsilon"])
        out += [(v - mean) / deviation * g + b for v, g, b in zip(row, gain, bias)]
    return {"y": out}


def softmax_persistent(of, x):
    return softmax(of, x)


def layer_norm_persistent(of, x, gain, bias):
    return layer_norm(of, x, gain, bias)


def layer_norm_long(of, x, gain, bias):
    return layer_norm(of, x, gain, bias)


def rms_norm(of, x, residual, gain):
    total = [a + b for a, b in zip(x, residual)]
    out = []
    for row in rows_of(total, of["N"]):
        scale = math.sqrt(dot(row, row) / len(row) + of["epsilon"])
        out += [v / scale * g for v, g in zip(row, gain)]
    return {"sum": total, "y": out}


def cross_entropy(of, x, label):
    rows = rows_of(x, of["N"])
    return {"loss": [math.log(sum(map(math.exp, row))) - row[at] for row, at in zip(rows, label)]}


def cumulative_sum(of, x):
    return {"y": flat(itertools.accumulate(row) for row in rows_of(x, of["N"]))}


def rope(of, x, depth=128):
    out = []
    for at, head in enumerate(rows_of(x, depth)):
        half = depth // 2
        angles = [at // of["H"] * 10000 ** (-i / half) for i in range(half)]
        pairs = list(zip(head[:half], head[half:], map(math.cos, angles), map(math.sin, angles)))
        out += [a * c - b * s for a, b, c, s in pairs] + [b * c + a * s for a, b, c, s in pairs]
    return {"y": out}


def attention(of, q, k, v, causal=False, depth=128):
    heads, queries = of["H"], of["S"]
    keys = of.get("T", queries)
    q, k, v = (rows_of(x, depth) for x in (q, k, v))
    out = []
    for head, at in itertools.product(range(heads), range(queries)):
        seen = range(head * keys, head * keys + (at + 1 if causal else keys))
        weights = [math.exp2(of["c"] * dot(q[head * queries + at], k[t])) for t in seen]
        total = sum(weights)
        out += [sum(w * v[t][d] for w, t in zip(weights, seen)) / total for d in range(depth)]
    return {"o": out}


def attention_causal(of, q, k, v):
    return attention(of, q, k, v, causal=True)


def attention_natural(of, q, k, v):
    return attention(of, q, k, v)


def attention_pipelined(of, q, k, v):
    return attention(of, q, k, v)


def swiglu(of, x, w, v):
    x, w, v = (rows_of(values, of["K"]) for values in (x, w, v))
    gates = [[dot(row, column) for column in w] for row in x]
    ups = [[dot(row, column) for column in v] for row in x]
    return {"y": [g * sigmoid(g) * u for g, u in zip(flat(gates), flat(ups))]}


def swiglu_pipelined(of, x, w, v):
    return swiglu(of, x, w, v)


def w8a8(of, x, w, row_scale, column_scale):
    x, w = rows_of(x, of["K"]), rows_of(w, of["K"])
    pairs = itertools.product(zip(x, row_scale), zip(w, column_scale))
    return {"y": [dot(row, column) * a * b for (row, a), (column, b) in pairs]}


def w8a16(of, x, w, scale):
    x, w = rows_of(x, of["K"]), rows_of(w, of["K"])
    return {"y": [dot(row, weights) * a for weights, a in zip(w, scale) for row in x]}


def w4a16(of, x, w, scale):
    x, scale = rows_of(x, of["K"]), rows_of(scale, of["G"])
    weights = []
    for words, scales in zip(rows_of(w, of["W"]), scale):
        fours = itertools.product(rows_of(words, 16), range(4))
        places = ((word, 4 * j + half) for group, j in fours for word in group for half in (0, 16))
        nibbles = [(word >> shift & 15) - 8 for word, shift in places]
        weights.append([nibble * scales[at // 128] for at, nibble in enumerate(nibbles)])
    return {"y": [dot(row, column) for column in weights for row in x]}


def linear_attention(of, q, k, v, gate, depth=64):
    """Step by step, which is how it is defined; the kernel goes by chunks."""
    q, k, v = (rows_of(x, depth) for x in (q, k, v))
    out = []
    for head in range(of["H"]):
        state = [[0.0] * depth for _ in range(depth)]
        for at in range(head * of["T"], (head + 1) * of["T"]):
            keep = sigmoid(gate[at])
            for row, key in zip(state, k[at]):
                row[:] = [keep * old + key * value for old, value in zip(row, v[at])]
            out += [dot(q[at], column) for column in zip(*state)]
    return {"o": out}


def convolution(of, x, filters):
    b, h, w, c, k = (of[name] for name in "BHWCK")
    pixels, taps = rows_of(x, c), rows_of(filters, c)
    out = []
    for image, y, at in itertools.product(range(b), range(h), range(w)):
        near = [
            (3 * r + s, pixels[(image * h + y + r - 1) * w + at + s - 1])
            for r, s in itertools.product(range(3), range(3))
            if 0 <= y + r - 1 < h and 0 <= at + s - 1 < w
        ]
        out += [sum(dot(pixel, taps[tap * k + channel]) for tap, pixel in near) for channel in range(k)]
    return {"y": out}


def top_k(of, x):
    value, place = [], []
    for row in rows_of(x, of["N"]):
        order = sorted(range(len(row)), key=lambda at: (-row[at], at))[: of["K"]]
        value += [row[at] for at in order]
        place += order
    return {"value": value, "place": place}


def histogram(of, values, counts):
    return {"counts": [count + values.count(at) for at, count in enumerate(counts)]}


# ---- the examples ----

# Per example: what it means; inputs and outputs as (type, extents); the names of its sizes; shapes; its scalars.
# The first shape is the one that Python computes.
EPSILON = {"epsilon": 1e-3}
SCALE = {"c": 0.125}
# Rows that threads cannot share evenly, also: 1023, 17, 7 and 4097.
ROWS = [(3, 1023), (1, 1), (5, 1000), (9, 17), (4, 1024), (2, 7), (3, 4097), (2, 200)]
# With a number of blocks: some have one row more than others, some have none.
LONG_ROWS = [(7, 1024, 2), (1, 64, 3), (5, 200, 2), (9, 17, 4), (3, 4096, 1), (4, 1023, 3), (2, 16392, 1)]
PRODUCTS = [(70, 40, 72), (1, 1, 16), (64, 64, 128), (65, 63, 144), (100, 130, 80), (3, 72, 272)]
OF_SOFTMAX = ({"x": ("bf16", "MN")}, {"y": ("bf16", "MN")})
OF_LAYER_NORM = ({"x": ("bf16", "MN"), "gain": ("bf16", "N"), "bias": ("bf16", "N")}, {"y": ("bf16", "MN")})
EXAMPLES = {
    softmax: (*OF_SOFTMAX, "MN", ROWS, {}),
    layer_norm: (*OF_LAYER_NORM, "MN", ROWS, EPSILON),
    softmax_persistent: (*OF_SOFTMAX, "MNB", LONG_ROWS, {}),
    layer_norm_persistent: (*OF_LAYER_NORM, "MNB", LONG_ROWS, EPSILON),
    layer_norm_long: (
        *OF_LAYER_NORM,
        "MNB",
        [(5, 4096, 2), (1, 64, 3), (3, 1048, 2), (9, 24, 4), (4, 8, 1), (2, 16392, 1)],
        EPSILON,
    ),
    rms_norm: (
        {"x": ("bf16", "MN"), "residual": ("bf16", "MN"), "gain": ("bf16", "N")},
        {"sum": ("bf16", "MN"), "y": ("bf16", "MN")},
        "MN",
        ROWS,
        EPSILON,
    ),
    cross_entropy: (
        {"x": ("bf16", "MN"), "label": ("s32", "M1")},
        {"loss": ("f32", "M1")},
        "MN",
        [(5, 700), (1, 1), (4, 512), (3, 513), (9, 1500), (2, 100)],
        {},
    ),
    cumulative_sum: (
        {"x": ("f32", "MN")},
        {"y": ("f32", "MN")},
        "MN",
        [(5, 1300), (1, 1), (4, 512), (3, 513), (9, 1023), (2, 31)],
        {},
    ),
    rope: (
        {"x": ("bf16", "SHd")},
        {"y": ("bf16", "SHd")},
        "SH",
        [(19, 2), (1, 1), (16, 3), (17, 1), (33, 2), (15, 4)],
        {},
    ),
    attention: (
        {"q": ("bf16", "HSd"), "k": ("bf16", "HTd"), "v": ("bf16", "HTd")},
        {"o": ("bf16", "HSd")},
        "HST",
        [(2, 9, 70), (1, 1, 1), (1, 64, 64), (1, 65, 63), (1, 30, 129), (2, 100, 65)],
        SCALE,
    ),
    attention_natural: (
        {"q": ("bf16", "HSd"), "k": ("bf16", "HTd"), "v": ("bf16", "HTd")},
        {"o": ("bf16", "HSd")},
        "HST",
        [(2, 9, 90), (1, 1, 1), (1, 65, 80), (1, 30, 161), (1, 193, 3)],
        SCALE,
    ),
    attention_causal: (
        {"q": ("bf16", "HSd"), "k": ("bf16", "HSd"), "v": ("bf16", "HSd")},
        {"o": ("bf16", "HSd")},
        "HS",
        [(1, 70), (1, 1), (2, 64), (1, 65), (1, 129), (2, 50)],
        SCALE,
    ),
    swiglu: (
        {"x": ("bf16", "MK"), "w": ("bf16", "NK"), "v": ("bf16", "NK")},
        {"y": ("bf16", "MN")},
        "MNK",
        PRODUCTS,
        {},
    ),
    attention_pipelined: (
        {"q": ("bf16", "HSd"), "k": ("bf16", "HTd"), "v": ("bf16", "HTd")},
        {"o": ("bf16", "HSd")},
        "HST",
        [(1, 9, 420), (1, 1, 1), (1, 128, 128), (1, 129, 127), (1, 30, 257), (2, 200, 129)],
        SCALE,
    ),
    swiglu_pipelined: (
        {"x": ("bf16", "MK"), "w": ("bf16", "NK"), "v": ("bf16", "NK")},
        {"y": ("bf16", "MN")},
        "MNKB",
        [(70, 40, 72, 2), (1, 8, 16, 1), (128, 128, 128, 1), (129, 136, 64, 3), (300, 264, 80, 2), (3, 72, 272, 1)],
        {},
    ),
    w8a8: (
        {"x": ("s8", "MK"), "w": ("s8", "NK"), "row_scale": ("f32", "M1"), "column_scale": ("f32", "1N")},
        {"y": ("bf16", "MN")},
        "MNK",
        PRODUCTS,
        {},
    ),
    w8a16: (
        {"x": ("bf16", "MK"), "w": ("s8", "NK"), "scale": ("f32", "N1")},
        {"y": ("bf16", "NM")},
        "MNK",
        PRODUCTS,
        {},
    ),
    w4a16: (
        {"x": ("bf16", "MK"), "w": ("u32", "NW"), "scale": ("f32", "NG")},
        {"y": ("bf16", "NM")},
        "MNKWG",
        [(m, n, 128 * g, 16 * g, g) for m, n, g in [(5, 70, 6), (1, 1, 1), (16, 64, 4), (17, 63, 9), (3, 130, 5), (20, 8, 13)]],
        {},
    ),
    linear_attention: (
        {"q": ("bf16", "HTe"), "k": ("bf16", "HTe"), "v": ("bf16", "HTe"), "gate": ("f32", "HT")},
        {"o": ("bf16", "HTe")},
        "HT",
        [(1, 70), (1, 1), (2, 64), (1, 65), (1, 130), (2, 50)],
        {},
    ),
    convolution: (
        {"x": ("bf16", "BHWC"), "filter": ("bf16", "9KC")},
        {"y": ("bf16", "BHWK")},
        "BHWCK",
        [(2, 3, 5, 24, 8), (1, 1, 1, 8, 8), (1, 2, 70, 72, 40), (2, 5, 64, 64, 64), (1, 3, 65, 8, 72), (3, 1, 9, 136, 16)],
        {},
    ),
    top_k: (
        {"x": ("f32", "MN")},
        {"value": ("f32", "MK"), "place": ("s32", "MK")},
        "MNK",
        [(3, 100, 5), (1, 1, 1), (2, 512, 3), (5, 31, 31), (1, 33, 2), (4, 511, 1)],
        {},
    ),
    histogram: (
        {"values": ("s32", "N"), "counts": ("u32", "b")},
        {"counts": ("u32", "b")},
        "N",
        [(5000,), (1,), (2048,), (2049,), (255,), (4097,)],
        {},
    ),
}
# The sum of squares of an adversarial row may overflow in f32, where no bound says what follows.
UNDECIDED = {(rms_norm, "adversarial")}
# Sizes that are known when the kernel is compiled, with the macros that say them.
MACROS = {
    **dict.fromkeys((softmax, layer_norm, rms_norm), {"N": "N"}),
    **dict.fromkeys((softmax_persistent, layer_norm_persistent, layer_norm_long), {"N": "N", "B": "BLOCKS"}),
    swiglu_pipelined: {"B": "BLOCKS"},
}
FIXED = {"1": 1, "9": 9, "b": 100, "d": 128, "e": 64}
# Where intermediate results are bf16: of the largest element among 64 that lie together.
MIDDLE_ROUNDOFF = {
    attention: 2.0**-6,
    attention_causal: 2.0**-6,
    attention_natural: 2.0**-6,
    attention_pipelined: 2.0**-6,
    linear_attention: 2.0**-5,
}


def command(meaning, sizes, *options):
    macros = MACROS.get(meaning, {})
    shape = ",".join(f"{name}={value}" for name, value in sizes.items() if name not in macros)
    defines = [f"-D{macro}={sizes[name]}" for name, macro in macros.items()]
    path = ROOT / "examples" / f"{meaning.__name__}.co"
    argv = [KILN, "run", str(path), "--arch", "sm_90a", "--on", "sim", "--json"]
    return argv + ["--shape", shape, *defines, *options]


def mistake_of(argv):
    """'' when the run found nothing wrong, else what it found."""
    done = batch.run(argv, ROOT, os.environ, TIMEOUT_S)
    if done.returncode != 0:
        return f"exit {done.returncode}: {' '.join(argv)}\n{done.stderr}"
    report = json.loads(done.stdout)
    found = {name: report[name] for name in COUNTS if report[name] != 0}
    for row in report["outputs"]:
        found |= {f"{row['name']}: {key}": row[key] for key in ("outside", "unwritten") if row[key]}
    return f"{found}: {' '.join(argv)}" if found else ""


def differences(meaning, dtype, got, wanted):
    """The places where `got` is further from `wanted` than rounding explains."""
    if len(got) != len(wanted):
        return [f"{len(got)} elements, not {len(wanted)}"]
    wrong = []
    for at, (have, want) in enumerate(zip(got, wanted)):
        beside = max(map(abs, wanted[at // 64 * 64 : at // 64 * 64 + 64]))
        allowed = 2 * ROUNDOFF[dtype] * abs(want) + MIDDLE_ROUNDOFF.get(meaning, 2.0**-18) * beside
        if dtype in ("s32", "u32"):
            allowed = 0
        if not abs(have - want) <= allowed:
            wrong.append(f"[{at}]: {have}, not {want}")
    return wrong


class Meaning(unittest.TestCase):
    """Against Python, with inputs that are drawn here."""

    def computed(self, meaning, change=None):
        """What is wrong with the example's results, each output's first places."""
        inputs, outputs, names, shapes, scalars = EXAMPLES[meaning]
        sizes = dict(zip(names, shapes[0]))
        extents = {**sizes, **FIXED}
        chance = random.Random(meaning.__name__)
        with tempfile.TemporaryDirectory() as scratch:
            folder, options, values = Path(scratch), [], []
            for name, (dtype, letters) in inputs.items():
                shape = [extents[letter] for letter in letters]
                largest = {"s8": 127, "s32": sizes.get("N", 1) - 1, "u32": 2**32 - 1}.get(dtype, 1)
                values.append(draw(dtype, shape, chance, largest))
                save(folder / f"{name}.npy", dtype, shape, values[-1])
                options += ["--in", f"{name}={folder / name}.npy"]
            for name in outputs:
                options += ["--out", f"{name}={folder / name}.npy"]
            self.assertEqual(mistake_of(command(meaning, sizes | scalars, *options)), "")
            wanted = meaning({**sizes, **scalars, **(change or {})}, *values)
            return {
                name: differences(meaning, dtype, load(folder / f"{name}.npy", dtype), wanted[name])[:3]
                for name, (dtype, _) in outputs.items()
            }

    def test_each_example(self):
        for meaning, (_, outputs, *_) in EXAMPLES.items():
            with self.subTest(meaning.__name__):
                self.assertEqual(self.computed(meaning), {name: [] for name in outputs})

    def test_another_meaning_is_noticed(self):
        self.assertTrue(self.computed(attention, change={"c": 0.12})["o"])
        self.assertTrue(self.computed(layer_norm, change={"epsilon": 0.1})["y"])


class Ragged(unittest.TestCase):
    def test_shapes_and_fills(self):
        cases = []
        for meaning, (_, _, names, shapes, scalars) in EXAMPLES.items():
            fills = [fill for fill in FILLS if (meaning, fill) not in UNDECIDED]
            for shape, fill in itertools.product(shapes, fills):
                sizes = dict(zip(names, shape)) | scalars
                cases.append(command(meaning, sizes, "--fill", fill, "--schedules", SCHEDULES))
        chosen = cases if ALL else cases[::SAMPLE]
        with ThreadPoolExecutor(JOBS) as pool:
            mistakes = [mistake for mistake in pool.map(mistake_of, chosen) if mistake]
        print(f"examples: {len(chosen)} of {len(cases)} runs, {len(mistakes)} wrong", flush=True)
        self.assertFalse(mistakes, "\n".join(mistakes[:5]))


if __name__ == "__main__":
    unittest.main()
