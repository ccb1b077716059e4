#!/usr/bin/env python3
"""The library's kernel of attention of 8-bit floats and the one that transposes its values, and one mistake each.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/f8_attention_kernels_test.py

As in kernels_test.py. Weights are rounded to 4 significant bits, which is as much as a sum of values of both signs would be:
values are positive here, and a wrong one of the few keys that weigh most shows. Queries and keys are whole numbers, of which
scores are exact, so that `lse` tells of every step in front of the weights. Behind the last key the values are the
largest there are.
"""

import itertools
import unittest
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import kernels_test as kernels
from attention_cases import chosen, seen_of
from kernels_test import Case, mistake_of, up
from numbers_in_files import load, save

KERNEL = "attention_f8_sm90"
TRANSPOSING = "transpose_f8_sm90"
VALUES = (0x30, 0x38, 0x40, 0x44, 0x48, 0x4A, 0x4C, 0x4E)  # 0.5 and 1 to 7
LARGEST = 0x7E
FACTORS = (0.25, 0.75, 1.25, 1.5)
KEYS_UNIT = 16
SCALE = 0.1


def formula(defines):
    seen, head = seen_of(defines), "b,h / (H / HK)"
    weight = "exp((s[b,h,i,j] - top[b,h,i]) * scale)"
    return (
        f"s[b,h,i,j] = sum[d](q[b,i,h,d] * k[b,j,h / (H / HK),d]) * q_scale[{head}] * k_scale[{head}]; "
        f"top[b,h,i] = max[j]({chosen(seen, 's[b,h,i,j]', '-inf')}); p[b,h,i,j] = {chosen(seen, weight, 0)}; "
        f"l[b,h,i] = sum[j](p[b,h,i,j]); "
        f"o[b,i,h,d] = l[b,h,i] > 0 ? sum[j](p[b,h,i,j] * vt[{head},d,j + 0]) * v_scale[{head}] / l[b,h,i] : 0; "
        "lse[b,h,i] = l[b,h,i] > 0 ? top[b,h,i] * scale + log(l[b,h,i]) : -inf"
    )


KINDS = (
    dict(),
    dict(TOGETHER=2, FEW=2, OUT="f16"),
    dict(D=64, CONSUMERS=3),
    dict(D=64, STAGES=3, TILE=192),
    dict(TILE=160, AHEAD=1, APART="false"),
    dict(D=256, AHEAD=1, TILE=96, LATE="true"),
    dict(D=256, AHEAD=1, APART="false", TILE=64, TURNS="false", OUT="f16"),
    dict(CLUSTER=2, TURNS="false", BLOCKS=4, TILE=64),
)
# Full tiles; heads that share, batches, and lengths that end within tiles; more queries than keys and fewer.
SHAPES = (
    dict(B=1, S=64, T=128, H=1, HK=1),
    dict(B=2, S=340, T=420, H=4, HK=2),
    dict(B=1, S=500, T=500, H=3, HK=1),
    dict(B=1, S=130, T=700, H=2, HK=2),
    dict(B=1, S=1, T=300, H=5, HK=5),
    dict(B=1, S=333, T=170, H=2, HK=1),
)
WINDOWS = (dict(left=130, right=40), dict(left=0, right=0), dict(left=64, causal=True))


