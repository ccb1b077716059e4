#!/usr/bin/env python3
"""The library's kernel of the gradients of attention over sequences of any lengths, and one mistake each.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/varlen_gradients_test.py

As varlen_kernels_test.py. What lies in front of the first sequence and behind the last one is not a number.
"""

import json
import unittest

import kernels_test as kernels
from attention_cases import CAPPED, chosen
from kernels_test import Case, execute
from numbers_in_files import NUMBERS, save
from varlen_kernels_test import NAN, Batch, bounds_of

KERNEL = "attention_varlen_backward_sm90"
NOT_A_NUMBER = float("nan")


def formulas(defines):
    """Of an o and an lse that need not be those of q, k and v."""
    bounds, seen = bounds_of(defines)
    capped = "SOFT_CAP" in defines
    score, growth = ("t[h,r,j] * soft_cap", " * (1 - t[h,r,j] * t[h,r,j])") if capped else ("s[h,r,j] * scale", "")
    of_head = "h * HK >= g * H && h * HK < g * H + H"
    inside = "r >= cu_seqlens_q[0] && r < cu_seqlens_q[N - 1]"
    owned = "j >= cu_seqlens_k[0] && j < cu_seqlens_k[N - 1]"
    masked = lambda value: chosen(seen, value, 0)
    return "; ".join(
        [
            *bounds,
            f"s[h,r,j] = sum[d](({masked('q[r,h,d]')}) * ({masked('k[j,h / (H / HK),d]')}))",
            *["t[h,r,j] = tanh(s[h,r,j] * scale / soft_cap)"][: int(capped)],
            f"p[h,r,j] = {masked(f'exp({score} - lse[h,r])')}",
            f"dp[h,r,j] = sum[d](({masked('dout[r,h,d]')}) * ({masked('v[j,h / (H / HK),d]')}))",
            f"delta[h,r] = sum[d]({inside} ? o[r,h,d] * dout[r,h,d] : 0)",
            f"ds[h,r,j] = p[h,r,j] * (dp[h,r,j] - delta[h,r]){growth}",
            f"dq[r,h,d] = {inside} ? scale * sum[j](ds[h,r,j] * ({masked('k[j,h / (H / HK),d]')})) : inf - inf",
            f"dk[j,g,d] = {owned} ? scale * sum[h,r]({of_head} ? ds[h,r,j] * ({masked('q[r,h,d]')}) : 0) : inf - inf",
            f"dv[j,g,d] = {owned} ? sum[h,r]({of_head} ? p[h,r,j] * ({masked('dout[r,h,d]')}) : 0) : inf - inf",
        ]
    )


class OfGradients(kernels.Broken):
    def numbers(self, name, rows, used, of_row, dtype="f16"):
        """A file of rows, whose numbers are ones only where `used` has the row."""
        values = list(NUMBERS[dtype].values())
        nothing = NAN if dtype == "f16" else NOT_A_NUMBER
        width = 1
        for extent in of_row:
            width *= extent
        found = [self.chance.choices(values, k=width) if row in used else [nothing] * width for row in range(rows)]
        save(self.folder / f"{name}.npy", dtype, found, (rows, *of_row))

    def mistake(self, batch, heads=(1, 2), kernel=KERNEL, numbers=None, **defines):
        """'' when the run found nothing wrong, else what it found."""
        key_heads, sharing = heads
        defines = dict(DTYPE="f16", D=64) | defines
        depth = defines["D"]
        front_q, back_q, front_k, back_k = 5, 7, batch.front, batch.back
        starts_q, starts_k = batch.starts(batch.queries, front_q), batch.starts(batch.keys, front_k)
        rows_q, rows_k, all_heads = starts_q[-1] + back_q, starts_k[-1] + back_k, key_heads * sharing
        save(self.folder / "cu_seqlens_q.npy", "s32", [starts_q], (len(starts_q),))
        save(self.folder / "cu_seqlens_k.npy", "s32", [starts_k], (len(starts_k),))
        for name in ("q", "o", "dout"):
            self.numbers(name, rows_q, range(front_q, starts_q[-1]), (all_heads, depth))
        for name in ("k", "v"):
            self.numbers(name, rows_k, range(front_k, starts_k[-1]), (key_heads, depth))
        ones = list(NUMBERS["f32"].values())
        lse = [
            [self.chance.choice(ones) if front_q <= row < starts_q[-1] else NOT_A_NUMBER for row in range(rows_q)]
            for _ in range(all_heads)
        ]
        save(self.folder / "lse.npy", "f32", lse)
        shape = dict(S=rows_q, T=rows_k, H=all_heads, HK=key_heads, N=len(starts_q), scale=4 / depth) | (numbers or {})
        names = ("cu_seqlens_q", "cu_seqlens_k", "q", "k", "v", "o", "dout", "lse")
        files = [f"--in={name}={self.folder / name}.npy" for name in names]
        case = Case(kernel, shape, defines, (*files, "--expect", formulas(defines), *self.more))
        code, out, err = execute(case.argv())
        if code != 0:
            return f"exit {code}: {' '.join(case.argv())}\n{err}"
        report = json.loads(out)
        found = {name: report[name] for name in kernels.COUNTS if report[name] != 0}
        gaps = {"dq": (front_q + back_q) * all_heads * depth}
        gaps |= {name: (front_k + back_k) * key_heads * depth for name in ("dk", "dv")}
        for row in report["outputs"]:
            wanted = dict(outside=0, unwritten=gaps[row["name"]], not_compared=0)
            found |= {f"{row['name']}: {key}": row[key] for key in wanted if row[key] != wanted[key]}
        return f"{found}: {' '.join(case.argv())}" if found else ""

    more = ()

    def right(self, *arguments, **named):
        mistake = self.mistake(*arguments, **named)
        self.assertFalse(mistake, mistake)


