#!/usr/bin/env python3
"""The library's kernel of attention over a cache: pages in any order, lengths that differ, and one mistake each.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/decode_kernels_test.py

As in kernels_test.py. What of the cache is not in use is not a number, and what of the table is not is no page.
"""

import unittest
from dataclasses import dataclass, replace

import kernels_test as kernels
from kernels_test import Case, mistake_of
from numbers_in_files import NUMBERS, load, save

KERNEL = "attention_decode_sm90"
NAN = 0x7E00  # of f16
SCALE = 0.25


@dataclass(frozen=True)
class Cache:
    """Keys of so many sequences, in pages of so many; page_size 0: each sequence has its rows."""

    lengths: tuple
    page_size: int = 0
    pages_each: int = 1
    rows: int = 0


def formulas(paged, causal):
    of_keys, key, row = ("u,r", "u * P + r", "page_table[b,u],r") if paged else ("r", "r", "b,r")
    seen = f"{key} < lengths[b]" + (f" && {key} <= i + lengths[b] - S" if causal else "")
    s, p = f"s[b,h,i,{of_keys}]", f"p[b,h,i,{of_keys}]"
    # What the kernel takes scores less need not be the largest of them: so no weight is 1, which would be exact.
    parts = [
        f"{s} = sum[d](q[b,i,h,d] * ({seen} ? k[{row},h / (H / HK),d] : 0))",
        f"top[b,h,i] = max[{of_keys}]({seen} ? {s} : -inf)",
        f"{p} = {seen} ? exp(({s} - top[b,h,i]) * scale + 1) : 0",
        f"l[b,h,i] = sum[{of_keys}]({p})",
        f"total[b,h,i,d] = sum[{of_keys}]({p} * ({seen} ? v[{row},h / (H / HK),d] : 0))",
        "o[b,i,h,d] = l[b,h,i] > 0 ? total[b,h,i,d] / l[b,h,i] : 0",
        "lse[b,h,i] = l[b,h,i] > 0 ? top[b,h,i] * scale + log(l[b,h,i]) - 1 : -inf",
    ]
    return "; ".join(parts)


