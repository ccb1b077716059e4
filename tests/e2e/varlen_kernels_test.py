#!/usr/bin/env python3
"""The library's kernel of attention over sequences of any lengths, one behind the other, and one mistake each.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/varlen_kernels_test.py

As in kernels_test.py. Keys and values that no query sees are not numbers: those in front of the first sequence, behind the
last one, and of sequences without queries, which lie between others.
"""

import itertools
import json
import unittest
from dataclasses import dataclass, replace

import kernels_test as kernels
from attention_cases import chosen
from kernels_test import Case, execute
from numbers_in_files import NUMBERS, load, save

KERNEL = "attention_varlen_sm90"
NAN = 0x7E00  # of f16
SCALE = 0.25


@dataclass(frozen=True)
class Batch:
    """Rows of each sequence; `front` and `back` rows belong to none."""

    queries: tuple
    keys: tuple
    front: int = 0
    back: int = 0

    def starts(self, lengths, front=0):
        return list(itertools.accumulate(lengths, initial=front))


def bounds_of(defines):
    """Formulas of where the keys of row r's sequence begin and end, and when the row sees key j."""
    own = "r + end[r] - stop[r]"
    conditions = (("CAUSAL", f"j <= {own}"), ("RIGHT", f"j <= {own} + right"), ("LEFT", f"j >= {own} - left"))
    masks = [condition for name, condition in conditions if defines.get(name) == "true"]
    bounds = [
        "begin[r] = max[n](cu_seqlens_q[n] <= r ? cu_seqlens_k[n] : 0 * q[r,0,0])",
        "end[r] = min[n](cu_seqlens_q[n] > r ? cu_seqlens_k[n] : inf + 0 * q[r,0,0])",
        *["stop[r] = min[n](cu_seqlens_q[n] > r ? cu_seqlens_q[n] : inf + 0 * q[r,0,0])"][: len(masks)],
    ]
    return bounds, " && ".join(["j >= begin[r]", "j < end[r]", *masks])


def formulas(defines):
    bounds, seen = bounds_of(defines)
    capped = "SOFT_CAP" in defines
    score, factor = ("tanh(s[h,r,j] * scale / soft_cap)", "soft_cap") if capped else ("s[h,r,j]", "scale")
    # What the kernel takes scores less need not be the largest of them: so no weight is 1, which would be exact.
    parts = [
        *bounds,
        f"s[h,r,j] = sum[d](q[r,h,d] * ({chosen(seen, 'k[j,h / (H / HK),d]', 0)}))",
        f"t[h,r,j] = {score}",
        f"top[h,r] = max[j]({chosen(seen, 't[h,r,j]', '-inf')})",
        f"p[h,r,j] = {chosen(seen, f'exp((t[h,r,j] - top[h,r]) * {factor} + 1)', 0)}",
        "l[h,r] = sum[j](p[h,r,j])",
        f"total[r,h,d] = sum[j](p[h,r,j] * ({chosen(seen, 'v[j,h / (H / HK),d]', 0)}))",
        "o[r,h,d] = l[h,r] > 0 ? total[r,h,d] / l[h,r] : 0",
        f"lse[h,r] = l[h,r] > 0 ? top[h,r] * {factor} + log(l[h,r]) - 1 : -inf",
    ]
    return "; ".join(parts)


def mistake_of(case):
    """All results are compared: each is a number, or minus infinity where there are no keys."""
    return kernels.mistake_of(case, ("outside", "not_compared"))


class OfSequences(kernels.Broken):
    def case(self, batch, heads=(1, 2), kernel=KERNEL, numbers=None, **defines):
        key_heads, sharing = heads
        defines = dict(DTYPE="f16", BLOCKS=3, D=64) | defines
        depth = defines["D"]
        starts_q, starts_k = batch.starts(batch.queries), batch.starts(batch.keys, batch.front)
        rows = starts_k[-1] + batch.back
        save(self.folder / "cu_seqlens_q.npy", "s32", [starts_q], (len(starts_q),))
        save(self.folder / "cu_seqlens_k.npy", "s32", [starts_k], (len(starts_k),))
        used = [
            any(begin <= row < end and queries > 0 for begin, end, queries in zip(starts_k, starts_k[1:], batch.queries))
            for row in range(rows)
        ]
        values = list(NUMBERS["f16"].values())
        for name, columns in (("k", depth), ("v", defines.get("DV", depth))):
            numbers_of = [
                self.chance.choices(values, k=columns) if used[row] else [NAN] * columns
                for row in range(rows)
                for _ in range(key_heads)
            ]
            save(self.folder / f"{name}.npy", "f16", numbers_of, (rows, key_heads, columns))
        shape = dict(S=starts_q[-1], T=rows, H=key_heads * sharing, HK=key_heads, N=len(starts_q), scale=SCALE)
        files = [f"--in={name}={self.folder / name}.npy" for name in ("cu_seqlens_q", "cu_seqlens_k", "k", "v")]
        return Case(kernel, shape | (numbers or {}), defines, (*files, "--expect", formulas(defines)))

    def right(self, *arguments, **named):
        mistake = mistake_of(self.case(*arguments, **named))
        self.assertFalse(mistake, mistake)