# Lengths of nothing, one, around tiles of 64 and 128; queries without keys and keys without queries.
EDGES = Batch((1, 63, 0, 129, 5, 64), (1, 64, 40, 130, 0, 63), front=3, back=5)
LONG_KEYS = Batch((70, 1, 40), (200, 150, 41))
LONG_QUERIES = Batch((200, 3, 130), (70, 1, 127), front=1, back=9)
BATCHES = (EDGES, LONG_KEYS, LONG_QUERIES)


class Values(OfGradients):
    def test_lengths(self):
        for batch in BATCHES:
            for causal in ("false", "true"):
                self.right(batch, CAUSAL=causal)

    def test_variants(self):
        self.right(EDGES, D=128, CAUSAL="true")
        self.right(LONG_KEYS, D=96, QUERY_TILE=32, KEY_TILE=64, STAGES=3)
        self.right(LONG_QUERIES, D=256, HALVES="true", KEY_TILE=48, CAUSAL="true")
        self.right(EDGES, D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, EARLY="true")
        self.right(LONG_KEYS, D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, EARLY="true", CAUSAL="true")

    def test_windows_and_soft_caps(self):
        self.right(EDGES, numbers=dict(left=20, right=9), LEFT="true", RIGHT="true")
        self.right(LONG_KEYS, numbers=dict(left=30), LEFT="true")
        self.right(LONG_QUERIES, numbers=dict(right=70), RIGHT="true")
        self.right(LONG_KEYS, numbers=dict(left=30, soft_cap=0.5), LEFT="true", CAUSAL="true", SOFT_CAP="true")
        halves = dict(D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, EARLY="true")
        self.right(EDGES, numbers=dict(right=9, soft_cap=1.5), RIGHT="true", SOFT_CAP="true", **halves)

    def test_heads(self):
        for heads in ((1, 1), (3, 1), (1, 5), (2, 3)):
            self.right(Batch((130, 7), (65, 140)), heads, CAUSAL="true")

    def test_many_sequences(self):
        self.right(Batch((3,), (70,)))
        self.right(Batch((1,) * 20, tuple(range(1, 21))), (1, 1))
        self.right(Batch((0, 0, 5, 0, 0), (0, 9, 3, 0, 7)), CAUSAL="true")

    def test_other_orders_of_execution(self):
        self.more = ("--schedules", "8")
        for causal in ("false", "true"):
            self.right(Batch((70, 0, 66), (140, 9, 33), front=1, back=9), CAUSAL=causal)


# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = (
    ("if (count < R) {", "if (count < 0) {", ""),
    ("tma.copy.async<full>.swiz<0> of_rows.view(1, R).from(h, place)", "tma.copy.async<full>.swiz<0> of_rows.view(1, R).from(h, 0)", ""),
    ("l > -inf ? sum.at(r) : 0.0f", "sum.at(r)", ""),
    ("x.view(__max(0, count), 1, D)", "x.view(ROWS, 1, D)", "race"),
    ("if (i < 0 || i * QUERIES >= all) yield;", "", ""),
    ("if (slot_of<TILE>(cu_seqlens, middle, rows) <= slot)", "if (slot_of<TILE>(cu_seqlens, middle, rows) < slot)", ""),
    ("queries = all - tile * QUERIES;", "queries = all;", ""),
    ("__max(1, cdiv(end_of", "__max(0, cdiv(end_of", "deadlock"),
)


class NegativeControl(OfGradients):
    def test_mistakes(self):
        self.more = ("--check", "full")
        batch = Batch((100, 0, 130, 40), (70, 9, 133, 0), front=1, back=9)
        for change in MISTAKES:
            with self.subTest(change):
                kernel = self.broken(KERNEL, change)
                found = self.mistake(batch, (1, 2), kernel=kernel, CAUSAL="true")
                self.assertTrue(found)
                self.assertIn(change[2], found)


if __name__ == "__main__":
    unittest.main(verbosity=1)