class OnCache(kernels.Broken):
    def cache_of(self, cache, key_heads, depth):
        """Files of lengths, of the table and of a cache; the dimensions that they have."""
        batch = len(cache.lengths)
        save(self.folder / "lengths.npy", "s32", [cache.lengths], (batch,))
        used = [set() for _ in cache.lengths]  # (page, row) that are in use
        if cache.page_size:
            pages, size = batch * cache.pages_each, cache.page_size
            free = self.chance.sample(range(pages), pages)
            table = []
            for keys, length in zip(used, cache.lengths):
                own = [free.pop() for _ in range(-(-max(length, 0) // size))]
                keys.update((own[t // size], t % size) for t in range(length))
                table.append(own + [self.chance.choice((-1, 1 << 30)) for _ in range(cache.pages_each - len(own))])
            save(self.folder / "page_table.npy", "s32", table)
        else:
            pages, size = batch, cache.rows
            for b, (keys, length) in enumerate(zip(used, cache.lengths)):
                keys.update((b, t) for t in range(min(length, size)))
        taken = set().union(*used)
        numbers = list(NUMBERS["f16"].values())
        for name in ("k", "v"):
            rows = [
                self.chance.choices(numbers, k=depth) if (page, row) in taken else [NAN] * depth
                for page in range(pages)
                for row in range(size)
                for _ in range(key_heads)
            ]
            save(self.folder / f"{name}.npy", "f16", rows, (pages, size, key_heads, depth))
        dims = dict(B=batch, N=pages, P=size)
        return dims | (dict(PAGES=cache.pages_each) if cache.page_size else {})

    def case(self, cache, heads, queries=1, splits=1, causal=True, kernel=KERNEL, scale=SCALE, **defines):
        key_heads, sharing = heads
        depth = defines.setdefault("D", 64)
        dims = self.cache_of(cache, key_heads, depth)
        shape = dims | dict(S=queries, H=key_heads * sharing, HK=key_heads, splits=splits, scale=scale)
        paged = cache.page_size != 0
        word = lambda holds: str(holds).lower()
        defines |= dict(DTYPE="f16", PAGED=word(paged), CAUSAL=word(causal), SPLIT=word(splits > 1))
        files = [f"--in={name}={self.folder / name}.npy" for name in ("lengths", "k", "v")]
        if paged:
            files.append(f"--in=page_table={self.folder / 'page_table'}.npy")
        return Case(kernel, shape, defines, (*files, "--expect", formulas(paged, causal)))

    def right(self, *arguments, **named):
        mistake = mistake_of(self.case(*arguments, **named))
        self.assertFalse(mistake, mistake)


class Values(OnCache):
    def test_pages(self):
        self.right(Cache((100, 64, 1), 64, 3), (2, 4), splits=3)
        self.right(Cache((100, 7, 130), 16, 9), (2, 3), splits=2, PIECE=16, STAGES=2)
        self.right(Cache((40, 90), 48, 2), (1, 8), PIECE=16, D=128)
        self.right(Cache((33, 24), 8, 6), (1, 2), PIECE=8)
        self.right(Cache((300, 200), 256, 2), (1, 2), splits=4)

    def test_rows_of_each_sequence(self):
        self.right(Cache((130, 1, 77), rows=130), (2, 2), splits=2)
        self.right(Cache((64, 50), rows=100), (1, 4), D=256, STAGES=2, TOGETHER=1)

    def test_several_queries(self):
        for causal in (False, True):
            self.right(Cache((100, 66, 5), 64, 2), (2, 3), queries=5, splits=2, causal=causal)
            self.right(Cache((90,), rows=90), (1, 5), queries=15, causal=causal)  # two strips of rows

    def test_sequences_without_keys(self):
        self.right(Cache((0, 70, -3, 2), 64, 2), (1, 2), queries=4, splits=3)
        self.right(Cache((0, 70, 1), rows=70), (2, 1))

    def test_lengths_beyond_the_room(self):
        self.right(Cache((100, 60), rows=80), (1, 2), splits=2)

    def test_more_splits_than_tiles(self):
        self.right(Cache((70, 1), 64, 2), (1, 4), splits=9)

    def test_logarithms_of_what_sees_nothing(self):
        case = self.case(Cache((0, 70, 2), 64, 2), (1, 2), queries=4, splits=3)
        out = self.folder / "lse_out.npy"
        mistake = mistake_of(replace(case, options=(*case.options, f"--out=lse={out}")))
        self.assertFalse(mistake, mistake)
        rows = load(out, "f32", 4)
        nothing = float("-inf")
        self.assertEqual(rows[:2], [[nothing] * 4] * 2)
        self.assertNotIn(nothing, sum(rows[2:4], []))
        self.assertTrue(all(row[:2] == [nothing] * 2 and row[2] > nothing for row in rows[4:]), rows)

    def test_other_orders_of_execution(self):
        case = self.case(Cache((200, 90), 32, 7), (2, 2), queries=2, splits=2, PIECE=32, STAGES=2)
        mistake = mistake_of(replace(case, options=(*case.options, "--schedules", "8")))
        self.assertFalse(mistake, mistake)


# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = (
    ("wait full.at(n);", "", "race"),
    ("ahead = n + STAGES - 1;", "ahead = n + STAGES;", "deadlock"),
    ("if (key + TILE > length) clear", "if (key + TILE > length + TILE) clear", ""),
    ("if (key + TILE > (CAUSAL ? length - S + 1 : length)) s", "if (key + TILE > length) s", ""),
    ("/ sharing + length - S + 1", "+ length - S + 1", ""),
    ("__min(length, (strip", "__max(length, (strip", ""),
    ("first = part * each;", "first = 0;", "axis-unread"),
    ("count = __min(each, cdiv(length, TILE) - first)", "count = __min(each, length / TILE - first)", ""),
    ("page_table.at(b, __min(key + i * PIECE, last) / P)", "page_table.at(b, (key + i * PIECE) / P)", "out-of-bounds"),
    ("page_table.at(b, __min(key + i * PIECE, last) / P)", "page_table.at(b, __min(key, last) / P)", ""),
    ("% P / PIECE", "/ PIECE", ""),
    ("if (r >= count) tile", "if (r > count) tile", ""),
    ("g = 0;\n      i += 1;", "g = 0;", ""),
    ("q_s {0}", "q_s", "uninitialised-read"),
    ("h * sharing + g,", "g,", ""),
    ("weights += weight;", "weights += 1.0f;", ""),
    ("weight * sums.at(p,", "weight * sums.at(0,", ""),
    ("largest + __log(weights)", "__log(weights)", ""),
)


# The same of scores so large that later tiles have larger ones by more than the sums have room for.
MISTAKES_OF_GROWTH = (
    ("acc = acc * alpha;", "", ""),
    ("l = l * alpha +", "l = l +", ""),
)


class NegativeControl(OnCache):
    def test_mistakes_of_growth(self):
        for change in MISTAKES_OF_GROWTH:
            with self.subTest(change):
                kernel = self.broken(KERNEL, change)
                case = self.case(Cache((193, 330), 32, 11), (2, 2), queries=3, splits=2, kernel=kernel, scale=2.5, PIECE=32)
                self.assertIn("outside", mistake_of(replace(case, options=(*case.options, "--check", "full"))))

    def test_mistakes(self):
        for change in MISTAKES:
            with self.subTest(change):
                kernel = self.broken(KERNEL, change)
                cache = Cache((193, 330), 32, 11)
                case = self.case(cache, (2, 2), queries=3, splits=2, kernel=kernel, PIECE=32, STAGES=2)
                self.assertIn(change[2] or "outside", mistake_of(replace(case, options=(*case.options, "--check", "full"))))


if __name__ == "__main__":
    unittest.main(verbosity=1)