# Lengths of nothing, one, less than a tile, a tile, one more; queries without keys and keys without queries.
EDGES = Batch((1, 127, 128, 0, 129, 5, 64), (1, 127, 128, 40, 129, 0, 65), front=3, back=5)
LONG_KEYS = Batch((70, 1, 40, 200), (200, 300, 41, 270))
LONG_QUERIES = Batch((200, 3, 130), (70, 1, 129), front=1)
BATCHES = (EDGES, LONG_KEYS, LONG_QUERIES)


# As attention_cases.ATTENTIONS has them, and depths whose rows are no multiple of 128 bytes.
VARIANTS = (
    dict(D=128, BLOCKS=2),
    dict(D=64, CONSUMERS=3, STAGES=3, TOGETHER=2),
    dict(D=64, TILE=176, AHEAD=1, APART="false"),
    dict(D=96, CAUSAL="true"),
    dict(D=192, DV=128, TILE=112, AHEAD=1, CAUSAL="true"),
    dict(D=256, TILE=80, AHEAD=1, APART="false", SPARE="true", TURNS="false"),
)
WINDOWS = (
    (dict(LEFT="true", RIGHT="true"), dict(left=17, right=20)),
    (dict(LEFT="true", RIGHT="true"), dict(left=0, right=0)),
    (dict(LEFT="true"), dict(left=100)),
    (dict(RIGHT="true"), dict(right=5)),
    (dict(LEFT="true", CAUSAL="true"), dict(left=64)),
    (dict(CAUSAL="true", SOFT_CAP="true"), dict(soft_cap=1.5)),
)


class Values(OfSequences):
    def test_drawn(self):
        self.right(LONG_KEYS, (4, 1), CAUSAL="true", DRAWN="true", KEYS_TOGETHER=600)
        self.right(LONG_QUERIES, DRAWN="true")
        self.right(LONG_KEYS, CAUSAL="true", DRAWN="true", LEFT="true", numbers=dict(left=64))
        self.right(Batch((65, 7), (130, 140)), (2, 3), CAUSAL="true", DRAWN="true", D=256, TILE=80, AHEAD=1, APART="false", SPARE="true")
        self.right(Batch((1,) * 40, tuple(range(1, 41))), (1, 1), BLOCKS=2, DRAWN="true")

    def test_lengths(self):
        for batch in BATCHES:
            for causal in ("false", "true"):
                self.right(batch, CAUSAL=causal)

    def test_variants(self):
        for variant, batch in zip(VARIANTS, itertools.cycle(BATCHES)):
            self.right(batch, **variant)

    def test_windows_and_soft_caps(self):
        for (defines, numbers), batch in itertools.product(WINDOWS, BATCHES[1:]):
            self.right(batch, numbers=numbers, **defines)

    def test_heads(self):
        for heads in ((1, 1), (3, 1), (1, 5), (2, 3)):
            self.right(Batch((130, 7), (65, 140)), heads, CAUSAL="true", BLOCKS=4)

    def test_fewer_items_than_blocks_and_many_sequences(self):
        self.right(Batch((3,), (70,)), BLOCKS=132)
        self.right(Batch((1,) * 40, tuple(range(1, 41))), (1, 1), BLOCKS=2)
        self.right(Batch((0, 0, 5, 0, 0), (0, 9, 3, 0, 7)), CAUSAL="true")

    def test_other_orders_of_execution(self):
        for causal in ("false", "true"):
            case = self.case(Batch((130, 0, 70), (140, 9, 33), front=1, back=9), CAUSAL=causal)
            mistake = mistake_of(replace(case, options=(*case.options, "--schedules", "8")))
            self.assertFalse(mistake, mistake)

    def results(self, case, starts_q=None, starts_k=None):
        """The report, and o and lse by rows, where nothing was written as it was before."""
        for name, starts in (("cu_seqlens_q", starts_q), ("cu_seqlens_k", starts_k)):
            if starts is not None:
                save(self.folder / f"{name}.npy", "s32", [starts], (len(starts),))
        files = [f"--out={name}={self.folder / name}_out.npy" for name in ("o", "lse")]
        code, out, err = execute(replace(case, options=(*case.options, *files)).argv())
        self.assertEqual(code, 0, err)
        depth, rows = case.defines["D"], case.shape["S"]
        found = load(self.folder / "o_out.npy", "f16", depth * case.shape["H"]), load(self.folder / "lse_out.npy", "f32", rows)
        return {row["name"]: row for row in json.loads(out)["outputs"]}, *found

    def test_what_sees_no_key(self):
        case = self.case(Batch((3, 70, 4), (0, 65, 2)), CAUSAL="true")
        report, o, lse = self.results(case)
        self.assertEqual([row["unwritten"] for row in report.values()], [0, 0])
        blind = [*range(3), *range(3, 8), 73, 74]
        nothing = float("-inf")
        for row in range(77):
            self.assertEqual([row in blind] * 2, [head[row] == nothing for head in lse])
            self.assertEqual(row in blind, not any(o[row]))

    def test_rows_of_no_sequence_stay(self):
        case = self.case(Batch((70, 130, 9), (65, 140, 9)))
        case = replace(case, options=case.options[:4])
        report, _, lse = self.results(case, starts_q=[5, 70, 200, 200])
        self.assertEqual([report[name]["unwritten"] for name in ("o", "lse")], [14 * 2 * 64, 14 * 2])

    def test_numbers_beyond_the_rows(self):
        case = self.case(Batch((70, 130, 9), (65, 140, 9)))
        case = replace(case, options=case.options[:4])
        report, _, _ = self.results(case, starts_q=[-5, 70, 200, 1 << 30], starts_k=[-(1 << 31), 65, 1 << 30, 205])
        self.assertEqual([report[name]["unwritten"] for name in ("o", "lse")], [0, 0])


# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = (
    ("if (count < R) {", "if (count < 0) {", ""),
    ("if (r >= count % 8) tile", "if (r > count % 8) tile", ""),
    ("wait landed;", "", "race"),
    ("R / 8 - cdiv(count, 8)] fetch_eight(x, tile, full, T", "R / 8 - cdiv(count, 8)] fetch_eight(x, tile, full, row + (cdiv(count, 8) + n) * 8", ""),
    ("wait placed[(round + 1) % Q];", "", "race"),
    ("trigger taken[round % Q];\n        acc", "acc", "deadlock"),
    ("wait taken[round % Q];", "", "phase-overrun"),
    ("before += tiles * heads;", "before += tiles;", "result-unwritten"),
    ("first + inside % together", "first", "race"),
    ("query + i * QUERIES,", "query,", "race"),
    ("if (r < count) lse", "if (r < ROWS) lse", "race"),
    ("o.view(count, 1, C)", "o.view(ROWS, 1, C)", "race"),
    ("keys = __max(0, row_of(cu_seqlens_k, next + 1, rows_k) - key)", "keys = rows_k - key", ""),
    ("passed_of<LEFT>(0, queries, keys, left);\n        if constexpr (AHEAD", "passed_of<LEFT>(ROWS, queries, keys, left);\n        if constexpr (AHEAD", ""),
    ("raise<true>(s, m, alpha, c);\n    weigh<true>", "raise<false>(s, m, alpha, c);\n    weigh<false>", ""),
    ("settle<true, 1>", "settle<false, 1>", ""),
)


MISTAKES_OF_DRAWN = (
    ("if (round > 0) wait begun[(round - 1) % Q];", "if (round >= 0) wait begun[round % Q];", "deadlock"),
    ("if constexpr (DRAWN) trigger begun[round % Q];", "", "event-never-triggered"),
    ("if constexpr (DRAWN) begin_draw(counter);", "", "uninitialised"),
    ("first + inside % together", "first", "result-unwritten"),
)


class NegativeControl(OfSequences):
    def test_mistakes_of_drawn(self):
        for change in MISTAKES_OF_DRAWN:
            with self.subTest(change):
                kernel = self.broken(KERNEL, change)
                case = self.case(Batch((100, 40), (70, 9)), (5, 1), kernel=kernel, CAUSAL="true", BLOCKS=2, DRAWN="true")
                self.assertIn(change[2], mistake_of(case))

    def test_mistakes(self):
        batch = Batch((100, 0, 130, 200, 40), (70, 9, 133, 203, 0), front=1, back=9)
        for change in MISTAKES:
            with self.subTest(change):
                kernel = self.broken(KERNEL, change)
                case = self.case(batch, (1, 3), kernel=kernel, numbers=dict(left=90), CAUSAL="true", LEFT="true", BLOCKS=2)
                self.assertIn(change[2] or "outside", mistake_of(replace(case, options=(*case.options, "--check", "full"))))


if __name__ == "__main__":
    unittest.main(verbosity=1)