class OnValues(kernels.Broken):
    def case(self, shape, defines, kernel=KERNEL, factors=FACTORS, **numbers):
        batch, heads, depth = shape["B"], shape["HK"], defines.get("D", 128)
        behind = up(shape["T"], KEYS_UNIT) - shape["T"]
        stem = f"{batch}x{heads}x{depth}x{shape['T']}of{'-'.join(map(str, factors))}"
        files = {name: self.folder / f"{name}{stem}.npy" for name in ("vt", "q_scale", "k_scale", "v_scale")}
        if not files["vt"].exists():
            rows = [
                self.chance.choices(VALUES, k=shape["T"]) + [LARGEST] * behind for _ in range(batch * heads * depth)
            ]
            save(files["vt"], "f8_e4m3", rows, (batch, heads, depth, shape["T"] + behind))
            for name, among in (("q_scale", factors), ("k_scale", factors), ("v_scale", FACTORS)):
                save(files[name], "f32", [self.chance.choices(among, k=heads) for _ in range(batch)])
        shape = shape | dict(TP=shape["T"] + behind, scale=SCALE) | numbers
        defines = dict(BLOCKS=3) | defines
        options = ["--fill", "integers", *(f"--in={name}={path}" for name, path in files.items())]
        return Case(kernel, shape, defines, (*options, "--expect", formula(defines)))

    def right(self, cases):
        with ThreadPoolExecutor(kernels.JOBS) as pool:
            mistakes = [mistake for mistake in pool.map(mistake_of, cases) if mistake]
        self.assertFalse(mistakes, "\n".join(mistakes[:5]))

    def transposed(self, sizes, kernel=TRANSPOSING):
        """What the kernel makes of random words, byte by byte, beside a few lines of Python."""
        batch, keys, heads, words, out_words = sizes
        rows = [self.chance.choices(range(1 << 32), k=words) for _ in range(batch * keys * heads)]
        save(self.folder / "v.npy", "u32", rows, (batch, keys, heads, words))
        shape = dict(B=batch, T=keys, HK=heads, W=words, N=out_words)
        options = (f"--in=v={self.folder / 'v.npy'}", f"--out=vt={self.folder / 'vt.npy'}")
        mistake = mistake_of(Case(kernel, shape, {}, options))
        self.assertFalse(mistake, mistake)
        found = b"".join(bytes(self.bytes_of(row)) for row in load(self.folder / "vt.npy", "u32", out_words))
        given = [bytes(self.bytes_of(row)) for row in rows]
        wanted = bytearray()
        for b, h, d in itertools.product(range(batch), range(heads), range(4 * words)):
            wanted += bytes(given[(b * keys + t) * heads + h][d] for t in range(keys)) + bytes(4 * out_words - keys)
        self.assertTrue(found == bytes(wanted), "other numbers")

    @staticmethod
    def bytes_of(words):
        return itertools.chain.from_iterable(word.to_bytes(4, "little") for word in words)


class Values(OnValues):
    def cases(self):
        for defines, causal, shape in itertools.product(KINDS, ("false", "true"), SHAPES):
            if causal == "false" or "CLUSTER" not in defines:
                yield self.case(shape, defines | dict(CAUSAL=causal))
        for window, shape in itertools.product(WINDOWS, SHAPES):
            numbers = {name: width for name, width in window.items() if name != "causal"}
            defines = dict(D=64, TILE=64) | {name.upper(): "true" for name in numbers}
            yield self.case(shape, defines | dict(CAUSAL="true" if "causal" in window else "false"), **numbers)

    def test_kinds(self):
        cases = list(self.cases())
        self.right(cases if kernels.ALL else cases[:: kernels.SAMPLE])

    def test_other_orders_of_execution(self):
        case = self.case(SHAPES[1], dict(D=64, TILE=64, CAUSAL="true"))
        self.right([replace(case, options=(*case.options, "--schedules", "6"))])

    def test_nothing_is_seen(self):
        """Rows of queries without keys are 0 and minus infinity."""
        case, out = self.case(dict(B=1, S=70, T=6, H=1, HK=1), dict(D=64, CAUSAL="true")), self.folder / "lse.npy"
        self.right([replace(case, options=(*case.options, f"--out=lse={out}"))])
        (row,) = load(out, "f32", 70)
        self.assertEqual(row[:64], [float("-inf")] * 64)
        self.assertTrue(all(abs(x) < 1e4 for x in row[64:]), row[64:])


    def test_factors_of_nothing(self):
        """Where scores are 0 or next to it by their factors, all keys weigh the same."""
        shapes = (SHAPES[0], dict(B=2, S=150, T=130, H=2, HK=1))
        cases = itertools.product(shapes, ((0,), (1e-20,), (0, 1.5)), ("false", "true"))
        self.right([self.case(shape, dict(D=64, CAUSAL=causal), factors=factors) for shape, factors, causal in cases])


class Transposition(OnValues):
    def test_sizes(self):
        for sizes in ((1, 128, 1, 16, 32), (2, 131, 3, 32, 36), (1, 1, 2, 64, 4), (1, 300, 1, 20, 76)):
            self.transposed(sizes)

    def test_other_orders_of_execution(self):
        shape = dict(B=1, T=200, HK=2, W=32, N=52)
        self.right([Case(TRANSPOSING, shape, {}, ("--fill", "integers", "--schedules", "8"))])


# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = (
    ("shift = shift - __to<f32>(RAISED);", "", "outside"),
    ("l = l * __exp2f(__to<f32>(-RAISED));", "", "outside"),
    ("share = share * factor_of(v_scale, item, H);", "", "outside"),
    ("share * factor_of(v_scale", "share * factor_of(k_scale", "outside"),
    ("m = m * (factor_of(q_scale, item, H) * factor_of(k_scale, item, H));", "", "outside"),
    ("factor_of(k_scale, places[0], H)", "factor_of(v_scale, places[0], H)", "outside"),
    ("factor_of(k_scale, places[(round + 1) % Q], H)", "factor_of(k_scale, places[round % Q], H)", "outside"),
    ("item.at(PLACE_HEAD) / (H / HK))", "item.at(PLACE_HEAD) % HK)", "outside"),
    ("load_across<CLUSTER>(x, ring[at % STAGES], full.at(at), empty.at(at), b, h / (H / HK), count - 1 - n)",
     "load_across<CLUSTER>(x, ring[at % STAGES], full.at(at), empty.at(at), b, h / (H / HK), n)", "outside"),
    ("wait full;\n  if constexpr (ACROSS)", "if constexpr (ACROSS)", "race"),
    ("wait empty;\n  if constexpr (CLUSTER > 1) {\n    tma.copy.async<full>.swiz<SWIZZLE>.multicast x.subspan(1, 1, C",
     "if constexpr (CLUSTER > 1) {\n    tma.copy.async<full>.swiz<SWIZZLE>.multicast x.subspan(1, 1, C", "phase-overrun"),
    ("weights = __to<DTYPE>(scores);", "", "outside"),
)  # fmt: skip
TRANSPOSING_MISTAKES = (
    ("((b & 0x00ff00ff) << 8)", "(b & 0x00ff00ff)", ""),
    ("((a >> 8) & 0x00ff00ff)", "(a & 0x00ff00ff)", ""),
    ("(cd_even << 16)", "(cd_odd << 16)", ""),
    ("v_s.at(4 * key + 2, i)", "v_s.at(4 * key + 3, i)", ""),
    ("8 * side, key", "4 * side, key", "uninitialised"),
    ("head % HK, part, j, n", "head % HK, part, 0, n", "race"),
)


class NegativeControl(OnValues):
    def test_attention(self):
        shape = dict(B=1, S=200, T=330, H=4, HK=2)
        for change in MISTAKES:
            with self.subTest(change):
                kernel = self.broken(KERNEL, change)
                case = self.case(shape, dict(BLOCKS=2, D=64, TILE=64), kernel)
                self.assertIn(change[2], mistake_of(replace(case, options=(*case.options, "--check", "full"))))

    def test_factors_of_nothing(self):
        kernel = self.broken(KERNEL, ("return factor == 0.0f ? 1e-37f : factor;", "return factor;"))
        case = self.case(dict(B=1, S=70, T=130, H=1, HK=1), dict(BLOCKS=2, D=64, TILE=64), kernel, factors=(0,))
        self.assertIn("outside", mistake_of(case))

    def test_transposition(self):
        for change in TRANSPOSING_MISTAKES:
            with self.subTest(change), self.assertRaises(AssertionError) as found:
                self.transposed((1, 131, 2, 16, 36), self.broken(TRANSPOSING, change))
            self.assertIn(change[2] or "other numbers", str(found.exception))


if __name__ == "__main__":
    unittest.main(verbosity=1)
